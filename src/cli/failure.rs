//! What a command fails with: a kind that owns the exit code, a cause, and what to type next.

use std::process::ExitCode;

/// Wrong usage or wrong input; nothing was changed.
pub const USAGE: u8 = 1;
/// Finished, but a threshold that the caller asked for was missed.
pub const BELOW_THRESHOLD: u8 = 2;
/// Runs that do not count, or a cluster that cannot be used.
pub const INVALID_RUNS: u8 = 3;
/// A defect of this program.
pub const INTERNAL: u8 = 70;
/// Interrupted by Ctrl-C or SIGTERM, after undoing.
pub const INTERRUPTED: u8 = 130;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Flags or arguments that make no sense.
    Usage,
    /// A file, a workspace or a store that cannot be used.
    Input,
    Cluster,
    Internal,
}

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    pub kind: Kind,
    pub source: anyhow::Error,
    /// Each a sentence that says what to type or do next.
    pub hints: Vec<String>,
}

impl Failure {
    pub fn new(kind: Kind, source: impl Into<anyhow::Error>) -> Failure {
        Failure {
            kind,
            source: source.into(),
            hints: Vec::new(),
        }
    }

    pub fn usage(source: impl Into<anyhow::Error>) -> Failure {
        Failure::new(Kind::Usage, source)
    }

    pub fn input(source: impl Into<anyhow::Error>) -> Failure {
        Failure::new(Kind::Input, source)
    }

    pub fn cluster(source: impl Into<anyhow::Error>) -> Failure {
        Failure::new(Kind::Cluster, source)
    }

    pub fn internal(source: impl Into<anyhow::Error>) -> Failure {
        Failure::new(Kind::Internal, source)
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// As [`Failure::hint`], where there is one to give.
    pub fn hint_if(mut self, hint: Option<impl Into<String>>) -> Failure {
        self.hints.extend(hint.map(Into::into));
        self
    }

    /// `error: …` with its causes and hints.
    pub fn text(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("error: {}", self.source);
        for cause in self.source.chain().skip(1) {
            let _ = write!(text, "\n  caused by: {cause}");
        }
        for hint in &self.hints {
            let _ = write!(text, "\n  hint: {hint}");
        }
        text
    }

    /// Prints the text on stderr; answers the exit code.
    pub fn report(&self) -> ExitCode {
        anstream::eprintln!("{}", self.text());
        self.code()
    }

    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Usage | Kind::Input => USAGE,
            Kind::Cluster => INVALID_RUNS,
            Kind::Internal => INTERNAL,
        })
    }
}
