//! What recorded runs earned, by scenario and by category. Observation, not experiment: nobody allotted these runs.
//!
//! Runs are put together only where agent, agent version, cluster, rubric and instrument are the same. Our own failures
//! are counted apart and are never the agent's; rates are given over the runs that count and, where that differs, over
//! all runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ids::{CategoryId, MicroPoints, ScenarioId};
use crate::record::{Record, RunState};
use crate::score::Score;
use crate::stats::Interval;
use crate::stats::proportion::wilson;
use crate::stats::sample::Sample;

/// Level of the intervals of rates.
const LEVEL: f64 = 0.95;

/// Hex digits of a scenario's hash, where a scenario was run in more than one text.
const SHORT_HASH: usize = 8;

/// A record with what its scenario and a rubric say of it.
pub struct Run<'a> {
    pub record: &'a Record,
    /// Nothing where it has none, or where its rubric or vocabulary is not here any more.
    pub score: Option<&'a Score>,
    /// The cause that the scenario holds for true; nothing where its text cannot be read any more.
    pub category: Option<&'a CategoryId>,
}

impl Run<'_> {
    /// Whether it is a run of the agent's at all.
    pub fn counts(&self) -> bool {
        matches!(self.record.state, RunState::Scored | RunState::Timeout)
    }

    /// Whether anything of the past was shown to the agent.
    fn was_served(&self) -> bool {
        let retrievals = &self.record.retrievals;
        retrievals.iter().any(|one| !one.served.is_empty())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scorecard {
    pub groups: Vec<Group>,
    /// Runs of experiments whose scores are sealed.
    pub left_out_sealed: u32,
}

/// What must be equal for two runs to stand in one mean.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    pub agent: String,
    pub agent_version: String,
    /// The agent is a model of one, and what it earns is no evidence about real ones.
    pub simulation: bool,
    /// Name and kind.
    pub cluster: String,
    pub rubric: String,
    pub breakage_version: String,
}

impl Identity {
    pub fn of(run: &Run<'_>) -> Identity {
        let record = run.record;
        Identity {
            agent: record.agent.name.clone(),
            agent_version: record.agent.version.clone(),
            simulation: record.agent.simulation,
            cluster: match record.cluster.kind.as_str() {
                kind if kind == record.cluster.name => kind.to_owned(),
                kind => format!("{} ({kind})", record.cluster.name),
            },
            rubric: run
                .score
                .map_or(&record.rubric, |score| &score.rubric)
                .to_string(),
            breakage_version: record.breakage_version.clone(),
        }
    }

