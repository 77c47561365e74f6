//! YAML text as a small tree in which every node knows its line and column.
//!
//! Plain scalars keep their text, so that the field's type decides what `0340914`, `on` or `1e3` means. Aliases
//! are applied within limits; merge keys, tags other than `!!str`, duplicate keys, tabs in the indentation and a
//! second document are problems. Nothing here knows what a scenario is.

mod build;
mod text;

use crate::scenario::problem::{Notes, Position};

pub use crate::scenario::yaml::text::from_bytes;

/// A scenario of a few kilobytes is long; one that carries a large object inline still fits.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Nesting beyond any Kubernetes object; keeps recursion over the tree harmless.
pub const MAX_DEPTH: usize = 64;
/// Nodes that aliases may add: a few nested anchors could otherwise grow a short file without bounds.
pub const MAX_ALIAS_NODES: usize = 10_000;

#[derive(Clone, Debug)]
pub struct Node {
    pub at: Position,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    /// Without quotes; its meaning is up to the field.
    Plain(Scalar),
    /// Quoted or a block: text whatever it looks like.
    Text(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Scalar {
    pub text: String,
    shape: Shape,
}

/// How positions in a scalar's text map to the file.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One line, character by character, beginning this many columns after the node.
    Flat { skip: usize },
    /// A `|` block: its first line, and the spaces taken from each line.
    Block { first_line: usize, indent: usize },
    /// Folded or escaped: only the start is known.
    Opaque,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub key_at: Position,
    pub value: Node,
}

/// What a plain scalar is in the YAML 1.2 core schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    Null,
    Bool(bool),
    /// Any spelling of an integer.
    Integer,
    /// Any spelling of a float, infinities and NaN included.
    Float,
    Text,
}

/// Parses one document. Problems go to `notes`; `None` when there is no tree to go on with.
pub fn parse(text: &str, notes: &mut Notes) -> Option<Node> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file is larger than {MAX_FILE_BYTES} bytes");
        notes.problem(Position::START, "", message);
        return None;
    }
    let text = text::prepare(text, notes)?;
    build::build(&text, notes)
}

impl Node {
    /// What it is, for messages: `the number 5`, `a list`.
    pub fn what(&self) -> String {
        match &self.body {
            Body::Plain(scalar) => match core_schema(&scalar.text) {
                Plain::Null => "nothing".to_owned(),
                Plain::Bool(_) => format!("the boolean {}", excerpt(&scalar.text)),
                Plain::Integer | Plain::Float => format!("the number {}", excerpt(&scalar.text)),
                Plain::Text => format!("`{}`", excerpt(&scalar.text)),
            },
            Body::Text(scalar) => format!("the text \"{}\"", excerpt(&scalar.text)),
            Body::List(_) => "a list".to_owned(),
            Body::Map(_) => "a mapping".to_owned(),
        }
    }

    /// The child at a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.body {
            Body::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// Where a byte of a scalar's text stands in the file; the node's start when that is not known.
    pub fn position_of(&self, offset: usize) -> Position {
        let (Body::Plain(scalar) | Body::Text(scalar)) = &self.body else {
            return self.at;
        };
        let before: String = scalar
            .text
            .char_indices()
            .take_while(|(at, _)| *at < offset)
            .map(|(_, c)| c)
            .collect();
        let lines = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or("").chars().count();
        match scalar.shape {
            Shape::Flat { skip } => Position {
                line: self.at.line,
                column: self.at.column + skip + column,
            },
            Shape::Block { first_line, indent } => Position {
                line: first_line + lines,
                column: indent + column + 1,
            },
            Shape::Opaque => self.at,
        }
    }
}

/// A short, one-line piece of a text for messages.
pub fn excerpt(text: &str) -> String {
    /// Enough to recognise a value, short enough for a line.
    const EXCERPT_CHARS: usize = 60;
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().take(EXCERPT_CHARS).collect();
    if short.len() < text.len() {
        format!("{short}…")
    } else {
        short
    }
}

/// Resolves a plain scalar by the YAML 1.2 core schema.
pub fn core_schema(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::Float,
        _ => {}
    }
    let digits =
        |text: &str, radix: u32| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    if text.strip_prefix("0o").is_some_and(|rest| digits(rest, 8))
        || text.strip_prefix("0x").is_some_and(|rest| digits(rest, 16))
    {
        return Plain::Integer;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits(unsigned, 10) {
        return Plain::Integer;
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || is_float(unsigned) {
        return Plain::Float;
    }
    Plain::Text
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent_fits
        && digits(whole)
        && digits(fraction)
        && (!whole.is_empty() || !fraction.is_empty())
}

#[cfg(test)]
mod tests;
