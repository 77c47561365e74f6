//! SIGKILL at any instant of a run: what comes after finds the cluster, restores it, and leaves one record a run.
//!
//! Nothing is asserted about times. Instants are drawn from a seeded generator over a run's length as it was measured
//! on this machine, every other one within a stage that was drawn first, so that short stages are met too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::reader::{self, Held, differences, held};
use crate::served::{FACTOR, SCENARIOS, Served};

/// Kills without the variable: each kind of moment is met a few times.
const KILLS: u64 = 20;
/// How many kills to do.
const VARIABLE: &str = "BREAKAGE_KILLS";
/// Of these the first are done while a fixture is made for the first time.
const FIRST_KILLS: u64 = 4;
const WORKSPACE: &str = "lasting";

/// A small generator of its own (splitmix64), so that a failure can be repeated from its number.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Somewhere between two instants.
    fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let parts = 1 << 20;
        let part = u32::try_from(self.next() % u64::from(parts)).unwrap();
        from + to.saturating_sub(from) * part / parts
    }
}

/// A run's stages on the wall's clock, from the start of its process.
struct Lengths {
    stages: Vec<(String, Duration, Duration)>,
    whole: Duration,
}

impl Lengths {
    /// Measures one whole run, which nobody kills.
    fn measured(served: &Served, seed: u64) -> Lengths {
        let started = Instant::now();
        let mut command = served.run(WORKSPACE, &[SCENARIOS[0], "--seed", &seed.to_string()]);
        assert!(
            command.status().unwrap().success(),
            "{}",
            served.told(WORKSPACE)
        );
        let whole = started.elapsed();
        let summary = served.printed(WORKSPACE).remove(0);
        let ms = |value: &Value| Duration::from_millis(value.as_u64().unwrap()) / FACTOR;
        let run = ms(&summary["virtual_ms"]);
        let before = whole.saturating_sub(run);
        let stages = summary["stages"].as_array().unwrap().iter().map(|entry| {
            (
                entry["stage"].as_str().unwrap().to_owned(),
                before + ms(&entry["started_ms"]),
                before + ms(&entry["ended_ms"]),
            )
        });
        Lengths {
            stages: stages.collect(),
            whole,
        }
    }

    /// The instant of a kill, and what it was aimed at.
    fn instant(&self, kill: u64, draw: &mut Draw) -> (String, Duration) {
        if kill.is_multiple_of(2) {
            return (
                "anywhere".to_owned(),
                draw.between(Duration::ZERO, self.whole),
            );
        }
        let stage = &self.stages[usize::try_from(kill / 2).unwrap() % self.stages.len()];
        (stage.0.clone(), draw.between(stage.1, stage.2))
    }
}

/// What was counted.
#[derive(Default)]
struct Tally {
    aimed: BTreeMap<String, u32>,
    /// What the first one to come afterwards found.
    found: BTreeMap<String, u32>,
    /// Seen by the reader, straight after the kill.
    differing: u32,
    restored: u32,
}

impl Tally {
    fn count(map: &mut BTreeMap<String, u32>, what: &str) {
        *map.entry(what.to_owned()).or_default() += 1;
    }
}

/// Starts a run, kills it at an instant, and answers whether it had ended before.
fn kill_at(served: &Served, args: &[&str], instant: Duration) -> bool {
    let mut running = served.run(WORKSPACE, args).spawn().unwrap();
    std::thread::sleep(instant);
    let ended = running.try_wait().unwrap().is_some();
    // SIGKILL: nothing of ours runs after it.
    running.kill().unwrap();
    running.wait().unwrap();
    ended
}

/// The one word for what a recovery says of the cluster.
fn found(restored: &Value) -> String {
    let outcomes: BTreeSet<&str> = restored["clusters"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|cluster| cluster["runs"].as_array().unwrap())
        .map(|run| match run["outcome"].as_str().unwrap() {
            "undone" if run["restored"].as_array().unwrap().is_empty() => "fault not there",
            "undone" => "fault there",
            "cut-off" => "cut off without a fault",
            other => other,
        })
        .collect();
    match outcomes.into_iter().next() {
        Some(outcome) => outcome.to_owned(),
        None => "nothing pending".to_owned(),
    }
}

fn assert_as_before(served: &Served, before: &Held, context: &str) {
    let now = held(&served.url);
    let differences = differences(before, &now);
    assert!(differences.is_empty(), "{context}: {differences:#?}");
    let unready = reader::unready(&served.url);
    assert!(unready.is_empty(), "{context}: {unready:#?}");
}

/// Every run id stands once, and one record belongs to each planned seed.
fn assert_one_record_each(served: &Served, planned: &BTreeMap<u64, bool>) -> BTreeMap<String, u32> {
    let records = served.records(WORKSPACE);
    let mut of_seed: BTreeMap<u64, u32> = BTreeMap::new();
    let mut states = BTreeMap::new();
    for (run, state) in &records {
        let seed = run.rsplit('-').nth(1).unwrap().parse().unwrap();
        *of_seed.entry(seed).or_default() += 1;
        Tally::count(&mut states, state);
    }
    for (seed, must) in planned {
        let count = of_seed.remove(seed).unwrap_or(0);
        assert!(
            count == 1 || (count == 0 && !must),
            "seed {seed}: {count} records of {records:?}"
        );
    }
    assert!(
        of_seed.is_empty(),
        "records that nobody planned: {of_seed:?}"
    );
    states
}

