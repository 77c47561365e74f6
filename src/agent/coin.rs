//! An agent of known success probability, to calibrate the instrument with: it repairs as the rules agent does, and names
//! the right cause with a probability that is its parameter.

use futures::future::LocalBoxFuture;

use crate::agent::rules::Rules;
use crate::agent::{Agent, AgentError, Desk, Notebook, StatedHypothesis};
use crate::ids::{CategoryId, Seed};
use crate::scenario::model::Category;

/// Parts of a probability that are told apart; a probability is a whole number of them.
const PARTS: u32 = 1_000_000;

/// See the module.
pub struct Coin {
    success: Probability,
    version: String,
}

/// A probability in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u32);

impl Probability {
    /// A decimal from 0 to 1, of at most six places.
    pub fn parse(text: &str) -> Option<Probability> {
        let number: f64 = text.parse().ok()?;
        let parts = number * f64::from(PARTS);
        // In range, so that the cast cannot wrap.
        ((0.0..=1.0).contains(&number) && (parts - parts.round()).abs() < 1e-6)
            .then(|| Probability(parts.round() as u32))
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS)
    }
}

/// Raised whenever the same parameter gives other behaviour.
const REVISION: u32 = 1;

impl Coin {
    pub fn new(success: Probability) -> Coin {
        Coin {
            success,
            version: format!("{REVISION} {}", success.as_f64()),
        }
    }
}

impl Agent for Coin {
    fn name(&self) -> &'static str {
        "coin"
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let heads = draw(desk.seed, "coin") < self.success.0;
        Box::pin(async move {
            let draft = Notebook::default();
            let (notes, vocabulary, seed) =
                (desk.notes.clone(), desk.vocabulary.clone(), desk.seed);
            let ended = Rules
                .work(Desk {
                    notes: draft.clone(),
                    ..desk
                })
                .await;
            let named = |category: CategoryId| match heads {
                true => category,
                false => another(&category, &vocabulary, seed),
            };
            if let Some((_, stated)) = draft.hypotheses().pop() {
                notes.hypothesis(StatedHypothesis {
                    primary_category: named(stated.primary_category),
                    secondary_categories: Vec::new(),
                    ..stated
                });
            }
            if let Some((_, mut postmortem)) = draft.taken_postmortem() {
                postmortem.primary_category = named(postmortem.primary_category);
                postmortem.secondary_categories.clear();
                notes.postmortem(postmortem);
            }
            ended
        })
    }
}

/// Evenly from 0 up to, not including, [`PARTS`].
fn draw(seed: Seed, purpose: &str) -> u32 {
    // The high half of a product of 32 and 64 bits lies below the first factor.
    ((u128::from(seed.child(purpose, 0).0) * u128::from(PARTS)) >> u64::BITS) as u32
}

/// A category other than this one.
fn another(category: &CategoryId, vocabulary: &[Category], seed: Seed) -> CategoryId {
    let others: Vec<&Category> = vocabulary
        .iter()
        .filter(|one| one.id != *category)
        .collect();
    let index = seed.child("wrong", 0).0 % others.len().max(1) as u64;
    let other = usize::try_from(index)
        .ok()
        .and_then(|index| others.get(index));
    other.map_or_else(|| category.clone(), |one| one.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_a_decimal_between_0_and_1() {
        for (text, expected) in [
            ("0.5", Some(0.5)),
            ("1", Some(1.0)),
            ("0.123456", Some(0.123_456)),
        ] {
            assert_eq!(Probability::parse(text).map(Probability::as_f64), expected);
        }
        for text in ["1.1", "-0.1", "NaN", "half", "", "0.1234567"] {
            assert_eq!(Probability::parse(text), None, "{text}");
        }
    }

    #[test]
    fn heads_come_as_often_as_they_should() {
        let heads = (0..20_000)
            .filter(|n| draw(Seed(*n), "coin") < 300_000)
            .count();
        assert!((5_700..6_300).contains(&heads), "{heads}");
    }
}
