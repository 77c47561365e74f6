//! `breakage corpus` as a person uses it, each command in a process of its own.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// Runs `breakage corpus …` in a workspace; answers exit code, stdout and stderr.
fn corpus(workspace: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env_remove("BREAKAGE_EMBEDDER")
        .arg("--workspace")
        .arg(workspace)
        .arg("corpus")
        .args(args)
        .output()
        .expect("the binary was built for this test");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn ok(workspace: &Path, args: &[&str]) -> String {
    let (code, stdout, stderr) = corpus(workspace, args);
    assert_eq!(code, 0, "{args:?}: {stderr}");
    stdout
}

fn json(workspace: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&ok(workspace, args)).expect("--json prints JSON")
}

/// A line of the seed file with another id and diagnosis.
fn line(id: &str, diagnosis: &str) -> String {
    let seeds = fs::read_to_string("data/seed-postmortems.jsonl").expect("the seeds are committed");
    let first = seeds.lines().next().expect("there are seeds");
    let mut entry: Value = serde_json::from_str(first).expect("seeds are JSON Lines");
    entry["id"] = id.into();
    entry["postmortem"]["final_diagnosis"] = diagnosis.into();
    entry.to_string()
}

#[test]
fn reading_needs_no_workspace_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("none");
    let list = json(&workspace, &["list", "--json"]);
    assert_eq!(list["origin"], "compiled-in");
    let found = json(
        &workspace,
        &["search", "containers OOMKilled, exit code 137", "--json"],
    );
    assert_eq!(found["count"], 3);
    assert!(!workspace.exists());
}

#[test]
fn seeding_twice_is_seeding_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = json(folder.path(), &["seed", "--json"]);
    let again = json(folder.path(), &["seed", "--json"]);
    assert_eq!(
        (&again["added"], &again["known"]),
        (&0.into(), &first["added"])
    );
    assert_eq!(json(folder.path(), &["list", "--json"])["origin"], "stored");
}

#[test]
fn an_export_imports_into_the_same_export() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let file = folder.path().join("corpus.jsonl");
    let file_name = file.to_str().unwrap();
    ok(&one, &["seed"]);
    ok(&one, &["export", file_name]);
    ok(&two, &["import", file_name]);
    let exported = ok(&two, &["export"]);
    assert_eq!(exported, fs::read_to_string(&file).unwrap());
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        3,
        "no draft stays behind"
    );
}

#[test]
fn an_export_to_a_dash_is_the_export_on_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, _) = corpus(folder.path(), &["export", "-"]);
    assert_eq!(code, 0);
    assert_eq!(stdout, ok(folder.path(), &["export"]));
    assert!(!Path::new("-").exists());
}

#[test]
fn an_export_replaces_a_file_only_when_told_and_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.txt");
    fs::write(&file, "mine").unwrap();
    let name = file.to_str().unwrap();
    let (code, _, stderr) = corpus(folder.path(), &["export", name]);
    assert_eq!(code, 1);
    assert!(stderr.contains("--force"), "{stderr}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        ok(
            folder.path(),
            &["export", link.to_str().unwrap(), "--force"],
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o664);
        let new = folder.path().join("new.txt");
        ok(folder.path(), &["export", new.to_str().unwrap()]);
        let mode = fs::metadata(&new).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(mode & !0o644 & 0o777, 0);
    }
    assert!(fs::metadata(&file).unwrap().len() > 1_000);
}

#[cfg(unix)]
#[test]
fn an_export_never_replaces_the_store_under_any_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("ws");
    let store = workspace.join("breakage.redb");
    let early = corpus(&workspace, &["export", store.to_str().unwrap()]);
    assert_eq!(early.0, 1, "{}", early.2);
    ok(&workspace, &["seed"]);
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    std::os::unix::fs::symlink(&store, &soft).unwrap();
    fs::hard_link(&store, &hard).unwrap();
    for name in [&store, &soft, &hard, &workspace.join("../ws/breakage.redb")] {
        let name = name.to_str().unwrap();
        let (code, _, stderr) = corpus(&workspace, &["export", name, "--force"]);
        assert_eq!(code, 1, "{name}");
        assert!(stderr.contains("this workspace's store"), "{stderr}");
    }
    let (code, _, stderr) = corpus(&workspace, &["export", workspace.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("is a folder"), "{stderr}");
    assert_eq!(json(&workspace, &["list", "--json"])["origin"], "stored");
}

