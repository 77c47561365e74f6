//! Text to unit vector. Vectors of different embedders are never comparable, whatever their length.
//!
//! Two embedders are built in: `lexical`, which needs no model, and `control`, the published deterministic control.
//! Nothing here knows postmortems or stores anything.

pub mod control;
pub mod lexical;

use std::str::FromStr;
use std::sync::Arc;

use crate::ids::EmbedderId;

/// Turns a text into a direction. The same text gives the same vector on every platform.
pub trait Embedder: Send + Sync {
    /// Everything that shapes its vectors: kind, version and parameters.
    fn identity(&self) -> EmbedderId;

    fn dimension(&self) -> usize;

    fn embed(&self, text: &str) -> Result<UnitVector, EmbedError>;

    /// The cosine distance beyond which two texts are not similar. A threshold belongs to its embedder.
    fn default_max_distance(&self) -> f64;
}

#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error("the text has nothing to embed")]
    NothingToEmbed,
    #[error("embedder {embedder} failed: {reason}")]
    Failed {
        embedder: EmbedderId,
        reason: String,
    },
}

/// The built-in embedders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    Lexical,
    Control,
}

impl BuiltIn {
    pub const ALL: [BuiltIn; 2] = [BuiltIn::Lexical, BuiltIn::Control];

    pub fn name(self) -> &'static str {
        match self {
            BuiltIn::Lexical => "lexical",
            BuiltIn::Control => "control",
        }
    }

    pub fn embedder(self) -> Arc<dyn Embedder> {
        match self {
            BuiltIn::Lexical => Arc::new(lexical::Lexical),
            BuiltIn::Control => Arc::new(control::Control),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no embedder {0:?}; there are lexical and control")]
pub struct UnknownEmbedder(String);

impl FromStr for BuiltIn {
    type Err = UnknownEmbedder;

    /// `deterministic` is the reference's name of the control.
    fn from_str(text: &str) -> Result<BuiltIn, UnknownEmbedder> {
        match text {
            "lexical" => Ok(BuiltIn::Lexical),
            "control" | "deterministic" => Ok(BuiltIn::Control),
            other => Err(UnknownEmbedder(other.to_owned())),
        }
    }
}

/// How far a stored vector's length may be from one: rounding to f32 stays far below it.
const UNIT_TOLERANCE: f64 = 1e-3;

/// Distances are rounded to this many parts of one, so that the last bits of two equal distances cannot decide an order.
const DISTANCE_PARTS: f64 = 1e6;

/// Independent sums of a dot product. A fixed number, so that every platform adds in the same order.
const LANES: usize = 16;

/// A finite vector of length one.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitVector(Vec<f32>);

impl UnitVector {
    /// Scales to length one. Nothing for the zero vector and for numbers that are not finite.
    pub fn from_weights(weights: &[f64]) -> Option<UnitVector> {
        let length = weights.iter().map(|x| x * x).sum::<f64>().sqrt();
        (length.is_finite() && length > 0.0)
            .then(|| UnitVector(weights.iter().map(|x| (x / length) as f32).collect()))
    }

    /// Takes back what [`UnitVector::as_slice`] gave; nothing when it has another dimension or is not of length one.
    pub fn from_stored(numbers: Vec<f32>, dimension: usize) -> Option<UnitVector> {
        let length = numbers
            .iter()
            .map(|x| f64::from(*x) * f64::from(*x))
            .sum::<f64>()
            .sqrt();
        (numbers.len() == dimension && (length - 1.0).abs() <= UNIT_TOLERANCE)
            .then_some(UnitVector(numbers))
    }

    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// Cosine distance, 0 to 2, in whole millionths. Vectors of different dimension are as far apart as can be.
    pub fn distance(&self, other: &UnitVector) -> f64 {
        if self.0.len() != other.0.len() {
            return 2.0;
        }
        let distance = (1.0 - dot(&self.0, &other.0)).clamp(0.0, 2.0);
        (distance * DISTANCE_PARTS).round() / DISTANCE_PARTS
    }
}

fn dot(left: &[f32], right: &[f32]) -> f64 {
    let mut sums = [0f64; LANES];
    let (left_lanes, left_rest) = left.as_chunks::<LANES>();
    let (right_lanes, right_rest) = right.as_chunks::<LANES>();
    for (a, b) in left_lanes.iter().zip(right_lanes) {
        for lane in 0..LANES {
            sums[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    let rest: f64 = left_rest
        .iter()
        .zip(right_rest)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_symmetric_and_nothing_is_far_from_itself() {
        for built_in in BuiltIn::ALL {
            let (name, embedder) = (built_in.name(), built_in.embedder());
            assert_eq!(name.parse::<BuiltIn>().unwrap(), built_in);
            let one = embedder
                .embed("pods restart after a secret was changed")
                .unwrap();
            let two = embedder.embed("データベースに接続できません 😀").unwrap();
            assert_eq!(one.distance(&one), 0.0, "{name}");
            assert_eq!(one.distance(&two), two.distance(&one), "{name}");
            assert_eq!(one.as_slice().len(), embedder.dimension(), "{name}");
            let stored = UnitVector::from_stored(one.as_slice().to_vec(), embedder.dimension());
            assert_eq!(stored, Some(one), "{name}");
        }
    }

    #[test]
    fn what_is_no_unit_vector_is_refused() {
        assert_eq!(UnitVector::from_weights(&[0.0, 0.0]), None);
        assert_eq!(UnitVector::from_weights(&[f64::NAN]), None);
        assert_eq!(UnitVector::from_stored(vec![1.0], 2), None);
        assert_eq!(UnitVector::from_stored(vec![0.5, 0.5], 2), None);
        assert_eq!(UnitVector::from_stored(vec![f32::NAN, 1.0], 2), None);
    }

    #[test]
    fn vectors_of_different_length_are_as_far_apart_as_can_be() {
        let short = UnitVector::from_weights(&[1.0]).unwrap();
        let long = UnitVector::from_weights(&[1.0, 0.0]).unwrap();
        assert_eq!(short.distance(&long), 2.0);
    }

    #[test]
    fn the_references_name_of_the_control_is_understood() {
        assert_eq!(
            "deterministic".parse::<BuiltIn>().unwrap(),
            BuiltIn::Control
        );
        assert!("bge".parse::<BuiltIn>().is_err());
    }
}
