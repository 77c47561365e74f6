//! Whether the instrument does its own part: our failures over time, and retrieval that answers the same question in the
//! same way.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ids::{PostmortemId, RunId};
use crate::record::{Record, Retrieval, RunState, Served};

/// Length of `2026-12-01`.
const DAY: usize = 10;

/// Queries recomputed: the scan is exact and fast, but a workspace can hold very many.
pub const MOST_AUDITED: usize = 500;

/// Disagreements that are told in full.
const MOST_TOLD: usize = 20;

/// Distances that differ by less are the same number after a round through JSON.
const SAME_DISTANCE: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    pub runs: u32,
    pub framework_errors: u32,
    pub periods: Vec<Period>,
    pub determinism: Determinism,
    pub audit: Audit,
}

/// Runs of one day with one version, oldest first. On embedded clusters the day is that of the cluster's own clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Period {
    pub day: String,
    pub breakage_version: String,
    pub cluster_kind: String,
    pub runs: u32,
    pub framework_errors: BTreeMap<String, u32>,
}

/// Equal questions to equal corpora, over all records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Determinism {
    pub retrievals: u32,
    /// Retrievals that could not be done, by the record's own word.
    pub failed: u32,
    /// Different questions, each with its policy and corpus.
    pub questions: u32,
    /// Questions that were asked more than once.
    pub repeated: u32,
    /// Repeated questions with different answers.
    pub different: Vec<Disagreement>,
    pub different_count: u32,
}

/// What was served then against what is served now.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Audit {
    /// Questions recomputed by an exact scan.
    pub recomputed: u32,
    pub equal: u32,
    pub different: Vec<Disagreement>,
    pub different_count: u32,
    /// Ids served then that the exact scan finds as well, over all ids served then; nothing where none were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// The corpus, the embedder or the policy is not what it was, or not known.
    pub not_comparable: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disagreement {
    pub run_ids: Vec<RunId>,
    pub query: String,
    pub answers: Vec<Vec<(PostmortemId, f64)>>,
}

/// `recompute` answers a recorded question once more, or nothing where that cannot be compared.
pub fn health(
    records: &[Record],
    recompute: &mut dyn FnMut(&Record, &Retrieval) -> Option<Vec<Served>>,
) -> Health {
    let is_error = |record: &&Record| matches!(record.state, RunState::FrameworkError { .. });
    Health {
        runs: records.len() as u32,
        framework_errors: records.iter().filter(is_error).count() as u32,
        periods: periods(records),
        determinism: determinism(records),
        audit: audit(records, recompute),
    }
}

fn periods(records: &[Record]) -> Vec<Period> {
    let mut periods: BTreeMap<(String, &str, &str), Period> = BTreeMap::new();
    for record in records {
        let day: String = record.ran_at.chars().take(DAY).collect();
        let kind = record.cluster.kind.as_str();
        let period = periods
            .entry((day.clone(), &record.breakage_version, kind))
            .or_insert_with(|| Period {
                day,
                breakage_version: record.breakage_version.clone(),
                cluster_kind: kind.to_owned(),
                runs: 0,
                framework_errors: BTreeMap::new(),
            });
        period.runs += 1;
        if let RunState::FrameworkError { code, .. } = &record.state {
            let code = code.as_str().to_owned();
            *period.framework_errors.entry(code).or_insert(0) += 1;
        }
    }
    periods.into_values().collect()
}

/// A question with everything that decides its answer, as far as records tell: the corpus by its size, and by the
/// registration where that froze it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Question<'a> {
    query: &'a str,
    embedder: &'a str,
    k: usize,
    max_distance: u64,
    pool_cap: Option<usize>,
    excluded: Vec<&'a str>,
    corpus_size: usize,
    /// Registration, arm and tier.
    experiment: Option<(&'a str, &'a str, Option<&'a str>)>,
}

