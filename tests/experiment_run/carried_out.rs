//! Runs, their order, their seeds, their arms.

use agent_breakage::experiment::execute::ExecuteError;
use agent_breakage::experiment::ledger::chain::Ledger;
use agent_breakage::experiment::ledger::{Event, RunEntry, RunOutcome};
use agent_breakage::experiment::locked::Locked;
use agent_breakage::experiment::plan::{Retrieval, Tier, TierKind, Tiers, Writes};
use agent_breakage::experiment::seal::{self, How, Seal};
use agent_breakage::ids::RegistrationHash;
use agent_breakage::record::{FrameworkCode, Record};
use agent_breakage::run::recover::recover;
use agent_breakage::scenario::library::Library;

use crate::bench::{self, Bench, NOW, serving, with_control};

fn finals(runs: &[RunEntry]) -> Vec<(u64, bool)> {
    let mut finals: Vec<_> = runs
        .iter()
        .filter(|run| run.is_final)
        .map(|run| (run.planned, run.outcome.score().is_some()))
        .collect();
    finals.sort();
    finals
}

#[test]
fn every_planned_run_ends_once_in_the_planned_order_and_verifies() {
    let bench = Bench::new(|plan| plan);
    let mut blocks = Vec::new();
    let finished = bench.carry_out(2, |told| blocks.extend(told.block_complete));
    assert!(finished);
    assert_eq!(blocks, [0, 1]);
    let planned: Vec<u64> = bench.runs().iter().map(|run| run.planned).collect();
    assert_eq!(planned, [0, 1, 2, 3]);
    let found = bench.verify();
    assert!(found.intact, "{:?}", found.broken);
    assert_eq!((found.records, found.rescored), (4, Some(4)));
}

#[test]
fn one_thread_and_two_leave_the_same_ledger() {
    let ledgers: Vec<Vec<(u64, String)>> = [1, 2]
        .into_iter()
        .map(|jobs| {
            let bench = Bench::new(|plan| plan);
            bench.carry_out(jobs, |_| ());
            bench.store.ledger(bench.hash.as_str()).unwrap()
        })
        .collect();
    assert_eq!(ledgers[0], ledgers[1]);
}

#[test]
fn the_runs_of_a_pair_share_their_world_and_not_the_agents_stream() {
    let bench = Bench::new(|plan| with_control(plan, Retrieval::On(serving())));
    bench.carry_out(2, |_| ());
    let records: Vec<Record> = bench
        .runs()
        .iter()
        .map(|run| bench.store.record(&run.run_id).unwrap().unwrap())
        .collect();
    assert_eq!(records[0].seed, records[1].seed);
    assert_ne!(records[0].seed, records[2].seed);
    // Two equal arms: still two runs with streams of their own.
    assert_ne!(records[0].run_id, records[1].run_id);
    let stream = |record: &Record| record.experiment.as_ref().unwrap().agent_seed;
    assert_ne!(stream(&records[0]), stream(&records[1]));
}

#[test]
fn a_hard_control_is_served_nothing_and_the_treatment_something() {
    let bench = Bench::new(|plan| plan);
    bench.carry_out(2, |_| ());
    for run in bench.runs() {
        let served = !run.exposure.served.is_empty();
        assert_eq!(served, run.cell.arm.as_str() == "treatment", "{run:?}");
        assert!(run.exposure.queries > 0);
    }
}

#[test]
fn a_deterministic_control_that_is_served_anything_is_our_failure_and_says_how_near_it_was() {
    let everything = agent_breakage::experiment::plan::Serving {
        max_distance: Some(2_000_000),
        ..serving()
    };
    let bench = Bench::new(|plan| with_control(plan, Retrieval::DeterministicControl(everything)));
    assert!(bench.carry_out(2, |_| ()));
    let runs = bench.runs();
    let controls: Vec<&RunEntry> = runs
        .iter()
        .filter(|run| run.cell.arm.as_str() == "control")
        .collect();
    // One registered retry each.
    assert_eq!(controls.len(), 4);
    for run in controls {
        assert_eq!(run.outcome.code(), Some(FrameworkCode::ControlExposed));
        assert!(run.exposure.control_nearest.is_some_and(|near| near > 0));
        assert_eq!(run.is_final, run.attempt == 1);
    }
    assert!(bench.verify().intact);
}

#[test]
fn the_published_control_is_measured_before_every_run_and_passes_where_it_serves_nothing() {
    let tight = agent_breakage::experiment::plan::Serving {
        max_distance: Some(1),
        ..serving()
    };
    let bench = Bench::new(|plan| with_control(plan, Retrieval::DeterministicControl(tight)));
    assert!(bench.carry_out(2, |_| ()));
    for run in bench.runs() {
        let is_control = run.cell.arm.as_str() == "control";
        assert_eq!(run.exposure.control_nearest.is_some(), is_control);
        assert!(run.outcome.score().is_some());
    }
}

