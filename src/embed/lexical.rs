//! An embedder without a model: hashed words, word pairs and character runs, weighted sublinearly.
//!
//! It finds texts that share vocabulary, names of fields, error words and word forms; it does not know synonyms. All sums
//! are whole numbers, so that no platform's rounding or order of addition shows in a vector.

use std::collections::BTreeMap;

use crate::embed::{EmbedError, Embedder, UnitVector};
use crate::ids::EmbedderId;

pub const DIMENSION: usize = 1024;

/// The distance that separates seed postmortems of one mechanism best from those of others; `breakage corpus calibrate`
/// computes it and a test compares.
pub const MAX_DISTANCE: f64 = 0.89;

/// Raised when anything below changes what a text's vector is.
const VERSION: u32 = 1;

/// Weights of one occurrence, in 1/1024. Words carry most of the meaning; pairs tell `secret key` from `key`; runs tie
/// word forms together (`restart`, `restarting`) but come in such numbers that each may only weigh little.
const WORD: u64 = 1024;
const PAIR: u64 = 512;
const RUN: u64 = 256;

/// Lengths of character runs, with the word's borders counted as characters.
const RUN_LENGTHS: [usize; 2] = [4, 5];

/// Words that say nothing about an incident, sorted.
const STOP_WORDS: &[&str] = &[
    "a", "after", "again", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "both", "but", "by", "came", "can", "could", "did", "do", "does", "down",
    "each", "either", "every", "for", "from", "goes", "gone", "had", "has", "have", "he", "how",
    "i", "if", "in", "into", "is", "it", "its", "made", "make", "may", "me", "more", "most", "my",
    "neither", "never", "new", "no", "not", "nothing", "of", "old", "on", "once", "one", "only",
    "or", "other", "our", "out", "over", "same", "she", "since", "so", "still", "takes", "than",
    "that", "the", "their", "them", "then", "there", "they", "this", "three", "to", "took", "two",
    "under", "until", "up", "us", "was", "we", "went", "were", "what", "when", "which", "while",
    "who", "whose", "will", "with", "within", "without", "would", "you",
];

/// The lexical embedder.
pub struct Lexical;

impl Embedder for Lexical {
    fn identity(&self) -> EmbedderId {
        EmbedderId::new(format!(
            "lexical/{VERSION} dim={DIMENSION} words=1-2 runs=4-5 weight=sqrt hash=fnv1a64"
        ))
    }

    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn embed(&self, text: &str) -> Result<UnitVector, EmbedError> {
        let mut sums = vec![0i64; DIMENSION];
        for (feature, (weight, occurrences)) in features(text) {
            let bucket = (feature % DIMENSION as u64) as usize;
            // Half of the features subtract, so that features which share a bucket cancel instead of adding up.
            let sign = if feature >> 63 == 0 { 1 } else { -1 };
            sums[bucket] += sign * sublinear(weight, occurrences);
        }
        let weights: Vec<f64> = sums.iter().map(|sum| *sum as f64).collect();
        UnitVector::from_weights(&weights).ok_or(EmbedError::NothingToEmbed)
    }

    fn default_max_distance(&self) -> f64 {
        MAX_DISTANCE
    }
}

/// `weight` times the square root of the occurrences, rounded down.
fn sublinear(weight: u64, occurrences: u64) -> i64 {
    i64::try_from((weight * weight * occurrences).isqrt()).unwrap_or(i64::MAX)
}

/// Hash of each feature to its weight and its number of occurrences.
fn features(text: &str) -> BTreeMap<u64, (u64, u64)> {
    let words: Vec<String> = words(text)
        .into_iter()
        .filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err())
        .collect();
    let mut features = BTreeMap::new();
    let mut count = |hash: u64, weight: u64| {
        features.entry(hash).or_insert((weight, 0)).1 += 1;
    };
    for word in &words {
        count(hash('w', word.chars()), WORD);
        let bordered: Vec<char> = std::iter::once('<')
            .chain(word.chars())
            .chain(std::iter::once('>'))
            .collect();
        for length in RUN_LENGTHS {
            for run in bordered.windows(length) {
                count(hash('r', run.iter().copied()), RUN);
            }
        }
    }
    for pair in words.windows(2) {
        let joined = pair[0]
            .chars()
            .chain(std::iter::once(' '))
            .chain(pair[1].chars());
        count(hash('p', joined), PAIR);
    }
    features
}

/// Lower-case words of letters and digits; `readinessProbe` is two, `OOMKilled` is `oomkilled`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous_was_small = false;
    for c in text.chars() {
        let starts_new = c.is_uppercase() && previous_was_small;
        if (starts_new || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        previous_was_small = c.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// FNV-1a over the characters' code points, then mixed, so that low and high bits are both usable.
fn hash(kind: char, characters: impl Iterator<Item = char>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = OFFSET;
    for c in std::iter::once(kind).chain(characters) {
        for byte in u32::from(c).to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(one: &str, two: &str) -> f64 {
        let embed = |text| Lexical.embed(text).unwrap();
        embed(one).distance(&embed(two))
    }

    #[test]
    fn words_split_at_signs_and_humps_and_lose_their_case() {
        assert_eq!(
            words("spec.readinessProbe: OOMKilled, exit-code 137"),
            [
                "spec",
                "readiness",
                "probe",
                "oomkilled",
                "exit",
                "code",
                "137"
            ]
        );
        assert!(words(" -- \u{1b}[0m").contains(&"0m".to_owned()));
    }

    #[test]
    fn shared_vocabulary_brings_texts_together() {
        let query = "container is killed for memory, OOMKilled, exit code 137";
        let near = "the memory limit was too low: containers OOMKilled with exit code 137";
        let far = "the image tag does not exist, pods stay in ImagePullBackOff";
        assert!(distance(query, near) < 0.7, "{}", distance(query, near));
        assert!(distance(query, far) > 0.9, "{}", distance(query, far));
    }

    #[test]
    fn word_forms_are_related_and_order_counts_a_little() {
        assert!(distance("pods restarting", "pod restarts") < 0.95);
        let turned = distance("secret key missing", "missing key secret");
        assert!(turned > 0.0 && turned < 0.4, "{turned}");
    }

    #[test]
    fn stop_words_are_sorted_and_single() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_text_without_words_has_no_vector() {
        for text in ["", "   ", "--- !!", "the of and"] {
            assert!(
                matches!(Lexical.embed(text), Err(EmbedError::NothingToEmbed)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn very_long_words_and_texts_are_read_whole() {
        let word = "x".repeat(1 << 20);
        let one = Lexical.embed(&format!("{word} alpha")).unwrap();
        let two = Lexical.embed(&format!("{word} omega")).unwrap();
        assert!(one.distance(&two) > 0.0);
    }

    #[test]
    fn a_vector_never_changes_under_one_identity() {
        let vector = Lexical
            .embed("CrashLoopBackOff: SESSION_SECRET is missing from the secret")
            .unwrap();
        let bits: Vec<u8> = vector
            .as_slice()
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        use sha2::Digest;
        let digest = hex::encode(sha2::Sha256::digest(&bits));
        assert_eq!(
            &digest[..16],
            "8bfbe97eca0df3a4",
            "raise VERSION when this must change"
        );
    }
}
