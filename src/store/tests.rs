//! What the store keeps, what it refuses, and what a crash leaves.

use std::fs;

use serde_json::{Value, json};

use super::*;

fn record(run: &str, ran_at: &str) -> Record {
    serde_json::from_value(json!({
        "format": 1, "run_id": run, "incident_id": "s-1", "scenario_id": "s", "scenario_sha256": "00", "scenario_text": "",
        "scenario_override": false, "rubric": "v0.1", "seed": 7,
        "cluster": {"name": "embedded", "version": "v1.34.4"}, "agent": {"name": "noop", "version": "1"},
        "retrieval": {"embedder": "e", "k": 3, "max_distance": 0.4, "pool_cap": null, "corpus_size": 0},
        "qualified": false, "ran_at": ran_at, "stages": [], "state": {"state": "timeout"}, "injected": true,
        "detector": {"fixed": false, "regressions": [], "unmet": [], "skipped": [], "elapsed_ms": 1,
                     "unknown_readings": 0},
        "state_changes": [], "actions": [], "hypotheses": [], "postmortem": null, "retrievals": [],
        "undo": {"attempted": true, "succeeded": true}, "state_hash_before": null, "state_hash_after": null,
        "virtual_ms": 1, "breakage_version": "0.1.0"
    }))
    .unwrap()
}

fn database(store: &Store) -> &Database {
    match &store.access {
        Access::All(database) => database,
        Access::Reading(_) => panic!("opened for reading only"),
    }
}

#[test]
fn records_come_back_in_order_and_by_run() {
    let store = Store::in_memory().unwrap();
    for run in ["b", "a", "c"] {
        assert_eq!(store.put_record(&record(run, "t")).unwrap(), Kept::New);
    }
    let runs: Vec<String> = store
        .records()
        .unwrap()
        .iter()
        .map(|record| record.run_id.to_string())
        .collect();
    assert_eq!(runs, ["b", "a", "c"]);
    assert_eq!(
        store.record(&RunId::new("a")).unwrap(),
        Some(record("a", "t"))
    );
    assert_eq!(store.record(&RunId::new("z")).unwrap(), None);
}

#[test]
fn evidence_of_one_run_id_is_never_overwritten() {
    let store = Store::in_memory().unwrap();
    assert_eq!(store.put_record(&record("a", "1")).unwrap(), Kept::New);
    assert_eq!(store.put_record(&record("a", "1")).unwrap(), Kept::Already);
    assert_eq!(store.put_record(&record("a", "2")).unwrap(), Kept::Newer);
    assert_eq!(store.records().unwrap().len(), 2);
    assert_eq!(store.record(&RunId::new("a")).unwrap().unwrap().ran_at, "2");
}

#[test]
fn the_journal_survives_a_process_that_ends_without_closing_and_forgets_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    store.journal_put("run-1", &json!({"old": "x"})).unwrap();
    let crashed = folder.path().join("copy.redb");
    // A copy of the open file is what a killed process leaves on disk.
    fs::copy(&path, &crashed).unwrap();
    let after = Store::open(&crashed).unwrap();
    let entries: Vec<(String, Value)> = after.journal().unwrap();
    assert_eq!(entries, [("run-1".to_owned(), json!({"old": "x"}))]);
    assert!(after.journal_erase("run-1").unwrap());
    assert!(!after.journal_erase("run-1").unwrap());
    assert!(after.journal::<Value>().unwrap().is_empty());
}

#[test]
fn a_write_that_was_not_committed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    store.journal_put("kept", &1).unwrap();
    let txn = batch::begin_write(database(&store)).unwrap();
    txn.open_table(JOURNAL)
        .unwrap()
        .insert("lost", "2")
        .unwrap();
    drop(txn);
    drop(store);
    let ids: Vec<(String, u8)> = Store::open(&path).unwrap().journal().unwrap();
    assert_eq!(ids, [("kept".to_owned(), 1)]);
}

#[test]
fn quarantine_ownership_and_qualifications_are_kept_and_lifted() {
    let store = Store::in_memory().unwrap();
    store.quarantine("k3d", "reset not proven").unwrap();
    assert_eq!(
        store.quarantine_reason("k3d").unwrap().as_deref(),
        Some("reset not proven")
    );
    assert!(store.lift_quarantine("k3d").unwrap());
    assert_eq!(store.quarantine_reason("k3d").unwrap(), None);
    store.own("uid-1", "fixture/shop").unwrap();
    assert_eq!(
        store.owner_of("uid-1").unwrap().as_deref(),
        Some("fixture/shop")
    );
    assert!(store.disown("uid-1").unwrap());
    assert!(store.owned().unwrap().is_empty());
    store
        .put_qualification("k", &json!({"bites": true}))
        .unwrap();
    assert_eq!(
        store.qualification::<Value>("k").unwrap(),
        Some(json!({"bites": true}))
    );
}

