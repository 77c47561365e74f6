//! The published deterministic control: a text's direction from a running hash of its characters.
//!
//! It carries no meaning, but it is not truly off. Every character moves one of 1024 counters, so long texts fill the
//! same counters evenly and come close to each other: two unrelated texts of 1,600 characters are 0.35 apart, inside
//! the published 0.40, and are served. An arm that must serve nothing sets k to 0 instead.

use crate::embed::{EmbedError, Embedder, UnitVector};
use crate::ids::EmbedderId;

pub const DIMENSION: usize = 1024;

/// The published threshold, which was chosen for another embedder.
pub const MAX_DISTANCE: f64 = 0.40;

/// What the running hash starts from.
const START: i32 = 5381;

/// The control embedder.
pub struct Control;

impl Embedder for Control {
    fn identity(&self) -> EmbedderId {
        EmbedderId::new(format!("control/1 dim={DIMENSION} hash=djb2-utf16"))
    }

    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn embed(&self, text: &str) -> Result<UnitVector, EmbedError> {
        let (counters, _) = counters(text);
        let weights: Vec<f64> = counters.iter().copied().map(f64::from).collect();
        UnitVector::from_weights(&weights).ok_or(EmbedError::NothingToEmbed)
    }

    fn default_max_distance(&self) -> f64 {
        MAX_DISTANCE
    }
}

/// The counters before scaling, and the hash after the last UTF-16 code unit.
fn counters(text: &str) -> (Vec<u32>, i32) {
    let mut counters = vec![0u32; DIMENSION];
    let mut hash = START;
    for unit in text.encode_utf16() {
        hash = hash.wrapping_mul(33).wrapping_add(i32::from(unit));
        counters[hash.unsigned_abs() as usize % DIMENSION] += 1;
    }
    (counters, hash)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn golden() -> Value {
        serde_json::from_str(include_str!("../../tests/golden/control-embedder.json")).unwrap()
    }

    fn text_of(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            repeated => repeated["repeat"]
                .as_str()
                .unwrap()
                .repeat(repeated["times"].as_u64().unwrap() as usize),
        }
    }

    #[test]
    fn vectors_equal_the_golden_ones_to_the_last_bit() {
        for case in golden()["cases"].as_array().unwrap() {
            let text = text_of(&case["text"]);
            let (counters, hash) = counters(&text);
            assert_eq!(
                i64::from(hash),
                case["final_h"].as_i64().unwrap(),
                "{text:.40}"
            );
            let filled = counters.iter().filter(|count| **count > 0).count();
            assert_eq!(filled as u64, case["nonzero"].as_u64().unwrap());
            if text.is_empty() {
                assert!(matches!(
                    Control.embed(&text),
                    Err(EmbedError::NothingToEmbed)
                ));
                continue;
            }
            let squares: f64 = counters.iter().map(|c| f64::from(*c) * f64::from(*c)).sum();
            let norm = squares.sqrt();
            assert_eq!(norm, case["norm"].as_f64().unwrap());
            let vector = Control.embed(&text).unwrap();
            for pair in case["first"].as_array().unwrap() {
                let (at, expected) = (
                    pair[0].as_u64().unwrap() as usize,
                    pair[1].as_f64().unwrap(),
                );
                assert_eq!(
                    f64::from(counters[at]) / norm,
                    expected,
                    "{text:.40} at {at}"
                );
                assert_eq!(vector.as_slice()[at], expected as f32, "{text:.40} at {at}");
            }
        }
    }

    #[test]
    fn two_unrelated_long_texts_fall_inside_the_published_threshold() {
        let golden = golden();
        let pair = &golden["distance_of_two_long_texts"];
        let a = Control.embed(&text_of(&pair["a"])).unwrap();
        let b = Control.embed(&text_of(&pair["b"])).unwrap();
        let expected = pair["cosine_distance"].as_f64().unwrap();
        assert!((a.distance(&b) - expected).abs() < 1e-6);
        assert!(a.distance(&b) < MAX_DISTANCE);
    }
}
