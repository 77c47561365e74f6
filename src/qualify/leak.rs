//! The leak lint: nothing that an agent can read names the scenario, a category, a mechanism, or uses a word that only
//! somebody who made the fault would use.

use serde::{Deserialize, Serialize};

use crate::qualify::reader::Reading;
use crate::scenario::model::{Scenario, Vocabulary};

/// Words, each with the reason why it tells. Matched as whole words, so that `default` is no `fault`; words are also
/// told apart at hyphens, digits and inner capitals.
pub const WORDS: &[(&str, &str)] = &[
    ("breakage", "the name of the instrument"),
    ("benchmark", "nobody benchmarks in production"),
    ("scenario", "says that somebody wrote a script for this"),
    ("scenarios", "as scenario"),
    ("chaos", "the field's word for faults made on purpose"),
    ("sabotage", "a fault made on purpose"),
    ("inject", "a fault made on purpose"),
    ("injected", "as inject"),
    ("injection", "as inject"),
    ("injector", "as inject"),
    (
        "fault",
        "what went wrong is said in the terms of the program, never as fault",
    ),
    ("faults", "as fault"),
    ("faulty", "as fault"),
    ("experiment", "says that this is one"),
    ("rubric", "a word of scoring"),
    ("wrong", "a value does not say of itself that it is wrong"),
    ("broken", "a value does not say of itself that it is broken"),
    ("bogus", "as wrong"),
    ("fake", "as wrong"),
    ("dummy", "as wrong"),
    ("nonexistent", "a name does not say that nothing bears it"),
    ("intentionally", "says that it was done on purpose"),
    ("deliberately", "as intentionally"),
    ("misconfigured", "the diagnosis, not a symptom"),
    ("simulated", "gives the cluster away"),
    ("simulation", "as simulated"),
    ("simulator", "as simulated"),
    ("emulated", "as simulated"),
];

/// Phrases, matched as they stand, in any case, each with the reason.
pub const PHRASES: &[(&str, &str)] = &[
    (
        "does-not-exist",
        "a name does not say that nothing bears it",
    ),
    ("do-not-exist", "as does-not-exist"),
    (
        "no-such-",
        "Kubernetes writes it with blanks; a name with hyphens is made up",
    ),
    (
        "exits-immediately",
        "an argument does not say what it will do",
    ),
    ("ground-truth", "a word of scoring"),
    ("ground_truth", "as ground-truth"),
];

/// Texts of Kubernetes itself that hold such a word, each with the word and the reason; a hit inside of one is none.
pub const ORDINARY: &[(&str, &str, &str)] = &[];

/// Shorter ids are words by chance (`a`, `db`) and tell nothing.
const MIN_ID: usize = 3;
/// Letters shown before and behind a hit.
const CONTEXT: usize = 24;
/// Findings that are kept; further ones tell nothing new.
const MAX_FINDINGS: usize = 20;

/// One tell-tale and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub place: String,
    pub what: String,
    /// A little of the text around it.
    pub around: String,
}

/// Every tell-tale in a reading, each kind of it once for each place.
pub fn lint(reading: &Reading, scenario: &Scenario, vocabulary: &Vocabulary) -> Vec<Finding> {
    let mut ids: Vec<String> = vec![scenario.id.to_string()];
    ids.extend(vocabulary.categories.iter().map(|c| c.id.to_string()));
    ids.extend(vocabulary.mechanisms.iter().map(|m| m.id.to_string()));
    ids.retain(|id| id.len() >= MIN_ID);
    let phrases = PHRASES.iter().map(|(phrase, _)| (*phrase).to_owned());
    let needles: Vec<String> = ids.into_iter().chain(phrases).collect();
    let mut found = Vec::new();
    for item in &reading.items {
        let lower = item.text.to_ascii_lowercase();
        let mut hits: Vec<(String, usize)> = needles
            .iter()
            .filter_map(|needle| {
                whole(&lower, &needle.to_ascii_lowercase()).map(|at| (needle.clone(), at))
            })
            .collect();
        hits.extend(told_words(&item.text));
        for (what, at) in hits {
            if found.len() < MAX_FINDINGS {
                found.push(Finding {
                    place: item.place.clone(),
                    around: around(&item.text, at, what.len()),
                    what,
                });
            }
        }
    }
    found
}

