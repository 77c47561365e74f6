//! Where the threshold of an embedder comes from: distances between seed postmortems of one mechanism and of different
//! ones, and the threshold that separates them best.
//!
//! A pair is what a retrieval is: one incident's diagnosis asks, another incident's key text answers.

use crate::embed::{EmbedError, Embedder, UnitVector};
use crate::experience::entry::Entry;
use crate::ids::{MechanismId, PostmortemId};

/// Thresholds are given in steps of one hundredth; more would pretend to a precision that a few dozen texts do not have.
const STEP: f64 = 0.01;

/// One incident asking, another answering.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub asks: PostmortemId,
    pub answers: PostmortemId,
    /// Cosine distance, 0 to 2.
    pub distance: f64,
    /// Both have the same mechanism.
    pub aligned: bool,
}

/// Distances of one mechanism's incidents to each other and to the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanismDistances {
    pub mechanism: MechanismId,
    pub incidents: usize,
    /// Median over aligned pairs; nothing when the mechanism has one incident.
    pub aligned: Option<f64>,
    /// Median over pairs with other mechanisms.
    pub others: f64,
    /// The nearest incident of another mechanism.
    pub nearest_other: f64,
}

/// The outcome of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    pub pairs: usize,
    pub aligned_pairs: usize,
    pub mechanisms: Vec<MechanismDistances>,
    /// The threshold with the greatest difference between the shares of aligned and other pairs within it; the smallest
    /// of several.
    pub threshold: f64,
    /// Share of aligned pairs within the threshold.
    pub admitted_aligned: f64,
    /// Share of other pairs within the threshold.
    pub admitted_others: f64,
}

/// Calibrates on entries with a mechanism. Nothing when there is no aligned or no other pair.
pub fn calibrate(
    embedder: &dyn Embedder,
    entries: &[Entry],
) -> Result<Option<Calibration>, EmbedError> {
    let pairs = pairs(embedder, entries)?;
    let (aligned, others): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(|pair| pair.aligned);
    if aligned.is_empty() || others.is_empty() {
        return Ok(None);
    }
    let share = |pairs: &[&Pair], threshold: f64| {
        let within = pairs.iter().filter(|pair| pair.distance <= threshold);
        within.count() as f64 / pairs.len() as f64
    };
    let mut best = (f64::NEG_INFINITY, 0.0);
    for step in 0..=200u32 {
        let threshold = (f64::from(step) * STEP * 100.0).round() / 100.0;
        let gain = share(&aligned, threshold) - share(&others, threshold);
        if gain > best.0 {
            best = (gain, threshold);
        }
    }
    let threshold = best.1;
    Ok(Some(Calibration {
        pairs: pairs.len(),
        aligned_pairs: aligned.len(),
        mechanisms: by_mechanism(entries, &pairs),
        threshold,
        admitted_aligned: share(&aligned, threshold),
        admitted_others: share(&others, threshold),
    }))
}

/// Every ordered pair of different entries that have a mechanism.
pub fn pairs(embedder: &dyn Embedder, entries: &[Entry]) -> Result<Vec<Pair>, EmbedError> {
    let known: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.mechanism.is_some())
        .collect();
    let embed_all = |text: &dyn Fn(&Entry) -> String| -> Result<Vec<UnitVector>, EmbedError> {
        known
            .iter()
            .map(|entry| embedder.embed(&text(entry)))
            .collect()
    };
    let questions = embed_all(&|entry| entry.postmortem.final_diagnosis.clone())?;
    let answers = embed_all(&Entry::key_text)?;
    let mut pairs = Vec::new();
    for (asking, question) in known.iter().zip(&questions) {
        for (answering, answer) in known.iter().zip(&answers) {
            if asking.id != answering.id {
                pairs.push(Pair {
                    asks: asking.id.clone(),
                    answers: answering.id.clone(),
                    distance: question.distance(answer),
                    aligned: asking.mechanism == answering.mechanism,
                });
            }
        }
    }
    Ok(pairs)
}

