//! Postmortems as JSON Lines: reading strictly, writing so that reading gives the same bytes again.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::embed::Embedder;
use crate::experience::ExperienceError;
use crate::experience::entry::{Entry, Invalid};
use crate::experience::learner::Learner;
use crate::ids::PostmortemId;
use crate::store::Batch;

/// More than a person collects and few enough for memory.
pub const MAX_ENTRIES: usize = 100_000;

/// A line that is no postmortem, with its place.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        file: String,
        line: usize,
        column: usize,
        message: String,
    },
    #[error("{file}:{line}: unknown field {path}")]
    UnknownField {
        file: String,
        line: usize,
        path: String,
    },
    #[error("{file}:{line}: postmortem {id} is not acceptable")]
    Invalid {
        file: String,
        line: usize,
        id: PostmortemId,
        #[source]
        source: Invalid,
    },
    #[error("{file}:{line}: postmortem {id} stands in line {first} already")]
    Twice {
        file: String,
        line: usize,
        id: PostmortemId,
        first: usize,
    },
    #[error("{file}: more than {MAX_ENTRIES} postmortems")]
    TooMany { file: String },
}

/// One JSON object a line, in the order of ids.
pub fn write_lines(entries: &[Entry]) -> Result<String, ExperienceError> {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    let mut text = String::new();
    for entry in entries {
        let line = serde_json::to_string(entry).map_err(|source| ExperienceError::Unwritable {
            id: entry.id.clone(),
            source,
        })?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// Every entry of a file, or the first thing that is wrong with it. Blank lines are passed over; `file` is for messages.
pub fn read_lines(file: &str, text: &str) -> Result<Vec<Entry>, LineError> {
    let mut first_lines = BTreeMap::new();
    let mut entries = Vec::new();
    for (index, line_text) in text.lines().enumerate() {
        if line_text.trim().is_empty() {
            continue;
        }
        let line = index + 1;
        if entries.len() == MAX_ENTRIES {
            return Err(LineError::TooMany {
                file: file.to_owned(),
            });
        }
        let entry = read_line(file, line, line_text)?;
        if let Some(first) = first_lines.insert(entry.id.clone(), line) {
            return Err(LineError::Twice {
                file: file.to_owned(),
                line,
                id: entry.id,
                first,
            });
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn read_line(file: &str, line: usize, text: &str) -> Result<Entry, LineError> {
    let syntax = |error: &serde_json::Error| LineError::Syntax {
        file: file.to_owned(),
        line,
        column: error.column(),
        // The place stands in front; serde_json counts lines of this one text.
        message: error
            .to_string()
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    let mut unknown: Option<String> = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let entry = Entry::deserialize(serde_ignored::Deserializer::new(
        &mut reader,
        &mut |path: serde_ignored::Path<'_>| {
            unknown.get_or_insert_with(|| path.to_string());
        },
    ))
    .map_err(|e| syntax(&e))?;
    reader.end().map_err(|e| syntax(&e))?;
    if let Some(path) = unknown {
        return Err(LineError::UnknownField {
            file: file.to_owned(),
            line,
            path,
        });
    }
    entry.check().map_err(|source| LineError::Invalid {
        file: file.to_owned(),
        line,
        id: entry.id.clone(),
        source,
    })?;
    Ok(entry)
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: usize,
    /// Known already with the very same contents.
    pub known: usize,
    /// Added without a vector, because embedding failed.
    pub without_vector: usize,
}

impl Learner {
    /// Adds entries with the ids that they have: all of them in one commit, or none. `done` is told how many are
    /// embedded.
    pub fn import(
        &self,
        entries: &[Entry],
        mut done: impl FnMut(usize),
    ) -> Result<Imported, ExperienceError> {
        let mut imported = Imported::default();
        let mut batch = Batch::default();
        for (index, entry) in entries.iter().enumerate() {
            match self.known(entry)? {
                true => imported.known += 1,
                false => {
                    imported.added += 1;
                    if !self.add(entry, &mut batch)? {
                        imported.without_vector += 1;
                    }
                }
            }
            done(index + 1);
        }
        self.store.write(&batch)?;
        Ok(imported)
    }

    /// Whether the base holds this very entry; another one of the same id is a conflict.
    fn known(&self, entry: &Entry) -> Result<bool, ExperienceError> {
        match self.store.postmortem(&entry.id)? {
            None => Ok(false),
            Some(json) if super::decode(&self.store, entry.id.clone(), &json)? == *entry => {
                Ok(true)
            }
            Some(_) => Err(ExperienceError::Conflict {
                id: entry.id.clone(),
            }),
        }
    }

    pub fn embedder(&self) -> &dyn Embedder {
        self.embedder.as_ref()
    }
}
