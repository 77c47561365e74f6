//! The library: files compiled in, overridden by the workspace's, or given by path.
//!
//! A workspace's file replaces the compiled-in one of the same id and is reported as an override. A workspace's
//! broken file takes its id out of use, so that nothing else runs in its place by accident.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::ids::{RubricId, ScenarioId};
use crate::scenario::builtin;
use crate::scenario::load::{self, Loaded};
use crate::scenario::model::{Rubric, Scenario, Vocabulary};
use crate::scenario::near::near;
use crate::scenario::problem::{Problem, Problems};
use crate::scenario::yaml::MAX_FILE_BYTES;

/// The rubric of runs that ask for none.
pub const DEFAULT_RUBRIC: &str = "v0.1";
/// Deeper folders below a workspace's `scenarios/` are not searched.
const MAX_FOLDER_DEPTH: usize = 6;

#[derive(Debug, Error)]
pub enum LibraryError {
    #[error("there is no {what} `{id}`{}", guesses(.near))]
    NotFound {
        what: &'static str,
        id: String,
        /// Ids that may have been meant, best first.
        near: Vec<String>,
    },
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{what} `{id}` stands in two files: {} and {}", first.display(), second.display())]
    Twice {
        what: &'static str,
        id: String,
        first: PathBuf,
        second: PathBuf,
    },
    /// The file's problems, one a line.
    #[error("{0}")]
    Problems(Problems),
}

/// Refuses a second file of one id: which of them is in use would depend on their names.
fn once(
    what: &'static str,
    id: &str,
    path: &Path,
    seen: &mut BTreeMap<String, PathBuf>,
) -> Result<(), LibraryError> {
    match seen.insert(id.to_owned(), path.to_owned()) {
        None => Ok(()),
        Some(first) => Err(LibraryError::Twice {
            what,
            id: id.to_owned(),
            first,
            second: path.to_owned(),
        }),
    }
}

fn guesses(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!(", did you mean {}?", near.join(" or ")),
    }
}

/// Everything that scenarios are made of.
#[derive(Clone, Debug)]
pub struct Library {
    vocabulary: Vocabulary,
    scenarios: BTreeMap<ScenarioId, Loaded>,
    /// The published benchmark's faults: found by id, but no part of the library that measures agents.
    published: BTreeMap<ScenarioId, Loaded>,
    rubrics: BTreeMap<RubricId, Rubric>,
    /// Broken files of the workspace, by the id that their name claims.
    broken: BTreeMap<String, Problems>,
    /// What the workspace replaces or adds, one path each.
    overrides: Vec<PathBuf>,
}

impl Library {
    /// Loads what is compiled in and what a workspace overrides.
    ///
    /// # Errors
    /// An unreadable folder, or a vocabulary or rubric of the workspace with problems. Broken scenarios of the
    /// workspace are errors only when asked for.
    pub fn open(workspace: Option<&Path>) -> Result<Library, LibraryError> {
        let mut overrides = Vec::new();
        let vocabulary = open_vocabulary(workspace, &mut overrides)?;
        let mut library = Library {
            vocabulary,
            scenarios: BTreeMap::new(),
            published: BTreeMap::new(),
            rubrics: BTreeMap::new(),
            broken: BTreeMap::new(),
            overrides,
        };
        for (path, text) in builtin::RUBRICS {
            library.add_rubric(text, path)?;
        }
        for (path, text) in builtin::SCENARIOS {
            library.add_scenario(text, path, false);
        }
        for (path, text) in builtin::PUBLISHED {
            match load::scenario(text, path, &library.vocabulary) {
                Ok(loaded) => {
                    library.published.insert(loaded.scenario.id.clone(), loaded);
                }
                // A workspace's vocabulary may lack a category that they name.
                Err(problems) => {
                    library.broken.insert(stem(Path::new(path)), problems);
                }
            }
        }
        if let Some(workspace) = workspace {
            library.read_workspace(workspace)?;
        }
        Ok(library)
    }

