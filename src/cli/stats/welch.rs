//! `breakage stats welch`: two arms compared, from their scores or from what was printed of them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::stats::csv::Table;
use crate::cli::stats::p_text;
use crate::report::published::envelope;
use crate::stats::Interval;
use crate::stats::brunner_munzel::brunner_munzel;
use crate::stats::effect::hedges_g;
use crate::stats::permutation::two_sample_seeded;
use crate::stats::proportion::rule_of_three;
use crate::stats::sample::{Sample, Summary};
use crate::stats::tost::tost;
use crate::stats::welch::{Degenerate, welch};

/// Compare two arms: Welch's t, exact permutation, Brunner-Munzel, Hedges' g, equivalence
///
/// From a CSV of scores, or from n, mean and standard deviation as printed in a paper; then t and p are also given with
/// the envelope that rounding allows.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    breakage stats welch scores.csv --margin 0.05\n  \
    breakage stats welch scores.csv --treatment with-memory --control without\n  \
    breakage stats welch --n1 20 --mean1 0.863 --sd1 0.08 --n2 20 --mean2 0.805 --sd2 0.09")]
pub struct Args {
    /// CSV with columns `arm,score`, or one column per arm; `-` reads standard input
    #[arg(value_name = "SCORES.csv", conflicts_with_all = ["n1", "mean1", "sd1", "n2", "mean2", "sd2"])]
    file: Option<PathBuf>,
    /// The treatment arm [default: the first in the file]
    #[arg(long, requires = "file")]
    treatment: Option<String>,
    /// The control arm [default: the second in the file]
    #[arg(long, requires = "file")]
    control: Option<String>,
    /// Runs of the treatment
    #[arg(long, requires_all = ["mean1", "sd1", "n2"], required_unless_present = "file")]
    n1: Option<u64>,
    /// Mean score of the treatment, from 0 to 1
    #[arg(long)]
    mean1: Option<f64>,
    /// Standard deviation (with n - 1) of the treatment
    #[arg(long)]
    sd1: Option<f64>,
    /// Runs of the control
    #[arg(long, requires_all = ["mean2", "sd2", "n1"])]
    n2: Option<u64>,
    /// Mean score of the control
    #[arg(long)]
    mean2: Option<f64>,
    /// Standard deviation of the control
    #[arg(long)]
    sd2: Option<f64>,
    /// Digits behind the point that means and standard deviations were printed with
    #[arg(long, default_value_t = 3, conflicts_with = "file")]
    digits: u8,
    /// Smallest difference that matters: tests equivalence within plus and minus this
    #[arg(long)]
    margin: Option<f64>,
    /// Of sampled permutations, where there are too many to count
    #[arg(long, default_value_t = crate::stats::permutation::DEFAULT_SEED)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is printed, once for a person and once as JSON. Rows without a value are left out of both.
#[derive(Default)]
struct Findings {
    rows: Vec<(String, String)>,
    json: Map<String, Value>,
}

impl Findings {
    fn number(&mut self, key: &str, name: &str, value: f64) {
        self.rows.push((name.to_owned(), format!("{value:.6}")));
        self.json.insert(key.to_owned(), json!(value));
    }

    fn p(&mut self, key: &str, name: &str, value: f64) {
        self.rows.push((name.to_owned(), p_text(value)));
        self.json.insert(key.to_owned(), json!(value));
    }

    fn interval(&mut self, key: &str, name: &str, value: Interval) {
        let text = format!("{:.6} to {:.6}", value.low, value.high);
        self.rows.push((name.to_owned(), text));
        self.json
            .insert(key.to_owned(), json!([value.low, value.high]));
    }