#[cfg(target_os = "linux")]
#[test]
fn an_export_writes_through_to_devices_and_leaves_them_devices() {
    let folder = tempfile::tempdir().unwrap();
    // Through links, so that a defect replaces a link and not the machine's device.
    let full = folder.path().join("full");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let (code, _, stderr) = corpus(folder.path(), &["export", full.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("cannot be written"), "{stderr}");
    assert!(fs::symlink_metadata(&full).unwrap().is_symlink());
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn an_import_with_one_wrong_line_imports_nothing_and_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.jsonl");
    let good = line("good", "a cause");
    for (bad, place) in [
        ("{\"id\": }".to_owned(), ":2:8: expected value"),
        ("[1]".to_owned(), ":2:"),
        (
            line("x", "y").replacen("\"outcome\"", "\"outcom\"", 1),
            ":2:",
        ),
        (
            line("x", "y").replacen("\"confidence\"", "\"extra\":1,\"confidence\"", 1),
            ":2: unknown field postmortem.extra",
        ),
        (line("x", " "), ":2: postmortem x is not acceptable"),
        (line("../x", "y"), ":2: postmortem ../x is not acceptable"),
        (
            line("good", "again"),
            ":2: postmortem good stands in line 1 already",
        ),
        (format!("{good} {good}"), ":2:"),
    ] {
        fs::write(&file, format!("{good}\n{bad}\n")).unwrap();
        let (code, _, stderr) = corpus(folder.path(), &["import", file.to_str().unwrap()]);
        assert_eq!(code, 1, "{stderr}");
        let expected = format!("{}{place}", file.display());
        assert!(stderr.contains(&expected), "{bad}\n{stderr}");
        assert!(!folder.path().join("breakage.redb").exists());
    }
    fs::write(&file, [b'{', b'\n', 0xff]).unwrap();
    let (_, _, stderr) = corpus(folder.path(), &["import", file.to_str().unwrap()]);
    assert!(stderr.contains("in.jsonl:2: not UTF-8"), "{stderr}");
}

#[test]
fn one_id_with_other_contents_is_a_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.jsonl");
    fs::write(&file, line("one", "a cause")).unwrap();
    ok(folder.path(), &["import", file.to_str().unwrap()]);
    fs::write(
        &file,
        format!("{}\n{}", line("new", "n"), line("one", "other")),
    )
    .unwrap();
    let (code, _, stderr) = corpus(folder.path(), &["import", file.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("postmortem one is known with other contents"),
        "{stderr}"
    );
    assert_eq!(json(folder.path(), &["list", "--json"])["count"], 1);
}

#[test]
fn another_embedder_is_refused_until_it_has_embedded() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["seed"]);
    let search = ["search", "a text", "--embedder", "control"];
    let (code, _, stderr) = corpus(folder.path(), &search);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("breakage corpus reembed --embedder control"),
        "{stderr}"
    );
    ok(folder.path(), &["reembed", "--embedder", "control"]);
    ok(folder.path(), &search);
    assert_eq!(
        json(
            folder.path(),
            &["search", "OOMKilled memory limit", "--json"]
        )["count"],
        3
    );
}

#[test]
fn text_of_agents_cannot_command_the_terminal_but_stays_whole_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.jsonl");
    let hostile = "\u{1b}[2J=cmd|' /C calc'!A0\r\u{202e}probe";
    fs::write(&file, line("bad", hostile)).unwrap();
    ok(folder.path(), &["import", file.to_str().unwrap()]);
    for args in [
        &["list"][..],
        &["show", "bad"],
        &["search", "probe cmd calc"],
    ] {
        let (_, stdout, stderr) = corpus(folder.path(), args);
        for text in [&stdout, &stderr] {
            assert!(
                !text.contains(['\u{1b}', '\r', '\u{202e}']),
                "{args:?}: {text:?}"
            );
        }
    }
    let shown = json(folder.path(), &["show", "bad", "--json"]);
    assert_eq!(shown["postmortem"]["final_diagnosis"], hostile);
}

