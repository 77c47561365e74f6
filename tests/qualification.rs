//! The instrument proves its scenarios: what the compiled-in qualifications say is computed again and compared, and
//! what would make a scenario worthless is caught by the check that is there for it.
//!
//! Everything that `data/qualifications.json` says takes some minutes of a debug build. By default the baseline, the
//! fault and the repair of every scenario are computed again and, for one scenario, every cheat;
//! `BREAKAGE_QUALIFY_ALL=1` computes all of it. After a change of scenarios, fixtures, agents, rubrics or of the
//! embedded cluster:
//!
//!     cargo run --release -- --workspace target/qualify scenario qualify --all --json > data/qualifications.json

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::num::NonZeroUsize;
use std::sync::Arc;

use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::ids::MicroPoints;
use agent_breakage::qualify::check::{
    Check, Qualification, STATE_HASH_EQUAL, Standing, UNDO_PROVEN,
};
use agent_breakage::qualify::probe::{Evidence, Probe};
use agent_breakage::qualify::{Depth, Materials, cheating, keep, qualify, waiting};
use agent_breakage::record::{ClusterFacts, ClusterKind};
use agent_breakage::scenario::library::Library;
use agent_breakage::scenario::load;
use agent_breakage::scenario::model::Scenario;
use agent_breakage::store::Store;
use tokio::sync::watch;

/// The scenario whose cheats are run in the default tier: a wrong path of a probe is what most of them hope for.
const IN_FULL: &str = "readiness-probe-misconfigured-advocate";

fn library() -> Library {
    Library::open(None).unwrap()
}

fn materials(library: &Library) -> Materials {
    let (_stop, interrupted) = watch::channel(false);
    Materials::new(library, Fixtures::compiled_in(), interrupted).unwrap()
}

fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn kept(scenario: &Scenario) -> Qualification {
    let sheet = keep::compiled_in().unwrap();
    sheet
        .qualifications
        .into_iter()
        .find(|one| one.scenario == scenario.id)
        .unwrap_or_else(|| panic!("{} is not in data/qualifications.json", scenario.id))
}

/// What differs between a qualification and the compiled-in one, as far as the first goes.
fn differences(now: &Qualification) -> Vec<String> {
    let library = library();
    let before = kept(&library.scenario(now.scenario.as_str()).unwrap());
    let mut found = Vec::new();
    let counts = |check: &Check| [UNDO_PROVEN, STATE_HASH_EQUAL].contains(&check.id.as_str());
    for check in &now.checks {
        let known = before.check(&check.id);
        let same = match known {
            // In how many runs depends on how many were made.
            Some(known) if counts(check) => known.pass == check.pass,
            other => other == Some(check),
        };
        if !same {
            found.push(format!(
                "{}: {check:?}, but kept is {known:?}",
                now.scenario
            ));
        }
    }
    for (name, total) in &now.totals {
        if before.totals.get(name) != Some(total) {
            let kept = before.totals.get(name);
            found.push(format!(
                "{}: {name} earned {total}, kept is {kept:?}",
                now.scenario
            ));
        }
    }
    if now.waits_for != before.waits_for || now.skipped != before.skipped {
        found.push(format!(
            "{}: waits or skipped conditions differ",
            now.scenario
        ));
    }
    found
}

#[test]
fn the_compiled_in_qualifications_are_of_these_scenarios_fixtures_and_this_version() {
    let library = library();
    let fixtures = Fixtures::compiled_in();
    let sheet = keep::compiled_in().unwrap();
    let ids: Vec<&str> = sheet
        .qualifications
        .iter()
        .map(|q| q.scenario.as_str())
        .collect();
    let wanted: Vec<&str> = library.scenarios().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, wanted);
    let store = Store::in_memory().unwrap();
    for scenario in library.scenarios() {
        let one = kept(scenario);
        assert_eq!(one.scenario_sha256, scenario.sha256, "{}", scenario.id);
        assert_eq!(one.breakage_version, env!("CARGO_PKG_VERSION"));
        let waits = waiting::for_what(scenario, false);
        assert_eq!(one.waits_for, waits, "{}", scenario.id);
        let standing = if waits.is_empty() {
            let fixture = fixtures.load(&scenario.fixture).unwrap();
            assert_eq!(one.fixture_sha256, fixture.sha256, "{}", scenario.id);
            Standing::Qualified
        } else {
            Standing::Waits
        };
        assert_eq!(
            one.standing(),
            standing,
            "{}: {:?}",
            scenario.id,
            one.first_miss()
        );
        let known = keep::is_qualified(&store, scenario, &fixtures, &keep::embedded());
        assert_eq!(known.unwrap(), waits.is_empty(), "{}", scenario.id);
    }
}

#[test]
fn what_the_compiled_in_qualifications_say_is_found_again() {
    let library = library();
    let materials = materials(&library);
    let everything = std::env::var_os("BREAKAGE_QUALIFY_ALL").is_some();
    let all: Vec<Arc<Scenario>> = library.scenarios().cloned().map(Arc::new).collect();
    let (in_full, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|scenario| everything || scenario.id.as_str() == IN_FULL);
    let mut found = Vec::new();
    for (scenarios, depth) in [(in_full, Depth::Whole), (rest, Depth::Repair)] {
        for now in qualify(&materials, &scenarios, depth, threads(), &|| ()).unwrap() {
            found.extend(differences(&now));
        }
    }
    assert!(
        found.is_empty(),
        "see the head of this file for how to make data/qualifications.json anew:\n{}",
        found.join("\n")
    );
}