/// Where a phrase stands in a text, not as a piece of a longer word or of a uid.
fn whole(text: &str, phrase: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let inner_end = phrase.ends_with(is_part);
    text.match_indices(phrase).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !(before.is_some_and(is_part) || inner_end && after.is_some_and(is_part))
    })
}

/// Tell-tale words of a text with the place of their first letter, each word once.
fn told_words(text: &str) -> Vec<(String, usize)> {
    let mut hits: Vec<(String, usize)> = Vec::new();
    for (at, word) in words(text) {
        let lower = word.to_ascii_lowercase();
        let tells = WORDS.iter().any(|(tell, _)| *tell == lower);
        let ordinary = ORDINARY.iter().any(|(of, phrase, _)| {
            *of == lower
                && text
                    .match_indices(phrase)
                    .any(|(start, whole)| (start..start + whole.len()).contains(&at))
        });
        if tells && !ordinary && !hits.iter().any(|(known, _)| *known == lower) {
            hits.push((lower, at));
        }
    }
    hits
}

/// The words of a text: runs of ASCII letters, parted at inner capitals, with the place of their first letter.
fn words(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut start = None;
    for at in 0..=bytes.len() {
        let here = bytes.get(at).copied().unwrap_or(b' ');
        let inner_capital = at > 0
            && here.is_ascii_uppercase()
            && (bytes[at - 1].is_ascii_lowercase()
                || (bytes[at - 1].is_ascii_uppercase()
                    && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)));
        if let Some(begin) = start
            && (!here.is_ascii_alphabetic() || inner_capital)
        {
            found.push((begin, &text[begin..at]));
            start = None;
        }
        if start.is_none() && here.is_ascii_alphabetic() {
            start = Some(at);
        }
    }
    found
}

fn around(text: &str, at: usize, length: usize) -> String {
    let mut begin = at.saturating_sub(CONTEXT);
    while !text.is_char_boundary(begin) {
        begin -= 1;
    }
    let mut end = (at + length + CONTEXT).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    text[begin..end]
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        told_words(text).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn ids_are_no_pieces_of_uids_or_of_longer_words() {
        assert_eq!(whole("uid 3f91b7562c04", "c04"), None);
        assert_eq!(whole("uid c045", "c04"), None);
        assert_eq!(whole("image x-c04-y", "c04"), Some(8));
        assert_eq!(whole("2c04 c04", "c04"), Some(5));
        assert_eq!(whole("no-such-tag", "no-such-"), Some(0));
    }

    #[test]
    fn words_are_found_whole_wherever_they_are_hidden() {
        for text in [
            "a fault",
            "net-fault-2",
            "FAULT_ID",
            "lastFault",
            "HTTPFault",
            "x.fault/y",
        ] {
            assert_eq!(told(text), ["fault"], "{text}");
        }
        for text in [
            "default",
            "defaultMode",
            "faultless",
            "failureThreshold",
            "Defaulted",
        ] {
            assert!(told(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn every_word_and_phrase_has_its_reason_and_stands_once() {
        let all: Vec<&str> = WORDS
            .iter()
            .chain(PHRASES)
            .map(|(word, reason)| {
                assert!(!reason.is_empty(), "{word}");
                *word
            })
            .collect();
        for word in &all {
            assert_eq!(
                all.iter().filter(|other| other == &word).count(),
                1,
                "{word}"
            );
            assert_eq!(word.to_ascii_lowercase(), *word);
        }
    }
}
