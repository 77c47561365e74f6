//! Shows runs as they finish, strictly in order: the account of a single one, lines of JSON, or a table over many.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::cli::Context;
use crate::cli::failure::{Failure, INTERRUPTED};
use crate::cli::output::Output;
use crate::cli::run::{Args, Ended, account, exit_code, mean_total, not_kept, print_json};
use crate::ids::MicroPoints;
use crate::run::Finished;
use crate::run::event::Event;
use crate::run::repeat::{Progress, RepeatError};
use crate::run::summary::state_of;
use crate::scenario::model::Scenario;
use crate::score::Score;

/// Collects finished runs and prints them in the order of their repetition.
pub(super) struct Printer<'a> {
    context: &'a Context,
    args: &'a Args,
    scenario: &'a Scenario,
    bar: ProgressBar,
    /// Finished out of turn.
    waiting: BTreeMap<u64, Finished>,
    next: u64,
    finished: Vec<Finished>,
    failure: Option<Failure>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(context: &'a Context, args: &'a Args, scenario: &'a Scenario) -> Printer<'a> {
        Printer {
            context,
            args,
            scenario,
            bar: context.output.progress(args.reps, "runs"),
            waiting: BTreeMap::new(),
            next: 0,
            finished: Vec::new(),
            failure: None,
        }
    }

    pub(super) fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Event { event, .. } => self.event(&event),
            Progress::Done { index, outcome } => self.done(index, *outcome),
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Notice { text } => self.bar.suspend(|| self.context.output.note(text)),
            Event::Stage { stage, .. } if self.args.reps == 1 => {
                self.bar.set_message(format!("{stage:?}").to_lowercase());
            }
            _ => {}
        }
    }

    fn done(&mut self, index: u64, outcome: Result<Finished, RepeatError>) {
        self.bar.inc(1);
        match outcome {
            Ok(finished) => {
                self.waiting.insert(index, finished);
            }
            Err(error) => {
                // What could not be kept is shown all the same: it is nowhere else.
                if let RepeatError::NotKept { finished, .. } = &error {
                    self.waiting.insert(index, (**finished).clone());
                }
                self.fail(not_kept(error));
            }
        }
        while let Some(finished) = self.waiting.remove(&self.next) {
            self.next += 1;
            if self.args.json
                && let Err(failure) = print_json(self.context, &finished)
            {
                self.fail(failure);
            }
            self.finished.push(finished);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    pub(super) fn finish(self, wall: Duration, ended: Ended) -> Result<ExitCode, Failure> {
        self.bar.finish_and_clear();
        if ended.unbegun > 0 {
            self.context.output.note(&format!(
                "{} planned run{} not begun",
                ended.unbegun,
                if ended.unbegun == 1 { " was" } else { "s were" },
            ));
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.args.json && !self.finished.is_empty() {
            match self.finished.as_slice() {
                [only] => self
                    .context
                    .output
                    .print(&account::of(self.scenario, only))?,
                many => self.context.output.print(&table(self.scenario, many))?,
            }
        }
        let count = self.finished.len().max(1);
        self.context.output.note(&format!(
            "{} run{} in {:.2} s of wall time ({:.1} ms each)",
            self.finished.len(),
            if self.finished.len() == 1 { "" } else { "s" },
            wall.as_secs_f64(),
            wall.as_secs_f64() * 1e3 / count as f64,
        ));
        let code = exit_code(&self.finished, self.args.fail_under);
        if let (Some(wanted), Some(mean)) = (self.args.fail_under, mean_total(&self.finished)) {
            self.context.output.note(&format!(
                "mean total {mean:.3}, asked for at least {wanted}"
            ));
        }
        Ok(if ended.interrupted {
            ExitCode::from(INTERRUPTED)
        } else {
            code
        })
    }
}

/// States counted, and mean, deviation and range of every axis over the runs that count.
fn table(scenario: &Scenario, finished: &[Finished]) -> String {
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for one in finished {
        let (state, code, _) = state_of(&one.record.state);
        let label = code.map_or_else(|| state.to_owned(), |code| format!("{state} ({code})"));
        *states.entry(label).or_default() += 1;
    }
    let counted: Vec<String> = states
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let scores: Vec<&Score> = finished.iter().filter_map(|f| f.score.as_ref()).collect();
    let mut text = format!("{}: {}\n\n", scenario.id, counted.join(", "));
    if let (Some(first), Some(last)) = (finished.first(), finished.last()) {
        text = format!(
            "{}  agent {}  rubric {}  seeds {} to {}\n{}\n\n",
            scenario.id,
            first.record.agent.label(),
            first.record.rubric,
            first.record.seed,
            last.record.seed,
            counted.join(", ")
        );
    }
    if finished.iter().any(|one| !one.record.qualified) {
        text.push_str(
            "unqualified: nobody has measured here that the scenario tells a repair from none\n\n",
        );
    }
    if scores.is_empty() {
        return text;
    }
    let mut table = Output::table(&["axis", "possible", "mean", "sd", "min", "max"]);
    for (name, pick) in AXES {
        let points: Vec<f64> = scores.iter().map(|s| pick(s).0.as_f64()).collect();
        let possible = pick(scores[0]).1;
        let spread = Spread::of(&points);
        table.add_row([
            (*name).to_owned(),
            possible.to_string(),
            format!("{:.3}", spread.mean),
            spread.sd.map_or("-".to_owned(), |sd| format!("{sd:.3}")),
            format!("{:.3}", spread.min),
            format!("{:.3}", spread.max),
        ]);
    }
    text.push_str(&table.to_string());
    text
}

/// Reads earned and possible points of one axis, or of the whole.
type Pick = fn(&Score) -> (MicroPoints, MicroPoints);

const AXES: &[(&str, Pick)] = &[
    ("detected", |s| {
        (s.axes.detected.earned, s.axes.detected.possible)
    }),
    ("diagnosed", |s| {
        (s.axes.diagnosed.earned, s.axes.diagnosed.possible)
    }),
    ("fixed", |s| (s.axes.fixed.earned, s.axes.fixed.possible)),
    ("no regressions", |s| {
        (s.axes.no_regressions.earned, s.axes.no_regressions.possible)
    }),
    ("total", |s| (s.total, s.possible())),
];

struct Spread {
    mean: f64,
    /// The sample's; nothing for a single value.
    sd: Option<f64>,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Spread {
            mean,
            sd: (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}
