//! Reading typed fields from a YAML tree, noting every problem and going on.
//!
//! Each function answers `None` after noting why, so that one bad field hides no other.

use serde_json::{Map as JsonMap, Number, Value};

use crate::ids::{MicroPoints, is_kebab_case};
use crate::scenario::near::did_you_mean;
use crate::scenario::problem::{Notes, Position};
use crate::scenario::yaml::{Body, Entry, Node, Plain, core_schema, excerpt};

/// A mapping being read, with its dotted path for messages.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    pub path: String,
    pub at: Position,
    entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    /// The mapping at a node.
    pub fn of(node: &'a Node, path: &str, notes: &mut Notes) -> Option<Fields<'a>> {
        match &node.body {
            Body::Map(entries) => Some(Fields {
                path: path.to_owned(),
                at: node.at,
                entries,
            }),
            _ => {
                notes.problem(
                    node.at,
                    path,
                    format!("expected a mapping, found {}", node.what()),
                );
                None
            }
        }
    }

    /// Notes every key that is not among the known.
    pub fn known(&self, known: &[&str], notes: &mut Notes) {
        for entry in self.unknown(known) {
            let guess = did_you_mean(&entry.key, known.iter().copied());
            let message = if guess.is_empty() {
                format!("unknown key, expected one of {}", known.join(", "))
            } else {
                format!("unknown key{guess}")
            };
            notes.problem(entry.key_at, &self.sub(&excerpt(&entry.key)), message);
        }
    }

    /// Entries whose key is not among the known.
    pub fn unknown(&self, known: &[&str]) -> impl Iterator<Item = &'a Entry> {
        let known: Vec<String> = known.iter().map(|key| (*key).to_owned()).collect();
        self.entries
            .iter()
            .filter(move |entry| !known.contains(&entry.key))
    }

    pub fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// The path of a key below this mapping.
    pub fn sub(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// A key's value when it is given and not null.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entry(key)
            .map(|entry| &entry.value)
            .filter(|node| !is_null(node))
    }

    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// A key's value, or a note that it is missing.
    pub fn need(&self, key: &str, expected: &str, notes: &mut Notes) -> Option<&'a Node> {
        match self.entry(key) {
            None => {
                notes.problem(
                    self.at,
                    &self.sub(key),
                    format!("missing, expected {expected}"),
                );
                None
            }
            Some(entry) if is_null(&entry.value) => {
                let message = format!("has no value, expected {expected}");
                notes.problem(entry.value.at, &self.sub(key), message);
                None
            }
            Some(entry) => Some(&entry.value),
        }
    }

    pub fn need_text(&self, key: &str, expected: &str, notes: &mut Notes) -> Option<String> {
        let node = self.need(key, expected, notes)?;
        text(node, &self.sub(key), notes)
    }

    pub fn opt_text(&self, key: &str, notes: &mut Notes) -> Option<String> {
        let node = self.get(key)?;
        text(node, &self.sub(key), notes)
    }

    /// One of a closed list of words.
    pub fn need_word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        notes: &mut Notes,
    ) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let expected = format!("one of {}", known.join(", "));
        let node = self.need(key, &expected, notes)?;
        let text = text(node, &self.sub(key), notes)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value);
        if found.is_none() {
            let guess = did_you_mean(&text, known.iter().copied());
            let message = format!(
                "unknown word `{}`{guess}, expected {expected}",
                excerpt(&text)
            );
            notes.problem(node.at, &self.sub(key), message);
        }
        found
    }

    /// A boolean; absent is false.
    pub fn flag(&self, key: &str, notes: &mut Notes) -> bool {
        let Some(node) = self.get(key) else {
            return false;
        };
        match plain(node) {
            Some((_, Plain::Bool(value))) => value,
            _ => {
                let message = format!("expected true or false, found {}", node.what());
                notes.problem(node.at, &self.sub(key), message);
                false
            }
        }
    }
}

