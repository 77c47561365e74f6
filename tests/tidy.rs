//! Rules of the house that a compiler does not check: directions of imports, who may name which crate, sizes,
//! words that do not belong.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files longer than this hold more than one concept.
const MAX_FILE_LINES: usize = 600;
/// Functions longer than this hide their steps.
const MAX_FUNCTION_LINES: usize = 70;

/// Which top-level module may import which. `cli` assembles everything and may import all.
const ALLOWED_EDGES: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("clock", &[]),
    ("config", &["ids", "store"]),
    ("record", &["ids"]),
    ("detect", &["ids", "record"]),
    ("scenario", &["detect", "ids"]),
    ("score", &["ids", "record", "scenario"]),
    ("embedded", &["ids"]),
    ("store", &["ids", "record"]),
    ("embed", &["ids"]),
    (
        "experience",
        &["embed", "ids", "record", "scenario", "store"],
    ),
    ("gateway", &["ids", "record"]),
    ("agent", &["ids", "record", "scenario"]),
    (
        "cluster",
        &["clock", "embedded", "gateway", "ids", "record", "store"],
    ),
    ("inject", &["cluster", "ids", "record", "scenario", "store"]),
    ("observe", &["cluster", "detect", "ids", "record"]),
    (
        "run",
        &[
            "agent",
            "cluster",
            "detect",
            "experience",
            "gateway",
            "ids",
            "inject",
            "observe",
            "record",
            "scenario",
            "score",
            "store",
            "embed",
        ],
    ),
    (
        "qualify",
        &[
            "agent",
            "cluster",
            "detect",
            "embed",
            "experience",
            "ids",
            "inject",
            "observe",
            "record",
            "run",
            "scenario",
            "score",
            "store",
        ],
    ),
    ("stats", &[]),
    (
        "experiment",
        &[
            "agent",
            "clock",
            "cluster",
            "embed",
            "experience",
            "ids",
            "inject",
            "qualify",
            "record",
            "run",
            "scenario",
            "score",
            "stats",
            "store",
        ],
    ),
    (
        "report",
        &[
            "experiment",
            "ids",
            "record",
            "run",
            "scenario",
            "score",
            "stats",
        ],
    ),
];

/// What an agent may take from the scenario module: the task and the vocabulary, never the truth. A `PathStep` is how
/// the path of a field is written, whoever writes it.
const AGENT_MAY_SEE: &[&str] = &["Task", "Category", "PathStep"];

/// Modules of `scenario` that agents may use all of: they handle text and know no scenario. `near` guesses misspelt
/// words; the others read the YAML of a script, and paths in it, with the same care and the same messages as a
/// scenario's.
const AGENT_MAY_USE: &[&str] = &["decode", "mutation", "near", "problem", "yaml"];

