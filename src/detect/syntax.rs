//! Errors with a position for the small languages of scenario files: condition expressions and mutations.
//!
//! A [`Fault`] travels through winnow's parsers; [`SyntaxError`] is what callers see. No grammar lives here.

use thiserror::Error;
use winnow::error::ParserError;

/// A text that does not parse: where and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column}: {message}")]
pub struct SyntaxError {
    /// In characters from the start of the text, the first being 1.
    pub column: usize,
    /// In bytes from the start of the text.
    pub offset: usize,
    pub message: String,
}

/// An error inside a grammar: how much of the text was left, and what was wrong there.
#[derive(Clone, Debug)]
pub struct Fault {
    left: usize,
    message: String,
}

impl Fault {
    /// An error at the start of what is left of the text.
    pub fn at(rest: &str, message: impl Into<String>) -> Fault {
        Fault {
            left: rest.len(),
            message: message.into(),
        }
    }

    /// The error with its position in the whole text.
    pub fn in_text(self, text: &str) -> SyntaxError {
        let offset = text.len().saturating_sub(self.left);
        let column = text
            .char_indices()
            .take_while(|(at, _)| *at < offset)
            .count()
            + 1;
        let message = if self.message.is_empty() {
            "this is not understood here".to_owned()
        } else {
            self.message
        };
        SyntaxError {
            column,
            offset,
            message,
        }
    }
}

impl<'text> ParserError<&'text str> for Fault {
    type Inner = Fault;

    fn from_input(rest: &&'text str) -> Fault {
        Fault::at(rest, "")
    }

    fn into_inner(self) -> Result<Fault, Fault> {
        Ok(self)
    }
}

/// What a parser of this crate answers.
pub type Parsed<T> = Result<T, Fault>;
