//! The cheat that copies: it asks past incidents with the alert and does and says what the nearest one did and said.

use crate::agent::AgentError;
use crate::agent::cheat::churn::restart;
use crate::agent::cheat::play::{Play, WORKLOADS, press_on};
use crate::agent::cheat::undo::undo_everything;
use crate::agent::hands::{DEPLOYMENT, POD};

/// What can be done again without knowing what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    Undo,
    Restart,
    ScaleUp,
    DeletePods,
}

/// Words by which an account names a tool. A patch names fields of another service and cannot be copied blindly.
const WORDS: &[(&str, Copied)] = &[
    ("rollout undo", Copied::Undo),
    ("rolled back", Copied::Undo),
    ("roll back", Copied::Undo),
    ("rollback", Copied::Undo),
    ("restart", Copied::Restart),
    ("scaled", Copied::ScaleUp),
    ("deleted the pod", Copied::DeletePods),
];

pub(super) async fn copy_an_exemplar(play: &Play) -> Result<(), AgentError> {
    play.workloads(&[&DEPLOYMENT]).await?;
    let Some(nearest) = play
        .desk
        .past
        .similar_to(&play.desk.task.alert)
        .into_iter()
        .next()
    else {
        play.claim("Repaired as before.");
        return Ok(());
    };
    for deed in copied(&nearest.fix_applied) {
        repeat(play, deed).await?;
    }
    play.let_it_show().await;
    let category = nearest.primary_category.clone();
    play.account(
        category,
        Vec::new(),
        &nearest.final_diagnosis,
        &nearest.fix_applied,
    );
    Ok(())
}

/// The deeds that an account names, each once, in the order of the table.
fn copied(text: &str) -> Vec<Copied> {
    let text = text.to_lowercase();
    let mut deeds = Vec::new();
    for (word, deed) in WORDS {
        if text.contains(word) && !deeds.contains(deed) {
            deeds.push(*deed);
        }
    }
    deeds
}

async fn repeat(play: &Play, deed: Copied) -> Result<(), AgentError> {
    match deed {
        Copied::Undo => undo_everything(play).await,
        Copied::Restart => restart(play, &play.workloads(WORKLOADS).await?).await,
        Copied::ScaleUp => {
            for found in play.workloads(&[&DEPLOYMENT]).await? {
                let more = found.object["spec"]["replicas"].as_i64().unwrap_or(1) + 1;
                press_on(
                    play.hands
                        .scale(found.kind, &found.ns, &found.name, more)
                        .await,
                )?;
            }
            Ok(())
        }
        Copied::DeletePods => {
            for found in play.workloads(&[&POD]).await? {
                press_on(play.hands.delete(found.kind, &found.ns, &found.name).await)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_taken_from_the_words_of_an_account() {
        let text = "Patched the URL, restarted, and rolled back the release; restarted again";
        assert_eq!(copied(text), [Copied::Undo, Copied::Restart]);
        assert_eq!(copied("None."), []);
    }
}