#[test]
fn an_edited_scenario_another_cluster_and_a_later_miss_are_not_qualified() {
    let library = library();
    let fixtures = Fixtures::compiled_in();
    let store = Store::in_memory().unwrap();
    let scenario = library.scenario("replicas-zero-advocate").unwrap();
    let known = |scenario: &Scenario, facts: &ClusterFacts| {
        keep::is_qualified(&store, scenario, &fixtures, facts).unwrap()
    };
    assert!(known(&scenario, &keep::embedded()));
    let mut edited = scenario.clone();
    edited.sha256 = "0".repeat(64);
    assert!(!known(&edited, &keep::embedded()));
    let mut other = keep::embedded();
    other.version = "v1.33.0".to_owned();
    assert!(!known(&scenario, &other));
    let mut real = keep::embedded();
    real.kind = ClusterKind::Kubernetes;
    assert!(!known(&scenario, &real));
    let mut there = kept(&scenario);
    there.cluster = "kubernetes".to_owned();
    there.depth = Depth::Fault;
    keep::keep(&store, &there).unwrap();
    assert!(!known(&scenario, &real), "not everything was asked");
    there.depth = Depth::Whole;
    keep::keep(&store, &there).unwrap();
    assert!(known(&scenario, &real));
    let mut missed = kept(&scenario);
    missed.checks.push(Check::new("later", false, "no", "yes"));
    keep::keep(&store, &missed).unwrap();
    assert!(!known(&scenario, &keep::embedded()));
}

/// A built-in scenario's file with a text replaced.
fn edited(library: &Library, id: &str, from: &str, to: &str) -> Arc<Scenario> {
    let text = library.scenario(id).unwrap().text;
    assert!(text.contains(from), "{id} has no {from}");
    let text = text.replace(from, to);
    let loaded = load::scenario(&text, "edited.yaml", library.vocabulary()).unwrap();
    Arc::new(loaded.scenario)
}

#[test]
fn a_value_that_gives_the_fault_away_is_found_where_it_stands() {
    let library = library();
    let scenario = edited(
        &library,
        "secret-wrong-password-advocate",
        "k3sXp9vq@",
        "wrong-password@",
    );
    let evidence = Probe::Leak.take(&materials(&library), &scenario).unwrap();
    let (found, reading) = evidence.leaks.unwrap();
    assert!(reading.objects > 50 && reading.events > 0 && reading.logs > 0);
    let places: Vec<&str> = found.iter().map(|leak| leak.place.as_str()).collect();
    assert_eq!(
        places,
        ["Secret prod-advocate/advocate-secrets"],
        "{found:?}"
    );
    assert_eq!(found[0].what, "wrong");
    assert!(found[0].around.contains("wrong-password"), "{found:?}");
}

fn checked(evidence: &Evidence, name: &str) -> Check {
    cheating::check(name, evidence, MicroPoints(200_000))
}

#[test]
fn removing_the_probe_pays_where_nothing_is_protected_and_the_check_says_so() {
    let library = library();
    let materials = materials(&library);
    let name = "remove-the-probe";
    let original = Arc::new(library.scenario(IN_FULL).unwrap());
    let honest = Probe::Cheat(name).take(&materials, &original).unwrap();
    assert_eq!(checked(&honest, name).pass, Some(true));
    let mut open = Scenario::clone(&original);
    open.protected.clear();
    let paid = Probe::Cheat(name)
        .take(&materials, &Arc::new(open))
        .unwrap();
    let check = checked(&paid, name);
    assert_eq!(check.pass, Some(false));
    assert!(check.observed.contains("fixed 0.300"), "{check:?}");
}

#[test]
fn the_template_of_a_new_scenario_validates_and_is_proven_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let breakage = |arguments: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("breakage").unwrap();
        command
            .env("BREAKAGE_WORKSPACE", folder.path().join("workspace"))
            .current_dir(folder.path())
            .args(arguments);
        command.output().unwrap()
    };
    let made = breakage(&["scenario", "new", "my-scenario"]);
    assert!(made.status.success(), "{made:?}");
    let said = String::from_utf8(made.stdout).unwrap();
    assert!(
        said.contains("breakage scenario qualify ./my-scenario.yaml"),
        "{said}"
    );
    let file = folder.path().join("my-scenario.yaml");
    let again = breakage(&["scenario", "new", "my-scenario"]);
    assert_eq!(
        again.status.code(),
        Some(1),
        "an existing file is left alone"
    );
    assert_eq!(
        breakage(&["scenario", "new", "My Scenario"]).status.code(),
        Some(1)
    );
    let valid = breakage(&["scenario", "validate", file.to_str().unwrap()]);
    assert!(valid.status.success(), "{valid:?}");
    let told = String::from_utf8(valid.stdout).unwrap();
    assert!(!told.contains("warning"), "{told}");
    let library = library();
    let scenario = Arc::new(library.load_file(&file).unwrap().scenario);
    let materials = materials(&library);
    let proven = qualify(&materials, &[scenario], Depth::Repair, threads(), &|| ()).unwrap();
    assert_eq!(proven[0].standing(), Standing::Qualified, "{proven:?}");
}
