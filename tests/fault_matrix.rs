//! The fault matrix of the run machine: what the API server, the cluster's objects, the agent and the clock can do wrong,
//! at every stage, and the state in which a run then ends. `docs/fault-matrix.md` shows the table that is asserted here.

#[path = "fault_matrix/flood.rs"]
mod flood;
#[path = "fault_matrix/layer.rs"]
mod layer;
#[path = "fault_matrix/random.rs"]
mod random;
#[path = "fault_matrix/sweep.rs"]
mod sweep;
#[path = "fault_matrix/workspace.rs"]
mod workspace;
