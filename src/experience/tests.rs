//! What is retrieved, learnt, refused and kept.

use serde_json::json;

use super::*;
use crate::embed::UnitVector;
use crate::embed::control::Control;
use crate::embed::lexical::Lexical;
use crate::experience::learner::{Learner, Lesson};
use crate::experience::policy::Policy;
use crate::ids::{CategoryId, ScenarioId};
use crate::record::{Outcome, Postmortem, Source};

fn postmortem(diagnosis: &str) -> Postmortem {
    serde_json::from_value(json!({
        "final_diagnosis": diagnosis, "primary_category": "probe-misconfigured", "confidence": 0.8,
        "actions_taken": [{"tool": "kubectl_get"}, {"tool": "kubectl_apply", "reversibility": 1.0}],
        "fix_applied": "corrected it", "what_did_not_work": ["restarting"]
    }))
    .unwrap()
}

fn entry(id: &str, diagnosis: &str) -> Entry {
    Entry {
        id: PostmortemId::new(id),
        source: Source::Scenario,
        outcome: Outcome::Resolved,
        postmortem: postmortem(diagnosis),
        mechanism: None,
        scenario_id: None,
        run_id: None,
        recorded_at: "2031-02-03T04:05:06Z".to_owned(),
        quarantined: false,
        review: false,
    }
}

fn lesson(diagnosis: &str) -> Lesson {
    Lesson {
        postmortem: postmortem(diagnosis),
        source: Source::Scenario,
        outcome: Outcome::Resolved,
        mechanism: None,
        scenario_id: Some(ScenarioId::new("s")),
        run_id: None,
        recorded_at: "2031-02-03T04:05:06Z".to_owned(),
        quarantined: true,
        review: false,
    }
}

fn base() -> (Arc<Store>, Learner, Reader) {
    let store = Arc::new(Store::in_memory().unwrap());
    let learner = Learner::new(store.clone(), Arc::new(Lexical));
    let reader = Reader::new(Some(store.clone()));
    (store, learner, reader)
}

fn wide(k: usize) -> Policy {
    Policy {
        k,
        max_distance: 2.0,
        ..Policy::default_for(&Lexical)
    }
}

