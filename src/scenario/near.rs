//! Near matches for misspelt words: edit distance over short texts.

/// Longer words are not compared: nobody misspells a page.
const MAX_WORD_CHARS: usize = 80;

/// The known words that may have been meant, best first, at most three.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if word.chars().count() > MAX_WORD_CHARS {
        return Vec::new();
    }
    let lower = word.to_lowercase();
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let distance = distance(&lower, &candidate.to_lowercase());
            let part = lower.len() >= 4 && candidate.to_lowercase().contains(&lower);
            (distance <= allowed || part).then_some((distance, candidate))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, word)| word).take(3).collect()
}

/// ` (did you mean a or b?)`, or nothing.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = near(word, known);
    if near.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = near.iter().map(|word| format!("`{word}`")).collect();
    format!(" (did you mean {}?)", quoted.join(" or "))
}

/// Insertions, deletions, replacements and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(MAX_WORD_CHARS).collect();
    let right: Vec<char> = right.chars().take(MAX_WORD_CHARS).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i; right.len() + 1];
        for j in 1..=right.len() {
            let replaced = last[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if swapped {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_and_slips_are_near_and_strangers_are_not() {
        let known = ["detector", "injector", "ground_truth"];
        assert_eq!(near("detecotr", known), ["detector"]);
        assert_eq!(near("ground-truth", known), ["ground_truth"]);
        assert!(near("zebra", known).is_empty());
        assert_eq!(near("", known), Vec::<&str>::new());
    }
}
