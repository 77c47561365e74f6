//! An experiment as a file: the same bytes, what it proves, what it refuses.

use std::sync::Arc;

use agent_breakage::experiment::bundle::{Bundle, BundleError};
use agent_breakage::experiment::locked::Locked;
use agent_breakage::store::Store;

use crate::bench::{Bench, Texts};

fn exported() -> (Bench, Bundle) {
    let bench = Bench::new(|plan| plan);
    assert!(bench.carry_out(2, |_| ()));
    let locked = Locked::find(&bench.store, bench.hash.as_str()).unwrap();
    let bundle = Bundle::of_store(&bench.store, &locked).unwrap();
    (bench, bundle)
}

#[test]
fn the_same_experiment_gives_the_same_bytes_and_comes_back_as_it_was() {
    let (bench, bundle) = exported();
    let bytes = bundle.pack().unwrap();
    let (_, again) = exported();
    assert!(bytes == again.pack().unwrap());
    let read = Bundle::unpack(&bytes).unwrap();
    assert_eq!(read, bundle);
    let store = Arc::new(Store::in_memory().unwrap());
    assert!(read.import(&store, bench.library.vocabulary()).unwrap());
    let there = Texts::of(&store, &bench.hash);
    assert!(there.verify(&bench.library).intact);
    assert_eq!(there.ledger, bench.texts().ledger);
    assert_eq!(there.records, bench.texts().records);
    // A second time it is there already; what was exported from there is the same file.
    assert!(!read.import(&store, bench.library.vocabulary()).unwrap());
    let locked = Locked::find(&store, bench.hash.as_str()).unwrap();
    assert!(Bundle::of_store(&store, &locked).unwrap().pack().unwrap() == bytes);
}

#[test]
fn a_bundle_with_one_other_byte_is_refused_by_the_place_and_changes_nothing() {
    let (bench, bundle) = exported();
    let other = |text: &str| text.replacen('a', "b", 1);
    let mut cases: Vec<(Bundle, String)> = Vec::new();
    let mut altered = bundle.clone();
    altered.registration = other(&bundle.registration);
    cases.push((altered, "registration".to_owned()));
    let mut altered = bundle.clone();
    altered.ledger[2] = other(&bundle.ledger[2]);
    cases.push((altered, "ledger entry 2".to_owned()));
    let mut altered = bundle.clone();
    altered.records[1] = other(&bundle.records[1]);
    cases.push((altered, "record of run".to_owned()));
    let mut altered = bundle.clone();
    altered.corpus = other(&bundle.corpus);
    cases.push((altered, "corpus".to_owned()));
    for (altered, place) in cases {
        let read = Bundle::unpack(&altered.pack().unwrap()).unwrap();
        let store = Store::in_memory().unwrap();
        match read.import(&store, bench.library.vocabulary()) {
            Err(BundleError::NotIntact { place: found, .. }) => {
                assert!(found.starts_with(&place), "{place}: {found}");
            }
            other => panic!("{place}: {other:?}"),
        }
        assert!(store.registrations().unwrap().is_empty());
        assert!(store.records().unwrap().is_empty());
    }
}