fn ids(hits: &[snapshot::Hit<'_>]) -> Vec<String> {
    hits.iter().map(|hit| hit.entry.id.to_string()).collect()
}

#[test]
fn tiny_bases_answer_with_what_they_have() {
    for size in [1, 2, 5] {
        let (_, learner, reader) = base();
        let entries: Vec<Entry> = (0..size)
            .map(|n| entry(&format!("e{n}"), &format!("cause number {n}")))
            .collect();
        learner.import(&entries, |_| {}).unwrap();
        let snapshot = reader.snapshot(&Lexical).unwrap();
        let hits = snapshot.similar_to(&Lexical, "cause", &wide(10)).unwrap();
        assert_eq!(hits.len(), size);
        assert!(
            snapshot
                .similar_to(&Lexical, "cause", &wide(0))
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn many_copies_of_one_text_do_not_hide_another() {
    let (_, learner, reader) = base();
    let mut entries: Vec<Entry> = (0..100)
        .map(|n| entry(&format!("copy-{n:03}"), "the readiness path is wrong"))
        .collect();
    entries.push(entry("other", "the secret lacks a key"));
    learner.import(&entries, |_| {}).unwrap();
    let snapshot = reader.snapshot(&Lexical).unwrap();
    let hits = snapshot
        .similar_to(&Lexical, "a key is missing in the secret", &wide(3))
        .unwrap();
    assert_eq!(ids(&hits), ["other", "copy-000", "copy-001"]);
    assert_eq!(entry::duplicates(&entries).len(), 99);
}

#[test]
fn a_filter_never_hides_what_it_admits() {
    let (_, learner, reader) = base();
    let mut entries: Vec<Entry> = (0..400)
        .map(|n| {
            entry(
                &format!("common-{n:03}"),
                &format!("the probe of service {n} fails"),
            )
        })
        .collect();
    for n in 0..4 {
        let mut rare = entry(&format!("rare-{n}"), "packets to the database are dropped");
        rare.postmortem.primary_category = CategoryId::new("network-policy");
        rare.source = Source::Production;
        entries.push(rare);
    }
    learner.import(&entries, |_| {}).unwrap();
    let snapshot = reader.snapshot(&Lexical).unwrap();
    let filtered = |k: usize, pool: Option<usize>, category: &str| {
        let policy = Policy {
            pool_cap: pool,
            categories: [CategoryId::new(category)].into(),
            ..wide(k)
        };
        let hits = snapshot
            .similar_to(&Lexical, "the probe of service 7 fails", &policy)
            .unwrap();
        ids(&hits)
    };
    let all = filtered(30, None, "network-policy");
    assert_eq!(all, ["rare-0", "rare-1", "rare-2", "rare-3"]);
    assert_eq!(filtered(3, None, "network-policy"), all[..3]);
    assert_eq!(filtered(3, Some(2), "network-policy"), all[..2]);
    assert!(filtered(3, None, "nothing").is_empty());
    let by_source = Policy {
        sources: [Source::Production].into(),
        ..wide(10)
    };
    assert_eq!(snapshot.eligible(&by_source), 4);
    let hits = snapshot.similar_to(&Lexical, "probe", &by_source).unwrap();
    assert_eq!(ids(&hits), all);
}

#[test]
fn a_run_is_never_handed_its_own_scenario_or_what_is_in_quarantine() {
    let (_, learner, reader) = base();
    let learnt = learner
        .learn(lesson("the readiness path is wrong"))
        .unwrap();
    assert!(learnt.new && learnt.embedded);
    let snapshot = reader.snapshot(&Lexical).unwrap();
    assert_eq!(snapshot.eligible(&wide(3)), 0);
    let again = learner
        .learn(Lesson {
            quarantined: false,
            ..lesson("the readiness path is wrong")
        })
        .unwrap();
    assert_eq!((again.new, &again.id), (false, &learnt.id));
    assert_eq!(snapshot.eligible(&wide(3)), 0, "a snapshot never changes");
    let later = reader.snapshot(&Lexical).unwrap();
    assert_eq!(later.eligible(&wide(3)), 1);
    assert_ne!(later.content_hash(), snapshot.content_hash());
    let excluded = Policy {
        excluded_scenarios: [ScenarioId::new("s")].into(),
        ..wide(3)
    };
    assert_eq!(later.eligible(&excluded), 0);
    // Nothing puts an entry back into quarantine.
    learner
        .learn(lesson("the readiness path is wrong"))
        .unwrap();
    assert_eq!(reader.snapshot(&Lexical).unwrap().eligible(&wide(3)), 1);
}

#[test]
fn the_maximal_distance_is_inclusive_and_applied_after_the_pool() {
    let (_, learner, reader) = base();
    let entries = [
        entry("a", "the readiness path of the probe is wrong"),
        entry("b", "the liveness port of the probe is wrong"),
        entry("c", "a quota refuses new pods"),
    ];
    learner.import(&entries, |_| {}).unwrap();
    let snapshot = reader.snapshot(&Lexical).unwrap();
    let text = "the readiness path of the probe is wrong";
    let distances: Vec<f64> = snapshot
        .similar_to(&Lexical, text, &wide(3))
        .unwrap()
        .iter()
        .map(|hit| hit.distance)
        .collect();
    assert!(distances.is_sorted());
    let exactly = Policy {
        max_distance: distances[1],
        ..wide(3)
    };
    let hits = snapshot.similar_to(&Lexical, text, &exactly).unwrap();
    assert_eq!(ids(&hits), ["a", "b"]);
}

struct Broken;

impl Embedder for Broken {
    fn identity(&self) -> EmbedderId {
        EmbedderId::new("broken")
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, _text: &str) -> Result<UnitVector, EmbedError> {
        Err(EmbedError::Failed {
            embedder: self.identity(),
            reason: "no model".to_owned(),
        })
    }

    fn default_max_distance(&self) -> f64 {
        1.0
    }
}

#[test]
fn when_embedding_fails_the_row_is_kept_and_can_be_mended() {
    let (store, _, reader) = base();
    let broken = Learner::new(store.clone(), Arc::new(Broken));
    let learnt = broken.learn(lesson("a cause")).unwrap();
    assert!(learnt.new && !learnt.embedded);
    assert_eq!(reader.entries().unwrap().0.len(), 1);
    let error = reader.snapshot(&Lexical).err().unwrap().to_string();
    assert!(error.contains("breakage corpus reembed"), "{error}");
    let mended = Learner::new(store, Arc::new(Lexical))
        .reembed(|_| {})
        .unwrap();
    assert_eq!((mended.embedded, mended.failed.len()), (1, 0));
    assert!(
        reader
            .snapshot(&Lexical)
            .unwrap()
            .without_vector()
            .is_empty()
    );
    assert_eq!(broken.reembed(|_| {}).unwrap().failed.len(), 1);
}

#[test]
fn vectors_of_one_embedder_never_answer_for_another() {
    let (store, learner, reader) = base();
    learner.import(&[entry("a", "a cause")], |_| {}).unwrap();
    assert!(matches!(
        reader.snapshot(&Control),
        Err(ExperienceError::NotEmbedded { entries: 1, .. })
    ));
    let lexical = reader.snapshot(&Lexical).unwrap();
    assert!(lexical.similar_to(&Control, "a cause", &wide(3)).is_err());
    Learner::new(store, Arc::new(Control))
        .reembed(|_| {})
        .unwrap();
    let control = reader.snapshot(&Control).unwrap();
    assert_ne!(control.content_hash(), lexical.content_hash());
    assert_eq!(
        control
            .similar_to(&Control, "a cause", &wide(3))
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn queries_without_content_find_nothing_and_huge_ones_are_refused() {
    let (_, learner, reader) = base();
    learner.import(&[entry("a", "a cause")], |_| {}).unwrap();
    let snapshot = reader.snapshot(&Lexical).unwrap();
    for text in ["", "  \n", "---"] {
        assert!(
            snapshot
                .similar_to(&Lexical, text, &wide(3))
                .unwrap()
                .is_empty()
        );
    }
    let huge = "x".repeat(entry::MAX_TEXT_BYTES + 1);
    assert!(matches!(
        snapshot.similar_to(&Lexical, &huge, &wide(3)),
        Err(ExperienceError::QueryTooLong { .. })
    ));
}

#[test]
fn what_is_served_tells_neither_mechanism_nor_scenario() {
    let (_, learner, reader) = base();
    let mut told = entry("a", "a cause");
    told.mechanism = Some(crate::ids::MechanismId::new("secret-mechanism"));
    told.scenario_id = Some(ScenarioId::new("secret-scenario"));
    learner.import(&[told], |_| {}).unwrap();
    let snapshot = reader.snapshot(&Lexical).unwrap();
    let hits = snapshot.similar_to(&Lexical, "a cause", &wide(1)).unwrap();
    let shown = serde_json::to_string(&(hits[0].exemplar(), hits[0].served())).unwrap();
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(hits[0].served().tools, ["kubectl_get", "kubectl_apply"]);
    assert!(!hits[0].entry.key_text().contains("secret"));
}

#[test]
fn postmortems_out_of_bounds_are_refused_with_the_field() {
    let (_, learner, reader) = base();
    let refused = |change: &dyn Fn(&mut Lesson), field: &str| {
        let mut bad = lesson("a cause");
        change(&mut bad);
        let error = learner.learn(bad).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(field), "{cause}");
    };
    refused(
        &|l| l.postmortem.final_diagnosis = " ".to_owned(),
        "final_diagnosis is empty",
    );
    refused(&|l| l.postmortem.confidence = 1.7, "confidence is 1.7");
    refused(&|l| l.postmortem.confidence = f64::NAN, "confidence is NaN");
    refused(
        &|l| l.postmortem.time_to_fix_s = -5.0,
        "time_to_fix_s is -5",
    );
    refused(
        &|l| l.postmortem.fix_applied = "x".repeat(entry::MAX_TEXT_BYTES + 1),
        "fix_applied has 65537 bytes",
    );
    refused(
        &|l| l.postmortem.what_did_not_work = vec![String::new(); entry::MAX_ITEMS + 1],
        "what_did_not_work has 2001 items",
    );
    assert_eq!(reader.entries().unwrap().1, Origin::CompiledIn);
}

#[test]
fn without_a_store_the_compiled_in_seeds_answer() {
    let reader = Reader::new(None);
    let (entries, origin) = reader.entries().unwrap();
    assert_eq!(origin, Origin::CompiledIn);
    let snapshot = reader.snapshot(&Lexical).unwrap();
    assert_eq!(snapshot.origin(), Origin::CompiledIn);
    assert_eq!(
        snapshot.eligible(&Policy::default_for(&Lexical)),
        entries.len()
    );
}