    fn text(&mut self, key: &str, name: &str, value: &str) {
        self.rows.push((name.to_owned(), value.to_owned()));
        self.json.insert(key.to_owned(), json!(value));
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    if args.margin.is_some_and(|m| !(m > 0.0 && m.is_finite())) {
        return Err(Failure::usage(anyhow!("--margin must be a number above 0")));
    }
    let mut found = Findings::default();
    match &args.file {
        Some(path) => {
            let (x, y) = arms(args, &Table::read(path)?)?;
            let pair = (summarised(&x, "treatment")?, summarised(&y, "control")?);
            parametric(&mut found, args, &pair);
            by_scores(&mut found, args, &x, &y);
        }
        None => {
            let pair = (
                printed("1", args.n1, args.mean1, args.sd1)?,
                printed("2", args.n2, args.mean2, args.sd2)?,
            );
            parametric(&mut found, args, &pair);
            rounding(&mut found, args, &pair);
        }
    }
    if args.json {
        context.output.json(&Value::Object(found.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Output::table_keeping(&["quantity", "value"], &[0]);
    for (name, value) in found.rows {
        table.add_row([name, value]);
    }
    context.output.print(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn arms(args: &Args, table: &Table) -> Result<(Sample, Sample), Failure> {
    let names: Vec<&str> = table.arms.iter().map(|(arm, _)| arm.as_str()).collect();
    if names.len() < 2 {
        return Err(Failure::input(anyhow!(
            "{}: {} arm where two are compared",
            table.name,
            names.len()
        )));
    }
    if names.len() > 2 && (args.treatment.is_none() || args.control.is_none()) {
        return Err(Failure::usage(anyhow!(
            "{} has {} arms: {}",
            table.name,
            names.len(),
            names.join(", ")
        ))
        .hint("name two of them with --treatment and --control"));
    }
    let other = |taken: &str| {
        let left = names.iter().find(|name| **name != taken);
        left.map_or_else(|| names[0].to_owned(), |name| (*name).to_owned())
    };
    let (treatment, control) = match (&args.treatment, &args.control) {
        (Some(treatment), Some(control)) => (treatment.clone(), control.clone()),
        (Some(treatment), None) => (treatment.clone(), other(treatment)),
        (None, Some(control)) => (other(control), control.clone()),
        (None, None) => (names[0].to_owned(), names[1].to_owned()),
    };
    if treatment == control {
        return Err(Failure::usage(anyhow!(
            "--treatment and --control are both `{treatment}`"
        )));
    }
    Ok((table.pick(&treatment)?, table.pick(&control)?))
}

fn summarised(sample: &Sample, arm: &str) -> Result<Summary, Failure> {
    Summary::of(sample).ok_or_else(|| {
        Failure::input(anyhow!(
            "{arm} has {} runs: not enough for a standard deviation, no test",
            sample.n()
        ))
        .hint("at least 2 runs per arm are needed")
    })
}

fn printed(
    arm: &str,
    n: Option<u64>,
    mean: Option<f64>,
    sd: Option<f64>,
) -> Result<Summary, Failure> {
    let (Some(n), Some(mean), Some(sd)) = (n, mean, sd) else {
        return Err(Failure::usage(anyhow!(
            "--n{arm}, --mean{arm} and --sd{arm} go together"
        )));
    };
    Summary::checked(n, mean, sd, 0.0, 1.0).map_err(|error| {
        Failure::usage(anyhow::Error::new(error).context(format!("--n{arm} --mean{arm} --sd{arm}")))
    })
}

fn parametric(found: &mut Findings, args: &Args, (x, y): &(Summary, Summary)) {
    for (key, name, arm) in [("treatment", "treatment", x), ("control", "control", y)] {
        let text = format!("n {}, mean {:.6}, sd {:.6}", arm.n, arm.mean, arm.sd);
        found.rows.push((name.to_owned(), text));
        found.json.insert(key.to_owned(), json!(arm));
    }
    found.number("delta", "difference", x.mean - y.mean);
    match welch(x, y) {
        Ok(welch) => {
            found.number("se", "standard error", welch.se);
            found.number("t", "Welch t", welch.t);
            found.number("df", "degrees of freedom", welch.df);
            found.p("p_two_sided", "p, two-sided", welch.p_two_sided());
            found.p("p_greater", "p, treatment higher", welch.p_greater());
            found.interval("ci95", "95 % interval", welch.interval(0.95));
            if let Some(margin) = args.margin {
                let equivalence = tost(&welch, margin);
                found.p(
                    "tost_p",
                    &format!("p of equivalence within +-{margin}"),
                    equivalence.p,
                );
                found.interval("ci90", "90 % interval", equivalence.ci90);
                let verdict = if equivalence.equivalent() {
                    "shown at 5 %"
                } else {
                    "not shown"
                };
                found.text("equivalence", "equivalence", verdict);
            }
        }
        Err(degenerate) => {
            let status = match degenerate {
                Degenerate::Identical => "degenerate_identical",
                Degenerate::Separated => "degenerate_separated",
            };
            found.text("status", "status", status);
            found.rows.push(("why".to_owned(), degenerate.to_string()));
            if let Some(bound) = rule_of_three(x.n.min(y.n)) {
                found.number(
                    "deviating_runs_upper",
                    "share of deviating runs, up to",
                    bound,
                );
            }
        }
    }
    if let Some(g) = hedges_g(x, y) {
        found.number("hedges_g", "Hedges' g", g.g);
        if let Some(interval) = g.interval {
            found.interval("hedges_g_ci95", "95 % interval of g", interval);
        }
    }
}

/// Runs of both arms of which permutations are formed: two thousand take about ten seconds where all scores differ, ten
/// times as many take minutes. So many runs leave Welch's p and the permutation's little to differ by.
const MAX_PERMUTED_RUNS: usize = 2_000;

/// Longer numbers of arrangements are told by their size.
const MAX_DIGITS: usize = 20;

fn by_scores(found: &mut Findings, args: &Args, x: &Sample, y: &Sample) {
    if x.n() + y.n() > MAX_PERMUTED_RUNS {
        let text = format!(
            "left out: of more than {MAX_PERMUTED_RUNS} runs it takes too long; see Welch's p"
        );
        found.text("permutation_status", "permutation", &text);
    } else {
        permuted(found, args, x, y);
    }
    ranked(found, x, y);
}

fn permuted(found: &mut Findings, args: &Args, x: &Sample, y: &Sample) {
    let permutation = two_sample_seeded(x, y, args.seed);
    found.p(
        "permutation_p_two_sided",
        "permutation p, two-sided",
        permutation.p_two_sided,
    );
    found.p(
        "permutation_p_greater",
        "permutation p, treatment higher",
        permutation.p_greater,
    );
    found.p("permutation_mid_p", "permutation mid-p", permutation.mid_p);
    if let Some(p) = permutation.studentised.filter(|_| x.n() != y.n()) {
        found.p("permutation_p_studentised", "permutation p of |t|", p);
    }
    let method = permutation.method.label();
    found.text(
        "permutation_method",
        "permutation",
        &format!(
            "{method}, of {} arrangements",
            sized(&permutation.arrangements)
        ),
    );
}

/// A whole number, or its power of ten where it has too many digits to be read.
fn sized(digits: &str) -> String {
    match digits.len() {
        0..=MAX_DIGITS => digits.to_owned(),
        length => format!("about {}.{}e{}", &digits[..1], &digits[1..2], length - 1),
    }
}

fn ranked(found: &mut Findings, x: &Sample, y: &Sample) {
    let Some(ranks) = brunner_munzel(x, y) else {
        return;
    };
    found.number("p_hat", "P(treatment > control), ties half", ranks.p_hat);
    match (ranks.w, ranks.df, ranks.p_two_sided, ranks.interval95) {
        (Some(w), Some(df), Some(p), Some(interval)) => {
            found.number("brunner_munzel_w", "Brunner-Munzel W", w);
            found.number("brunner_munzel_df", "its degrees of freedom", df);
            found.p("brunner_munzel_p", "its p", p);
            // A probability: what the formula gives beyond 0 and 1 says nothing.
            let interval = Interval {
                low: interval.low.max(0.0),
                high: interval.high.min(1.0),
            };
            found.interval("p_hat_ci95", "95 % interval of P", interval);
        }
        _ => found.text(
            "brunner_munzel_status",
            "Brunner-Munzel",
            "degenerate: use the exact permutation p",
        ),
    }
}

fn rounding(found: &mut Findings, args: &Args, pair: &(Summary, Summary)) {
    let half_unit = 0.5 * 10_f64.powi(-i32::from(args.digits));
    let Some(range) = envelope(pair, half_unit) else {
        return;
    };
    let text = format!("{:.6} to {:.6}", range.t_min, range.t_max);
    let p = format!("{} to {}", p_text(range.p_min), p_text(range.p_max));
    let name = |what: &str| format!("{what} within rounding (+-{half_unit})");
    found.rows.push((name("t"), text));
    found.rows.push((name("p"), p));
    found
        .json
        .insert("rounding_envelope".to_owned(), json!(range));
}