#[test]
fn a_placebo_shows_incidents_that_are_too_far_to_be_of_use_and_says_so() {
    let bench = Bench::new(|plan| {
        let mut plan = with_control(plan, Retrieval::Placebo(serving()));
        plan.blocks = 1;
        plan
    });
    bench.carry_out(2, |_| ());
    let runs = bench.runs();
    let of = |arm: &str| {
        runs.iter()
            .find(|run| run.cell.arm.as_str() == arm)
            .unwrap()
    };
    let (real, placebo) = (of("treatment"), of("control"));
    assert!(placebo.exposure.placebo && !real.exposure.placebo);
    let record = bench.store.record(&placebo.run_id).unwrap().unwrap();
    assert!(record.experiment.unwrap().placebo);
    assert!(!placebo.exposure.served.is_empty());
    let threshold = (record.retrieval.max_distance * 1e6) as u32;
    for (id, distance) in &placebo.exposure.served {
        assert!(*distance > threshold, "{id} is {distance} away");
    }
}

#[test]
fn tiers_are_nested_and_the_control_runs_once_for_all() {
    let tier = |id: &str, size, code| Tier {
        id: id.to_owned(),
        size,
        code,
    };
    let bench = Bench::new(|mut plan| {
        plan.blocks = 1;
        plan.tiers = Some(Tiers {
            kind: TierKind::Corpus,
            tiers: vec![
                tier("2", Some(2), -1),
                tier("5", Some(5), 0),
                tier("full", None, 1),
            ],
        });
        plan
    });
    bench.carry_out(2, |_| ());
    let runs = bench.runs();
    assert_eq!(runs.len(), 4);
    let size = |tier: &str| {
        let run = runs
            .iter()
            .find(|run| run.cell.tier.as_deref() == Some(tier));
        let record = bench.store.record(&run.unwrap().run_id).unwrap().unwrap();
        record.retrieval.corpus_size
    };
    assert_eq!((size("2"), size("5")), (2, 5));
    assert!(size("full") > 5);
}

#[test]
fn a_growing_corpus_serves_the_next_block_what_the_last_one_learned() {
    let sizes = |writes| {
        let bench = Bench::new(|mut plan| {
            plan.corpus.writes = writes;
            for arm in &mut plan.arms {
                arm.retrieval = Retrieval::On(agent_breakage::experiment::plan::Serving {
                    same_scenario: true,
                    ..serving()
                });
            }
            plan
        });
        bench.carry_out(2, |_| ());
        assert!(bench.verify().intact);
        let runs = bench.runs();
        let size = |at: usize| {
            let record = bench.store.record(&runs[at].run_id).unwrap().unwrap();
            record.retrieval.corpus_size
        };
        (size(0), size(3))
    };
    let (first, last) = sizes(Writes::Frozen);
    assert_eq!(first, last);
    let (first, last) = sizes(Writes::Growing);
    assert!(last > first, "{first} {last}");
}

#[test]
fn what_is_stopped_goes_on_with_the_same_runs() {
    let unbroken = Bench::new(|plan| plan);
    unbroken.carry_out(1, |_| ());
    let bench = Bench::new(|plan| plan);
    let mut told = 0;
    let finished = bench.carry_out(1, |_| {
        told += 1;
        if told == 2 {
            bench.stop.send_replace(true);
        }
    });
    assert!(!finished);
    bench.stop.send_replace(false);
    assert!(bench.carry_out(2, |_| ()));
    assert_eq!(finals(&bench.runs()), finals(&unbroken.runs()));
    let found = bench.verify();
    assert!(found.intact, "{:?}", found.broken);
    // An attempt that was not stopped has the id and the record of the unbroken experiment.
    let whole = unbroken.runs();
    for run in bench
        .runs()
        .iter()
        .filter(|run| run.is_final && run.attempt == 0)
    {
        assert_eq!(run.record_sha256, whole[run.planned as usize].record_sha256);
    }
}

