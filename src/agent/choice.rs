//! What `--agent` may say, and the agent that it means.

use std::fmt;

use crate::agent::Agent;
use crate::agent::cheat::{Cheat, TRICKS};
use crate::agent::noop::Noop;
use crate::agent::rules::Rules;
use crate::scenario::near::near;

/// An agent as it was chosen; makes one for each run, on the run's own thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice(Chosen);

#[derive(Clone, Debug, PartialEq)]
enum Chosen {
    Noop,
    Rules,
    Cheat(&'static str),
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
}

impl ChoiceError {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
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
];

/// Every name that can be typed, each with a line for `--help`.
pub fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLAIN
        .iter()
        .copied()
        .chain(TRICKS.iter().map(|(_, name, help)| (*name, *help)))
}

impl Choice {
    /// The agent that a text names.
    ///
    /// # Errors
    /// A name that no agent has, with those that are near it.
    pub fn parse(text: &str) -> Result<Choice, ChoiceError> {
        let chosen = match text {
            "noop" => Chosen::Noop,
            "rules" => Chosen::Rules,
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
        for (name, _) in listed() {
            assert_eq!(Choice::parse(name).unwrap().make().name(), name);
        }
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
        let stranger = Choice::parse("gpt").unwrap_err();
        assert!(
            stranger.hint().contains("one of noop, rules, cheat:"),
            "{}",
            stranger.hint()
        );
    }
}
