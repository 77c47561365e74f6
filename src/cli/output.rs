//! How commands print: tables that fit a terminal, JSON that is stable, progress only where someone watches.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::cli::failure::Failure;

/// Tables never grow wider than this, so that they can be pasted into issues and mails.
pub const MAX_WIDTH: u16 = 100;

/// Characters of an id beside which the other columns of a table have room within [`MAX_WIDTH`].
const USUAL_ID_CHARS: usize = 36;

/// Where the command's output goes.
#[derive(Clone, Debug)]
pub struct Output {
    stderr_is_terminal: bool,
    /// Takes what would be printed, for a command that is run for another process.
    caught: Option<Caught>,
}

/// What a command printed, on standard output and on standard error.
#[derive(Clone, Debug, Default)]
pub struct Caught(Arc<Mutex<(String, String)>>);

impl Caught {
    fn with(&self, edit: impl FnOnce(&mut (String, String))) {
        edit(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Both texts; nothing is left of them.
    pub fn take(&self) -> (String, String) {
        let mut taken = Default::default();
        self.with(|texts| taken = std::mem::take(texts));
        taken
    }
}

impl Output {
    pub fn detect() -> Output {
        Output {
            stderr_is_terminal: std::io::stderr().is_terminal(),
            caught: None,
        }
    }

    /// Prints nothing and keeps it instead.
    pub fn catching() -> (Output, Caught) {
        let caught = Caught::default();
        let output = Output {
            stderr_is_terminal: false,
            caught: Some(caught.clone()),
        };
        (output, caught)
    }

    /// A table without frames, wrapped to [`MAX_WIDTH`]. The columns named by `whole` are never wrapped: an id that is
    /// broken over two lines cannot be copied.
    pub fn table_keeping(headings: &[&str], whole: &[usize]) -> comfy_table::Table {
        let mut table = Output::table(headings);
        Output::keep_whole(&mut table, whole);
        table
    }

    /// Lets a table grow by as much as its longest id, which is never wrapped, is longer than usual: otherwise it would
    /// take its room from the other columns.
    pub fn widen_for_id(table: &mut comfy_table::Table, chars: usize) {
        let more = chars.saturating_sub(USUAL_ID_CHARS);
        table.set_width(MAX_WIDTH.saturating_add(u16::try_from(more).unwrap_or(u16::MAX)));
    }

    /// Keeps columns of a table that has rows or headings from being wrapped.
    pub fn keep_whole(table: &mut comfy_table::Table, columns: &[usize]) {
        for column in columns {
            if let Some(column) = table.column_mut(*column) {
                column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
            }
        }
    }

    /// As [`Output::table_keeping`], with every column free to wrap.
    pub fn table(headings: &[&str]) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
        table.set_width(MAX_WIDTH);
        if !headings.is_empty() {
            table.set_header(headings.iter().map(|h| h.to_uppercase()));
        }
        table
    }

    /// Prints text on stdout without the blanks that pad tables on the right; a closed pipe ends quietly.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        if let Some(caught) = &self.caught {
            caught.with(|(stdout, _)| {
                stdout.push_str(&lines.join("\n"));
                stdout.push('\n');
            });
            return Ok(());
        }
        let mut out = anstream::stdout().lock();
        match writeln!(out, "{}", lines.join("\n")).and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|error| {
                Failure::input(
                    anyhow::Error::new(error).context("standard output cannot be written"),
                )
            }),
        }
    }

    /// Prints one value as pretty JSON on stdout.
    pub fn json<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::internal)?;
        self.print(&text)
    }

    /// Prints one value as one line of JSON on stdout.
    pub fn json_line<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(Failure::internal)?;
        self.print(&text)
    }

    /// A note for the person, on stderr.
    pub fn note(&self, text: &str) {
        match &self.caught {
            Some(caught) => caught.with(|(_, stderr)| {
                stderr.push_str(text);
                stderr.push('\n');
            }),
            None => anstream::eprintln!("{text}"),
        }
    }

    /// A bar on stderr with rate and ETA; draws nothing when stderr is not a terminal.
    pub fn progress(&self, total: u64, what: &str) -> ProgressBar {
        self.bar(
            total,
            what,
            "{msg} {wide_bar} {pos}/{len} {per_sec} eta {eta}",
        )
    }

    /// As [`Output::progress`], for work of which only the time that it may take is known: `total` is that, in seconds.
    pub fn progress_of_time(&self, total: u64, what: &str) -> ProgressBar {
        self.bar(
            total,
            what,
            "{msg} {wide_bar} {percent}% {elapsed} eta {eta}",
        )
    }

    fn bar(&self, total: u64, what: &str, template: &str) -> ProgressBar {
        let target = if self.stderr_is_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}