/// Crates whose types stay inside one module.
const CRATE_HOMES: &[(&str, &[&str])] = &[
    ("redb", &["store"]),
    ("axum", &["embedded", "serve"]),
    ("hyper", &["embedded", "serve"]),
    ("hyper_util", &["embedded", "serve"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("comfy_table", &["cli", "report"]),
    ("indicatif", &["cli"]),
    ("anyhow", &["cli"]),
    ("hnsw_rs", &["experience"]),
    ("ort", &["embed"]),
    ("saphyr_parser", &["scenario"]),
    ("json_patch", &["embedded"]),
    ("docker_credential", &["cluster"]),
    ("oci_client", &["cluster"]),
    ("oci_spec", &["cluster"]),
    ("tar", &["cluster", "experiment"]),
    ("zstd", &["experiment"]),
    ("reqwest", &["observe"]),
];

/// Modules that stay pure: no waiting, no clock, no files, no cluster.
const PURE: &[&str] = &["detect", "score", "stats"];
const IMPURE_WORDS: &[&str] = &[
    "async ",
    "std::fs",
    "std::time::Instant",
    "SystemTime",
    "tokio::",
    "kube::",
];

#[test]
fn imports_go_only_in_the_allowed_directions() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let Some(allowed) = ALLOWED_EDGES
            .iter()
            .find(|(name, _)| *name == source.module)
        else {
            continue;
        };
        for (line, text) in source.code_lines() {
            for target in crate_paths(text) {
                if target != source.module && !allowed.1.contains(&target.as_str()) {
                    wrong.push(format!(
                        "{}:{line}: {} -> {target}",
                        source.path, source.module
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_stands_in_the_table_of_edges() {
    let mut unknown: Vec<String> = sources("src")
        .into_iter()
        .map(|source| source.module)
        .filter(|module| !["lib", "main", "cli"].contains(&module.as_str()))
        .filter(|module| !ALLOWED_EDGES.iter().any(|(name, _)| name == module))
        .collect();
    unknown.dedup();
    assert!(unknown.is_empty(), "modules without a row: {unknown:?}");
}

#[test]
fn the_table_of_edges_has_no_cycle() {
    let graph: BTreeMap<&str, &[&str]> = ALLOWED_EDGES.iter().copied().collect();
    fn reaches(graph: &BTreeMap<&str, &[&str]>, from: &str, to: &str, depth: usize) -> bool {
        depth > 0
            && graph.get(from).is_some_and(|next| {
                next.iter()
                    .any(|n| *n == to || reaches(graph, n, to, depth - 1))
            })
    }
    for name in graph.keys() {
        assert!(
            !reaches(&graph, name, name, graph.len()),
            "{name} imports itself in a circle"
        );
    }
}

#[test]
fn agents_take_nothing_from_scenarios_but_the_task_and_the_vocabulary() {
    let mut wrong = Vec::new();
    for source in sources("src").into_iter().filter(|s| s.module == "agent") {
        for (line, text) in source.code_lines() {
            let Some((_, rest)) = text.split_once("crate::scenario::model::") else {
                let harmless = |module: &&str| text.contains(&format!("crate::scenario::{module}"));
                if AGENT_MAY_USE.iter().any(harmless) {
                    continue;
                }
                if text.contains("crate::scenario") {
                    wrong.push(format!("{}:{line}: {text}", source.path));
                }
                continue;
            };
            let names = rest
                .trim_start_matches('{')
                .split(['}', ';', '>', ')'])
                .next();
            for name in names.unwrap_or_default().split(',').map(str::trim) {
                if !name.is_empty() && !AGENT_MAY_SEE.contains(&name) {
                    wrong.push(format!("{}:{line}: {name}", source.path));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "out of an agent's reach:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn crates_with_one_home_are_named_only_there() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        for (line, text) in source.code_lines() {
            for (name, homes) in CRATE_HOMES {
                let named = text.contains(&format!("use {name}::")) || has_path(text, name);
                if named && !homes.contains(&source.module.as_str()) {
                    wrong.push(format!("{}:{line}: {name}", source.path));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "crates outside their home:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn pure_modules_neither_wait_nor_read_nor_look_at_a_clock() {
    let mut wrong = Vec::new();
    for source in sources("src")
        .into_iter()
        .filter(|s| PURE.contains(&s.module.as_str()))
    {
        for (line, text) in source.code_lines() {
            for word in IMPURE_WORDS {
                if text.contains(word) {
                    wrong.push(format!("{}:{line}: {word}", source.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "impure:\n{}", wrong.join("\n"));
}

#[test]
fn files_and_functions_stay_readable() {
    let mut wrong = Vec::new();
    for source in sources("src")
        .into_iter()
        .chain(sources("tests"))
        .chain(sources("benches"))
    {
        let lines = source.text.lines().count();
        if lines > MAX_FILE_LINES {
            wrong.push(format!("{}: {lines} lines", source.path));
        }
        for (line, name, length) in source.functions() {
            if length > MAX_FUNCTION_LINES {
                wrong.push(format!(
                    "{}:{line}: fn {name} has {length} lines",
                    source.path
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "over {MAX_FILE_LINES} lines a file or {MAX_FUNCTION_LINES} a function:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    let wrong: Vec<String> = sources("src")
        .into_iter()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| source.path)
        .collect();
    assert!(wrong.is_empty(), "no header: {wrong:?}");
}

#[test]
fn file_names_name_the_thing_in_them() {
    const EMPTY_NAMES: &[&str] = &[
        "utils", "util", "common", "helpers", "helper", "misc", "mod",
    ];
    let wrong: Vec<String> = sources("src")
        .into_iter()
        .filter(|source| {
            let stem = Path::new(&source.path).file_stem().and_then(|s| s.to_str());
            stem.is_some_and(|stem| EMPTY_NAMES.contains(&stem))
        })
        .map(|source| source.path)
        .collect();
    assert!(wrong.is_empty(), "names that say nothing: {wrong:?}");
}

#[test]
fn nothing_unfinished_and_no_machine_path_is_committed() {
    // Spelled in two halves so that this file does not find itself.
    let words: Vec<String> = [
        ("todo", "!("),
        ("unimplemented", "!("),
        ("dbg", "!("),
        ("FIX", "ME"),
        ("XX", "X:"),
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("../sh", "ared"),
    ]
    .iter()
    .map(|(a, b)| format!("{a}{b}"))
    .collect();
    let mut wrong = Vec::new();
    for source in sources("src")
        .into_iter()
        .chain(sources("tests"))
        .chain(sources("benches"))
    {
        for (number, text) in source.text.lines().enumerate() {
            for word in words.iter().filter(|word| text.contains(word.as_str())) {
                wrong.push(format!("{}:{}: {word}", source.path, number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "does not belong:\n{}", wrong.join("\n"));
}

struct Source {
    path: String,
    module: String,
    text: String,
}

impl Source {
    /// Lines of code with their numbers: comments and everything from an inline test module on left out.
    fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
            .map(|(n, line)| (n + 1, line.split(" // ").next().unwrap_or(line)))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Line, name and length of every function; relies on rustfmt's indentation.
    fn functions(&self) -> Vec<(usize, String, usize)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut found = Vec::new();
        for (start, line) in lines.iter().enumerate() {
            let trimmed = line.trim_start();
            let Some(at) = trimmed.find("fn ") else {
                continue;
            };
            let before = &trimmed[..at];
            let words = [
                "pub",
                "pub(crate)",
                "pub(super)",
                "const",
                "async",
                "unsafe",
            ];
            if !before.split_whitespace().all(|word| words.contains(&word)) {
                continue;
            }
            let close = format!("{}}}", &line[..line.len() - trimmed.len()]);
            if let Some(length) = lines[start..].iter().position(|l| *l == close) {
                let name = trimmed[at + 3..]
                    .split(['(', '<'])
                    .next()
                    .unwrap_or_default();
                found.push((start + 1, name.to_owned(), length + 1));
            }
        }
        found
    }
}

fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join(folder), &mut files);
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let path = file
                .strip_prefix(root)
                .expect("files are found below the root");
            let below = path
                .strip_prefix(folder)
                .expect("files are found below the folder");
            let first = below.components().next().expect("a file has a name");
            let first = Path::new(first.as_os_str());
            Source {
                path: path.display().to_string(),
                module: first
                    .file_stem()
                    .expect("a file has a stem")
                    .to_string_lossy()
                    .into_owned(),
                text: fs::read_to_string(&file).expect("source files are UTF-8"),
            }
        })
        .collect()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// The top-level modules named by `crate::…` paths in a line.
fn crate_paths(line: &str) -> Vec<String> {
    line.match_indices("crate::")
        .filter(|(at, _)| {
            !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
        })
        .map(|(at, word)| {
            line[at + word.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        })
        .filter(|name: &String| !name.is_empty())
        .collect()
}

/// Whether a line names a crate at the start of a path, such as `redb::Database`.
fn has_path(line: &str, name: &str) -> bool {
    let needle = format!("{name}::");
    line.match_indices(&needle)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
}
