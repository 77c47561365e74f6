//! The published benchmark's faults on a fixture of the published shape behave here as they were measured to behave on a
//! real cluster: seven heal by themselves, seven bite, and qualification tells them apart by the name of a check.

use std::num::NonZeroUsize;
use std::sync::Arc;

use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::qualify::check::{CONTROL_SILENT, FAULT_LASTS, FAULT_MANIFESTS};
use agent_breakage::qualify::{Depth, Materials, published, qualify};
use agent_breakage::scenario::library::Library;
use agent_breakage::scenario::model::Scenario;
use tokio::sync::watch;

/// Faults that change nothing on the published fixture; the others show first and heal then.
const NEVER_SHOW: &[&str] = &[
    "published-env-var-missing-advocate",
    "published-replica-loss-amplification-advocate",
];

#[test]
fn seven_published_faults_heal_and_seven_bite_as_measured_on_a_real_cluster() {
    let library = Library::open(None).unwrap();
    let (_stop, interrupted) = watch::channel(false);
    let materials = Materials::new(&library, Fixtures::compiled_in(), interrupted).unwrap();
    let measured = published::measured().unwrap();
    assert_eq!(measured.rows.len(), 14);
    let heal = measured
        .rows
        .iter()
        .filter(|row| row.fixed_after_s.is_some());
    assert_eq!(heal.count(), 7);
    let scenarios: Vec<Arc<Scenario>> = measured
        .rows
        .iter()
        .map(|row| Arc::new(library.scenario(row.scenario.as_str()).unwrap()))
        .collect();
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let proven = qualify(&materials, &scenarios, Depth::Fault, threads, &|| ()).unwrap();
    let mut wrong = Vec::new();
    for ((row, scenario), proven) in measured.rows.iter().zip(&scenarios).zip(proven) {
        let id = row.scenario.as_str();
        let compared = published::compare(&materials, scenario, row, measured.watched_s).unwrap();
        println!(
            "{id:50} real {:?} here {:?}",
            compared.real_fixed_after_s, compared.here_fixed_after_s
        );
        if !compared.agrees {
            wrong.push(format!("{compared:?}"));
        }
        let missed = match (row.fixed_after_s, NEVER_SHOW.contains(&id)) {
            (None, _) => None,
            (Some(_), true) => Some(FAULT_MANIFESTS),
            (Some(_), false) => Some(FAULT_LASTS),
        };
        let first = [CONTROL_SILENT, FAULT_MANIFESTS, FAULT_LASTS]
            .into_iter()
            .find(|check| proven.check(check).unwrap().pass == Some(false));
        if first != missed || proven.bites() != missed.is_none() {
            wrong.push(format!(
                "{id}: {:?}, expected {missed:?}",
                proven.first_miss()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
