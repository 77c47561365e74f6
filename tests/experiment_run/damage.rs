//! What was altered behind the tool's back is named by its place.

use agent_breakage::experiment::ledger::{Event, RunOutcome};
use agent_breakage::experiment::locked::Locked;
use agent_breakage::experiment::verify::Copy;
use agent_breakage::ids::{ExperimentId, RunId};
use agent_breakage::store::Batch;

use crate::bench::{Bench, Texts, lock, plan};

fn done() -> (Bench, Texts) {
    let bench = Bench::new(|plan| plan);
    assert!(bench.carry_out(2, |_| ()));
    let texts = bench.texts();
    (bench, texts)
}

/// The text with one byte at about this share of it replaced by another letter or digit.
fn flipped(text: &str, share: f64) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = (bytes.len() as f64 * share) as usize;
    while !bytes[at].is_ascii_alphanumeric() {
        at += 1;
    }
    bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
    String::from_utf8(bytes).unwrap()
}

#[test]
fn one_byte_anywhere_in_the_registration_is_named() {
    let (bench, texts) = done();
    for share in [0.0, 0.1, 0.33, 0.5, 0.77, 0.95] {
        let mut altered = texts.clone();
        altered.registration = flipped(&texts.registration, share);
        let found = altered.verify(&bench.library);
        assert_eq!(found.broken[0].place, "registration", "{share}");
    }
}

#[test]
fn one_byte_anywhere_in_the_ledger_is_named_with_its_entry() {
    let (bench, texts) = done();
    for place in 0..texts.ledger.len() {
        for share in [0.02, 0.3, 0.5, 0.8, 0.97] {
            let mut altered = texts.clone();
            altered.ledger[place].1 = flipped(&texts.ledger[place].1, share);
            let found = altered.verify(&bench.library);
            let named = format!("ledger entry {place}");
            assert!(
                found
                    .broken
                    .first()
                    .is_some_and(|one| one.place.starts_with(&named)),
                "{place} {share}: {:?}",
                found.broken
            );
        }
    }
}

#[test]
fn one_byte_anywhere_in_a_record_is_named_with_its_run() {
    let (bench, texts) = done();
    for (place, share) in [(0, 0.01), (1, 0.4), (2, 0.6), (3, 0.99)] {
        let mut altered = texts.clone();
        altered.records[place].1 = flipped(&texts.records[place].1, share);
        let found = altered.verify(&bench.library);
        let named = format!("record of run {}", texts.records[place].0);
        assert_eq!(found.broken[0].place, named);
    }
    let mut altered = texts;
    let (run, _) = altered.records.remove(2);
    let found = altered.verify(&bench.library);
    assert_eq!(found.broken[0].place, format!("record of run {run}"));
    assert_eq!(found.broken[0].why, "it is missing");
}

#[test]
fn one_byte_of_the_corpus_is_named() {
    let (bench, texts) = done();
    let mut altered = texts.clone();
    altered.corpus = texts.corpus.as_deref().map(|text| flipped(text, 0.5));
    assert_eq!(altered.verify(&bench.library).broken[0].place, "corpus");
}

#[test]
fn an_entry_that_was_taken_out_is_missed() {
    let (bench, texts) = done();
    let mut altered = texts.clone();
    altered.ledger.remove(3);
    let found = altered.verify(&bench.library);
    assert_eq!(found.broken[0].place, "ledger entry 3");
    // With the chain mended, the plan still misses the run.
    let mended = texts.rechained(|events| drop(events.remove(3)));
    let found = mended.verify(&bench.library);
    let all: Vec<&str> = found.broken.iter().map(|one| one.why.as_str()).collect();
    assert!(
        all.iter().any(|why| why.contains("has no outcome")),
        "{all:?}"
    );
}

fn run_at(events: &mut [Event], place: usize) -> &mut agent_breakage::experiment::ledger::RunEntry {
    match &mut events[place] {
        Event::Ran(run) => run,
        other => panic!("{other:?}"),
    }
}

