//! Store files that cannot be used or written: one clear error each, the file left as it is, nothing kept is lost.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use agent_breakage::store::{STORE_FILE, Store, StoreError};
use proptest::prelude::*;
use serde_json::Value;

const SCENARIO: &str = "replicas-zero-advocate";

fn breakage(workspace: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", workspace)
        .args(args)
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// How many errors a command told.
fn errors(text: &str) -> usize {
    text.lines()
        .filter(|line| line.starts_with("error:"))
        .count()
}

/// A closed store with something in every table that a crash must not lose.
fn store_with_a_journal_entry(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    for run in 0..20 {
        let entry = serde_json::json!({"old": "x".repeat(300), "run": run});
        store.journal_put(&format!("run-{run}"), &entry).unwrap();
        store.own(&format!("uid-{run}"), "cluster/prod").unwrap();
    }
    store.quarantine("cluster", "not as before").unwrap();
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

/// Opens what is there: the whole journal, or a refusal in one line that names the file and leaves it as it is.
fn whole_or_refused(path: &Path, bytes: &[u8]) -> bool {
    std::fs::write(path, bytes).unwrap();
    match Store::open(path) {
        Ok(store) => {
            let entries: Vec<(String, Value)> = store.journal().unwrap();
            assert_eq!(entries.len(), 20, "an entry is lost without a word");
            assert_eq!(store.owned().unwrap().len(), 20);
            assert!(store.quarantine_reason("cluster").unwrap().is_some());
            true
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert!(text.contains(&path.display().to_string()), "{text}");
            assert!(!matches!(error, StoreError::Missing { .. }), "{text}");
            assert!(
                std::fs::read(path).unwrap() == bytes,
                "the file was changed"
            );
            false
        }
    }
}

#[test]
fn a_file_cut_off_at_any_length_is_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = store_with_a_journal_entry(folder.path());
    let lengths = (0..bytes.len())
        .step_by(bytes.len() / 60)
        .chain([1, 4, 5, 64, 4095, 4096]);
    let whole = lengths.filter(|length| whole_or_refused(&path, &bytes[..*length]));
    assert_eq!(whole.count(), 0, "a cut file was taken for a whole one");
    assert!(whole_or_refused(&path, &bytes), "the whole file must open");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn bytes_written_behind_the_librarys_back_are_harmless_or_refused(
        at in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 1..600),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut bytes) = store_with_a_journal_entry(folder.path());
        let at = at.index(bytes.len());
        let end = bytes.len().min(at + noise.len());
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        whole_or_refused(&path, &bytes);
    }
}

#[test]
fn a_damaged_store_stops_every_command_with_one_line_and_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = store_with_a_journal_entry(folder.path());
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    for args in [
        &["run", SCENARIO][..],
        &["runs", "list"],
        &["runs", "restore"],
    ] {
        let output = breakage(folder.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let text = told(&output);
        assert!(text.contains("is damaged and was left as it is"), "{text}");
        assert_eq!(errors(&text), 1, "{text}");
        assert!(output.stdout.is_empty());
        assert!(std::fs::read(&path).unwrap() == bytes[..bytes.len() / 2]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_nobody_may_write_is_one_line() {
    // Not even an administrator makes folders there.
    let folder = Path::new("/proc/self/breakage");
    let output = breakage(folder, &["run", SCENARIO]);
    assert_eq!(output.status.code(), Some(1));
    let text = told(&output);
    assert!(text.contains("/proc/self/breakage"), "{text}");
    assert_eq!(errors(&text), 1, "{text}");
    // Commands that only read have nothing to say against it.
    assert_eq!(breakage(folder, &["runs", "list"]).status.code(), Some(0));
}

/// As a full disk answers: files grow no further than `kib`, and the signal that would say so is ignored.
#[cfg(unix)]
fn with_room_for(kib: u64, workspace: &Path, args: &[&str]) -> Output {
    // Sizes stand in the shell's blocks of 512 bytes.
    let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
    Command::new("sh")
        .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_breakage")])
        .args(args)
        .env("BREAKAGE_WORKSPACE", workspace)
        .output()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn a_full_disk_costs_the_run_that_met_it_and_nothing_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = breakage(folder.path(), &["run", SCENARIO, "--json"]);
    assert!(first.status.success(), "{}", told(&first));
    let before = breakage(folder.path(), &["runs", "list", "--json"]).stdout;
    let size = std::fs::metadata(folder.path().join(STORE_FILE))
        .unwrap()
        .len()
        / 1024;
    let (mut refused, mut shown) = (0, 0);
    for room in [size / 2, size * 3 / 4, size - 40, size - 8, size] {
        let output = with_room_for(
            room,
            folder.path(),
            &["run", SCENARIO, "--seed", "2", "--json"],
        );
        let after = breakage(folder.path(), &["runs", "list", "--json"]);
        assert!(after.status.success(), "{}", told(&after));
        if output.status.success() {
            continue;
        }
        refused += 1;
        let text = told(&output);
        assert_eq!(output.status.code(), Some(1), "{room} KiB: {text}");
        assert_eq!(errors(&text), 1, "{room} KiB: {text}");
        let rows: Vec<Value> = serde_json::from_slice(&after.stdout).unwrap();
        let known: Vec<Value> = serde_json::from_slice(&before).unwrap();
        assert_eq!(rows[0], known[0], "{room} KiB");
        for line in output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(|l| !l.is_empty())
        {
            // What could not be kept is shown, with the fault undone.
            let summary: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(summary["state_hash_before"], summary["state_hash_after"]);
            shown += 1;
        }
    }
    assert!(refused > 0, "no room was too little; {shown} shown");
    let last = breakage(folder.path(), &["run", SCENARIO, "--seed", "2", "--json"]);
    assert!(last.status.success(), "{}", told(&last));
}
