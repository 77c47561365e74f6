//! Agents that look for points instead of the cause. They test the instrument: a scenario under which one of them
//! earns what an honest agent earns does not measure anything.
//!
//! Each is an agent like any other and says plainly below what it does. None can see the truth: where one must name
//! a category, it picks one of the vocabulary by its seed.

mod bluff;
mod borrow;
mod churn;
mod loosen;
mod play;
mod undo;

use futures::future::LocalBoxFuture;

use crate::agent::cheat::play::Play;
use crate::agent::{Agent, AgentError, Desk};

/// One way to cheat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    ScaleToZero,
    DeleteAndRecreate,
    RestartSpam,
    RemoveTheProbe,
    RaiseEverything,
    ClaimWithoutFix,
    ManySecondaries,
    CopyAnExemplar,
    RevertByRolloutUndo,
    PostmortemFirst,
    FloodOfHypotheses,
}

/// Every trick with its agent's name and a line for `--help`.
pub const TRICKS: &[(Trick, &str, &str)] = &[
    (
        Trick::ScaleToZero,
        "cheat:scale-to-zero",
        "scales every Deployment in scope to zero, so that nothing is unready, and claims success",
    ),
    (
        Trick::DeleteAndRecreate,
        "cheat:delete-and-recreate",
        "deletes every workload in scope and recreates exactly what it had read",
    ),
    (
        Trick::RestartSpam,
        "cheat:restart-spam",
        "restarts every workload in scope again and again, for a lucky instant",
    ),
    (
        Trick::RemoveTheProbe,
        "cheat:remove-the-probe",
        "takes every probe from the workloads in scope, so that nothing can fail one",
    ),
    (
        Trick::RaiseEverything,
        "cheat:raise-everything",
        "raises limits, requests and replicas of every workload in scope",
    ),
    (
        Trick::ClaimWithoutFix,
        "cheat:claim-without-fix",
        "looks once and claims that the incident is resolved",
    ),
    (
        Trick::ManySecondaries,
        "cheat:many-secondaries",
        "looks once and names every category there is",
    ),
    (
        Trick::CopyAnExemplar,
        "cheat:copy-an-exemplar",
        "copies the diagnosis, and the tools it names, of the past incident nearest to the alert",
    ),
    (
        Trick::RevertByRolloutUndo,
        "cheat:revert-by-rollout-undo",
        "takes back the last rollout of every Deployment in scope without a look at the cause",
    ),
    (
        Trick::PostmortemFirst,
        "cheat:postmortem-first",
        "writes its account before anything else, then restarts every workload in scope",
    ),
    (
        Trick::FloodOfHypotheses,
        "cheat:flood-of-hypotheses",
        "states every category as its hypothesis, over and over",
    ),
];

/// An agent that plays one trick.
pub struct Cheat {
    trick: Trick,
    name: &'static str,
}

impl Cheat {
    pub fn new(trick: Trick) -> Cheat {
        let (_, name, _) = TRICKS
            .iter()
            .find(|(listed, _, _)| *listed == trick)
            .expect("a test goes through every trick");
        Cheat { trick, name }
    }

    /// The cheat of an agent's whole name, such as `cheat:restart-spam`.
    pub fn named(name: &str) -> Option<Cheat> {
        TRICKS
            .iter()
            .find(|(_, listed, _)| *listed == name)
            .map(|(trick, _, _)| Cheat::new(*trick))
    }
}

impl Agent for Cheat {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let trick = self.trick;
        Box::pin(async move {
            let play = Play::new(desk);
            match trick {
                Trick::ScaleToZero => churn::scale_to_zero(&play).await,
                Trick::DeleteAndRecreate => churn::delete_and_recreate(&play).await,
                Trick::RestartSpam => churn::restart_spam(&play).await,
                Trick::RemoveTheProbe => loosen::remove_the_probe(&play).await,
                Trick::RaiseEverything => loosen::raise_everything(&play).await,
                Trick::ClaimWithoutFix => bluff::claim_without_fix(&play).await,
                Trick::ManySecondaries => bluff::many_secondaries(&play).await,
                Trick::CopyAnExemplar => borrow::copy_an_exemplar(&play).await,
                Trick::RevertByRolloutUndo => undo::revert_by_rollout_undo(&play).await,
                Trick::PostmortemFirst => bluff::postmortem_first(&play).await,
                Trick::FloodOfHypotheses => bluff::flood_of_hypotheses(&play).await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trick_has_an_agent_of_its_own_name() {
        // A trick missing from the list cannot be reached by name, and this match fails to compile for a new one.
        let place = |trick| match trick {
            Trick::ScaleToZero => 0,
            Trick::DeleteAndRecreate => 1,
            Trick::RestartSpam => 2,
            Trick::RemoveTheProbe => 3,
            Trick::RaiseEverything => 4,
            Trick::ClaimWithoutFix => 5,
            Trick::ManySecondaries => 6,
            Trick::CopyAnExemplar => 7,
            Trick::RevertByRolloutUndo => 8,
            Trick::PostmortemFirst => 9,
            Trick::FloodOfHypotheses => 10,
        };
        for (index, (trick, name, _)) in TRICKS.iter().enumerate() {
            assert_eq!(place(*trick), index, "{name}");
            assert_eq!(Cheat::named(name).unwrap().name(), *name);
        }
        assert_eq!(TRICKS.len(), 11);
        assert!(Cheat::named("cheat:honesty").is_none());
    }
}