#[test]
fn vectors_of_different_embedders_never_meet() {
    let store = Store::in_memory().unwrap();
    let (one, two) = (EmbedderId::new("one"), EmbedderId::new("one/2"));
    let (a, b) = (PostmortemId::new("a"), PostmortemId::new("b"));
    let mut batch = Batch::default();
    batch.vector(&one, &b, &[0.5, -1.0]);
    batch.vector(&one, &a, &[1.0]);
    batch.vector(&two, &a, &[2.0]);
    store.write(&batch).unwrap();
    assert_eq!(
        store.vectors(&one).unwrap(),
        [(a.clone(), vec![1.0]), (b, vec![0.5, -1.0])]
    );
    let mut batch = Batch::default();
    batch.erase_vectors(&one);
    store.write(&batch).unwrap();
    assert!(store.vectors(&one).unwrap().is_empty());
    assert_eq!(store.vectors(&two).unwrap(), [(a, vec![2.0])]);
}

#[test]
fn threads_share_one_store() {
    let store = Store::in_memory().unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..5 {
                    let run = format!("w{worker}-{n}");
                    store.put_record(&record(&run, "t")).unwrap();
                }
            });
        }
    });
    assert_eq!(store.records().unwrap().len(), 20);
}

#[cfg(unix)]
#[test]
fn a_new_store_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/deep").join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(store.path(), Some(path.as_path()));
}

/// The error's text, after making sure that what was there is still there.
fn refusal(path: &Path) -> String {
    let before = fs::read(path).ok();
    let error = match Store::open_or_create(path) {
        Ok(_) => panic!("{} must be refused", path.display()),
        Err(error) => error,
    };
    assert!(fs::read(path).ok() == before, "the file was changed");
    let text = error.to_string();
    assert!(
        !text.contains('\n') && text.contains(&path.display().to_string()),
        "{text}"
    );
    text
}

#[test]
fn what_is_not_a_store_of_ours_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(refusal(folder.path()).contains("is a folder"));
    fs::write(at("text"), "hello\n").unwrap();
    assert!(refusal(&at("text")).contains("another kind of file"));
    fs::write(at("zeros"), [0u8; 4096]).unwrap();
    assert!(refusal(&at("zeros")).contains("another kind of file"));
    fs::write(at("empty"), "").unwrap();
    assert!(refusal(&at("empty")).contains("is empty"));
    let foreign = Database::create(at("foreign")).unwrap();
    drop(foreign);
    assert!(refusal(&at("foreign")).contains("another program's database"));
    fs::write(at("head"), b"redb").unwrap();
    let head = refusal(&at("head"));
    assert!(head.contains("damaged"), "{head}");
}

#[test]
fn a_second_opener_is_told_who_holds_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let _first = Store::open_or_create(&path).unwrap();
    let text = refusal(&path);
    assert!(text.contains("open in another breakage process"), "{text}");
    if cfg!(target_os = "linux") {
        let pid = format!("(process {})", std::process::id());
        assert!(text.contains(&pid), "{text}");
    }
}

#[test]
fn another_format_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    let txn = batch::begin_write(database(&store)).unwrap();
    txn.open_table(tables::META)
        .unwrap()
        .insert("format", "99")
        .unwrap();
    txn.commit().unwrap();
    drop(store);
    assert!(refusal(&path).contains("has format 99, this breakage knows 4"));
}

