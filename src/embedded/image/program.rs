//! The program model: what a program in an image does when it is started, as data.
//!
//! A program is a list of steps done in order by one process, then (when a step says so) a server that stays.
//! Amounts may come from the container's environment, so that one image serves many deployments. The model
//! knows no fault: a program fails because a variable is missing, a peer refuses, or memory runs out.

use std::collections::BTreeMap;

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// As it calls itself in messages.
    pub name: String,
    /// Accepted first arguments; any argument but these is refused. `None` accepts everything.
    pub commands: Option<Vec<String>>,
    /// What a refusal prints on stderr; `{arg}` is the argument.
    pub refusal: String,
    pub refusal_exit: i32,
    /// Exit code when SIGTERM comes before a handler is installed; `None`: the signal is ignored, as the kernel
    /// does for process 1. Go programs end with 2.
    pub unhandled_term_exit: Option<i32>,
    /// Memory after loading, before any step.
    pub base_kib: u64,
    pub steps: Vec<Step>,
}

/// A number from the environment, or a default; negative and unreadable values count as the default.
#[derive(Clone, Debug, Default)]
pub struct Amount {
    pub env: Option<String>,
    pub default: u64,
}

impl Amount {
    /// A fixed number.
    pub fn fixed(value: u64) -> Amount {
        Amount {
            env: None,
            default: value,
        }
    }

    /// The variable `name`, else `default`.
    pub fn env(name: &str, default: u64) -> Amount {
        Amount {
            env: Some(name.to_owned()),
            default,
        }
    }

    /// The value in an environment.
    pub fn in_env(&self, env: &BTreeMap<String, String>) -> u64 {
        self.env
            .as_ref()
            .and_then(|name| env.get(name))
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(self.default)
    }
}

/// One thing a program does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes a line.
    Log(Line),
    /// Ends with a line and an exit code when one of the variables is missing or empty. `{name}` is its name.
    Require {
        names: Vec<String>,
        line: Line,
        exit: i32,
    },
    /// Spends processor time, in microseconds.
    Cpu(u64),
    /// Waits, in milliseconds.
    Wait(Amount),
    /// Connects to the database named by a URL variable. On failure: a line with `{err}`, and an exit.
    Connect {
        driver: Driver,
        url_env: String,
        timeout_ms: u64,
        line: Line,
        exit: i32,
    },
    /// Fills memory in chunks with a line after each full chunk; `{done}` is the number of MiB so far.
    Fill {
        mib: Amount,
        chunk_mib: u64,
        cpu_us_per_mib: u64,
        line: Line,
    },
    /// Grows by so many KiB each minute from here on, for programs that leak.
    Leak { kib_per_minute: Amount },
    /// From here on SIGTERM (and SIGINT) end the program in good order.
    /// Requests that are being answered may take up to `drain_ms` more.
    HandleTerm {
        line: Option<Line>,
        exit: i32,
        drain_ms: u64,
    },
    /// Ignores SIGTERM from here on.
    IgnoreTerm,
    /// Listens from here on.
    Listen(Listen),
    /// Ends.
    Exit(i32),
}

/// The library that a program talks to its database with; failures come in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// pgx, of Go.
    Pgx,
    /// tokio-postgres, of Rust.
    TokioPostgres,
}

/// A line of output.
#[derive(Clone, Debug)]
pub struct Line {
    /// Fields of a JSON line; empty for plain text. Values may hold `{placeholders}` and `${VARIABLES}`.
    pub fields: Vec<(String, String)>,
    /// The text of a plain line.
    pub text: String,
}

impl Line {
    /// A JSON line: the fields and `time`, in the order of their names.
    pub fn json(fields: &[(&str, &str)]) -> Line {
        Line {
            fields: fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            text: String::new(),
        }
    }

    /// A plain line.
    pub fn plain(text: &str) -> Line {
        Line {
            fields: Vec::new(),
            text: text.to_owned(),
        }
    }
}

/// A listening socket.
#[derive(Clone, Debug)]
pub struct Listen {
    pub port: Amount,
    /// Bound to 127.0.0.1 only: reachable from inside the pod alone.
    pub loopback: bool,
    pub speaks: Protocol,
}

/// What is spoken on a socket.
#[derive(Clone, Debug)]
pub enum Protocol {
    Http {
        paths: Vec<Path>,
        /// What stands at any other path, with status 404.
        not_found: String,
    },
    /// PostgreSQL with password authentication; user and password come from these variables at start.
    Postgres {
        user_env: String,
        password_env: String,
        /// Time the server takes to end after its clients are gone.
        shutdown_ms: u64,
    },
    /// Redis, with an optional password variable.
    Redis { password_env: String },
    /// Accepts connections and says nothing.
    Plain,
}

/// An HTTP path. `prefix` matches everything below, too; any path not listed answers 404.
#[derive(Clone, Debug, Default)]
pub struct Path {
    pub path: String,
    pub prefix: bool,
    pub status: u16,
    /// Processor time of one request: so many microseconds times the amount.
    pub cpu_us_each: u64,
    pub cpu_times: Amount,
    /// The work ends with the client's patience, instead of being done for nobody.
    pub given_up: bool,
    pub body: String,
    /// The path needs the connected database: this and status 500 without it.
    pub without_database: Option<String>,
}
