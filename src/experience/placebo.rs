//! Irrelevant incidents in the place of those found: as many, as long, and of no use for the task.

use sha2::{Digest, Sha256};

use crate::embed::Embedder;
use crate::experience::policy::Policy;
use crate::experience::snapshot::{Hit, Snapshot};
use crate::ids::{CategoryId, MechanismId, PostmortemId, Seed};
use crate::record::{Exemplar, Served};

/// What is irrelevant, and which of it is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The truth's category and mechanism: incidents of either are no placebo.
    pub category: CategoryId,
    pub mechanism: Option<MechanismId>,
    /// Of the agent's stream.
    pub seed: Seed,
}

impl Snapshot {
    /// One irrelevant incident for each found one: of another category and mechanism than the truth, farther from the
    /// text than may be served, the first by SHA-256 of `<seed>:<position>:<id>` that is not shown yet. The agent sees the
    /// distance of the incident that it stands for, and texts of the same length; the record keeps whose they are and
    /// how far that is. Fewer where there are fewer irrelevant ones.
    pub fn stand_ins(
        &self,
        (embedder, text): (&dyn Embedder, &str),
        policy: &Policy,
        found: &[Hit<'_>],
        stand_in: &StandIn,
    ) -> Vec<(Exemplar, Served)> {
        let everything = Policy {
            k: usize::MAX,
            max_distance: 2.0,
            pool_cap: None,
            ..policy.clone()
        };
        let Ok(all) = self.similar_to(embedder, text, &everything) else {
            return Vec::new();
        };
        let mut left: Vec<Hit<'_>> = all
            .into_iter()
            .filter(|hit| hit.distance > policy.max_distance && is_irrelevant(hit, stand_in))
            .collect();
        let mut shown = Vec::with_capacity(found.len());
        for (position, hit) in found.iter().enumerate() {
            let first = (0..left.len())
                .min_by_key(|at| place(stand_in.seed, position, &left[*at].entry.id));
            let Some(chosen) = first.map(|at| left.swap_remove(at)) else {
                break;
            };
            shown.push((disguised(&chosen, hit), chosen.served()));
        }
        shown
    }
}

fn is_irrelevant(hit: &Hit<'_>, stand_in: &StandIn) -> bool {
    hit.entry.postmortem.primary_category != stand_in.category
        && (stand_in.mechanism.is_none() || hit.entry.mechanism != stand_in.mechanism)
}

fn place(seed: Seed, position: usize, id: &PostmortemId) -> [u8; 32] {
    Sha256::digest(format!("{seed}:{position}:{id}")).into()
}

/// The irrelevant incident with the distance and the lengths of the one that it stands for.
fn disguised(chosen: &Hit<'_>, model: &Hit<'_>) -> Exemplar {
    let (own, model) = (chosen.exemplar(), model.exemplar());
    let failed = own.what_did_not_work.iter().cycle();
    // An incident without failed attempts has its fix repeated, so that no text is missing.
    let spare = [own.fix_applied.clone()];
    let mut failed: Box<dyn Iterator<Item = &String>> = if own.what_did_not_work.is_empty() {
        Box::new(spare.iter().cycle())
    } else {
        Box::new(failed)
    };
    let what_did_not_work = model
        .what_did_not_work
        .iter()
        .map(|text| sized(failed.next().map_or("", String::as_str), text))
        .collect();
    Exemplar {
        id: own.id,
        distance: model.distance,
        outcome: own.outcome,
        source: own.source,
        primary_category: own.primary_category,
        final_diagnosis: sized(&own.final_diagnosis, &model.final_diagnosis),
        fix_applied: sized(&own.fix_applied, &model.fix_applied),
        what_did_not_work,
    }
}

/// A text cut, or repeated, to as many characters as another has.
fn sized(text: &str, model: &str) -> String {
    let wanted = model.chars().count();
    if text.is_empty() {
        // Nothing to repeat; a text of blanks has the length and says nothing.
        return " ".repeat(wanted);
    }
    text.chars()
        .chain(std::iter::once(' '))
        .cycle()
        .take(wanted)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::BuiltIn;
    use crate::experience::Reader;

    #[test]
    fn a_stand_in_has_the_number_and_the_lengths_of_what_it_stands_for() {
        let embedder = BuiltIn::Lexical.embedder();
        let snapshot = Reader::new(None).snapshot(embedder.as_ref()).unwrap();
        let policy = Policy::default_for(embedder.as_ref());
        let text = "pods restart after a secret was changed";
        let found = snapshot
            .similar_to(embedder.as_ref(), text, &policy)
            .unwrap();
        assert!(!found.is_empty());
        let stand_in = StandIn {
            category: found[0].exemplar().primary_category,
            mechanism: None,
            seed: Seed(1),
        };
        let shown = snapshot.stand_ins((embedder.as_ref(), text), &policy, &found, &stand_in);
        assert_eq!(shown.len(), found.len());
        for ((exemplar, _), hit) in shown.iter().zip(&found) {
            let model = hit.exemplar();
            let length = |text: &str| text.chars().count();
            assert_ne!(exemplar.id, model.id);
            assert_ne!(exemplar.primary_category, stand_in.category);
            assert_eq!(
                length(&exemplar.final_diagnosis),
                length(&model.final_diagnosis)
            );
            assert_eq!(length(&exemplar.fix_applied), length(&model.fix_applied));
            let failed = |of: &Exemplar| -> Vec<usize> {
                of.what_did_not_work
                    .iter()
                    .map(|text| length(text))
                    .collect()
            };
            assert_eq!(failed(exemplar), failed(&model));
        }
    }
}