#[test]
fn a_run_that_was_cut_off_is_told_and_redone_without_using_up_a_retry() {
    use agent_breakage::inject::journal::Place;
    use agent_breakage::run::planned::{Planned, Undertaking};
    let bench = Bench::new(|mut plan| {
        plan.exclusions.retries = 0;
        plan
    });
    let whole = Bench::new(|mut plan| {
        plan.exclusions.retries = 0;
        plan
    });
    whole.carry_out(1, |_| ());
    let first = whole.runs()[0].clone();
    // What a killed process leaves: the note that the run was under way.
    let mut blank = whole.store.record(&first.run_id).unwrap().unwrap();
    blank.actions.clear();
    let planned = Planned::new(Place::passing(), blank, 1).begun_at_once();
    drop(Undertaking::begin(bench.store.clone(), planned).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(recover(&bench.store, None)).unwrap();
    assert!(bench.carry_out(2, |_| ()));
    let runs = bench.runs();
    assert_eq!(runs.len(), 5);
    assert_eq!(runs[0].outcome.code(), Some(FrameworkCode::Crashed));
    assert!(!runs[0].is_final);
    assert_eq!(
        (runs[1].planned, runs[1].attempt, runs[1].is_final),
        (0, 1, true)
    );
    let found = bench.verify();
    assert!(found.intact, "{:?}", found.broken);
}

#[test]
fn a_record_without_its_entry_is_not_passed_over() {
    let bench = Bench::new(|plan| plan);
    let other = Bench::new(|plan| plan);
    other.carry_out(1, |_| ());
    let run = &other.runs()[0];
    let record = other.store.record(&run.run_id).unwrap().unwrap();
    bench.store.put_record(&record).unwrap();
    match bench.prepare() {
        Err(ExecuteError::Adopt(error)) => {
            assert!(error.to_string().contains(run.run_id.as_str()), "{error}");
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[test]
fn scores_are_sealed_until_the_end_or_a_registered_look_and_a_broken_seal_is_told() {
    let bench = Bench::new(|mut plan| {
        plan.looks = vec![1];
        plan
    });
    let locked = Locked::find(&bench.store, bench.hash.as_str()).unwrap();
    let plan = &locked.registration.plan;
    let open = |unseal| {
        let mut ledger = Ledger::open(bench.store.clone(), bench.hash.clone()).unwrap();
        seal::open(&mut ledger, &locked, "analyze", unseal, || NOW.to_owned())
    };
    let found = seal::seal(&bench.store, plan, &bench.entries());
    assert_eq!(found.unwrap(), Seal::Closed);
    assert!(open(false).unwrap_err().to_string().contains("0 of 4"));
    assert_eq!(seal::sealed(&bench.store).unwrap().len(), 1);
    // The first block and one run of the second.
    bench.carry_out(1, |told| {
        if told.run.planned == 2 {
            bench.stop.send_replace(true);
        }
    });
    bench.stop.send_replace(false);
    let opened = open(false).unwrap();
    assert_eq!(opened.how, How::Look { blocks: 1 });
    let seen = opened.entries.iter();
    let seen = seen.filter(|entry| matches!(&entry.event, Event::Ran(run) if run.block > 0));
    assert_eq!(seen.count(), 0);
    open(false).unwrap();
    let looks = |bench: &Bench| {
        let entries = bench.entries();
        let looked = entries
            .iter()
            .filter(|e| matches!(e.event, Event::Looked { .. }));
        let unsealed = entries
            .iter()
            .filter(|e| matches!(e.event, Event::Unsealed { .. }));
        (looked.count(), unsealed.count())
    };
    assert_eq!(looks(&bench), (1, 0));
    assert_eq!(open(true).unwrap().how, How::Unsealed);
    assert_eq!(looks(&bench), (1, 1));
    bench.carry_out(1, |_| ());
    assert_eq!(open(false).unwrap().how, How::Finished);
    assert!(seal::sealed(&bench.store).unwrap().is_empty());
    let notes = bench.verify().notes.join("\n");
    assert!(
        notes.contains("registered look") && notes.contains("the seal was broken"),
        "{notes}"
    );
}

#[test]
fn a_scored_line_sums_to_its_total() {
    let bench = Bench::new(|plan| plan);
    bench.carry_out(2, |_| ());
    for run in bench.runs() {
        let RunOutcome::Scored { score } = &run.outcome else {
            continue;
        };
        assert_eq!(
            agent_breakage::experiment::ledger::outcome::sum(score),
            score.total
        );
    }
}

#[test]
fn an_amended_registration_stays_sealed_until_the_one_that_took_over_is_finished() {
    let bench = Bench::new(|plan| plan);
    let library = Library::open(None).unwrap();
    let mut plan = Locked::find(&bench.store, bench.hash.as_str())
        .unwrap()
        .registration
        .plan;
    plan.blocks += 1;
    let successor = bench::lock(&bench.store, &library, plan.clone());
    let append = |hash: &RegistrationHash, event| {
        let mut ledger = Ledger::open(bench.store.clone(), hash.clone()).unwrap();
        ledger.append(NOW.to_owned(), event).unwrap();
    };
    let amended = Event::Amended {
        to: successor.clone(),
        reason: "a test".to_owned(),
    };
    append(&bench.hash, amended);
    let found = || seal::seal(&bench.store, &plan, &bench.entries()).unwrap();
    assert_eq!(found(), Seal::Closed);
    assert_eq!(seal::sealed(&bench.store).unwrap().len(), 2);
    append(&successor, Event::Finished { reason: None });
    assert_eq!(found(), Seal::Open);
    assert!(seal::sealed(&bench.store).unwrap().is_empty());
}
