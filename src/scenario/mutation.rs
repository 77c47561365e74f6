//! The grammar of mutations: `path = value`, several of them on lines of their own or separated by `;`.
//!
//! Paths have dotted keys, `[i]` indexes, quoted keys in brackets for keys with dots or slashes, and
//! `[name=api]` for a list's element by its name. Values are quoted texts, numbers, booleans, null, lists,
//! mappings, or bare words, which are texts. Whether the path exists is found out on the live object.

use serde_json::{Map, Value};
use winnow::Parser;
use winnow::token::take_while;

use crate::detect::syntax::{Fault, Parsed, SyntaxError};
use crate::scenario::decode::{canonical_number, unclear_number};
use crate::scenario::model::{Assignment, Mutation, PathStep, is_bare_key};
use crate::scenario::yaml::{Plain, core_schema};

/// More assignments than any one fault has; keeps the journal of a fault readable.
pub const MAX_ASSIGNMENTS: usize = 64;
/// Nesting of a value, far beyond a pod template.
const MAX_VALUE_DEPTH: usize = 16;
/// List indexes beyond this are slips of the finger.
const MAX_INDEX: usize = 999;

/// A parsed assignment and where its value begins, in bytes, for messages about the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub assignment: Assignment,
    pub path_at: usize,
    pub value_at: usize,
}

/// Parses a mutation, keeping positions.
pub fn parse_placed(text: &str) -> Result<Vec<Placed>, SyntaxError> {
    let mut input = text;
    mutation(&mut input, text).map_err(|fault| fault.in_text(text))
}

/// Parses a mutation.
pub fn parse(text: &str) -> Result<Mutation, SyntaxError> {
    let placed = parse_placed(text)?;
    let assignments = placed.into_iter().map(|placed| placed.assignment).collect();
    Ok(Mutation { assignments })
}

/// Parses a path alone, as `protected` has it.
pub fn parse_path(text: &str) -> Result<Vec<PathStep>, SyntaxError> {
    let mut input = text.trim();
    let parsed = path(&mut input).and_then(|steps| {
        if input.is_empty() {
            Ok(steps)
        } else {
            Err(Fault::at(input, "expected the end of the path"))
        }
    });
    parsed.map_err(|fault| fault.in_text(text.trim_start()))
}

fn mutation(input: &mut &str, text: &str) -> Parsed<Vec<Placed>> {
    let mut all: Vec<Placed> = Vec::new();
    loop {
        take_while(0.., |c: char| c.is_whitespace() || c == ';').parse_next(input)?;
        if input.is_empty() {
            break;
        }
        if all.len() >= MAX_ASSIGNMENTS {
            return Err(Fault::at(
                input,
                format!("more than {MAX_ASSIGNMENTS} assignments"),
            ));
        }
        let start = *input;
        let placed = assignment(input, text)?;
        if all
            .iter()
            .any(|other| other.assignment.path == placed.assignment.path)
        {
            return Err(Fault::at(start, "this path is assigned twice"));
        }
        all.push(placed);
        blank(input)?;
        if !input.is_empty() && !input.starts_with(['\n', '\r', ';']) {
            return Err(Fault::at(
                input,
                "expected the end of the line or `;` after the value",
            ));
        }
    }
    if all.is_empty() {
        return Err(Fault::at(
            text,
            "the mutation is empty, expected `path = value`",
        ));
    }
    Ok(all)
}

fn assignment(input: &mut &str, text: &str) -> Parsed<Placed> {
    let path_at = text.len() - input.len();
    let path = path(input)?;
    blank(input)?;
    if !input.starts_with('=') {
        return Err(Fault::at(input, "expected `=` after the path"));
    }
    *input = &input[1..];
    if input.starts_with('=') {
        return Err(Fault::at(
            input,
            "expected a single `=`: a mutation sets, it does not compare",
        ));
    }
    blank(input)?;
    let value_at = text.len() - input.len();
    let value = value(input, MAX_VALUE_DEPTH, false)?;
    let assignment = Assignment { path, value };
    Ok(Placed {
        assignment,
        path_at,
        value_at,
    })
}

