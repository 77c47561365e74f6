//! Names for comparison: what differs between any two runs is replaced by what it stands for.

use std::collections::BTreeMap;

/// Replaces generated names, addresses, ids and times in texts.
#[derive(Debug, Default)]
pub struct Names {
    /// ReplicaSet name to role.
    sets: BTreeMap<String, String>,
}

impl Names {
    /// Notes ReplicaSets in the order of their appearance, oldest revision first.
    pub fn note(&mut self, name: &str) {
        let next = format!(
            "{}-rs{}",
            name.rsplit_once('-').map_or(name, |(stem, _)| stem),
            self.sets.len() + 1
        );
        self.sets.entry(name.to_owned()).or_insert(next);
    }

    /// Notes an owner whose pods have generated names, such as a Job.
    pub fn note_owner(&mut self, name: &str) {
        self.sets
            .entry(name.to_owned())
            .or_insert_with(|| name.to_owned());
    }

    /// Replaces everything that differs by chance.
    pub fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, role) in &self.sets {
            text = replace_pods(&text, name, role);
            text = text.replace(name, role);
        }
        scan(&text)
    }
}

/// Replaces `NAME-xxxxx` by `ROLE-pod`.
fn replace_pods(text: &str, name: &str, role: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let head = format!("{name}-");
    while let Some(at) = rest.find(&head) {
        let after = &rest[at + head.len()..];
        let suffix = after
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .count();
        out.push_str(&rest[..at]);
        if suffix == 5 {
            out.push_str(&format!("{role}-pod"));
        } else {
            out.push_str(&rest[at..at + head.len() + suffix]);
        }
        rest = &after[suffix..];
    }
    out.push_str(rest);
    out
}

/// Replaces uids, long hex ids, IPv4 addresses, RFC 3339 times and volume suffixes.
fn scan(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "-.:_".contains(*c))
            .collect();
        if word.is_empty() {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        out.push_str(&plain_word(&word));
        rest = &rest[word.len()..];
    }
    out
}

fn plain_word(word: &str) -> String {
    let parts: Vec<&str> = word.split('-').collect();
    let hex = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
    if parts.len() == 5
        && parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|p| hex(p))
    {
        return "UID".to_owned();
    }
    if word.len() == 64 && hex(word) {
        return "ID".to_owned();
    }
    if word.len() >= 19 && word.as_bytes()[4] == b'-' && word.as_bytes()[10] == b'T' {
        return "TIME".to_owned();
    }
    if let Some(stem) = word.strip_prefix("kube-api-access-")
        && stem.len() == 5
    {
        return "kube-api-access-x".to_owned();
    }
    let (address, port) = word
        .split_once(':')
        .map_or((word, ""), |(address, port)| (address, port));
    let pieces: Vec<&str> = address.split('.').collect();
    if pieces.len() == 4
        && pieces.iter().all(|piece| piece.parse::<u8>().is_ok())
        && address.starts_with("10.4")
    {
        return if port.is_empty() {
            "IP".to_owned()
        } else {
            format!("IP:{port}")
        };
    }
    word.to_owned()
}
