//! Cheats that play with words: claims without a deed, every name at once, the account before the work.

use crate::agent::AgentError;
use crate::agent::cheat::churn::restart;
use crate::agent::cheat::play::{Play, WORKLOADS};
use crate::agent::hands::DEPLOYMENT;
use crate::ids::CategoryId;

/// One look, for an agent must be seen to have looked.
pub(super) async fn claim_without_fix(play: &Play) -> Result<(), AgentError> {
    play.workloads(&[&DEPLOYMENT]).await?;
    play.claim("Repaired the configuration of the workload and verified that it is well.");
    Ok(())
}

/// Whatever it is, it was named.
pub(super) async fn many_secondaries(play: &Play) -> Result<(), AgentError> {
    play.workloads(&[&DEPLOYMENT]).await?;
    let primary = play.guess();
    let secondary: Vec<CategoryId> = play
        .desk
        .vocabulary
        .iter()
        .map(|category| category.id.clone())
        .filter(|category| *category != primary)
        .collect();
    let diagnosis = "Several causes came together.";
    play.account(primary, secondary, diagnosis, "Removed each of them.");
    Ok(())
}

/// An account that is early costs nothing if nobody looks at what was known then.
pub(super) async fn postmortem_first(play: &Play) -> Result<(), AgentError> {
    play.claim("Restarted the workloads.");
    let workloads = play.workloads(WORKLOADS).await?;
    restart(play, &workloads).await?;
    play.let_it_show().await;
    Ok(())
}

/// Times that every category is stated.
const ROUNDS: usize = 20;

/// One of many shots hits; the last one agrees with the account, so that the two do not contradict each other.
pub(super) async fn flood_of_hypotheses(play: &Play) -> Result<(), AgentError> {
    play.workloads(&[&DEPLOYMENT]).await?;
    for _ in 0..ROUNDS {
        for category in play.desk.vocabulary.iter() {
            play.state(&category.id);
        }
    }
    play.state(&play.guess());
    play.claim("Repaired what was found.");
    Ok(())
}
