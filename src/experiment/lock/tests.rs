//! Locking twice, other contents, amendments, and what is refused.

use super::*;
use crate::embed::BuiltIn;
use crate::experience::Reader;
use crate::experiment::amend::amend;
use crate::experiment::ledger::Entry;
use crate::experiment::load;
use crate::experiment::locked::Locked;
use crate::experiment::templates::template;

struct World {
    library: Library,
    fixtures: Fixtures,
    store: Store,
}

impl World {
    fn new() -> World {
        World {
            library: Library::open(None).unwrap(),
            fixtures: Fixtures::compiled_in(),
            store: Store::in_memory().unwrap(),
        }
    }

    fn resolve(&self, text: &str) -> Result<Resolved, LockError> {
        let loaded = load::plan(text, "my.yaml", &self.library).unwrap();
        let embedder = BuiltIn::Lexical.embedder();
        let snapshot = Reader::new(None).snapshot(embedder.as_ref()).unwrap();
        let materials = Materials {
            library: &self.library,
            fixtures: &self.fixtures,
            store: &self.store,
            snapshot: snapshot.without_quarantined(),
            clusters: BTreeMap::from([(None, keep::embedded())]),
        };
        resolve(&loaded, &materials)
    }

    fn lock(&self, text: &str, provenance: &Provenance) -> Result<Outcome, LockError> {
        lock(&self.store, &self.resolve(text)?, provenance)
    }

    fn locked(&self, hash: &RegistrationHash) -> Locked {
        Locked::find(&self.store, hash.as_str()).unwrap()
    }

    fn ledger(&self, hash: &RegistrationHash) -> Vec<Entry> {
        chain::read(&self.store, hash).unwrap()
    }
}

fn plan() -> &'static str {
    template("falsification").unwrap().text
}

fn longer() -> String {
    plan().replace("blocks: 20", "blocks: 40")
}

fn at(day: u8) -> Provenance {
    Provenance {
        at: format!("2026-03-{day:02}T10:00:00Z"),
        git_commit: Some("abc".to_owned()),
        git_dirty: true,
    }
}

#[test]
fn the_same_plan_is_locked_once_wherever_and_whenever() {
    let world = World::new();
    let first = world.lock(plan(), &at(1)).unwrap();
    assert!(first.is_new);
    let again = world.lock(plan(), &at(2)).unwrap();
    assert_eq!((&again.hash, again.is_new), (&first.hash, false));
    assert_eq!(world.ledger(&first.hash).len(), 1);
    let elsewhere = World::new().lock(plan(), &at(9)).unwrap();
    assert_eq!(elsewhere.hash, first.hash);
}

#[test]
fn what_is_kept_has_its_hash_and_names_everything_that_was_resolved() {
    let world = World::new();
    let outcome = world.lock(plan(), &at(1)).unwrap();
    let locked = world.locked(&outcome.hash);
    assert_eq!(canonical::sha256_hex(&locked.text), outcome.hash.as_str());
    let registration = &locked.registration;
    assert_eq!(registration.scenarios.len(), 3);
    for one in &registration.scenarios {
        assert!(one.qualified, "{}", one.id);
        assert_eq!(canonical::sha256_hex(&one.text), one.sha256);
    }
    assert!(registration.arms.iter().all(|arm| arm.simulation));
    assert!(!registration.operating.is_empty());
    let corpus = &registration.corpus;
    let kept = world
        .store
        .experiment_corpus(&corpus.sha256)
        .unwrap()
        .unwrap();
    let embedder = BuiltIn::Lexical.embedder();
    let thawed = Frozen::thaw(&kept, embedder.as_ref()).unwrap();
    assert_eq!(
        (thawed.len(), thawed.content_hash()),
        (corpus.entries, corpus.sha256.as_str())
    );
    let entries = world.ledger(&outcome.hash);
    assert_eq!(entries[0].prev, outcome.hash.as_str());
    assert_eq!(entries[0].hash, entries[0].digest().unwrap());
    assert!(matches!(
        &entries[0].event,
        Event::Locked { git_commit: Some(commit), git_dirty: true, .. } if commit == "abc"
    ));
    for absent in ["abc", "2026-03"] {
        assert!(!locked.text.contains(absent), "{absent}");
    }
}