#[test]
fn a_file_of_an_older_format_is_taken_over_with_what_it_holds() {
    let second = tables::SECOND_TEXT_TABLES;
    let (third, fourth) = (tables::THIRD_TEXT_TABLES, tables::FOURTH_TEXT_TABLES);
    for (format, lacking) in [
        ("1", [second, third, fourth].concat()),
        ("2", [third, fourth].concat()),
        ("3", fourth.to_vec()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STORE_FILE);
        let store = Store::open_or_create(&path).unwrap();
        store.put_record(&record("a", "t")).unwrap();
        let txn = batch::begin_write(database(&store)).unwrap();
        txn.open_table(tables::META)
            .unwrap()
            .insert("format", format)
            .unwrap();
        for table in lacking {
            assert!(txn.delete_table(table).unwrap());
        }
        assert!(txn.delete_table(tables::LEDGER).unwrap());
        txn.commit().unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.records().unwrap().len(), 1);
        assert!(store.planned::<Value>().unwrap().is_empty());
        assert!(store.clusters::<Value>().unwrap().is_empty());
        store.put_planned("p", &1).unwrap();
        store.put_cluster("uid", &2).unwrap();
        assert!(store.registrations().unwrap().is_empty());
        assert!(store.ledger("h").unwrap().is_empty());
        let mut batch = Batch::default();
        batch.registration("h", "{}".to_owned());
        batch.ledger("h", 0, "first".to_owned());
        store.write(&batch).unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        assert_eq!(again.planned::<u8>().unwrap(), [("p".to_owned(), 1)]);
        assert_eq!(again.cluster::<u8>("uid").unwrap(), Some(2));
        assert_eq!(again.ledger("h").unwrap(), [(0, "first".to_owned())]);
        assert!(again.forget_cluster("uid").unwrap());
        assert_eq!(again.cluster::<u8>("uid").unwrap(), None);
    }
}

#[test]
fn a_ledger_only_grows_by_its_next_entry_and_nothing_else_of_the_commit_is_kept() {
    let store = Store::in_memory().unwrap();
    let append = |registration: &str, seq| {
        let mut batch = Batch::default();
        batch.record(&record(&format!("r{seq}"), "t")).unwrap();
        batch.ledger(registration, seq, format!("entry {seq}"));
        store.write(&batch)
    };
    append("h", 0).unwrap();
    append("h", 1).unwrap();
    append("other", 0).unwrap();
    for (seq, next) in [(0, 2), (1, 2), (3, 2)] {
        let error = append("h", seq).unwrap_err().to_string();
        assert!(error.contains(&format!("the next is {next}")), "{error}");
    }
    assert_eq!(store.records().unwrap().len(), 2);
    assert_eq!(store.ledger("h").unwrap().len(), 2);
    assert_eq!(store.ledger_from("h", 1).unwrap()[0].0, 1);
    assert_eq!(store.ledger("other").unwrap().len(), 1);
}

#[test]
fn a_cut_or_scribbled_file_is_damaged_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    for n in 0..20 {
        store.put_record(&record(&format!("r{n}"), "t")).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(refusal(&path).contains("damaged"));
    // Scribbles over every page in turn: each is refused or harmless, none panics through.
    for start in (4096..whole.len().min(40 * 4096)).step_by(4096) {
        let mut bytes = whole.clone();
        bytes[start + 8..start + 200].fill(0xA5);
        fs::write(&path, &bytes).unwrap();
        if let Ok(store) = Store::open(&path) {
            let _ = store.records();
            let _ = store.journal::<Value>();
        }
    }
}

#[test]
fn the_store_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Store>();
}

#[test]
fn a_row_that_cannot_be_read_is_named_with_its_file_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    store
        .journal_put("run-1", &json!({"no": "number"}))
        .unwrap();
    let text = store.journal::<u8>().unwrap_err().to_string();
    for part in [
        path.to_str().unwrap(),
        "run-1",
        "journal",
        "set the file aside",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_file_that_may_only_be_read_is_read_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE);
    let store = Store::open_or_create(&path).unwrap();
    store.put_record(&record("a", "t")).unwrap();
    drop(store);
    let before = fs::read(&path).unwrap();
    let reading = Store::open_read_only(&path).unwrap();
    assert_eq!(reading.records().unwrap().len(), 1);
    let refused = reading.put_record(&record("b", "t"));
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })));
    drop(reading);
    assert!(fs::read(&path).unwrap() == before);
    // An administrator may write it all the same; everybody else reads.
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let anybody = Store::open_for_reading(&path).unwrap();
    assert_eq!(anybody.records().unwrap().len(), 1);
}

#[test]
fn drafts_of_killed_processes_are_removed_and_living_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let mut held = None;
    for name in [".breakage-new-dead", ".breakage-new-held", "other"] {
        let file = fs::File::create(at(name)).unwrap();
        file.set_modified(long_ago).unwrap();
        if name.ends_with("held") {
            file.try_lock().unwrap();
            held = Some(file);
        }
    }
    fs::write(at(".breakage-new-young"), "").unwrap();
    drop(Store::open_or_create(&at(STORE_FILE)).unwrap());
    assert!(!at(".breakage-new-dead").exists());
    for name in [".breakage-new-held", ".breakage-new-young", "other"] {
        assert!(at(name).exists(), "{name}");
    }
    drop(held);
    drop(Store::open_or_create(&at(STORE_FILE)).unwrap());
    assert!(!at(".breakage-new-held").exists());
}
