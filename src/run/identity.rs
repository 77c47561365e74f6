//! Ids of a run, derived from what determines it: equal runs have equal ids, in any workspace and on any day.

use sha2::{Digest, Sha256};

use crate::agent::Agent;
use crate::ids::{RunId, ScenarioId, Seed};
use crate::inject::journal::Place;
use crate::run::{Order, Setting};

/// Letters of the digest in a run id; 2^40 variants of one scenario and seed.
const DIGEST_LETTERS: usize = 10;

/// `<scenario>-<seed>-<digest>`; the digest covers the scenario's text and fixture, the agent, what
/// retrieval may serve, the rubric that was asked for, whether the postmortem is served on, whether there is a fault, the
/// cluster where it outlives the process, and the place in an experiment where it has one, so that two arms that are
/// equal have runs of different ids.
pub fn run_id(setting: &Setting, order: &Order, agent: &dyn Agent, place: &Place) -> RunId {
    let scenario = &order.scenario;
    let policy = &setting.policy;
    // A fixture that cannot be loaded fails the run in its first stage.
    let fixture = setting.fixtures.load(&scenario.fixture);
    let fixture = fixture.map_or_else(|_| String::new(), |fixture| fixture.sha256);
    let mut hash = Sha256::new();
    for part in [
        scenario.sha256.as_str(),
        &fixture,
        setting.rubric.id.as_str(),
        if setting.learn { "learn" } else { "quarantine" },
        agent.name(),
        agent.version(),
        setting.embedder.identity().as_str(),
        &setting.snapshot.eligible_hash(policy),
        &format!("{policy:?}"),
        &format!("{:?} {:?}", order.kind, order.watching),
        env!("CARGO_PKG_VERSION"),
    ] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(place.cluster_uid.as_bytes());
    if let Some(part) = &order.part {
        hash.update([0]);
        hash.update(part.identity());
    }
    let digest = hex::encode(hash.finalize());
    joined(&scenario.id, order.seed, &digest[..DIGEST_LETTERS])
}

fn joined(scenario: &ScenarioId, seed: Seed, digest: &str) -> RunId {
    RunId::new(format!("{scenario}-{seed}-{digest}"))
}

/// The id of the run that differs by its seed alone.
pub fn with_seed(run: &RunId, scenario: &ScenarioId, seed: Seed) -> RunId {
    let (_, digest) = run.as_str().rsplit_once('-').unwrap_or_default();
    joined(scenario, seed, digest)
}

/// `<scenario>-<uuid>`, the uuid a version 4 from the seed.
pub fn incident_id(scenario: &ScenarioId, seed: Seed) -> String {
    let mut bytes = [0u8; 16];
    for (half, index) in bytes.chunks_mut(8).zip(0..) {
        half.copy_from_slice(&seed.child("incident", index).0.to_be_bytes());
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex::encode(bytes);
    format!(
        "{}-{}-{}-{}-{}-{}",
        scenario,
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// The seed of a repetition: the base seed counted up, so that any one of them can be run again by itself.
pub fn repetition_seed(base: Seed, repetition: u64) -> Seed {
    Seed(base.0.wrapping_add(repetition))
}
