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
