//! SIGKILL in every stage of a run on a real cluster: `runs restore` brings back what was, and each run has one record.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::terminal::{STAGES, Watched};
use crate::tier::{Tier, WORKSPACE, take};
use crate::whole;

/// Seeds of these runs, apart from those of other tests in the same workspace; the last figure is the repetition's.
const FIRST_SEED: u64 = 5_000;
/// Kills of the whole tier: each stage is met twice, and four of them once more.
const WHOLE: u64 = 20;
/// Two objects are written for this one, and the agent repairs it with another value than there was.
const TWO_OBJECTS: &str = "secret-missing-key-advocate";
/// Here the fault is one field, and one that the agent leaves alone stands until the undo.
const ONE_FIELD: &str = "replicas-zero-advocate";

/// One kill: where it is aimed, what runs, and how far into the stage at most.
struct Aim {
    stage: usize,
    scenario: &'static str,
    agent: &'static str,
    within: Duration,
}

impl Aim {
    fn number(kill: u64) -> Aim {
        let stage = usize::try_from(kill).unwrap() % STAGES.len();
        let (scenario, agent, within_ms) = match STAGES[stage] {
            "prepare" => (TWO_OBJECTS, "noop", 4_000),
            "healthy" => (ONE_FIELD, "noop", 8_000),
            // As long as the writes themselves take.
            "inject" => (TWO_OBJECTS, "noop", 15),
            "manifest" => (TWO_OBJECTS, "noop", 8_000),
            "work" => (TWO_OBJECTS, "rules", 30_000),
            "settle" => (ONE_FIELD, "noop", 20_000),
            "undo" => (TWO_OBJECTS, "rules", 15),
            "clean" => (TWO_OBJECTS, "rules", 1_000),
            other => unreachable!("no stage {other}"),
        };
        Aim {
            stage,
            scenario,
            agent,
            within: Duration::from_millis(within_ms),
        }
    }

    /// A fraction of the stage that differs from kill to kill and is the same in every run of the tests.
    fn delay(&self, kill: u64) -> Duration {
        let part = u32::try_from(kill * 7 % 20).unwrap();
        self.within * part / 20
    }
}

#[derive(Default)]
struct Tally {
    rows: Vec<[String; 6]>,
    differing: u32,
}

#[test]
fn a_run_killed_in_any_stage_is_restored_and_has_one_record() {
    let Some(tier) = take() else { return };
    let kills = if whole::wanted() {
        WHOLE
    } else {
        STAGES.len() as u64
    };
    let before = tier.held();
    let earlier = tier.records(WORKSPACE);
    let mut tally = Tally::default();
    let mut planned = BTreeMap::new();
    for kill in 0..kills {
        let certainly = one_kill(&tier, kill, &before, &mut tally);
        planned.insert(FIRST_SEED + 10 * kill, certainly);
    }
    let states = assert_one_record_each(&tier, &earlier, &planned);
    whole::print_table(
        &[
            "aimed at",
            "shown",
            "scenario",
            "agent",
            "found",
            "restored in",
        ],
        &tally.rows,
    );
    println!(
        "{kills} kills, {} with the cluster differing straight after; records: {states:?}",
        tally.differing
    );
    assert!(tally.differing > 0, "no kill met anything in the cluster");
}

/// One kill and what comes after it; answers whether the run had certainly been planned.
fn one_kill(tier: &Tier, kill: u64, before: &crate::held::Held, tally: &mut Tally) -> bool {
    let aim = Aim::number(kill);
    let seed = (FIRST_SEED + 10 * kill).to_string();
    let args = [aim.scenario, "--agent", aim.agent, "--seed", &seed];
    let mut run = Watched::start(tier, WORKSPACE, &args);
    run.wait_for(aim.stage);
    std::thread::sleep(aim.delay(kill));
    let shown = run.kill();
    let differs = tier.held() != *before;
    tally.differing += u32::from(differs);
    let label = format!("kill {kill} in {}", STAGES[aim.stage]);
    let started = Instant::now();
    let restored = tier.restore(WORKSPACE);
    let took = started.elapsed();
    tier.assert_as_before(before, &label);
    tally.rows.push([
        STAGES[aim.stage].to_owned(),
        shown.unwrap_or("had ended").to_owned(),
        aim.scenario.to_owned(),
        aim.agent.to_owned(),
        outcome(&restored),
        format!("{:.1} s", took.as_secs_f64()),
    ]);
    // A run that showed its first stage had been planned before that.
    shown.is_some()
}

/// What the restore says that it met.
fn outcome(restored: &Value) -> String {
    let runs = restored["clusters"].as_array().into_iter().flatten();
    let mut outcomes: Vec<String> = runs
        .flat_map(|cluster| cluster["runs"].as_array().into_iter().flatten())
        .map(|run| {
            let restored = run["restored"].as_array().map_or(0, Vec::len);
            match run["outcome"].as_str().unwrap() {
                "undone" if restored == 0 => "fault not there".to_owned(),
                "undone" => "fault there".to_owned(),
                other => other.to_owned(),
            }
        })
        .collect();
    outcomes.dedup();
    match outcomes.join(", ") {
        none if none.is_empty() => "nothing pending".to_owned(),
        some => some,
    }
}

/// Every killed run stands once among the records, and nothing else came in.
fn assert_one_record_each(
    tier: &Tier,
    earlier: &[(String, String)],
    planned: &BTreeMap<u64, bool>,
) -> BTreeMap<String, u32> {
    let mut states: BTreeMap<String, u32> = BTreeMap::new();
    let mut of_seed: BTreeMap<u64, u32> = BTreeMap::new();
    for (run, state) in tier.records(WORKSPACE) {
        if earlier.iter().any(|(known, _)| *known == run) {
            continue;
        }
        let seed = run.rsplit('-').nth(1).unwrap().parse().unwrap();
        *of_seed.entry(seed).or_default() += 1;
        *states.entry(state).or_default() += 1;
    }
    for (seed, certainly) in planned {
        let count = of_seed.remove(seed).unwrap_or(0);
        assert!(
            count == 1 || (count == 0 && !certainly),
            "seed {seed}: {count} records"
        );
    }
    assert!(of_seed.is_empty(), "nobody planned {of_seed:?}");
    states
}