#[test]
fn a_file_that_is_no_bundle_or_is_cut_short_is_told_in_a_line() {
    let (_, bundle) = exported();
    let bytes = bundle.pack().unwrap();
    for bytes in [&b""[..], b"not a bundle", &bytes[..bytes.len() / 2]] {
        let error = Bundle::unpack(bytes).unwrap_err().to_string();
        assert!(error.contains("bundle"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_bundle_holds_no_value_of_a_secret_but_what_the_scenario_s_own_text_names() {
    let (_, bundle) = exported();
    // The fixtures' passwords stand in their manifests, which no record repeats.
    let fixtures = agent_breakage::cluster::fixture::Fixtures::compiled_in();
    let library = agent_breakage::scenario::library::Library::open(None).unwrap();
    let scenario = library.scenario("secret-missing-key-advocate").unwrap();
    let fixture = fixtures.load(&scenario.fixture).unwrap();
    let secrets = fixture.objects.iter().filter(|one| one["kind"] == "Secret");
    let mut looked_for = 0;
    for secret in secrets {
        for field in ["stringData", "data"] {
            for (_, value) in secret[field].as_object().into_iter().flatten() {
                let value = value.as_str().unwrap();
                // Names that stand in a Secret, such as a user's, are ordinary words of the cluster.
                if value.len() < 8 || !value.contains(|c: char| c.is_ascii_digit()) {
                    continue;
                }
                looked_for += 1;
                for record in &bundle.records {
                    let mut record: serde_json::Value = serde_json::from_str(record).unwrap();
                    // The file as its author wrote it, with the repair.
                    record["scenario_text"] = serde_json::Value::Null;
                    assert!(!record.to_string().contains(value), "{value}");
                }
            }
        }
    }
    assert!(looked_for > 0);
}

/// What `verify` says of a bundle's bytes, place and reason; `import` must refuse the same.
fn said(bench: &Bench, bytes: &[u8]) -> String {
    let read = Bundle::unpack(bytes).unwrap();
    let found = read.verify(bench.library.vocabulary());
    let store = Store::in_memory().unwrap();
    let imported = read.import(&store, bench.library.vocabulary());
    assert_eq!(found.intact, imported.is_ok(), "{:?}", found.broken);
    let broken = found.broken.iter();
    let lines: Vec<String> = broken
        .map(|one| format!("{}: {}", one.place, one.why))
        .collect();
    lines.join("\n")
}

/// The bundle's bytes with one of its texts edited, as anybody can write them.
fn edited(bytes: &[u8], name: &str, edit: impl Fn(String) -> String) -> Vec<u8> {
    let plain = zstd::decode_all(bytes).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    for file in tar::Archive::new(plain.as_slice()).entries().unwrap() {
        let mut file = file.unwrap();
        let path = file.path().unwrap().display().to_string();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut file, &mut text).unwrap();
        if path == name {
            text = edit(text);
        }
        let mut header = file.header().clone();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, &path, text.as_bytes())
            .unwrap();
    }
    zstd::encode_all(tar.into_inner().unwrap().as_slice(), 3).unwrap()
}

#[test]
fn whatever_a_bundle_holds_beside_what_export_writes_is_named_and_not_imported() {
    let (bench, bundle) = exported();
    let bytes = bundle.pack().unwrap();
    let same = edited(&bytes, "README.txt", |text| text);
    assert_eq!(said(&bench, &same), "", "another compressor does no harm");
    let last = bundle.records.len();
    let run = bench.runs()[0].run_id.to_string();
    let first = bundle.records[0].clone();
    let cases = [
        (
            "records.jsonl",
            format!(
                "records.jsonl line {}: the ledger has no such record",
                last + 1
            ),
            Box::new(|text| format!("{text}{}\n", first.replace(&run, "another-run")))
                as Box<dyn Fn(String) -> String>,
        ),
        (
            "records.jsonl",
            format!("records.jsonl line {}: line 1 is the same record", last + 1),
            Box::new(|text| format!("{text}{first}\n")),
        ),
        (
            "records.jsonl",
            "the file: its tar holds more".to_owned(),
            Box::new(|text| text.trim_end().to_owned()),
        ),
        (
            "README.txt",
            "README.txt: it is not the text that export writes".to_owned(),
            Box::new(|text| text.replace("sha256sum", "sha1sum")),
        ),
        (
            "versions.json",
            "versions.json: field record_format is 99".to_owned(),
            Box::new(|text| {
                let mut told: serde_json::Value = serde_json::from_str(&text).unwrap();
                told["record_format"] = 99.into();
                format!("{told:#}\n")
            }),
        ),
        (
            "versions.json",
            "versions.json: it holds more than its fields".to_owned(),
            Box::new(|text| text.replacen('{', "{\"more\": 1,", 1)),
        ),
    ];
    for (name, expected, edit) in cases {
        let found = said(&bench, &edited(&bytes, name, edit));
        assert!(found.starts_with(&expected), "{expected}: {found}");
    }
    for rest in [&b"more"[..], &bytes] {
        let longer = [&bytes, rest].concat();
        let expected = format!("the file: {} bytes stand behind its end", rest.len());
        assert_eq!(said(&bench, &longer), expected);
    }
}
