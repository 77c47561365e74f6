//! Random combinations of trouble: what holds for every run holds for all of them.

use std::time::Duration;

use agent_breakage::agent::Agent;
use agent_breakage::agent::noop::Noop;
use agent_breakage::record::{RunState, StageName};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::layer::{ALWAYS, Act, Trouble, Verb, Whose};
use crate::workspace::{Deed, Mender, Shop, broken};

/// Cases unless PROPTEST_CASES says otherwise: a few seconds in a debug build.
const CASES: u32 = 40;

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => proptest::sample::select(vec![
            Act::Refuse(409, None),
            Act::Refuse(429, None),
            Act::Refuse(429, Some(3)),
            Act::Refuse(500, None),
            Act::Refuse(503, None),
            Act::Refuse(403, None),
            Act::Hang,
            Act::DropBefore,
            Act::DropAfter,
            Act::Garble,
            Act::Oldest,
            Act::Frozen,
        ]),
        1 => (1u64..10_000).prop_map(|s| Act::Leap(Duration::from_secs(s))),
        2 => proptest::sample::select(vec![
            Act::Do(Deed::Delete("Deployment", "web")),
            Act::Do(Deed::Recreate("Deployment", "web")),
            Act::Do(Deed::Delete("Secret", "web-key")),
            Act::Do(Deed::Recreate("Secret", "web-key")),
            Act::Do(Deed::Delete("Namespace", "shop")),
            Act::Do(Deed::DeletePods),
        ]),
    ]
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let stages = proptest::sample::select(vec![
        StageName::Prepare,
        StageName::Healthy,
        StageName::Inject,
        StageName::Manifest,
        StageName::Work,
        StageName::Settle,
        StageName::Undo,
        StageName::Clean,
    ]);
    let whose = prop_oneof![3 => Just(Whose::Ours), 1 => Just(Whose::Agents)];
    let verbs = proptest::sample::select(vec![Verb::Any, Verb::Reads, Verb::Writes]);
    let paths = proptest::sample::select(vec!["", "", "deployments", "secrets", "pods"]);
    let times = prop_oneof![3 => 1usize..8, 1 => Just(ALWAYS)];
    (stages, whose, verbs, paths, 0usize..12, times, acts()).prop_map(
        |(stage, whose, verb, path, after, times, act)| Trouble {
            stage,
            whose,
            verb,
            path,
            after,
            // Deeds and leaps without end would be another world, not trouble with this one.
            times: match act {
                Act::Do(_) | Act::Leap(_) => 1,
                _ => times,
            },
            act,
        },
    )
}

/// Nobody but the run's own requests is in trouble: then what the detectors say must be the truth.
fn only_our_eyes(troubles: &[Trouble]) -> bool {
    troubles
        .iter()
        .all(|trouble| trouble.whose == Whose::Ours && !matches!(trouble.act, Act::Do(_)))
}

#[test]
fn no_combination_breaks_what_holds_for_every_run() {
    let shop = Shop::new();
    let config = Config {
        cases: std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|cases| cases.parse().ok())
            .unwrap_or(CASES),
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cases = (
        proptest::collection::vec(trouble(), 1..5),
        any::<bool>(),
        0u64..1000,
    );
    let run = |(troubles, mends, seed): (Vec<Trouble>, bool, u64)| {
        let agent: &dyn Agent = if mends { &Mender } else { &Noop };
        let outcome = shop.run(agent, &troubles, seed);
        let told = format!("{} with {troubles:?}", agent.name());
        prop_assert_eq!(broken(&outcome), Vec::<String>::new(), "{}", told);
        let record = &outcome.finished.record;
        let ours = matches!(record.state, RunState::FrameworkError { .. });
        if !ours && only_our_eyes(&troubles) {
            // A detector that cannot see says so; it never says the opposite of what is.
            prop_assert_eq!(record.detector.fixed, mends, "{}", told);
        }
        Ok(())
    };
    if let Err(failure) = runner.run(&cases, run) {
        panic!("{failure}");
    }
}