    /// For a heading: a simulation is never shown without the word.
    pub fn label(&self) -> String {
        format!(
            "{}{} {}, cluster {}, rubric {}, breakage {}",
            self.agent,
            if self.simulation {
                " (a simulation)"
            } else {
                ""
            },
            self.agent_version,
            self.cluster,
            self.rubric,
            self.breakage_version
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub identity: Identity,
    pub scenarios: Vec<Row>,
    pub categories: Vec<Row>,
    /// Nothing where no run was served anything, or every run was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieval: Option<Observational>,
}

/// Runs of one scenario, or of all scenarios of one category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    /// How many scenarios are in it.
    pub scenarios: u32,
    /// Everything that was recorded.
    pub runs: u32,
    /// Of the agent: scored or timed out. Means and rates are over these.
    pub n: u32,
    /// By code; never the agent's.
    pub framework_errors: BTreeMap<String, u32>,
    /// Of `n`; their rubric or vocabulary is not here any more, so that they have no total.
    pub without_score: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// With n - 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    pub levels: Vec<(MicroPoints, u32)>,
    pub repaired: u32,
    /// Of the repaired share over `n`, 95 % by Wilson.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_interval: Option<Ends>,
    /// Over all runs, ours among them; where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_of_all: Option<f64>,
    pub timeouts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_interval: Option<Ends>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ends {
    pub low: f64,
    pub high: f64,
}

impl From<Interval> for Ends {
    fn from(interval: Interval) -> Ends {
        Ends {
            low: interval.low,
            high: interval.high,
        }
    }
}

/// Runs that were served something against those that were not. Confounded: whether a run is served anything depends on
/// its scenario and on what the agent asked, and both also decide how it scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observational {
    pub served: u32,
    pub not_served: u32,
    pub mean_served: f64,
    pub mean_not_served: f64,
    pub difference: f64,
    /// How much of the difference comes from which scenarios the two sets of runs are from: the same difference, were
    /// every run worth its scenario's mean.
    pub difficulty_gap: f64,
    /// The rest. Still no effect: nobody allotted the runs.
    pub within_scenarios: f64,
    /// Scenarios with runs on both sides; others say nothing about the rest.
    pub scenarios_on_both_sides: u32,
    pub scenarios: u32,
}

/// Groups by identity, in its order.
pub fn scorecard(runs: &[Run<'_>], left_out_sealed: u32) -> Scorecard {
    let mut groups: BTreeMap<Identity, Vec<&Run<'_>>> = BTreeMap::new();
    for run in runs {
        groups.entry(Identity::of(run)).or_default().push(run);
    }
    Scorecard {
        groups: groups
            .into_iter()
            .map(|(identity, runs)| Group {
                scenarios: by_scenario(&runs),
                categories: by_category(&runs),
                retrieval: observational(&runs),
                identity,
            })
            .collect(),
        left_out_sealed,
    }
}

/// A scenario that was run in two texts is two scenarios, and so is one with nothing broken.
fn by_scenario(runs: &[&Run<'_>]) -> Vec<Row> {
    let mut texts: BTreeMap<&ScenarioId, Vec<&str>> = BTreeMap::new();
    let mut rows: BTreeMap<(&ScenarioId, &str, bool), Vec<&Run<'_>>> = BTreeMap::new();
    for run in runs {
        let record = run.record;
        let sha = record.scenario_sha256.as_str();
        let known = texts.entry(&record.scenario_id).or_default();
        if !known.contains(&sha) {
            known.push(sha);
        }
        rows.entry((&record.scenario_id, sha, record.healthy))
            .or_default()
            .push(run);
    }
    rows.into_iter()
        .map(|((id, sha, healthy), runs)| {
            let mut name = id.to_string();
            if texts.get(id).is_some_and(|texts| texts.len() > 1) {
                let short: String = sha.chars().take(SHORT_HASH).collect();
                name.push_str(&format!(" @{short}"));
            }
            if healthy {
                name.push_str(" (nothing broken)");
            }
            row(name, &runs)
        })
        .collect()
}

/// Runs in which nothing was broken have no cause to name, and are left out.
fn by_category(runs: &[&Run<'_>]) -> Vec<Row> {
    let mut rows: BTreeMap<&CategoryId, Vec<&Run<'_>>> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.record.healthy) {
        if let Some(category) = run.category {
            rows.entry(category).or_default().push(run);
        }
    }
    rows.into_iter()
        .map(|(category, runs)| row(category.to_string(), &runs))
        .collect()
}

fn row(name: String, runs: &[&Run<'_>]) -> Row {
    let counted: Vec<&Run<'_>> = runs.iter().copied().filter(|run| run.counts()).collect();
    let mut framework_errors = BTreeMap::new();
    for run in runs {
        if let RunState::FrameworkError { code, .. } = &run.record.state {
            *framework_errors
                .entry(code.as_str().to_owned())
                .or_insert(0) += 1;
        }
    }
    let scores = sample(&counted);
    let (all, n) = (count(runs), count(&counted));
    let repaired = counted.iter().filter(|run| is_repaired(run)).count() as u32;
    let timeouts = counted
        .iter()
        .filter(|run| run.record.state == RunState::Timeout)
        .count() as u32;
    let mut scenarios: Vec<&ScenarioId> = runs.iter().map(|run| &run.record.scenario_id).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let interval = |k: u32| wilson(u64::from(k), u64::from(n), LEVEL).map(Ends::from);
    Row {
        name,
        scenarios: scenarios.len() as u32,
        runs: all,
        n,
        framework_errors,
        without_score: n - scores.n() as u32,
        mean: scores.mean(),
        sd: scores.sd(),
        levels: scores
            .levels()
            .into_iter()
            .filter_map(|(level, count)| Some((MicroPoints(u32::try_from(level).ok()?), count)))
            .collect(),
        repaired,
        repaired_interval: interval(repaired),
        repaired_of_all: (all != n).then(|| f64::from(repaired) / f64::from(all)),
        timeouts,
        timeout_interval: interval(timeouts),
    }
}

/// Gone, and not at the cost of what the scenario protects. Where nothing was broken, nothing can be repaired.
fn is_repaired(run: &Run<'_>) -> bool {
    !run.record.healthy && run.record.detector.is_repaired()
}

fn count(runs: &[&Run<'_>]) -> u32 {
    u32::try_from(runs.len()).unwrap_or(u32::MAX)
}

fn sample(runs: &[&Run<'_>]) -> Sample {
    Sample::new(
        runs.iter()
            .filter_map(|run| run.score)
            .map(|score| i64::from(score.total.0)),
    )
}

fn observational(runs: &[&Run<'_>]) -> Option<Observational> {
    let scored: Vec<&Run<'_>> = runs
        .iter()
        .copied()
        .filter(|run| run.counts() && !run.record.healthy && run.score.is_some())
        .collect();
    let mut scenarios: BTreeMap<(&ScenarioId, &str), Vec<&Run<'_>>> = BTreeMap::new();
    for run in &scored {
        let key = (&run.record.scenario_id, run.record.scenario_sha256.as_str());
        scenarios.entry(key).or_default().push(run);
    }
    let (mut levels, mut both) = ([0.0, 0.0], 0);
    for runs in scenarios.values() {
        let mean = sample(runs).mean()?;
        let served = runs.iter().filter(|run| run.was_served()).count();
        levels[0] += mean * served as f64;
        levels[1] += mean * (runs.len() - served) as f64;
        both += u32::from(served > 0 && served < runs.len());
    }
    let (served, rest): (Vec<&Run<'_>>, Vec<&Run<'_>>) =
        scored.iter().copied().partition(|run| run.was_served());
    // Without runs on both sides there is nothing to compare.
    let (mean_served, mean_not_served) = (sample(&served).mean()?, sample(&rest).mean()?);
    let difference = mean_served - mean_not_served;
    let difficulty_gap = levels[0] / served.len() as f64 - levels[1] / rest.len() as f64;
    Some(Observational {
        served: count(&served),
        not_served: count(&rest),
        mean_served,
        mean_not_served,
        difference,
        difficulty_gap,
        within_scenarios: difference - difficulty_gap,
        scenarios_on_both_sides: both,
        scenarios: scenarios.len() as u32,
    })
}
