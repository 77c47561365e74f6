//! What `--agent` may say, and the agent that it means.

use std::fmt;

use crate::agent::Agent;
use crate::agent::cheat::{Cheat, TRICKS};
use crate::agent::coin::{Coin, Probability};
use crate::agent::noop::Noop;
use crate::agent::rules::Rules;
use crate::agent::script::{Script, Scripted};
use crate::agent::simulated::Simulated;
use crate::agent::simulated::model::{Model, ModelError};
use crate::scenario::near::near;
use crate::scenario::problem::Problems;

/// An agent as it was chosen; makes one for each run, on the run's own thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice(Chosen);

#[derive(Clone, Debug, PartialEq)]
enum Chosen {
    Noop,
    Rules,
    Simulated(Model),
    Coin(Probability),
    Cheat(&'static str),
    Script(Script),
}

/// Why a text names no agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    #[error("there is no agent {name:?}")]
    Unknown {
        name: String,
        /// The names that may have been meant, best first.
        near: Vec<&'static str>,
    },
    #[error("the parameters of the simulated agent cannot be used")]
    Parameters(#[from] ModelError),
    #[error("{0:?} is no probability: expected a decimal from 0 to 1 of at most six places")]
    Probability(String),
    #[error("the script cannot be used:\n{0}")]
    Script(Problems),
}

impl ChoiceError {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            ChoiceError::Parameters(_) => {
                format!("--agent simulated:{} are the defaults", Model::default())
            }
            ChoiceError::Probability(_) => {
                "--agent coin:0.6 names the right cause in 60 % of its runs".to_owned()
            }
            ChoiceError::Script(_) => {
                "docs/agent-guide.md shows a script with every kind of step".to_owned()
            }
            ChoiceError::Unknown { near, .. } if near.is_empty() => {
                let names: Vec<&str> = listed().map(|(name, _)| name).collect();
                format!("--agent takes one of {}", names.join(", "))
            }
            ChoiceError::Unknown { near, .. } => {
                format!("did you mean --agent {}?", near.join(" or "))
            }
        }
    }
}

/// Agents without a colon in their name.
const PLAIN: &[(&str, &str)] = &[
    ("noop", "looks at nothing and writes nothing: the floor"),
    (
        "rules",
        "diagnoses and repairs by rules, without a model: the baseline",
    ),
    (
        "simulated",
        "a simulation that errs like a person, no evidence about agents; simulated:KEY=VALUE,... sets it",
    ),
];

/// What stands before the parameters of the simulated agent.
const SIMULATED: &str = "simulated:";
/// What stands before the success probability of the coin agent.
const COIN: &str = "coin:";
/// The line for `--help` of the coin agent.
const COIN_HELP: &str =
    "a simulation that names the right cause with probability P, to calibrate with: coin:P";
/// What stands before a script's file.
pub const SCRIPT: &str = "script:";
/// The line for `--help` of a script.
const SCRIPT_HELP: &str = "does what a YAML file of steps says: script:FILE";

/// Every name that can be typed, each with a line for `--help`.
pub fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLAIN
        .iter()
        .copied()
        .chain(TRICKS.iter().map(|(_, name, help)| (*name, *help)))
        .chain([(COIN, COIN_HELP), (SCRIPT, SCRIPT_HELP)])
}

impl Choice {
    /// The agent that a text names. A script is read at once, so that a bad one changes nothing.
    ///
    /// # Errors
    /// A name that no agent has, with those that are near it; parameters or a script that cannot be used.
    pub fn parse(text: &str) -> Result<Choice, ChoiceError> {
        let chosen = match text {
            "noop" => Chosen::Noop,
            "rules" => Chosen::Rules,
            "simulated" => Chosen::Simulated(Model::default()),
            _ if text.starts_with(SIMULATED) => {
                Chosen::Simulated(Model::parse(&text[SIMULATED.len()..])?)
            }
            _ if text.starts_with(COIN) => {
                let text = &text[COIN.len()..];
                let success = Probability::parse(text);
                Chosen::Coin(success.ok_or_else(|| ChoiceError::Probability(text.to_owned()))?)
            }
            _ if text.starts_with(SCRIPT) => {
                Chosen::Script(Script::read(&text[SCRIPT.len()..]).map_err(ChoiceError::Script)?)
            }
            _ => match TRICKS.iter().find(|(_, name, _)| *name == text) {
                Some((_, name, _)) => Chosen::Cheat(name),
                None => return Err(unknown(text)),
            },
        };
        Ok(Choice(chosen))
    }

    pub fn make(&self) -> Box<dyn Agent> {
        match &self.0 {
            Chosen::Noop => Box::new(Noop),
            Chosen::Rules => Box::new(Rules),
            Chosen::Simulated(model) => Box::new(Simulated::new(*model)),
            Chosen::Coin(success) => Box::new(Coin::new(*success)),
            Chosen::Script(script) => Box::new(Scripted(script.clone())),
            Chosen::Cheat(name) => {
                Box::new(Cheat::named(name).expect("a choice holds names of the list"))
            }
        }
    }
}

impl fmt::Display for Choice {
    /// The agent's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.make().name())
    }
}

/// A trick may be named without its prefix by someone who does not know it.
fn unknown(text: &str) -> ChoiceError {
    let mut near = near(text, listed().map(|(name, _)| name));
    if near.is_empty() {
        let prefixed = format!("cheat:{text}");
        near = self::near(&prefixed, listed().map(|(name, _)| name));
    }
    ChoiceError::Unknown {
        name: text.to_owned(),
        near,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_agent_exists_under_its_own_name() {
        for (name, _) in listed().filter(|(name, _)| ![SCRIPT, COIN].contains(name)) {
            assert_eq!(Choice::parse(name).unwrap().make().name(), name);
        }
    }

    #[test]
    fn other_parameters_make_another_version_of_the_same_agent() {
        let plain = Choice::parse("simulated").unwrap().make();
        let other = Choice::parse("simulated:reliance=1").unwrap().make();
        assert_eq!((plain.name(), other.name()), ("simulated", "simulated"));
        assert_ne!(plain.version(), other.version());
        assert!(plain.is_simulation() && !Choice::parse("rules").unwrap().make().is_simulation());
    }

    #[test]
    fn a_script_that_is_not_there_is_told_by_its_name() {
        let error = Choice::parse("script:no/such.yaml")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no/such.yaml:1:1: cannot be read"),
            "{error}"
        );
    }

    #[test]
    fn a_wrong_name_is_met_with_those_that_are_near_it() {
        for (text, expected) in [
            ("rulse", "did you mean --agent rules?"),
            (
                "cheat:restart-spma",
                "did you mean --agent cheat:restart-spam?",
            ),
            ("scale-to-zero", "did you mean --agent cheat:scale-to-zero?"),
            ("sclae-to-zero", "did you mean --agent cheat:scale-to-zero?"),
        ] {
            assert_eq!(Choice::parse(text).unwrap_err().hint(), expected);
        }
        let misspelt = Choice::parse("simulated:relience=1").unwrap_err();
        assert!(
            misspelt.hint().contains("simulated:competence="),
            "{}",
            misspelt.hint()
        );
        let stranger = Choice::parse("gpt").unwrap_err();
        assert!(
            stranger
                .hint()
                .contains("one of noop, rules, simulated, cheat:"),
            "{}",
            stranger.hint()
        );
    }
}
