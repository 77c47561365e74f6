//! Keeping qualifications: in the workspace's store, and for the built-in scenarios in the binary.
//!
//! A qualification holds for one text of the scenario, one content of its fixture, one kind and version of cluster and
//! one version of this program; anything else has another key and is not qualified.

use crate::cluster::fixture::Fixtures;
use crate::qualify::check::{Qualification, Standing};
use crate::record::ClusterFacts;
use crate::scenario::model::Scenario;
use crate::store::{Store, StoreError};

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

/// Puts a qualification into the store; an earlier one of the same key is replaced.
pub fn keep(store: &Store, qualification: &Qualification) -> Result<(), StoreError> {
    store.put_qualification(&key_of(qualification), qualification)
}

/// Whether a valid qualification of a scenario on a cluster is known: the store's if there is one, else the
/// compiled-in one.
pub fn is_qualified(
    store: &Store,
    scenario: &Scenario,
    fixtures: &Fixtures,
    cluster: &ClusterFacts,
) -> Result<bool, StoreError> {
    let Ok(fixture) = fixtures.load(&scenario.fixture) else {
        return Ok(false);
    };
    let wanted = key([
        &scenario.sha256,
        &fixture.sha256,
        &cluster.name,
        &cluster.version,
        env!("CARGO_PKG_VERSION"),
    ]);
    let kept: Option<Qualification> = store.qualification(&wanted)?;
    let found = kept.or_else(|| {
        let all = compiled_in().map(|sheet| sheet.qualifications);
        all.unwrap_or_default()
            .into_iter()
            .find(|one| key_of(one) == wanted)
    });
    Ok(found.is_some_and(|one| one.standing() == Standing::Qualified))
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