    fn read_workspace(&mut self, workspace: &Path) -> Result<(), LibraryError> {
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        for path in yaml_files(&workspace.join("vocab").join("rubrics"))? {
            let text = read(&path)?;
            if !is_compiled_in(&text, builtin::RUBRICS) {
                let id = self.add_rubric(&text, &path.display().to_string())?;
                once("rubric", id.as_str(), &path, &mut seen)?;
                self.overrides.push(path);
            }
        }
        seen.clear();
        for path in yaml_files(&workspace.join("scenarios"))? {
            // `init` writes out what is compiled in; a file that was not edited is no override.
            let text = match read(&path) {
                Err(LibraryError::Problems(problems)) => {
                    self.broken.insert(stem(&path), problems);
                    continue;
                }
                other => other?,
            };
            if !is_compiled_in(&text, builtin::SCENARIOS) {
                if let Some(id) = self.add_scenario(&text, &path.display().to_string(), true) {
                    once("scenario", id.as_str(), &path, &mut seen)?;
                }
                self.overrides.push(path);
            }
        }
        Ok(())
    }

    fn add_rubric(&mut self, text: &str, file: &str) -> Result<RubricId, LibraryError> {
        let rubric = load::rubric(text, file).map_err(LibraryError::Problems)?;
        let id = rubric.id.clone();
        self.rubrics.insert(id.clone(), rubric);
        Ok(id)
    }

    /// The id under which the file was taken in; none when it is broken.
    fn add_scenario(&mut self, text: &str, file: &str, is_override: bool) -> Option<ScenarioId> {
        match load::scenario(text, file, &self.vocabulary) {
            Ok(mut loaded) => {
                loaded.scenario.is_override = is_override;
                let id = loaded.scenario.id.clone();
                self.scenarios.insert(id.clone(), loaded);
                Some(id)
            }
            Err(problems) => {
                let id = stem(Path::new(file));
                self.scenarios.remove(&ScenarioId::new(id.as_str()));
                self.broken.insert(id, problems);
                None
            }
        }
    }

    /// A scenario by id, or by the path of a file (anything with a `/` or ending in `.yaml` or `.yml`).
    ///
    /// # Errors
    /// An unknown id with near matches, an unreadable file, or the file's problems.
    pub fn scenario(&self, id_or_path: &str) -> Result<Scenario, LibraryError> {
        self.loaded(id_or_path).map(|loaded| loaded.scenario)
    }

    /// As [`Library::scenario`], with the warnings.
    ///
    /// # Errors
    /// As [`Library::scenario`].
    pub fn loaded(&self, id_or_path: &str) -> Result<Loaded, LibraryError> {
        if is_path(id_or_path) {
            return self.load_file(Path::new(id_or_path));
        }
        let id = ScenarioId::new(id_or_path);
        if let Some(loaded) = self.scenarios.get(&id).or(self.published.get(&id)) {
            return Ok(loaded.clone());
        }
        if let Some(problems) = self.broken.get(id_or_path) {
            return Err(LibraryError::Problems(problems.clone()));
        }
        let known = self.scenarios.keys().map(ScenarioId::as_str);
        Err(not_found("scenario", id_or_path, known))
    }

    /// Loads a scenario from a file.
    ///
    /// # Errors
    /// An unreadable file, or its problems.
    pub fn load_file(&self, path: &Path) -> Result<Loaded, LibraryError> {
        let text = read(path)?;
        let file = path.display().to_string();
        let mut loaded =
            load::scenario(&text, &file, &self.vocabulary).map_err(LibraryError::Problems)?;
        loaded.scenario.is_override = true;
        Ok(loaded)
    }