fn question<'a>(record: &'a Record, retrieval: &'a Retrieval) -> Question<'a> {
    let facts = &record.retrieval;
    Question {
        query: &retrieval.query,
        embedder: facts.embedder.as_str(),
        k: facts.k,
        max_distance: facts.max_distance.to_bits(),
        pool_cap: facts.pool_cap,
        excluded: facts
            .excluded_scenarios
            .iter()
            .map(|one| one.as_str())
            .collect(),
        corpus_size: facts.corpus_size,
        experiment: record.experiment.as_ref().map(|one| {
            let tier = one.tier.as_deref();
            (one.registration.as_str(), one.arm.as_str(), tier)
        }),
    }
}

type Asked<'a> = BTreeMap<Question<'a>, Vec<(&'a Record, &'a Retrieval)>>;

fn asked(records: &[Record]) -> Asked<'_> {
    let mut asked = Asked::new();
    for record in records {
        for retrieval in &record.retrievals {
            if retrieval.error.is_none() {
                asked
                    .entry(question(record, retrieval))
                    .or_default()
                    .push((record, retrieval));
            }
        }
    }
    asked
}

fn determinism(records: &[Record]) -> Determinism {
    let all = || records.iter().flat_map(|record| &record.retrievals);
    let mut told = Determinism {
        retrievals: all().count() as u32,
        failed: all().filter(|one| one.error.is_some()).count() as u32,
        ..Determinism::default()
    };
    for (question, times) in asked(records) {
        told.questions += 1;
        told.repeated += u32::from(times.len() > 1);
        let mut answers: Vec<(&Record, &[Served])> = Vec::new();
        for (record, retrieval) in times {
            let known = answers
                .iter()
                .any(|(_, answer)| is_same(answer, &retrieval.served));
            if !known {
                answers.push((record, &retrieval.served));
            }
        }
        if answers.len() > 1 {
            told.different_count += 1;
            if told.different.len() < MOST_TOLD {
                told.different.push(Disagreement {
                    run_ids: answers.iter().map(|(one, _)| one.run_id.clone()).collect(),
                    query: question.query.to_owned(),
                    answers: answers.iter().map(|(_, answer)| shown(answer)).collect(),
                });
            }
        }
    }
    told
}

/// The exact scan is what serves, so that recall is 1 unless the corpus changed under the same size, or an answer was
/// cut.
fn audit(
    records: &[Record],
    recompute: &mut dyn FnMut(&Record, &Retrieval) -> Option<Vec<Served>>,
) -> Audit {
    let mut told = Audit::default();
    let (mut found, mut served) = (0u32, 0u32);
    for (question, times) in asked(records) {
        let Some((record, retrieval)) = times.first() else {
            continue;
        };
        if told.recomputed as usize >= MOST_AUDITED {
            break;
        }
        let Some(now) = recompute(record, retrieval) else {
            told.not_comparable += 1;
            continue;
        };
        told.recomputed += 1;
        served += retrieval.served.len() as u32;
        found += retrieval
            .served
            .iter()
            .filter(|then| now.iter().any(|now| now.id == then.id))
            .count() as u32;
        if is_same(&now, &retrieval.served) {
            told.equal += 1;
            continue;
        }
        told.different_count += 1;
        if told.different.len() < MOST_TOLD {
            told.different.push(Disagreement {
                run_ids: vec![record.run_id.clone()],
                query: question.query.to_owned(),
                answers: vec![shown(&retrieval.served), shown(&now)],
            });
        }
    }
    told.recall = (served > 0).then(|| f64::from(found) / f64::from(served));
    told
}

fn is_same(one: &[Served], other: &[Served]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.id == other.id && (one.distance - other.distance).abs() <= SAME_DISTANCE
        })
}

fn shown(answer: &[Served]) -> Vec<(PostmortemId, f64)> {
    answer
        .iter()
        .map(|one| (one.id.clone(), one.distance))
        .collect()
}