/// What verify says first of a ledger with an altered run in a chain that holds.
fn first_of(edit: impl Fn(&mut agent_breakage::experiment::ledger::RunEntry)) -> String {
    let (bench, texts) = done();
    let altered = texts.rechained(|events| edit(run_at(events, 2)));
    let found = altered.verify(&bench.library);
    assert!(
        found.broken[0].place.starts_with("ledger entry 2"),
        "{:?}",
        found.broken
    );
    found.broken[0].why.clone()
}

#[test]
fn a_run_that_was_set_aside_after_its_score_was_known_is_named() {
    let why = first_of(|run| run.is_final = false);
    assert!(why.contains("a scored run is set aside"), "{why}");
}

#[test]
fn a_score_that_the_record_does_not_give_is_named_by_its_field() {
    let why = first_of(|run| {
        if let RunOutcome::Scored { score } = &mut run.outcome {
            score.total.0 -= 10_000;
        }
    });
    assert!(why.contains("outcome.score.total"), "{why}");
}

#[test]
fn an_exclusion_that_the_record_does_not_give_is_named() {
    let why = first_of(|run| {
        run.outcome = RunOutcome::FrameworkError {
            code: agent_breakage::record::FrameworkCode::FaultVanished,
            message: "it is said".to_owned(),
        };
    });
    assert!(why.contains("excluded after 0 of 1"), "{why}");
}

#[test]
fn another_allocation_is_named() {
    let why = first_of(|run| run.cell.arm = agent_breakage::ids::ArmId::new("elsewhere"));
    assert!(why.contains("field cell is"), "{why}");
}

#[test]
fn a_record_of_the_experiment_that_its_ledger_does_not_know_is_named() {
    let (bench, texts) = done();
    let text = texts.records[0].1.clone();
    let other = RunId::new("put-there");
    let mut batch = Batch::default();
    let altered = text.replace(texts.records[0].0.as_str(), other.as_str());
    batch.record_as_kept(&other, altered);
    bench.store.write(&batch).unwrap();
    let found = bench.verify();
    assert_eq!(found.broken.len(), 1, "{:?}", found.broken);
    assert_eq!(found.broken[0].place, "record of run put-there");
}

#[test]
fn an_edited_copy_of_the_registration_is_named_and_a_missing_one_noted() {
    let (bench, mut texts) = done();
    let copy = |bytes: Option<Vec<u8>>| {
        let path = "experiments/x/registration.json".to_owned();
        Some(Copy { path, bytes })
    };
    texts.copy = copy(Some(texts.registration.clone().into_bytes()));
    let found = texts.verify(&bench.library);
    assert!(found.intact && found.notes.is_empty(), "{found:?}");
    texts.copy = copy(Some(flipped(&texts.registration, 0.5).into_bytes()));
    let found = texts.verify(&bench.library);
    assert_eq!(found.broken[0].place, "experiments/x/registration.json");
    texts.copy = copy(None);
    let found = texts.verify(&bench.library);
    assert!(found.intact);
    assert!(found.notes[0].contains("missing"), "{:?}", found.notes);
}

#[test]
fn an_id_that_begins_another_registrations_hash_finds_its_own_plan() {
    let bench = Bench::new(|plan| plan);
    let begins = &bench.hash.as_str()[..6];
    let mut plan = plan(&bench.library, 1, 3);
    plan.id = ExperimentId::new(begins);
    let named_so = lock(&bench.store, &bench.library, plan);
    let find = |text: &str| Locked::find(&bench.store, text).unwrap().hash;
    assert_eq!(find(begins), named_so);
    assert_eq!(find(named_so.as_str()), named_so);
    assert_eq!(find(bench.hash.as_str()), bench.hash);
    assert_eq!(find(&bench.hash.as_str()[..7]), bench.hash);
}