/// A text. Numbers, booleans and nulls without quotes are refused: their text would be a guess.
pub fn text(node: &Node, path: &str, notes: &mut Notes) -> Option<String> {
    let message = match &node.body {
        Body::Text(scalar) => return Some(scalar.text.clone()),
        Body::Plain(scalar) => match core_schema(&scalar.text) {
            Plain::Text => return Some(scalar.text.clone()),
            Plain::Null => "expected text, found nothing; write \"\" for an empty text".to_owned(),
            _ => format!(
                "expected text, found {}; put it in quotes: \"{}\"",
                node.what(),
                excerpt(&scalar.text)
            ),
        },
        _ => format!("expected text, found {}", node.what()),
    };
    notes.problem(node.at, path, message);
    None
}

/// Ids stand in run ids, tables and file names.
pub const MAX_ID_LETTERS: usize = 60;

/// A kebab-case id.
pub fn kebab(node: &Node, path: &str, notes: &mut Notes) -> Option<String> {
    let id = text(node, path, notes)?;
    if id.len() > MAX_ID_LETTERS {
        let message = format!(
            "{} letters long, expected at most {MAX_ID_LETTERS}",
            id.len()
        );
        notes.problem(node.at, path, message);
        return None;
    }
    if is_kebab_case(&id) {
        return Some(id);
    }
    let message = format!(
        "`{}` is not kebab-case, expected small letters, digits and single hyphens",
        excerpt(&id)
    );
    notes.problem(node.at, path, message);
    None
}

/// A name as it stands, quoted or not: `on`, `10%` and `5` are names here.
pub fn spelled(node: &Node, path: &str, notes: &mut Notes) -> Option<String> {
    match &node.body {
        Body::Text(scalar) => Some(scalar.text.clone()),
        Body::Plain(scalar) if !is_null(node) => Some(scalar.text.clone()),
        _ => {
            notes.problem(
                node.at,
                path,
                format!("expected a name, found {}", node.what()),
            );
            None
        }
    }
}

/// A whole number within a range, in its plain decimal spelling.
pub fn whole(
    node: &Node,
    path: &str,
    range: std::ops::RangeInclusive<u32>,
    notes: &mut Notes,
) -> Option<u32> {
    let expected = format!(
        "expected a whole number from {} to {}",
        range.start(),
        range.end()
    );
    let number = plain(node)
        .filter(|(text, _)| is_canonical_integer(text))
        .and_then(|(text, _)| text.parse::<i128>().ok());
    let Some(number) = number else {
        notes.problem(node.at, path, format!("{expected}, found {}", node.what()));
        return None;
    };
    let inside = u32::try_from(number)
        .ok()
        .filter(|number| range.contains(number));
    if inside.is_none() {
        notes.problem(node.at, path, format!("{expected}, found {number}"));
    }
    inside
}

/// A decimal between 0 and 1 in exact millionths.
pub fn fraction(node: &Node, path: &str, notes: &mut Notes) -> Option<MicroPoints> {
    let parsed = plain(node).and_then(|(text, _)| micro_points(text));
    if parsed.is_none() {
        let message = format!(
            "expected a decimal from 0 to 1 with at most six places, such as 0.25, found {}",
            node.what()
        );
        notes.problem(node.at, path, message);
    }
    parsed
}

fn micro_points(text: &str) -> Option<MicroPoints> {
    const PLACES: usize = 6;
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let kept = places.trim_end_matches('0');
    if text.is_empty() || !digits(places) || !matches!(whole, "" | "0" | "1") || kept.len() > PLACES
    {
        return None;
    }
    let millionths: u32 = format!("{kept:0<PLACES$}").parse().ok()?;
    let total = whole.parse::<u32>().unwrap_or(0) * 1_000_000 + millionths;
    (total <= 1_000_000).then_some(MicroPoints(total))
}

