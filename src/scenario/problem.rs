//! What is wrong with a file: position, field, reason. Collected, never stopping at the first.

use std::fmt;

use thiserror::Error;

/// A place in a file, both counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    pub const START: Position = Position { line: 1, column: 1 };
}

/// One thing wrong, or worth a warning, in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub at: Position,
    /// Dotted path of the field; empty for the file as a whole.
    pub field: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl Problem {
    /// The line that a person reads: `file:line:column: field: message`.
    pub fn line(&self, file: &str) -> String {
        let Position { line, column } = self.at;
        if self.field.is_empty() {
            format!("{file}:{line}:{column}: {}", self.message)
        } else {
            format!("{file}:{line}:{column}: {}: {}", self.field, self.message)
        }
    }
}

/// Everything wrong with one file, in order of position. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Problems {
    pub file: String,
    pub items: Vec<Problem>,
}

impl Problems {
    /// A file with one problem.
    pub fn one(file: &str, at: Position, message: impl Into<String>) -> Problems {
        Problems {
            file: file.to_owned(),
            items: vec![Problem {
                at,
                field: String::new(),
                message: message.into(),
            }],
        }
    }

    /// One line per problem.
    pub fn lines(&self) -> Vec<String> {
        self.items
            .iter()
            .map(|problem| problem.line(&self.file))
            .collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

/// The collector that decoding writes to.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Notes {
    pub fn problem(&mut self, at: Position, field: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            at,
            field: field.to_owned(),
            message: message.into(),
        });
    }

    pub fn warning(&mut self, at: Position, field: &str, message: impl Into<String>) {
        self.warnings.push(Problem {
            at,
            field: field.to_owned(),
            message: message.into(),
        });
    }

    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The decoded value with its warnings, or every problem. A missing value without a problem cannot be
    /// explained to anybody and is reported as such.
    pub fn finish<T>(
        mut self,
        file: &str,
        value: Option<T>,
    ) -> Result<(T, Vec<Problem>), Problems> {
        self.problems.sort();
        self.problems.dedup();
        self.warnings.sort();
        match value {
            Some(value) if self.problems.is_empty() => Ok((value, self.warnings)),
            _ if self.problems.is_empty() => Err(Problems::one(
                file,
                Position::START,
                "could not be decoded, without a known reason",
            )),
            _ => Err(Problems {
                file: file.to_owned(),
                items: self.problems,
            }),
        }
    }
}
