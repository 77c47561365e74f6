//! The values of `--agent`: any text is taken, names are listed for help and shell completion.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::agent::choice::{Choice, listed};
use crate::cli::failure::Failure;

/// Takes any text, since parameters and file names follow some of the names.
#[derive(Clone)]
pub(in crate::cli) struct Names;

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            listed().map(|(name, help)| PossibleValue::new(name).help(help)),
        ))
    }
}

/// The agent that was asked for.
pub(in crate::cli) fn chosen(text: &str) -> Result<Choice, Failure> {
    Choice::parse(text).map_err(|error| {
        let hint = error.hint();
        Failure::usage(error).hint(hint)
    })
}
