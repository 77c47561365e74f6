//! Which served exemplars the agent's observed requests follow.
//!
//! Judged against what this run was served and nothing else, so that an agent which retrieved nothing used nothing.

use std::collections::BTreeSet;

use crate::ids::PostmortemId;
use crate::record::Record;

/// Ids in the order in which they were first served.
pub(super) fn used(record: &Record) -> Vec<PostmortemId> {
    let done: Vec<&str> = record
        .actions
        .iter()
        .map(|action| action.tool.as_str())
        .collect();
    let mut seen = BTreeSet::new();
    record
        .retrievals
        .iter()
        .flat_map(|retrieval| &retrieval.served)
        .filter(|served| seen.insert(&served.id))
        .filter(|served| {
            let told: Vec<&str> = served.tools.iter().map(String::as_str).collect();
            follows(&told, &done)
        })
        .map(|served| served.id.clone())
        .collect()
}

/// Containment of the exemplar's tools in the agent's, plus a quarter of how much of the order is common, is at least
/// one half. In whole numbers: |common|/|told| + lcs/(4 longest) >= 1/2.
fn follows(told: &[&str], done: &[&str]) -> bool {
    let told_set: BTreeSet<&str> = told.iter().copied().collect();
    let done_set: BTreeSet<&str> = done.iter().copied().collect();
    if told_set.is_empty() {
        return false;
    }
    let common = told_set.intersection(&done_set).count();
    let longest = told.len().max(done.len());
    let in_order = longest_common_subsequence(told, done);
    4 * common * longest + in_order * told_set.len() >= 2 * told_set.len() * longest
}

fn longest_common_subsequence(left: &[&str], right: &[&str]) -> usize {
    let mut row = vec![0usize; right.len() + 1];
    for item in left {
        let mut diagonal = 0;
        for (column, other) in right.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] = if item == other {
                diagonal + 1
            } else {
                above.max(row[column])
            };
            diagonal = above;
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_subsequence_keeps_order_and_allows_gaps() {
        for (left, right, expected) in [
            ("a b c", "a x b y c", 3),
            ("a b c", "c b a", 1),
            ("a a b", "a b a", 2),
            ("a b", "", 0),
            ("", "", 0),
        ] {
            let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
            let got = longest_common_subsequence(&words(left), &words(right));
            assert_eq!(got, expected, "{left:?} and {right:?}");
        }
    }

    #[test]
    fn half_of_the_tools_is_enough_and_order_makes_up_for_a_little_less() {
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        for (told, done, expected) in [
            ("get logs", "get", true),
            ("get", "get", true),
            ("get", "logs", false),
            ("get", "", false),
            ("", "get", false),
            // 2/5 = 0.4, and both in order of five at most: + 0.1 = 0.5 exactly.
            ("get logs patch scale undo", "get logs", true),
            // The same two tools the other way round: + 0.05.
            ("get logs patch scale undo", "logs get", false),
            // Repeated requests make the sequence long and the order weak, not the containment.
            ("get logs", "get get get get get get get get", true),
        ] {
            assert_eq!(
                follows(&words(told), &words(done)),
                expected,
                "{told} / {done}"
            );
        }
    }
}
