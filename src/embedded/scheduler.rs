//! The scheduler: binds pods to nodes or says why it cannot.

use crate::embedded::store::Change;
use crate::embedded::world::World;

/// Due work of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {}

/// Queues and memories of the scheduler.
#[derive(Debug, Default)]
pub struct State {}

pub fn on_change(_world: &mut World, _change: &Change) {}

pub fn work(_world: &mut World, work: Work) {
    match work {}
}