fn path(input: &mut &str) -> Parsed<Vec<PathStep>> {
    let mut steps = Vec::new();
    let start = *input;
    loop {
        if input.starts_with('[') {
            steps.push(bracket(input)?);
        } else {
            steps.push(key(input)?);
        }
        if let Some(rest) = input.strip_prefix('.') {
            *input = rest;
            if input.starts_with('[') {
                return Err(Fault::at(input, "expected a key after `.`"));
            }
        } else if !input.starts_with('[') {
            break;
        }
    }
    match steps.first() {
        Some(PathStep::Key(_)) => Ok(steps),
        _ => Err(Fault::at(
            start,
            "a path begins with a key, such as spec or data",
        )),
    }
}

fn key(input: &mut &str) -> Parsed<PathStep> {
    let start = *input;
    if input.starts_with('"') {
        return quoted(input).map(PathStep::Key);
    }
    let word = take_while(0.., |c: char| {
        !(c.is_whitespace() || matches!(c, '.' | '[' | ']' | '=' | ';' | '"' | '\''))
    })
    .parse_next(input)?;
    if word.is_empty() {
        return Err(Fault::at(start, "expected a key"));
    }
    if !is_bare_key(word) {
        let message = format!("the key `{word}` needs quotes in brackets: [\"{word}\"]");
        return Err(Fault::at(start, message));
    }
    Ok(PathStep::Key(word.to_owned()))
}

fn bracket(input: &mut &str) -> Parsed<PathStep> {
    *input = &input[1..];
    let start = *input;
    let step = if input.starts_with(['"', '\'']) {
        PathStep::Key(quoted(input)?)
    } else if let Some(rest) = input.strip_prefix("name=") {
        *input = rest;
        let name = if input.starts_with(['"', '\'']) {
            quoted(input)?
        } else {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            take_while(0.., plain).parse_next(input)?.to_owned()
        };
        if name.is_empty() {
            return Err(Fault::at(rest, "expected a name after `name=`"));
        }
        PathStep::Named(name)
    } else {
        let digits = take_while(0.., |c: char| c.is_ascii_digit()).parse_next(input)?;
        let canonical = digits == "0" || !digits.starts_with('0');
        let index = digits
            .parse::<usize>()
            .ok()
            .filter(|index| canonical && *index <= MAX_INDEX);
        let expected =
            format!("expected an index from 0 to {MAX_INDEX}, a quoted key, or name=...");
        PathStep::Index(index.ok_or_else(|| Fault::at(start, expected))?)
    };
    if !input.starts_with(']') {
        return Err(Fault::at(input, "expected `]`"));
    }
    *input = &input[1..];
    Ok(step)
}

/// A value; `nested` ones end at `,`, `]` and `}`.
fn value(input: &mut &str, depth: usize, nested: bool) -> Parsed<Value> {
    if depth == 0 {
        let message = format!("nested more than {MAX_VALUE_DEPTH} levels deep");
        return Err(Fault::at(input, message));
    }
    match input.chars().next() {
        None | Some('\n' | '\r' | ';') => Err(Fault::at(input, "expected a value after `=`")),
        Some('"' | '\'') => quoted(input).map(Value::from),
        Some('[') => list(input, depth),
        Some('{') => mapping(input, depth),
        Some(_) => bare(input, nested),
    }
}

fn bare(input: &mut &str, nested: bool) -> Parsed<Value> {
    let start = *input;
    let ends = |c: char| c.is_whitespace() || c == ';' || (nested && matches!(c, ',' | ']' | '}'));
    let word = take_while(0.., |c: char| !ends(c)).parse_next(input)?;
    if word.is_empty() {
        return Err(Fault::at(start, "expected a value"));
    }
    if let Some(odd) = word.find(['"', '\'', '[', ']', '{', '}', '=']) {
        let message = format!("put the value in quotes: it holds `{}`", &word[odd..=odd]);
        return Err(Fault::at(&start[odd..], message));
    }
    match (word, core_schema(word)) {
        ("null", _) => Ok(Value::Null),
        ("true", _) => Ok(Value::Bool(true)),
        ("false", _) => Ok(Value::Bool(false)),
        (_, Plain::Text) => Ok(Value::from(word)),
        (_, Plain::Integer | Plain::Float) => canonical_number(word)
            .map(Value::Number)
            .ok_or_else(|| Fault::at(start, unclear_number(word))),
        (_, Plain::Null | Plain::Bool(_)) => {
            let message = format!(
                "`{word}` is unclear: write null, true or false in small letters, or put it in quotes"
            );
            Err(Fault::at(start, message))
        }
    }
}