    /// Every scenario that loads, by id.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.values().map(|loaded| &loaded.scenario)
    }

    /// The published benchmark's faults on a fixture of the published shape, by id: for auditing them. None of them
    /// is among [`Library::scenarios`].
    pub fn published(&self) -> impl Iterator<Item = &Scenario> {
        self.published.values().map(|loaded| &loaded.scenario)
    }

    /// Warnings of the scenarios that load.
    pub fn warnings(&self) -> impl Iterator<Item = (&ScenarioId, &Problem)> {
        self.scenarios
            .iter()
            .flat_map(|(id, loaded)| loaded.warnings.iter().map(move |warning| (id, warning)))
    }

    /// Scenario files that do not load, with their problems.
    pub fn broken(&self) -> impl Iterator<Item = &Problems> {
        self.broken.values()
    }

    /// Files of the workspace that replace or add to what is compiled in.
    pub fn overrides(&self) -> &[PathBuf] {
        &self.overrides
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// A rubric by id.
    ///
    /// # Errors
    /// An unknown id with near matches.
    pub fn rubric(&self, id: &str) -> Result<&Rubric, LibraryError> {
        let known = self.rubrics.keys().map(RubricId::as_str);
        let found = self.rubrics.get(&RubricId::new(id));
        found.ok_or_else(|| not_found("rubric", id, known))
    }

    /// Every rubric, by id.
    pub fn rubrics(&self) -> impl Iterator<Item = &Rubric> {
        self.rubrics.values()
    }
}

fn open_vocabulary(
    workspace: Option<&Path>,
    overrides: &mut Vec<PathBuf>,
) -> Result<Vocabulary, LibraryError> {
    let mut texts = Vec::new();
    for (path, compiled) in [builtin::CATEGORIES, builtin::MECHANISMS] {
        let file = workspace
            .map(|workspace| workspace.join(path))
            .filter(|file| file.is_file());
        match file {
            Some(file) => {
                let text = read(&file)?;
                texts.push((text.clone(), file.display().to_string()));
                if text != compiled {
                    overrides.push(file);
                }
            }
            None => texts.push((compiled.to_owned(), path.to_owned())),
        }
    }
    let as_pair = |index: usize| {
        let (text, file): &(String, String) = &texts[index];
        (text.as_str(), file.as_str())
    };
    load::vocabulary(as_pair(0), as_pair(1)).map_err(LibraryError::Problems)
}

fn not_found<'a>(
    what: &'static str,
    id: &str,
    known: impl Iterator<Item = &'a str>,
) -> LibraryError {
    LibraryError::NotFound {
        what,
        id: id.to_owned(),
        near: near(id, known).into_iter().map(str::to_owned).collect(),
    }
}

fn is_path(text: &str) -> bool {
    text.contains(std::path::MAIN_SEPARATOR)
        || text.contains('/')
        || text.ends_with(".yaml")
        || text.ends_with(".yml")
}

fn is_compiled_in(text: &str, files: &[builtin::File]) -> bool {
    files.iter().any(|(_, compiled)| *compiled == text)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reads a text file of bounded size.
fn read(path: &Path) -> Result<String, LibraryError> {
    let failed = |source| LibraryError::Read {
        path: path.to_owned(),
        source,
    };
    let size = fs::metadata(path).map_err(failed)?.len();
    let file = path.display().to_string();
    if size > MAX_FILE_BYTES as u64 {
        let message =
            format!("the file has {size} bytes, more than the {MAX_FILE_BYTES} that are read");
        return Err(LibraryError::Problems(Problems::one(
            &file,
            crate::scenario::problem::Position::START,
            message,
        )));
    }
    let bytes = fs::read(path).map_err(failed)?;
    load::from_bytes(&bytes, &file).map_err(LibraryError::Problems)
}

/// The YAML files below a folder, sorted; none when there is no such folder.
fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, LibraryError> {
    let mut files = Vec::new();
    collect(folder, MAX_FOLDER_DEPTH, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), LibraryError> {
    let failed = |source| LibraryError::Read {
        path: folder.to_owned(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            if depth > 1 {
                collect(&path, depth - 1, files)?;
            }
        } else if path
            .extension()
            .is_some_and(|ending| ending == "yaml" || ending == "yml")
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