#[test]
fn whatever_a_killed_run_leaves_is_restored_and_every_planned_run_has_one_record() {
    let kills = std::env::var(VARIABLE).map_or(KILLS, |text| text.parse().unwrap());
    let served = Served::start();
    let mut draw = Draw(7);
    let mut tally = Tally::default();
    // Seed, and whether it certainly was planned.
    let mut planned: BTreeMap<u64, bool> = BTreeMap::new();
    let empty = held(&served.url);
    let whole =
        killed_while_the_fixture_is_made(&served, &empty, &mut draw, &mut planned, &mut tally);

    // A control run: the fixture stands, and no fault was ever written.
    let mut control = served.run(WORKSPACE, &[SCENARIOS[0], "--seed", "100", "--healthy"]);
    assert!(
        control.status().unwrap().success(),
        "{}",
        served.told(WORKSPACE)
    );
    planned.insert(100, true);
    let before = held(&served.url);
    assert_ne!(before, empty);
    for whole in whole {
        assert_eq!(differences(&before, &whole), [""; 0]);
    }
    let lengths = Lengths::measured(&served, 101);
    planned.insert(101, true);
    assert_as_before(&served, &before, "a whole run");

    for kill in 0..kills.saturating_sub(FIRST_KILLS) {
        let (aim, instant) = lengths.instant(kill, &mut draw);
        one_kill(
            &served,
            &before,
            (kill, &aim, instant),
            &mut planned,
            &mut tally,
        );
    }
    let states = assert_one_record_each(&served, &planned);
    println!(
        "{kills} kills aimed at {:?}; found afterwards {:?}; {} with the cluster differing; {} restored; {} records: \
         {states:?}",
        tally.aimed,
        tally.found,
        tally.differing,
        tally.restored,
        states.values().sum::<u32>()
    );
}

/// One kill, what comes after it, and whether all is as before then.
fn one_kill(
    served: &Served,
    before: &Held,
    (kill, aim, instant): (u64, &str, Duration),
    planned: &mut BTreeMap<u64, bool>,
    tally: &mut Tally,
) {
    // The last figure tells repetitions apart.
    let seed = 1000 + 10 * kill;
    let scenario = SCENARIOS[usize::try_from(kill).unwrap() % SCENARIOS.len()];
    let label = format!("kill {kill} of {scenario}, {aim}, after {instant:?}");
    let reps = if kill % 5 == 4 { 3 } else { 1 };
    let (seed_text, reps_text) = (seed.to_string(), reps.to_string());
    // Nobody repairs: the fault is there until the end. Runs that are to reach their end are repaired.
    let agent = if ["anywhere", "settle", "undo", "clean"].contains(&aim) && kill % 4 != 0 {
        "rules"
    } else {
        "noop"
    };
    let args = [
        scenario, "--seed", &seed_text, "--reps", &reps_text, "--agent", agent,
    ];
    let ended = kill_at(served, &args, instant);
    let differs = held(&served.url) != *before;
    tally.differing += u32::from(differs);
    for repetition in 0..reps {
        planned.insert(seed + repetition, differs || ended);
    }
    Tally::count(&mut tally.aimed, aim);
    if (kill / 2) % 2 == 0 {
        Tally::count(&mut tally.found, &found(&served.restore(WORKSPACE)));
    } else {
        let with_a_fault = kill % 2 == 1;
        next_run(served, seed + 9, with_a_fault, tally);
        planned.insert(seed + 9, true);
    }
    assert_as_before(served, before, &label);
    tally.restored += 1;
}

/// The next run does what `runs restore` does, says so, and then is a run like any other.
fn next_run(served: &Served, seed: u64, with_a_fault: bool, tally: &mut Tally) {
    let seed = seed.to_string();
    let mut args = vec![SCENARIOS[1], "--seed", &seed];
    if !with_a_fault {
        args.extend(["--healthy", "--agent", "noop"]);
    }
    let status = served.run(WORKSPACE, &args).status().unwrap();
    let told = served.told(WORKSPACE);
    assert!(status.success(), "{told}");
    assert_eq!(served.printed(WORKSPACE)[0]["state"], "scored");
    let found = if told.contains("its fault is undone") {
        "fault there"
    } else if told.contains("its fault was not, or no longer") {
        "fault not there"
    } else if told.contains("before its fault was written") {
        "cut off without a fault"
    } else if told.contains("recorded as not_run") {
        "not-run"
    } else {
        "nothing pending"
    };
    Tally::count(&mut tally.found, found);
}

/// Kills before there ever was a state to come back to: the namespaces that had been made are gone afterwards. Where the
/// fixture stood whole before the kill came, it stands; answers what stood then.
fn killed_while_the_fixture_is_made(
    served: &Served,
    empty: &Held,
    draw: &mut Draw,
    planned: &mut BTreeMap<u64, bool>,
    tally: &mut Tally,
) -> Vec<Held> {
    let mut whole = Vec::new();
    for kill in 0..FIRST_KILLS {
        let seed = (10 + kill).to_string();
        let args = [SCENARIOS[0], "--seed", seed.as_str()];
        let at_first = held(&served.url);
        let mut running = served.run(WORKSPACE, &args).spawn().unwrap();
        // The first two at any moment, the others once the first namespace, or else the fault, can be seen.
        if kill >= 2 {
            reader::wait_for("a change", || held(&served.url) != at_first);
        }
        std::thread::sleep(draw.between(Duration::ZERO, Duration::from_millis(150)));
        running.kill().unwrap();
        running.wait().unwrap();
        let differs = held(&served.url) != *empty;
        planned.insert(10 + kill, differs);
        Tally::count(&mut tally.aimed, "first fixture");
        let restored = served.restore(WORKSPACE);
        Tally::count(&mut tally.found, &found(&restored));
        let now = held(&served.url);
        if restored["clusters"][0]["proof"]["state"] == "as-reference" {
            whole.push(now);
        } else {
            let left = differences(empty, &now);
            assert!(left.is_empty(), "first kill {kill}: {left:#?}");
        }
        tally.restored += 1;
    }
    whole
}