fn list(input: &mut &str, depth: usize) -> Parsed<Value> {
    let open = *input;
    *input = &input[1..];
    let mut items = Vec::new();
    loop {
        inner_blank(input)?;
        if take(input, "]") {
            return Ok(Value::Array(items));
        }
        items.push(value(input, depth - 1, true)?);
        inner_blank(input)?;
        if !take(input, ",") && !input.starts_with(']') {
            return Err(unclosed(input, open, "expected `,` or `]`"));
        }
    }
}

fn mapping(input: &mut &str, depth: usize) -> Parsed<Value> {
    let open = *input;
    *input = &input[1..];
    let mut object = Map::new();
    loop {
        inner_blank(input)?;
        if take(input, "}") {
            return Ok(Value::Object(object));
        }
        let start = *input;
        let key = if input.starts_with(['"', '\'']) {
            quoted(input)?
        } else {
            take_while(0.., |c: char| {
                !(c.is_whitespace() || matches!(c, ':' | ',' | '{' | '}' | '[' | ']'))
            })
            .parse_next(input)?
            .to_owned()
        };
        inner_blank(input)?;
        if key.is_empty() || !take(input, ":") {
            return Err(unclosed(start, open, "expected `key: value`"));
        }
        inner_blank(input)?;
        let value = value(input, depth - 1, true)?;
        if object.insert(key, value).is_some() {
            return Err(Fault::at(start, "this key stands twice"));
        }
        inner_blank(input)?;
        if !take(input, ",") && !input.starts_with('}') {
            return Err(unclosed(input, open, "expected `,` or `}`"));
        }
    }
}

fn unclosed(here: &str, open: &str, expected: &str) -> Fault {
    if here.is_empty() {
        Fault::at(open, "this bracket is not closed")
    } else {
        Fault::at(here, expected)
    }
}

/// `"..."` with JSON's escapes, or `'...'` in which only `''` stands for a quote.
fn quoted(input: &mut &str) -> Parsed<String> {
    let open = *input;
    let double = open.starts_with('"');
    let mut escaped = false;
    let mut skip_one = false;
    for (at, c) in open.char_indices().skip(1) {
        if std::mem::take(&mut skip_one) || std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' if double => escaped = true,
            '\'' if !double && open[at + 1..].starts_with('\'') => skip_one = true,
            '"' if double => return close(input, open, at),
            '\'' if !double => return close(input, open, at),
            _ => {}
        }
    }
    Err(Fault::at(open, "this quote is not closed"))
}

fn close(input: &mut &str, open: &str, end: usize) -> Parsed<String> {
    let rest_length = open.len() - end - 1;
    *input = &input[input.len() - rest_length..];
    if open.starts_with('\'') {
        return Ok(open[1..end].replace("''", "'"));
    }
    serde_json::from_str(&open[..=end])
        .map_err(|_| Fault::at(open, "this text has an escape that JSON does not know"))
}

fn take(input: &mut &str, token: &str) -> bool {
    match input.strip_prefix(token) {
        Some(rest) => {
            *input = rest;
            true
        }
        None => false,
    }
}

/// Spaces within a line: a new line begins the next assignment.
fn blank(input: &mut &str) -> Parsed<()> {
    take_while(0.., [' ', '\t']).void().parse_next(input)
}

fn inner_blank(input: &mut &str) -> Parsed<()> {
    take_while(0.., char::is_whitespace)
        .void()
        .parse_next(input)
}

#[cfg(test)]
mod tests;