#[test]
fn filters_narrow_and_wrong_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(
        folder.path(),
        &[
            "search",
            "the probe",
            "--k",
            "9",
            "--max-distance",
            "2",
            "--source",
            "production",
            "--category",
            "probe-misconfigured",
            "--json",
        ],
    );
    assert!(found["count"].as_u64().unwrap() >= 2);
    for result in found["results"].as_array().unwrap() {
        assert_eq!(result["source"], "production");
        assert_eq!(result["primary_category"], "probe-misconfigured");
    }
    for args in [
        ["--max-distance", "2.5"],
        ["--k", "5000"],
        ["--max-distance", "NaN"],
    ] {
        let (code, _, stderr) = corpus(folder.path(), &["search", "x", args[0], args[1]]);
        assert_eq!(code, 1, "{stderr}");
    }
    let (code, _, stderr) = corpus(folder.path(), &["show", "nobody"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("breakage corpus list"), "{stderr}");
}

#[test]
fn a_misspelt_filter_is_refused_with_what_may_have_been_meant() {
    let folder = tempfile::tempdir().unwrap();
    for (args, words) in [
        (
            &["list", "--category", "prob-misconfigured"][..],
            "did you mean `probe-misconfigured`",
        ),
        (
            &["search", "x", "--category", "nope"],
            "breakage vocab list",
        ),
        (
            &["search", "x", "--exclude-scenario", "nope"],
            "breakage scenario list",
        ),
        (&["search", "x", "--pool-cap", "0"], "pool cap is 0"),
        (
            &["show", "seed-courier-key-removd"],
            "did you mean `seed-courier-key-removed`",
        ),
    ] {
        let (code, stdout, stderr) = corpus(folder.path(), args);
        assert_eq!(code, 1, "{args:?}: {stdout}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
}

#[test]
fn an_import_says_what_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.jsonl");
    let import = |contents: &str| {
        fs::write(&file, contents).unwrap();
        corpus(folder.path(), &["import", file.to_str().unwrap()])
    };
    let edited = |field: &str, value: &str| {
        let mut entry: Value = serde_json::from_str(&line("one", "a cause")).unwrap();
        entry[field] = value.into();
        format!("\n{entry}\n")
    };
    for (contents, words) in [
        (" \n".to_owned(), "holds no postmortem"),
        (edited("recorded_at", "yesterday"), "RFC 3339"),
        (edited("recorded_at", "2031-02-03 04:05Z"), "RFC 3339"),
        (
            edited("mechanism", "no-such-thing"),
            "in.jsonl:2: postmortem one has the unknown mechanism",
        ),
    ] {
        let (code, _, stderr) = import(&contents);
        assert_eq!(code, 1, "{contents}");
        assert!(stderr.contains(words), "{stderr}");
        assert!(!folder.path().join("breakage.redb").exists());
    }
    let mut entry: Value = serde_json::from_str(&line("one", "a cause")).unwrap();
    entry["postmortem"]["primary_category"] = "my-own-word".into();
    let (code, _, stderr) = import(&entry.to_string());
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("my-own-word"), "{stderr}");
    let list = ["list", "--category", "my-own-word", "--json"];
    assert_eq!(json(folder.path(), &list)["count"], 1);
}

#[test]
fn a_search_tells_how_many_are_near_and_how_many_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let note = |more: &[&str]| {
        let args = [&["search", "the probe fails", "--max-distance", "2"], more].concat();
        corpus(folder.path(), &args).2
    };
    let all = json(folder.path(), &["list", "--json"])["count"].to_string();
    let expected = |shown: &str| format!("{all} of {all} postmortems within 2, {shown} (");
    for (args, shown) in [
        (&["--k", "0"][..], "none shown as k is 0"),
        (&["--k", "2"], "the nearest 2 shown"),
        (&["--k", "500"], "all shown"),
    ] {
        let note = note(args);
        assert!(note.starts_with(&expected(shown)), "{note}");
    }
}

#[test]
fn lines_for_people_are_no_wider_than_tables_and_names_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = json(folder.path(), &["list", "--json"]);
    let list = ok(folder.path(), &["list"]);
    let search = ok(folder.path(), &["search", "the probe fails", "--k", "40"]);
    let mut texts = vec![list.clone(), search];
    for entry in seeds["postmortems"].as_array().unwrap() {
        let id = entry["id"].as_str().unwrap();
        assert!(list.contains(id), "{id} was broken");
        texts.push(ok(folder.path(), &["show", id]));
    }
    for line in texts.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(list.contains("incident-log") && list.contains("inconclusive"));
}