/// The items of a list.
pub fn items<'a>(node: &'a Node, path: &str, notes: &mut Notes) -> &'a [Node] {
    match &node.body {
        Body::List(items) => items,
        _ => {
            notes.problem(
                node.at,
                path,
                format!("expected a list, found {}", node.what()),
            );
            &[]
        }
    }
}

/// Any value as JSON. Numbers must stand in their plain spelling, so that none is ever re-spelled; one that does
/// not is noted and becomes null, so that the rest can be checked.
pub fn json(node: &Node, path: &str, notes: &mut Notes) -> Value {
    match &node.body {
        Body::Text(scalar) => Value::from(scalar.text.as_str()),
        Body::Plain(scalar) => match core_schema(&scalar.text) {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            Plain::Text => Value::from(scalar.text.as_str()),
            Plain::Integer | Plain::Float => match canonical_number(&scalar.text) {
                Some(number) => Value::Number(number),
                None => {
                    notes.problem(node.at, path, unclear_number(&scalar.text));
                    Value::Null
                }
            },
        },
        Body::List(items) => {
            let each = items.iter().enumerate();
            each.map(|(index, item)| json(item, &format!("{path}[{index}]"), notes))
                .collect()
        }
        Body::Map(entries) => {
            let mut object = JsonMap::new();
            for entry in entries {
                let path = format!("{path}.{}", excerpt(&entry.key));
                object.insert(entry.key.clone(), json(&entry.value, &path, notes));
            }
            Value::Object(object)
        }
    }
}

/// A number whose text is the one JSON would print: no leading zeros, signs, exponents or bare dots.
pub fn canonical_number(text: &str) -> Option<Number> {
    if is_canonical_integer(text) {
        return text
            .parse::<i64>()
            .map(Number::from)
            .or_else(|_| text.parse::<u64>().map(Number::from))
            .ok();
    }
    let (whole, places) = text.split_once('.')?;
    let decimal = is_canonical_integer(whole) || whole == "-0";
    if !decimal || places.is_empty() || !places.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let number = Number::from_f64(text.parse().ok()?)?;
    (number.to_string() == text).then_some(number)
}

/// Why a number is refused and what to write.
pub fn unclear_number(text: &str) -> String {
    format!(
        "the number {0} is not in its plain spelling and different tools read it differently; \
         put it in quotes (\"{0}\") if text is meant, else write it in plain digits",
        excerpt(text)
    )
}

fn is_canonical_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    plain && text != "-0" && (digits == "0" || !digits.starts_with('0'))
}

pub fn is_null(node: &Node) -> bool {
    matches!(plain(node), Some((_, Plain::Null)))
}

fn plain(node: &Node) -> Option<(&str, Plain)> {
    match &node.body {
        Body::Plain(scalar) => Some((&scalar.text, core_schema(&scalar.text))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_exact_millionths() {
        for (text, micro) in [
            ("0.2", 200_000),
            ("1", 1_000_000),
            ("0", 0),
            (".25", 250_000),
            ("0.333333", 333_333),
            ("1.000", 1_000_000),
            ("0.2000000000", 200_000),
        ] {
            assert_eq!(micro_points(text), Some(MicroPoints(micro)), "{text}");
        }
        for text in [
            "-0.1",
            "1.1",
            "2e-1",
            "0.1234567",
            "",
            ".",
            "0x1",
            "inf",
            "1.",
        ] {
            assert_eq!(micro_points(text), None, "{text}");
        }
    }

    #[test]
    fn only_plainly_spelled_numbers_become_numbers() {
        for text in ["0", "-3", "25000", "0.5", "18446744073709551615"] {
            assert_eq!(canonical_number(text).unwrap().to_string(), text);
        }
        for text in [
            "0644",
            "2e0",
            "+1",
            "1.",
            ".5",
            "0x1f",
            "-0",
            "38915415.00",
            "99999999999999999999",
        ] {
            assert!(canonical_number(text).is_none(), "{text}");
        }
    }
}
