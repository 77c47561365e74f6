//! Scenario files as people write them: published shapes load, broken ones are refused with every place named.
//!
//! `broken/NAME.yaml` belongs to `broken/NAME.expected`: one line per problem, without the file's name.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its data has failed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use agent_breakage::scenario::builtin;
use agent_breakage::scenario::library::Library;
use agent_breakage::scenario::load::{self, Loaded};
use agent_breakage::scenario::model::{EvictCount, EvictTarget, Injector};
use agent_breakage::scenario::problem::Problems;
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scenario_files")
        .join(name)
}

fn files(name: &str, ending: &str) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                path,
            )
        })
        .collect()
}

fn load_bytes(library: &Library, bytes: &[u8], file: &str) -> Result<Loaded, Problems> {
    let text = load::from_bytes(bytes, file)?;
    load::scenario(&text, file, library.vocabulary())
}

#[test]
fn each_broken_file_is_refused_with_every_problem_in_its_place() {
    let library = Library::open(None).unwrap();
    let broken = files("broken", "yaml");
    assert!(broken.len() >= 30);
    let mut wrong = Vec::new();
    for (name, path) in &broken {
        let problems = load_bytes(&library, &fs::read(path).unwrap(), "f").expect_err(name);
        let found: Vec<String> = problems
            .lines()
            .iter()
            .map(|line| line.trim_start_matches("f:").to_owned())
            .collect();
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
        if found.join("\n") != expected.trim_end() {
            wrong.push(format!(
                "{name}:\n{}\nexpected:\n{expected}",
                found.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_expectation_stands_without_its_file() {
    let broken = files("broken", "yaml");
    let stray: Vec<String> = files("broken", "expected")
        .into_keys()
        .filter(|name| !broken.contains_key(name))
        .collect();
    assert!(stray.is_empty(), "{stray:?}");
}

#[test]
fn the_published_shapes_load_unchanged_and_without_a_warning() {
    let library = Library::open(None).unwrap();
    for (name, path) in files("published", "yaml") {
        let file = format!("{name}.yaml");
        let loaded = load_bytes(&library, &fs::read(&path).unwrap(), &file)
            .unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(loaded.warnings, [], "{name}");
    }
}

fn published(name: &str) -> Injector {
    let library = Library::open(None).unwrap();
    let path = folder("published").join(format!("{name}.yaml"));
    library
        .load_file(&path)
        .unwrap_or_else(|error| panic!("{error}"))
        .scenario
        .injector
}

#[test]
fn both_spellings_of_a_published_key_mean_the_same() {
    assert_eq!(
        published("configmap-by-long-name"),
        published("configmap-by-short-name")
    );
    let Injector::NetworkPolicy { spec, .. } = published("network-policy-text") else {
        panic!("not a policy")
    };
    assert_eq!(spec["policyTypes"][0], "Ingress");
    let Injector::PodEvict {
        victims, how_many, ..
    } = published("evict-selector-count")
    else {
        panic!("not an eviction")
    };
    assert_eq!(
        victims,
        EvictTarget::Selector("app=web,tier!=cache".to_owned())
    );
    assert_eq!(how_many, EvictCount::Count(2));
}

/// The injector of a scenario with these lines in place of its injector.
fn injector_of(lines: &str) -> Result<Injector, Problems> {
    let library = Library::open(None).unwrap();
    let text = fs::read_to_string(folder("published").join("secret-values.yaml")).unwrap();
    let start = text.find("injector:").unwrap();
    let end = text.find("detector:").unwrap();
    let edited = format!("{}injector:\n{lines}\n{}", &text[..start], &text[end..]);
    load::scenario(&edited, "secret-values.yaml", library.vocabulary())
        .map(|loaded| loaded.scenario.injector)
}

#[test]
fn every_published_spelling_of_an_injector_means_what_its_other_spelling_means() {
    let namespace = published("secret-values").namespace().to_owned();
    let pairs = [
        (
            "  type: configmap-patch\n  target: {ns: NS, configmap: web}\n  mutation: data.A = b",
            "  type: configmap-patch\n  target: {ns: NS, cm: web}\n  mutation: data.A = \"b\"",
        ),
        (
            "  type: network-policy\n  target: {ns: NS}\n  spec: {podSelector: {}, policyTypes: [Ingress]}",
            "  type: network-policy\n  target: {ns: NS}\n  policy: |\n    podSelector: {}\n    policyTypes: [Ingress]",
        ),
        (
            "  type: network-policy\n  target: {ns: NS}\n  spec: {podSelector: {}, egress: []}",
            "  type: network-policy\n  target: {ns: NS}\n  policy: |\n    apiVersion: networking.k8s.io/v1\n    \
             kind: NetworkPolicy\n    metadata: {name: any}\n    spec: {podSelector: {}, egress: []}",
        ),
        (
            "  type: pod-evict\n  target: {ns: NS, deploy: web}\n  percentage: 50",
            "  type: pod-evict\n  percentage: 50\n  target: {deploy: web, ns: NS}",
        ),
        (
            "  type: flagd-flag\n  target: {ns: NS}\n  flag: cartFailure\n  variant: on",
            "  type: flagd-flag\n  target: {ns: NS, configmap: flagd-config}\n  flag: cartFailure\n  \
             variant: \"on\"\n  config_key: demo.flagd.json",
        ),
        (
            "  type: secret-content\n  target: {ns: NS, secret: web}\n  values: {A: \"1\"}",
            "  type: secret-content\n  target: {ns: NS, secret: web}\n  values:\n    A: '1'",
        ),
    ];
    for (one, other) in pairs {
        let read = |text: &str| injector_of(&text.replace("NS", &namespace)).unwrap();
        assert_eq!(read(one), read(other));
    }
}

#[test]
fn every_injector_that_may_need_a_restart_takes_one() {
    let namespace = published("secret-values").namespace().to_owned();
    for lines in [
        "  type: configmap-patch\n  target: {ns: NS, cm: web}\n  mutation: data.A = b",
        "  type: network-policy\n  target: {ns: NS}\n  spec: {podSelector: {}}",
        "  type: flagd-flag\n  target: {ns: NS}\n  flag: a\n  variant: b",
        "  type: secret-content\n  target: {ns: NS, secret: web}\n  values: {A: b}",
    ] {
        let text = format!("{lines}\n  restart_workloads: [{{kind: StatefulSet, name: web}}]");
        let injector = injector_of(&text.replace("NS", &namespace)).unwrap();
        assert_eq!(injector.restart_workloads().len(), 1, "{lines}");
    }
}

#[test]
fn a_variant_is_its_text_whether_quoted_or_not() {
    let library = Library::open(None).unwrap();
    let text = fs::read_to_string(folder("published").join("flag-on.yaml")).unwrap();
    for variant in ["on", "off", "5", "10%", "1x", "10sec", "true"] {
        for written in [
            variant.to_owned(),
            format!("\"{variant}\""),
            format!("'{variant}'"),
        ] {
            let edited = text.replace("variant: on", &format!("variant: {written}"));
            let loaded = load::scenario(&edited, "flag-on.yaml", library.vocabulary()).unwrap();
            let Injector::FlagdFlag { variant: read, .. } = loaded.scenario.injector else {
                panic!("not a flag")
            };
            assert_eq!(read, variant);
        }
    }
}

#[test]
fn line_ends_and_a_leading_mark_change_nothing() {
    let library = Library::open(None).unwrap();
    for (path, text) in builtin::files()
        .into_iter()
        .filter(|(path, _)| path.starts_with("scenarios/"))
    {
        let plain = load::scenario(text, path, library.vocabulary())
            .unwrap()
            .scenario;
        for edited in [
            format!("\u{feff}{text}"),
            text.replace('\n', "\r\n"),
            format!("---\n{text}"),
        ] {
            let mut other = load::scenario(&edited, path, library.vocabulary())
                .unwrap()
                .scenario;
            other.sha256.clone_from(&plain.sha256);
            other.text.clone_from(&plain.text);
            assert_eq!(other, plain, "{path}");
        }
    }
}

#[test]
fn an_id_that_differs_from_the_file_name_is_a_warning() {
    let library = Library::open(None).unwrap();
    let (_, text) = builtin::files()
        .into_iter()
        .find(|(path, _)| path.ends_with("replicas-zero-advocate.yaml"))
        .unwrap();
    let loaded = load::scenario(text, "other.yaml", library.vocabulary()).unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    assert!(
        loaded.warnings[0]
            .line("other.yaml")
            .starts_with("other.yaml:2:5: id: the id `replicas-zero-advocate`")
    );
}

#[test]
fn a_file_of_a_megabyte_loads() {
    let library = Library::open(None).unwrap();
    let text = fs::read_to_string(folder("published").join("secret-values.yaml")).unwrap();
    let large = format!("    BUNDLE: \"{}\"\n", "x".repeat(1_000_000));
    let edited = text.replace(
        "    SESSION_SECRET: \"\"\n",
        &format!("    SESSION_SECRET: \"\"\n{large}"),
    );
    assert!(load::scenario(&edited, "secret-values.yaml", library.vocabulary()).is_ok());
}

#[test]
fn what_is_compiled_in_is_what_the_folders_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open = vec![root.join("scenarios"), root.join("vocab")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(
                    path.strip_prefix(root)
                        .unwrap()
                        .to_string_lossy()
                        .into_owned(),
                );
            }
        }
    }
    found.sort();
    let all = builtin::files().into_iter();
    let mut compiled: Vec<&str> = all
        .chain(builtin::published().iter().copied())
        .map(|(path, _)| path)
        .collect();
    compiled.sort_unstable();
    assert_eq!(compiled, found);
}

fn breakage(arguments: &[&str]) -> std::process::Output {
    let workspace = tempfile::tempdir().unwrap();
    let mut command = assert_cmd::Command::cargo_bin("breakage").unwrap();
    command
        .env("BREAKAGE_WORKSPACE", workspace.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(arguments).output().unwrap()
}

#[test]
fn validate_prints_every_problem_of_every_file_and_fails() {
    let broken = "tests/scenario_files/broken/several-problems.yaml";
    let good = "scenarios/anchor/replicas-zero-advocate.yaml";
    let output = breakage(&["scenario", "validate", broken, good, "no-such-file.yaml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text.lines().filter(|line| line.starts_with(broken)).count(),
        6,
        "{text}"
    );
    assert!(text.contains("cannot read no-such-file.yaml"), "{text}");
    assert!(text.ends_with("2 of 3 file(s) invalid\n"), "{text}");

    let output = breakage(&["scenario", "validate", good, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"][0]["valid"], true);
}

#[test]
fn tables_fit_into_a_hundred_columns_and_json_counts_them_all() {
    for arguments in [["scenario", "list"], ["vocab", "list"]] {
        let output = breakage(&arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() > 20);
        let wide: Vec<&str> = text
            .lines()
            .filter(|line| line.trim_end().chars().count() > 100)
            .collect();
        assert!(wide.is_empty(), "{wide:?}");
    }
    let output = breakage(&["scenario", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["count"], 23);
    for id in list["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
    {
        let output = breakage(&["scenario", "show", id, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{id}");
    }
}

#[test]
fn showing_a_scenario_prints_no_credential() {
    for arguments in [
        vec!["scenario", "show", "secret-wrong-password-advocate"],
        vec![
            "scenario",
            "show",
            "secret-wrong-password-advocate",
            "--json",
        ],
    ] {
        let output = breakage(&arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("DATABASE_URL replaced"), "{text}");
        assert!(!text.contains("postgres://"), "{text}");
    }
}

fn valid_text() -> impl Strategy<Value = String> {
    let texts: Vec<String> = builtin::files()
        .into_iter()
        .map(|(_, text)| text.to_owned())
        .collect();
    proptest::sample::select(texts)
}

/// Opened once: the properties load thousands of files.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::open(None).unwrap());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_loading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = load_bytes(&LIBRARY, &bytes, "f.yaml");
    }

    #[test]
    fn no_damaged_file_makes_loading_panic(
        text in valid_text(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[ \\-:\\[\\]{}\"'&*|>\\n\\ta-z0-9.=é]{0,6}"), 1..6),
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (index, length, insert) in cuts {
            let at = index.index(chars.len().max(1)).min(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, insert.chars());
        }
        let damaged: String = chars.into_iter().collect();
        let _ = load::scenario(&damaged, "f.yaml", LIBRARY.vocabulary());
        let _ = load::rubric(&damaged, "f.yaml");
        let _ = load::vocabulary((&damaged, "f.yaml"), (&damaged, "f.yaml"));
    }
}
