//! Which run comes when, in which world and with which stream: by hashing, with no generator, so that anybody can
//! recompute it in any language and nobody could know it before the registration existed.

use sha2::{Digest, Sha256};

use crate::experiment::plan::{Cell, Plan};
use crate::ids::{RegistrationHash, ScenarioId, Seed};

/// A planned run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// From 0, over the whole experiment.
    pub planned: u64,
    /// From 0.
    pub block: u32,
    pub cell: Cell,
    /// Of the world: shared by every cell of the block with the same scenario.
    pub seed: Seed,
    /// Of the agent: its own in every cell.
    pub agent_seed: Seed,
}

/// Every planned run in order: blocks one after another, the cells of a block by [`place`].
pub fn slots(hash: &RegistrationHash, plan: &Plan) -> Vec<Slot> {
    let cells = plan.cells();
    let mut slots = Vec::with_capacity(cells.len() * plan.blocks as usize);
    for block in 0..plan.blocks {
        let mut ordered: Vec<&Cell> = cells.iter().collect();
        ordered.sort_by_cached_key(|cell| (place(hash, block, cell), cell.id()));
        for cell in ordered {
            slots.push(Slot {
                planned: slots.len() as u64,
                block,
                cell: cell.clone(),
                seed: world_seed(plan.seed, &cell.scenario, block),
                agent_seed: agent_seed(hash, block, cell),
            });
        }
    }
    slots
}

/// SHA-256 of `<hash>:<block>:<cell>`: cells of a block go in the order of these digests.
pub fn place(hash: &RegistrationHash, block: u32, cell: &Cell) -> [u8; 32] {
    digest(&format!("{hash}:{block}:{}", cell.id()))
}

/// The first eight bytes, big-endian, of SHA-256 of `world:<seed>:<scenario>:<block>`. The registration is not in it, so
/// that an arm can be run again in the same worlds.
fn world_seed(seed: u64, scenario: &ScenarioId, block: u32) -> Seed {
    first_eight(&digest(&format!("world:{seed}:{scenario}:{block}")))
}

/// The first eight bytes, big-endian, of SHA-256 of `agent:<hash>:<block>:<cell>`.
fn agent_seed(hash: &RegistrationHash, block: u32, cell: &Cell) -> Seed {
    first_eight(&digest(&format!("agent:{hash}:{block}:{}", cell.id())))
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn first_eight(digest: &[u8; 32]) -> Seed {
    let mut bytes = [0u8; 8];
    bytes.copy_from_slice(&digest[..8]);
    Seed(u64::from_be_bytes(bytes))
}