fn by_mechanism(entries: &[Entry], pairs: &[Pair]) -> Vec<MechanismDistances> {
    let mut mechanisms: Vec<&MechanismId> = entries
        .iter()
        .filter_map(|entry| entry.mechanism.as_ref())
        .collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    mechanisms
        .into_iter()
        .map(|mechanism| {
            let members: Vec<&PostmortemId> = entries
                .iter()
                .filter(|entry| entry.mechanism.as_ref() == Some(mechanism))
                .map(|entry| &entry.id)
                .collect();
            let distances = |aligned: bool| -> Vec<f64> {
                let mut distances: Vec<f64> = pairs
                    .iter()
                    .filter(|pair| pair.aligned == aligned && members.contains(&&pair.asks))
                    .map(|pair| pair.distance)
                    .collect();
                distances.sort_by(f64::total_cmp);
                distances
            };
            let others = distances(false);
            MechanismDistances {
                mechanism: mechanism.clone(),
                incidents: members.len(),
                aligned: median(&distances(true)),
                nearest_other: others.first().copied().unwrap_or(2.0),
                others: median(&others).unwrap_or(2.0),
            }
        })
        .collect()
}

/// The lower median of sorted numbers.
fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::embed::lexical::{Lexical, MAX_DISTANCE};
    use crate::experience::seeds;
    use crate::experience::transfer::write_lines;
    use crate::record::{Outcome, Source};
    use crate::scenario::library::Library;

    #[test]
    fn the_lexical_threshold_is_the_one_that_the_seeds_give() {
        let found = calibrate(&Lexical, &seeds::entries()).unwrap().unwrap();
        assert_eq!(found.threshold, MAX_DISTANCE, "{found:#?}");
    }

    #[test]
    fn the_seeds_cover_what_scenarios_need() {
        let seeds = seeds::entries();
        assert!(seeds.len() >= 28);
        let set = |values: Vec<&str>| -> BTreeSet<String> {
            values.into_iter().map(str::to_owned).collect()
        };
        let primary = set(seeds
            .iter()
            .map(|seed| seed.postmortem.primary_category.as_str())
            .collect());
        let anywhere: BTreeSet<String> = seeds
            .iter()
            .flat_map(|seed| &seed.postmortem.secondary_categories)
            .map(|category| category.to_string())
            .chain(primary.iter().cloned())
            .collect();
        for category in [
            "resource-limit-misconfiguration",
            "application-error-uncaught-exception",
            "deployment-rollout-failure",
            "probe-misconfigured",
            "secret-content-mismatch",
            "queue-backpressure",
            "connection-pool-exhaustion",
        ] {
            assert!(primary.contains(category), "{category}");
        }
        for category in ["secret-missing", "credential-invention"] {
            assert!(anywhere.contains(category), "{category}");
        }
        for outcome in [Outcome::Resolved, Outcome::Regressed, Outcome::Inconclusive] {
            assert!(seeds.iter().any(|seed| seed.outcome == outcome));
        }
        for source in [Source::IncidentLog, Source::Production, Source::Scenario] {
            assert!(seeds.iter().filter(|seed| seed.source == source).count() >= 5);
        }
        for seed in &seeds {
            let text = seed.key_text();
            for ours in ["advocate", "otel", "flagd"] {
                assert!(!text.to_lowercase().contains(ours), "{}: {ours}", seed.id);
            }
        }
    }

    #[test]
    fn the_seeds_use_the_vocabulary_and_its_mechanisms() {
        let library = Library::open(None).unwrap();
        let vocabulary = library.vocabulary();
        for seed in seeds::entries() {
            for category in std::iter::once(&seed.postmortem.primary_category)
                .chain(&seed.postmortem.secondary_categories)
            {
                let known = vocabulary.categories.iter().any(|c| c.id == *category);
                assert!(known, "{}: {category}", seed.id);
            }
            if let Some(mechanism) = &seed.mechanism {
                let known = vocabulary.mechanisms.iter().any(|m| m.id == *mechanism);
                assert!(known, "{}: {mechanism}", seed.id);
            }
        }
    }

    #[test]
    fn the_seed_file_is_what_an_export_would_write() {
        assert_eq!(write_lines(&seeds::entries()).unwrap(), seeds::SEED_LINES);
    }
}