#[test]
fn other_contents_under_the_same_id_are_refused_field_by_field() {
    let world = World::new();
    let first = world.lock(plan(), &at(1)).unwrap();
    let edited = longer().replace("title: Retrieval", "title: Recall");
    let error = world.lock(&edited, &at(2)).unwrap_err();
    let LockError::Taken {
        hash, differences, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(*hash, first.hash);
    assert_eq!(differences.len(), 2, "{differences:?}");
    assert_eq!(differences[0], "plan.blocks: 20 -> 40");
    assert!(differences[1].starts_with("plan.title: \"Retrieval"));
    assert_eq!(world.store.registrations().unwrap().len(), 1);
    let renamed = longer().replace("id: my-falsification", "id: other");
    assert!(world.lock(&renamed, &at(2)).unwrap().is_new);
}

#[test]
fn an_amendment_is_dated_in_both_ledgers_and_takes_the_id() {
    let world = World::new();
    let first = world.lock(plan(), &at(1)).unwrap();
    let resolved = world.resolve(&longer()).unwrap();
    let old = world.locked(&first.hash);
    let amended = amend(&world.store, &old, &resolved, " too few blocks ", &at(3)).unwrap();
    assert!(amended.locked.is_new);
    assert_eq!(amended.differences, ["plan.blocks: 20 -> 40"]);
    let before = world.ledger(&first.hash);
    assert_eq!(before.len(), 2);
    assert_eq!(before[1].prev, before[0].hash);
    assert_eq!(before[1].at, "2026-03-03T10:00:00Z");
    assert_eq!(
        before[1].event,
        Event::Amended {
            to: amended.locked.hash.clone(),
            reason: "too few blocks".to_owned(),
        }
    );
    let new = Locked::find(&world.store, "my-falsification").unwrap();
    assert_eq!(new.hash, amended.locked.hash);
    assert_eq!(
        new.registration.amends.as_deref(),
        Some(first.hash.as_str())
    );
    // Given again, and locked from the amended file, it is there already.
    let again = amend(&world.store, &old, &resolved, "too few blocks", &at(4)).unwrap();
    assert_eq!(
        (&again.locked.hash, again.locked.is_new),
        (&new.hash, false)
    );
    assert_eq!(world.lock(&longer(), &at(4)).unwrap().hash, new.hash);
    assert_eq!(world.ledger(&first.hash).len(), 2);
}

#[test]
fn amendments_without_reason_difference_or_end_are_refused() {
    let world = World::new();
    let first = world.lock(plan(), &at(1)).unwrap();
    let old = world.locked(&first.hash);
    let attempt = |text: &str, reason: &str| {
        let resolved = world.resolve(text).unwrap();
        amend(&world.store, &old, &resolved, reason, &at(2)).unwrap_err()
    };
    assert!(matches!(attempt(&longer(), "  "), LockError::NoReason));
    assert!(matches!(
        attempt(plan(), "why"),
        LockError::NothingAmended(_)
    ));
    let other = longer().replace("id: my-falsification", "id: other");
    assert!(matches!(attempt(&other, "why"), LockError::OtherId { .. }));
    let mut batch = Batch::default();
    let entries = world.ledger(&first.hash);
    let end = Event::Finished { reason: None };
    let last = Entry::after(entries.last(), &first.hash, at(2).at, end).unwrap();
    batch.ledger(first.hash.as_str(), last.seq, last.text().unwrap());
    world.store.write(&batch).unwrap();
    assert!(matches!(attempt(&longer(), "why"), LockError::Finished(_)));
}

#[test]
fn a_scenario_that_nobody_qualified_needs_a_reason() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my-own.yaml");
    let scenario = world.library.scenario("replicas-zero-advocate").unwrap();
    let own = scenario
        .text
        .replace("id: replicas-zero-advocate", "id: my-own");
    std::fs::write(&file, own).unwrap();
    let named = |entry: &str| {
        plan().replace(
            "  - cpu-limit-throttling-advocate\n",
            &format!("  - {entry}\n"),
        )
    };
    let path = file.display();
    let error = world.lock(&named(&path.to_string()), &at(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not qualified: my-own on the embedded cluster"
    );
    let excused = named(&format!(
        "{{id: {path}, unqualified_because: it is being tried out}}"
    ));
    let resolved = world.resolve(&excused).unwrap();
    assert_eq!(resolved.exceptions.len(), 1);
    let outcome = lock(&world.store, &resolved, &at(1)).unwrap();
    let kept = world.locked(&outcome.hash).registration;
    assert_eq!(kept.scenarios[1].id.as_str(), "my-own");
    assert!(!kept.scenarios[1].qualified && kept.scenarios[1].text.contains("id: my-own"));
    // It runs from the text that was kept, also when the file is gone.
    std::fs::remove_file(&file).unwrap();
    let found = crate::experiment::inputs::unchanged(&kept, &world.library, &world.fixtures);
    assert_eq!(found.unwrap()[1].id.as_str(), "my-own");
}
