//! From bytes to text that a YAML parser may see: encoding, byte-order marks, line ends.

use std::borrow::Cow;

use crate::scenario::problem::{Notes, Position, Problems};

/// Decodes a file's bytes; UTF-16, binary and broken UTF-8 are refused with the place.
pub fn from_bytes(bytes: &[u8], file: &str) -> Result<String, Problems> {
    if bytes.starts_with(&[0xFE, 0xFF]) || bytes.starts_with(&[0xFF, 0xFE]) {
        let message = "the file is UTF-16, expected UTF-8";
        return Err(Problems::one(file, Position::START, message));
    }
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let at = position_after(&before);
            return Err(Problems::one(
                file,
                at,
                "a byte that is not UTF-8, expected a text file",
            ));
        }
    };
    Ok(valid.to_owned())
}

/// Takes off a leading byte-order mark, turns CRLF into LF, refuses what no text file holds.
pub(super) fn prepare<'a>(text: &'a str, notes: &mut Notes) -> Option<Cow<'a, str>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let odd = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}')) || c == '\u{feff}'
    };
    if let Some(at) = text.find(odd) {
        let message = if text[at..].starts_with('\u{feff}') {
            "a byte-order mark inside the file, allowed only at its very start"
        } else {
            "a control character, expected a text file"
        };
        notes.problem(position_after(&text[..at]), "", message);
        return None;
    }
    Some(if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    })
}

fn position_after(before: &str) -> Position {
    let last = before.rsplit('\n').next().unwrap_or("");
    Position {
        line: before.matches('\n').count() + 1,
        column: last.chars().count() + 1,
    }
}
