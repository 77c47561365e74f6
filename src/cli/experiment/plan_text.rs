//! A plan as lines: what is printed when it is locked and when it is shown.

use crate::cli::output::Output;
use crate::cli::printable;
use crate::experiment::dead_axes::{self, DeadAxis};
use crate::experiment::plan::{Plan, Primary, Retrieval, Serving, TierKind, Writes};
use crate::experiment::power::{Forecast, Test};
use crate::experiment::registration::{Operating, Registration};
use crate::ids::ScenarioId;

/// The plan and what it was resolved to.
pub(super) fn plan(registration: &Registration) -> String {
    let plan = &registration.plan;
    let mut facts = Output::table_keeping(&[], &[0]);
    let mut row = |name: &str, value: String| {
        facts.add_row([name.to_owned(), printable::block(&value)]);
    };
    row("experiment", format!("{} - {}", plan.id, plan.title));
    row("authors", plan.authors.join(", "));
    row("prior data", plan.prior_data.clone());
    for hypothesis in &plan.hypotheses {
        let direction = format!("{:?}", hypothesis.direction).to_lowercase();
        row(
            &format!("hypothesis {}", hypothesis.id),
            format!("{} ({direction})", hypothesis.text),
        );
    }
    row("size", size(plan));
    row(
        "estimand",
        format!(
            "weighted mean of treatment minus control over the scenarios, total under rubric {}; smallest effect of \
             interest {}",
            registration.rubric.id, plan.sesoi
        ),
    );
    row("primary test", primary(plan));
    row(
        "exclusions",
        format!(
            "{} retry(s) in place, then excluded; invalid beyond {:.1} %",
            plan.exclusions.retries,
            plan.exclusions.cap.as_f64() * 100.0
        ),
    );
    row("looks", looks(plan));
    row(
        "corpus",
        format!(
            "{} postmortems, {}, {}; sha256 {}",
            registration.corpus.entries,
            registration.corpus.embedder,
            match plan.corpus.writes {
                Writes::Frozen => "frozen",
                Writes::Growing => "growing by block",
            },
            &registration.corpus.sha256.get(..16).unwrap_or_default()
        ),
    );
    row("stopping", plan.stopping.clone());
    [
        facts.to_string(),
        arms(registration),
        scenarios(registration),
        matrix(plan),
    ]
    .join("\n\n")
}

fn size(plan: &Plan) -> String {
    let cells = plan.cells().len();
    let mut text = format!(
        "{cells} cells in {} complete blocks: {} runs, seed {}",
        plan.blocks,
        plan.runs(),
        plan.seed
    );
    if let Some(tiers) = &plan.tiers {
        let listed: Vec<String> = tiers
            .tiers
            .iter()
            .map(|tier| format!("{} ({:+})", tier.id, tier.code))
            .collect();
        let kind = match tiers.kind {
            TierKind::Corpus => "nested subsets of the corpus",
            TierKind::PoolCap => "caps of the pool",
        };
        text.push_str(&format!("; tiers, {kind}: {}", listed.join(", ")));
    }
    text
}

fn primary(plan: &Plan) -> String {
    let test = match plan.tests.primary {
        Primary::PairedSignFlip => "paired sign-flip, exact",
        Primary::StratifiedPermutation => "permutation within scenarios, exact",
    };
    let family = if plan.tests.co_primary {
        "half of it for the scenarios by Holm, on their own"
    } else {
        "then the scenarios by Holm"
    };
    format!(
        "{test}, two-sided at {}; {family}",
        plan.tests.alpha.as_f64()
    )
}

fn looks(plan: &Plan) -> String {
    if plan.looks.is_empty() {
        return "none: scores are sealed until the last block".to_owned();
    }
    let blocks: Vec<String> = plan.looks.iter().map(ToString::to_string).collect();
    format!(
        "after block {}; alpha is spent over them (O'Brien-Fleming)",
        blocks.join(", ")
    )
}

fn arms(registration: &Registration) -> String {
    let mut table = Output::table_keeping(&["arm", "agent", "cluster", "retrieval"], &[0]);
    for (arm, locked) in registration.plan.arms.iter().zip(&registration.arms) {
        let name = if arm.id == registration.plan.control {
            format!("{} (control)", arm.id)
        } else {
            arm.id.to_string()
        };
        let simulation = if locked.simulation {
            ", a simulation"
        } else {
            ""
        };
        table.add_row([
            name,
            printable::line(&format!(
                "{} ({}{simulation})",
                arm.agent, locked.agent_version
            )),
            printable::line(arm.context.as_deref().unwrap_or("embedded")),
            retrieval(&arm.retrieval),
        ]);
    }
    table.to_string()
}

fn retrieval(retrieval: &Retrieval) -> String {
    let served = |serving: &Serving| {
        let mut parts = vec![format!("k {}", serving.k)];
        if let Some(distance) = serving.max_distance {
            parts.push(format!("within {}", f64::from(distance) / 1e6));
        }
        if let Some(cap) = serving.pool_cap {
            parts.push(format!("pool {cap}"));
        }
        if !serving.sources.is_empty() {
            parts.push(format!("{} source(s)", serving.sources.len()));
        }
        if serving.same_scenario {
            parts.push("same scenario too".to_owned());
        }
        parts.join(", ")
    };
    match retrieval {
        Retrieval::Off => "off".to_owned(),
        Retrieval::On(serving) => format!("on, {}", served(serving)),
        Retrieval::DeterministicControl(serving) => {
            format!("deterministic control, {}", served(serving))
        }
        Retrieval::Placebo(serving) => format!("placebo, {}", served(serving)),
    }
}

