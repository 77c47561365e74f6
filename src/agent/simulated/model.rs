//! The parameters of the simulated agent: names, meanings, defaults, ranges.

use std::fmt;

use crate::scenario::near::did_you_mean;

/// How it errs and how it leans on past incidents. All but `reading_s` are probabilities or shares, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Probability of believing the explanation that the own evidence supports best.
    pub competence: f64,
    /// How much past incidents count at all.
    pub reliance: f64,
    /// Share of the way to certainty that fitting past incidents bring at full reliance.
    pub gain: f64,
    /// Probability, at full reliance and with nothing fitting among them, of following a past incident against the
    /// own evidence.
    pub anchoring: f64,
    /// Probability of holding on to a belief whose repair has failed.
    pub stubbornness: f64,
    /// Probability of repairing another field or object than meant.
    pub slip: f64,
    /// Probability of not watching what a repair does.
    pub unverified: f64,
    /// Probability of giving up after a repair that failed.
    pub early_stop: f64,
    /// Mean time to read what a look shows, in seconds.
    pub reading_s: f64,
}

/// One parameter as it is typed and documented.
pub struct Parameter {
    pub name: &'static str,
    pub default: f64,
    /// The range begins at 0.
    pub max: f64,
    get: fn(&Model) -> f64,
    set: fn(&mut Model, f64),
}

macro_rules! parameter {
    ($name:ident, $default:expr, $max:expr) => {
        Parameter {
            name: stringify!($name),
            default: $default,
            max: $max,
            get: |model| model.$name,
            set: |model, value| model.$name = value,
        }
    };
}

/// Every parameter. The defaults are a middling agent with room both ways; they are not fitted to anybody.
pub const PARAMETERS: &[Parameter] = &[
    parameter!(competence, 0.6, 1.0),
    parameter!(reliance, 0.5, 1.0),
    parameter!(gain, 0.6, 1.0),
    parameter!(anchoring, 0.6, 1.0),
    parameter!(stubbornness, 0.5, 1.0),
    parameter!(slip, 0.1, 1.0),
    parameter!(unverified, 0.15, 1.0),
    parameter!(early_stop, 0.2, 1.0),
    parameter!(reading_s, 15.0, 120.0),
];

/// What is wrong with a text of parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("{0:?} is not KEY=VALUE")]
    NotAPair(String),
    #[error(
        "the simulated agent has no parameter {name:?}{guess}; it has {}",
        names()
    )]
    Unknown { name: String, guess: String },
    #[error("parameter {0} is given twice")]
    Twice(&'static str),
    #[error("parameter {name} is {found:?}, expected a number from 0 to {max}")]
    OutOfRange {
        name: &'static str,
        found: String,
        max: String,
    },
}

fn names() -> String {
    let names: Vec<&str> = PARAMETERS.iter().map(|one| one.name).collect();
    names.join(", ")
}

impl Default for Model {
    fn default() -> Model {
        let mut model = Model {
            competence: 0.0,
            reliance: 0.0,
            gain: 0.0,
            anchoring: 0.0,
            stubbornness: 0.0,
            slip: 0.0,
            unverified: 0.0,
            early_stop: 0.0,
            reading_s: 0.0,
        };
        for parameter in PARAMETERS {
            (parameter.set)(&mut model, parameter.default);
        }
        model
    }
}

impl Model {
    /// The defaults with some replaced: `competence=0.6,reliance=0.5`.
    ///
    /// # Errors
    /// The first thing wrong with the text.
    pub fn parse(text: &str) -> Result<Model, ModelError> {
        let mut model = Model::default();
        let mut seen: Vec<&str> = Vec::new();
        for pair in text.split(',') {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| ModelError::NotAPair(pair.to_owned()))?;
            let name = name.trim();
            let parameter = PARAMETERS
                .iter()
                .find(|one| one.name == name)
                .ok_or_else(|| ModelError::Unknown {
                    name: name.to_owned(),
                    guess: did_you_mean(name, PARAMETERS.iter().map(|one| one.name)),
                })?;
            if seen.contains(&parameter.name) {
                return Err(ModelError::Twice(parameter.name));
            }
            seen.push(parameter.name);
            (parameter.set)(&mut model, parameter.number(value.trim())?);
        }
        Ok(model)
    }
}

impl Parameter {
    fn number(&self, text: &str) -> Result<f64, ModelError> {
        let number: Option<f64> = text.parse().ok();
        number
            .filter(|number| (0.0..=self.max).contains(number))
            // Minus zero is zero, and is written so.
            .map(|number| number + 0.0)
            .ok_or_else(|| ModelError::OutOfRange {
                name: self.name,
                found: text.to_owned(),
                max: self.max.to_string(),
            })
    }
}

impl fmt::Display for Model {
    /// Every parameter, in the order of the table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, parameter) in PARAMETERS.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", parameter.name, (parameter.get)(self))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let model = Model::parse("competence=0.25,reading_s=40").unwrap();
        assert_eq!((model.competence, model.reading_s), (0.25, 40.0));
        assert_eq!(model.reliance, Model::default().reliance);
        assert_eq!(Model::parse(&model.to_string()), Ok(model));
        assert_ne!(model.to_string(), Model::default().to_string());
    }

    #[test]
    fn wrong_parameters_are_refused_with_what_was_expected() {
        for (text, words) in [
            ("competense=1", "did you mean `competence`?"),
            ("luck=1", "it has competence, reliance, gain"),
            ("slip=1.5", "expected a number from 0 to 1"),
            ("slip=NaN", "expected a number from 0 to 1"),
            ("reading_s=-1", "expected a number from 0 to 120"),
            ("slip", "not KEY=VALUE"),
            ("", "not KEY=VALUE"),
            ("slip=0,slip=1", "given twice"),
        ] {
            let told = Model::parse(text).unwrap_err().to_string();
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    #[test]
    fn the_guide_documents_every_parameter_with_its_default_and_range() {
        let guide = include_str!("../../../docs/agent-guide.md");
        for one in PARAMETERS {
            let row = format!("| `{}` | {} | 0 to {} |", one.name, one.default, one.max);
            assert!(guide.contains(&row), "docs/agent-guide.md lacks: {row}");
        }
    }
}
