//! Keeping qualifications: in the workspace's store, and for the built-in scenarios in the binary.
//!
//! A qualification holds for one text of the scenario, one content of its fixture, one kind and version of cluster and
//! one version of this program; anything else has another key and is not qualified.

use serde::{Deserialize, Serialize};

use crate::cluster::fixture::Fixtures;
use crate::qualify::check::{Qualification, Standing};
use crate::qualify::leak::Finding;
use crate::qualify::probe::{Evidence, Probe};
use crate::qualify::reader::Reading;
use crate::qualify::{Depth, Materials};
use crate::record::{ClusterFacts, ClusterKind, Record};
use crate::run::Finished;
use crate::scenario::model::Scenario;
use crate::score;
use crate::store::{Batch, Store, StoreError};

/// The built-in scenarios on the embedded cluster, as `breakage scenario qualify --all --json` prints them. A test
/// computes them again and compares.
const COMPILED_IN: &str = include_str!("../../data/qualifications.json");

/// Where a qualification was made.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub name: &'static str,
    pub version: &'static str,
}

/// The embedded cluster, as its runs' records call it.
pub const EMBEDDED: Place = Place {
    name: "embedded",
    version: "v1.34.4",
};

/// The embedded cluster's facts.
pub fn embedded() -> ClusterFacts {
    ClusterFacts {
        name: EMBEDDED.name.to_owned(),
        kind: ClusterKind::Embedded,
        version: EMBEDDED.version.to_owned(),
    }
}

/// What `--json` prints for several scenarios, and what is compiled in.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sheet {
    pub qualifications: Vec<Qualification>,
}

/// The qualifications of this build.
///
/// # Errors
/// A file that is not such a sheet: a defect of the build.
pub fn compiled_in() -> Result<Sheet, serde_json::Error> {
    serde_json::from_str(COMPILED_IN)
}

fn key(parts: [&str; 5]) -> String {
    parts.join("/")
}

fn key_of(qualification: &Qualification) -> String {
    key([
        &qualification.scenario_sha256,
        &qualification.fixture_sha256,
        &qualification.cluster,
        &qualification.version,
        &qualification.breakage_version,
    ])
}

/// Puts a qualification into the store; an earlier one of the same key is replaced, and so are the runs that it rests on.
/// One that did not ask everything is not kept.
pub fn keep(store: &Store, qualification: &Qualification) -> Result<(), StoreError> {
    if qualification.depth != Depth::Whole {
        return Ok(());
    }
    let key = key_of(qualification);
    let mut batch = Batch::default();
    batch.qualification(&key, qualification)?;
    for probe in Depth::Whole.probes() {
        batch.erase_qualification(&evidence_key(&key, probe));
    }
    store.write(&batch).map(drop)
}

/// The key of a scenario's qualification on a cluster; nothing without its fixture.
fn key_on(scenario: &Scenario, fixtures: &Fixtures, cluster: &ClusterFacts) -> Option<String> {
    let fixture = fixtures.load(&scenario.fixture).ok()?;
    Some(key([
        &scenario.sha256,
        &fixture.sha256,
        cluster.kind.as_str(),
        &cluster.version,
        env!("CARGO_PKG_VERSION"),
    ]))
}

/// What is known of a scenario on a cluster: the store's word if there is one, else the compiled-in one.
pub fn known(
    store: &Store,
    scenario: &Scenario,
    fixtures: &Fixtures,
    cluster: &ClusterFacts,
) -> Result<Option<Qualification>, StoreError> {
    let Some(wanted) = key_on(scenario, fixtures, cluster) else {
        return Ok(None);
    };
    let kept: Option<Qualification> = store.qualification(&wanted)?;
    Ok(kept.or_else(|| {
        let all = compiled_in().map(|sheet| sheet.qualifications);
        all.unwrap_or_default()
            .into_iter()
            .find(|one| key_of(one) == wanted)
    }))
}

/// Whether a valid qualification of a scenario on a cluster is known.
pub fn is_qualified(
    store: &Store,
    scenario: &Scenario,
    fixtures: &Fixtures,
    cluster: &ClusterFacts,
) -> Result<bool, StoreError> {
    let known = known(store, scenario, fixtures, cluster)?;
    Ok(known.is_some_and(|one| one.standing() == Standing::Qualified))
}

/// A qualifying run that is kept until its scenario has been asked everything, so that hours are not lost to an
/// interruption.
#[derive(Debug, Serialize, Deserialize)]
struct KeptEvidence {
    record: Record,
    lucky: u64,
    leaks: Option<(Vec<Finding>, Reading)>,
}

fn evidence_key(of: &str, probe: Probe) -> String {
    format!("{of}/{}", probe.name())
}

/// Keeps what a probe brought back from a cluster.
pub fn keep_evidence(
    store: &Store,
    scenario: &Scenario,
    fixtures: &Fixtures,
    cluster: &ClusterFacts,
    evidence: &Evidence,
) -> Result<(), StoreError> {
    let Some(key) = key_on(scenario, fixtures, cluster) else {
        return Ok(());
    };
    let leaks = evidence.leaks.as_ref().map(|(found, reading)| {
        let numbers = Reading {
            items: Vec::new(),
            ..*reading
        };
        (found.clone(), numbers)
    });
    let kept = KeptEvidence {
        record: evidence.finished.record.clone(),
        lucky: evidence.lucky,
        leaks,
    };
    store.put_qualification(&evidence_key(&key, evidence.probe), &kept)
}

/// What a probe brought back earlier, from a qualification that did not come to its end.
pub fn kept_evidence(
    store: &Store,
    scenario: &Scenario,
    materials: &Materials,
    cluster: &ClusterFacts,
    probe: Probe,
) -> Result<Option<Evidence>, StoreError> {
    let Some(key) = key_on(scenario, &materials.fixtures, cluster) else {
        return Ok(None);
    };
    let kept: Option<KeptEvidence> = store.qualification(&evidence_key(&key, probe))?;
    Ok(kept.map(|kept| {
        let (rubric, vocabulary) = (&materials.rubric, &materials.vocabulary);
        let score = score::score(scenario, &kept.record, rubric, vocabulary).ok();
        Evidence {
            probe,
            finished: Finished {
                record: kept.record,
                score,
            },
            lucky: kept.lucky,
            leaks: kept.leaks,
        }
    }))
}

/// Forgets what probes brought back from a cluster.
pub fn forget_evidence(
    store: &Store,
    scenario: &Scenario,
    fixtures: &Fixtures,
    cluster: &ClusterFacts,
) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    if let Some(key) = key_on(scenario, fixtures, cluster) {
        for probe in Depth::Whole.probes() {
            batch.erase_qualification(&evidence_key(&key, probe));
        }
    }
    store.write(&batch).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::target::Target;
    use crate::ids::Seed;

    #[tokio::test(start_paused = true)]
    async fn the_embedded_cluster_is_called_as_in_records() {
        assert_eq!(Target::embedded(Seed(1)).facts(), embedded());
    }
}
