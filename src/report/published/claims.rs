//! What the published texts claim of the numbers, and what the numbers say.

use serde::Serialize;

use crate::report::published::density::{full_minus_five, p_of_z};
use crate::report::published::{Cell, Published};
use crate::stats::multiplicity::holm;
use crate::stats::power::{half_width_of_difference, n_for, n_normal, power};
use crate::stats::sample::{Sample, Summary};

const SIGMA: f64 = 0.13;
const DELTA: f64 = 0.05;
const ALPHA: f64 = 0.05;
const TARGET: f64 = 0.8;

/// One claim with what was found of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimCheck {
    pub claim: String,
    pub source: String,
    pub verdict: String,
    pub fact: String,
    /// In our numbers; nothing where the claim rests on data that was not published.
    pub recomputed: Option<Recomputed>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recomputed {
    pub text: String,
    /// Whether our numbers bear out the verdict.
    pub supports_verdict: bool,
}

type Compute = fn(&Published) -> Option<Recomputed>;

/// By how the claim begins.
const COMPUTED: &[(&str, Compute)] = &[
    ("secret-missing-key significant", all_densities),
    ("about 105 per arm", sample_size),
    ("n=40 gives a 95% CI", half_widths),
    ("1 of 3 scenarios", one_of_three),
    ("p<0.05 across multiple", sample_sizes),
    ("the cpu sign flip", cpu_across),
    ("pooled effect grows", pooled_over_density),
    ("one replicas-zero control run", lowest_replicas_score),
    ("cpu n=100", cpu_runs),
];

/// Every claim of the data.
pub fn claim_checks(published: &Published) -> Vec<ClaimCheck> {
    let rows = published.rest["claim_checks"].as_array();
    rows.into_iter()
        .flatten()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let claim = text("claim");
            let compute = COMPUTED.iter().find(|(start, _)| claim.starts_with(start));
            ClaimCheck {
                recomputed: compute.and_then(|(_, compute)| compute(published)),
                source: text("source"),
                verdict: text("verdict"),
                fact: text("fact"),
                claim,
            }
        })
        .collect()
}

fn found(text: String, supports_verdict: bool) -> Option<Recomputed> {
    Some(Recomputed {
        text,
        supports_verdict,
    })
}

/// With three digits behind the point, or four where that leaves too few.
fn list(p: &[f64]) -> String {
    let each = |p: &f64| {
        if *p < 0.1 {
            format!("{p:.4}")
        } else {
            format!("{p:.3}")
        }
    };
    p.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn of_scenario<'a>(published: &'a Published, part: &str) -> Vec<&'a Cell> {
    let named = |cell: &&Cell| cell.id.contains(part);
    published.cells.iter().filter(named).collect()
}

fn all_densities(published: &Published) -> Option<Recomputed> {
    let families = published.families();
    let sweep = families.iter().find(|family| family.name == "sweep_9")?;
    let p = sweep.p();
    let adjusted = holm(&p);
    let of_secret = |values: &[f64]| -> Vec<f64> {
        let cells = sweep.cells.iter().zip(values);
        cells
            .filter(|(cell, _)| cell.id.contains("secret-missing-key"))
            .map(|(_, value)| *value)
            .collect()
    };
    let (p, adjusted) = (of_secret(&p), of_secret(&adjusted));
    let text = format!(
        "p {} at pool cap 5, 15, full; Holm over 9 cells {}",
        list(&p),
        list(&adjusted)
    );
    found(text, p.iter().any(|p| *p >= 0.01))
}

fn sample_size(_: &Published) -> Option<Recomputed> {
    let exact = n_for(DELTA, SIGMA, TARGET, ALPHA)?;
    let normal = n_normal(DELTA, SIGMA, TARGET, ALPHA);
    let at_105 = power(DELTA, SIGMA, 105, 105, ALPHA);
    let text = format!(
        "{exact} by the exact noncentral t, {} by the normal, {} without the factor 2; power at 105 is {at_105:.3}",
        normal.ceil(),
        (normal / 2.0).ceil()
    );
    found(text, exact != 105 && at_105 < TARGET)
}

fn half_widths(_: &Published) -> Option<Recomputed> {
    let width = |sd: f64| half_width_of_difference(sd, 40, 0.95);
    let text = format!(
        "+-{:.4} / {:.4} / {:.4} at sd 0.10 / 0.13 / 0.16",
        width(0.10),
        width(0.13),
        width(0.16)
    );
    found(text, width(0.11) < 0.05 && width(0.13) > 0.05)
}

fn one_of_three(published: &Published) -> Option<Recomputed> {
    let cells: Vec<&Cell> = of_scenario(published, "falsification/");
    let welch: Vec<f64> = cells
        .iter()
        .filter_map(|cell| Some(cell.welch()?.p_two_sided()))
        .collect();
    let exact: Vec<f64> = cells.iter().map(|c| c.permutation().p_two_sided).collect();
    let adjusted = holm(&welch);
    let text = format!(
        "p {}; Holm {}; exact permutation {}",
        list(&welch),
        list(&adjusted),
        list(&exact)
    );
    let none_below = |p: &[f64]| p.iter().all(|p| *p > ALPHA);
    found(text, none_below(&adjusted) && none_below(&exact))
}

fn sample_sizes(published: &Published) -> Option<Recomputed> {
    let cells = of_scenario(published, "secret-missing-key");
    let first = cells.first()?.input.n_t;
    let same = cells
        .iter()
        .all(|cell| cell.input.n_t == first && cell.input.n_c == first);
    found(
        format!("{} cells, n={first} per arm in each", cells.len()),
        same,
    )
}

fn cpu_across(published: &Published) -> Option<Recomputed> {
    let first = published
        .cell("falsification/cpu-limit-throttling")?
        .welch()?;
    let second = published.cell("n40/cpu-limit-throttling")?.welch()?;
    let difference = second.delta - first.delta;
    let z = difference / first.se.hypot(second.se);
    let p = p_of_z(z);
    found(
        format!(
            "the two estimates differ by {difference:.3} (z {z:.2}, p {p:.3}), under two models"
        ),
        p < ALPHA,
    )
}

fn pooled_over_density(published: &Published) -> Option<Recomputed> {
    let moved = full_minus_five(published)?;
    let (treatment, control) = (moved.treatment.estimate, moved.control.estimate);
    let p = p_of_z(control / moved.control.se);
    found(
        format!("full minus 5: treatment {treatment:.3}, control {control:.3} (p {p:.3})"),
        control.abs() > treatment.abs(),
    )
}

fn lowest_replicas_score(_: &Published) -> Option<Recomputed> {
    let with = |score: i64| {
        Summary::of(&Sample::new(
            (0..39).map(|_| 910_000).chain(std::iter::once(score)),
        ))
    };
    let (claimed, fitting) = (with(830_000)?, with(805_000)?);
    found(
        format!(
            "39 runs at 0.91 and one at 0.83 have sd {:.3}; with 0.805 mean {:.3} and sd {:.3}",
            claimed.sd, fitting.mean, fitting.sd
        ),
        (claimed.sd - 0.017).abs() > 0.0005 && (fitting.sd - 0.017).abs() < 0.0005,
    )
}

fn cpu_runs(published: &Published) -> Option<Recomputed> {
    let cells = of_scenario(published, "cpu-limit-throttling");
    let runs: u64 = cells.iter().map(|cell| cell.input.n_t).sum();
    let each: Vec<String> = cells.iter().map(|c| c.input.n_t.to_string()).collect();
    found(
        format!("{} = {runs} per arm", each.join(" + ")),
        runs != 100,
    )
}