fn scenarios(registration: &Registration) -> String {
    let mut table = Output::table_keeping(&["scenario", "share", "qualified", "sha256"], &[0]);
    let planned = &registration.plan.scenarios;
    let total: u32 = planned.iter().map(|one| one.weight).sum();
    for (planned, locked) in planned.iter().zip(&registration.scenarios) {
        let qualified = match (&planned.unqualified_because, locked.qualified) {
            (_, true) => "yes".to_owned(),
            (Some(reason), false) => format!("no: {}", printable::line(reason)),
            (None, false) => "no".to_owned(),
        };
        table.add_row([
            planned.id.to_string(),
            format!("{:.3}", f64::from(planned.weight) / f64::from(total.max(1))),
            qualified,
            locked.sha256.get(..12).unwrap_or_default().to_owned(),
        ]);
    }
    table.to_string()
}

fn matrix(plan: &Plan) -> String {
    let mut table = Output::table_keeping(&["row", "decision", "ships", "when"], &[0]);
    for row in &plan.matrix.rows {
        let ships = if row.ships { "yes" } else { "no" };
        table.add_row([
            row.id.clone(),
            printable::line(&row.decision),
            ships.to_owned(),
            row.when.clone(),
        ]);
    }
    table.add_row([
        "(no verdict)".to_owned(),
        printable::line(&plan.matrix.no_decision),
        "no".to_owned(),
        String::new(),
    ]);
    table.to_string()
}

/// How often each row comes out, a column for each truth.
pub(super) fn operating(plan: &Plan, operating: &[Operating]) -> String {
    let mut patterns: Vec<&str> = Vec::new();
    for one in operating {
        if !patterns.contains(&one.pattern.as_str()) {
            patterns.push(&one.pattern);
        }
    }
    let mut headings = vec!["truth"];
    let rows: Vec<&str> = plan.matrix.rows.iter().map(|row| row.id.as_str()).collect();
    headings.extend(&rows);
    let mut table = Output::table_keeping(&headings, &[0]);
    for pattern in patterns {
        let mut cells = vec![pattern.to_owned()];
        for row in &rows {
            let found = operating
                .iter()
                .find(|one| one.pattern == pattern && one.row == *row);
            cells.push(found.map_or_else(String::new, |one| percent(one.probability.as_f64())));
        }
        table.add_row(cells);
    }
    format!(
        "how often each row comes out at this size (m = {}, sigma {}):\n{table}",
        plan.sesoi, plan.power.sigma
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What the columns of the table of power mean.
const LEGEND: &str = "\
power m, 2m  probability that an effect of m, or of twice m, is found
type M, S    by what factor an estimate that is found overstates m, and how often its sign is wrong
mde          smallest effect that is found with the power asked for; half: of the 95 % interval
equiv        how often equivalence within plus and minus m is shown where the truth is 0
blocks       how many an effect of m needs; scenario: alone, as the last or the first step of Holm";

/// What the size can show.
pub(super) fn power(forecast: &Forecast) -> String {
    let headings = [
        "test", "alpha", "power m", "power 2m", "type M", "type S", "mde", "half", "equiv",
        "blocks",
    ];
    let mut table = Output::table_keeping(&headings, &[0]);
    let optional = |value: Option<f64>, places: usize| {
        value.map_or("-".to_owned(), |v| format!("{v:.places$}"))
    };
    let mut row = |name: &str, test: &Test| {
        let (m, twice) = (&test.effects[0], &test.effects[1]);
        table.add_row([
            name.to_owned(),
            format!("{:.4}", test.alpha),
            format!("{:.3}", m.power),
            format!("{:.3}", twice.power),
            optional(m.type_m, 2),
            optional(m.type_s, 4),
            optional(test.mde, 3),
            format!("{:.3}", test.half_width),
            percent(test.equivalence),
            test.blocks_needed
                .map_or("-".to_owned(), |blocks| blocks.to_string()),
        ]);
    };
    row("pooled", &forecast.pooled);
    row("scenario, last", &forecast.scenario);
    row("scenario, first", &forecast.scenario_first);
    let mut gain = Output::table(&[
        "correlation of pairs",
        "pairs, pooled",
        "pairs, one scenario",
    ]);
    for one in &forecast.pairs {
        let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
        gain.add_row([
            format!("{:.1}", one.rho),
            number(one.pairs_pooled),
            number(one.pairs_scenario),
        ]);
    }
    format!(
        "{} runs a cell, {} scenario(s), {} runs; m = {:.3}, sigma {:.3}, correlation {:.2}\n\n{table}\n\n{LEGEND}\n\nblocks for power \
         {:.2} at m, where worlds are shared by pairs:\n{gain}",
        forecast.blocks,
        forecast.scenarios,
        forecast.runs,
        forecast.sesoi,
        forecast.sigma_planned,
        forecast.rho,
        forecast.target
    )
}

/// A line for each axis that cannot show a difference, and for each scenario what is left.
pub(super) fn dead(axes: &[DeadAxis]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut scenarios: Vec<&ScenarioId> = Vec::new();
    for one in axes {
        if !scenarios.contains(&&one.scenario) {
            scenarios.push(&one.scenario);
        }
    }
    for scenario in scenarios {
        for one in axes.iter().filter(|one| one.scenario == *scenario) {
            lines.push(format!(
                "DEAD axis {} of {scenario} ({}): {}",
                one.axis, one.weight, one.because
            ));
        }
        lines.push(format!(
            "  the totals of {scenario} can move by {} at most",
            dead_axes::live_weight(axes, scenario)
        ));
    }
    lines
}
