//! The same run on two clusters, side by side: does the embedded cluster lead an agent to the same end as a real one?
//!
//! What is compared must be equal: how the run ended, what the agent said was wrong, what it wrote, whether that repaired,
//! what it earned, and in which order it used its tools. Times are shown and not compared: two real runs differ by as much.

use serde::Serialize;

use crate::ids::{ScenarioId, Seed};
use crate::record::{Action, Record, RunState, StageName};
use crate::score::Score;

/// One run as far as it is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// `scored`, `timeout`, or the code of a framework error.
    pub state: String,
    /// What the agent named, the primary category first; empty without a postmortem.
    pub diagnosis: Vec<String>,
    /// What it wrote, in order: verb, resource, namespace and name.
    pub repair: Vec<String>,
    pub fixed: bool,
    pub regressions: usize,
    /// 0 to 1; nothing for framework errors.
    pub total: Option<f64>,
    /// Tools in the order of their use, repetitions in a row counted as one.
    pub tools: Vec<String>,
    pub times: Times,
}

/// Seconds on the cluster's clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    /// From writing the fault until it was seen to show.
    pub shown_s: f64,
    pub work_s: f64,
    /// From the start of the work until `fixed_when` held; nothing where it never counted.
    pub fixed_after_s: Option<f64>,
    pub whole_s: f64,
    /// What the runner added: making the fixture stand, waiting for readings, undo and reset. Asked for and left out are the
    /// healthy soak, the fault's time to show, the agent's work and the settling time.
    pub overhead_s: f64,
}

/// Both runs of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    pub scenario: ScenarioId,
    pub seed: Seed,
    pub embedded: Side,
    pub real: Side,
    /// What is not the same, in words; empty where the two agree.
    pub differs: Vec<String>,
}

/// What both clusters and runs have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sheet {
    pub agent: String,
    pub seed: Seed,
    /// Names and versions.
    pub embedded: String,
    pub real: String,
    pub pairs: Vec<Pair>,
}

impl Side {
    /// `asked` are the seconds that the healthy soak and the settling time take at least.
    pub fn of(record: &Record, score: Option<&Score>, asked: (f64, f64)) -> Side {
        let diagnosis = record.postmortem.iter().flat_map(|one| {
            std::iter::once(&one.primary_category).chain(&one.secondary_categories)
        });
        let writes = record
            .actions
            .iter()
            .filter(|action| action.changed_something);
        let mut tools: Vec<String> = record.actions.iter().map(|one| one.tool.clone()).collect();
        tools.dedup();
        Side {
            state: state(&record.state),
            diagnosis: diagnosis.map(ToString::to_string).collect(),
            repair: writes.map(written).collect(),
            fixed: record.detector.fixed,
            regressions: record.detector.regressions.len(),
            total: score.map(|score| score.total.as_f64()),
            tools,
            times: Times::of(record, asked),
        }
    }
}

fn state(state: &RunState) -> String {
    match state {
        RunState::Scored => "scored".to_owned(),
        RunState::Timeout => "timeout".to_owned(),
        RunState::FrameworkError { code, .. } => code.as_str().to_owned(),
        RunState::NotRun { .. } => "not_run".to_owned(),
    }
}

fn written(action: &Action) -> String {
    format!(
        "{} {} {}/{}",
        action.verb, action.resource, action.namespace, action.name
    )
}

impl Times {
    fn of(record: &Record, (soak_s, settle_s): (f64, f64)) -> Times {
        let spent = |stage: StageName| {
            let entry = record.stages.iter().find(|entry| entry.stage == stage);
            entry.map_or(0.0, |entry| seconds(entry.ended_ms - entry.started_ms))
        };
        let work_starts = record
            .stages
            .iter()
            .find(|entry| entry.stage == StageName::Work)
            .map_or(0, |entry| entry.started_ms);
        let beyond = |stage, asked: f64| (spent(stage) - asked).max(0.0);
        // A settling time that goes on beyond the least waits for the repair, which is Kubernetes' own time.
        let settling = beyond(StageName::Settle, settle_s).min(READING_S);
        Times {
            shown_s: spent(StageName::Manifest),
            work_s: spent(StageName::Work),
            fixed_after_s: record
                .detector
                .fixed_at_ms
                .map(|at| seconds(at.saturating_sub(work_starts))),
            whole_s: seconds(record.virtual_ms),
            overhead_s: spent(StageName::Prepare)
                + beyond(StageName::Healthy, soak_s)
                + spent(StageName::Inject)
                + settling
                + spent(StageName::Undo)
                + spent(StageName::Clean),
        }
    }
}

/// Time between two readings: what the end of a wait on them may cost.
const READING_S: f64 = 2.0;

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

impl Pair {
    pub fn new(scenario: ScenarioId, seed: Seed, embedded: Side, real: Side) -> Pair {
        let mut differs = Vec::new();
        let mut note = |what: &str, one: String, other: String| {
            if one != other {
                differs.push(format!("{what}: embedded {one}, real {other}"));
            }
        };
        note("state", embedded.state.clone(), real.state.clone());
        note(
            "diagnosis",
            listed(&embedded.diagnosis),
            listed(&real.diagnosis),
        );
        note("repair", listed(&embedded.repair), listed(&real.repair));
        note("fixed", embedded.fixed.to_string(), real.fixed.to_string());
        note(
            "regressions",
            embedded.regressions.to_string(),
            real.regressions.to_string(),
        );
        note("score", points(embedded.total), points(real.total));
        note("tools", listed(&embedded.tools), listed(&real.tools));
        Pair {
            scenario,
            seed,
            embedded,
            real,
            differs,
        }
    }
}

fn listed(all: &[String]) -> String {
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

pub fn points(total: Option<f64>) -> String {
    total.map_or_else(|| "-".to_owned(), |total| format!("{total:.3}"))
}

fn after(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.0}"))
}

impl Sheet {
    pub fn agreeing(&self) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.differs.is_empty())
            .count()
    }

    /// A page's part: the table, and every difference below it.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "Agent `{}`, seed {}; embedded: {}; real: {}. Times in seconds on the cluster's clock, embedded / real. \
             {} of {} agree in state, diagnosis, repair, regressions, score and the order of tools.\n\n",
            self.agent,
            self.seed,
            self.embedded,
            self.real,
            self.agreeing(),
            self.pairs.len()
        );
        text.push_str(
            "| scenario | score | fixed after | shown after | whole run | runner's own | same |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|\n");
        for pair in &self.pairs {
            let (here, there) = (&pair.embedded, &pair.real);
            text.push_str(&format!(
                "| {} | {} / {} | {} / {} | {:.0} / {:.0} | {:.0} / {:.0} | {:.0} / {:.0} | {} |\n",
                pair.scenario,
                points(here.total),
                points(there.total),
                after(here.times.fixed_after_s),
                after(there.times.fixed_after_s),
                here.times.shown_s,
                there.times.shown_s,
                here.times.whole_s,
                there.times.whole_s,
                here.times.overhead_s,
                there.times.overhead_s,
                if pair.differs.is_empty() { "yes" } else { "no" },
            ));
        }
        let differing = self.pairs.iter().filter(|pair| !pair.differs.is_empty());
        for pair in differing {
            text.push_str(&format!("\n{}:\n", pair.scenario));
            for difference in &pair.differs {
                text.push_str(&format!("- {difference}\n"));
            }
        }
        text
    }
}

/// Puts a text between the markers of a page; nothing where the page lacks them.
pub fn between_markers(page: &str, text: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", text.trim()))
}

/// Around the part of a page that the command writes.
pub const BEGIN: &str = "<!-- breakage scenario compare: begin -->";
pub const END: &str = "<!-- breakage scenario compare: end -->";

#[cfg(test)]
mod tests {
    use super::*;

    fn side(total: f64, tools: &[&str]) -> Side {
        Side {
            state: "scored".to_owned(),
            diagnosis: vec!["probe-misconfigured".to_owned()],
            repair: Vec::new(),
            fixed: true,
            regressions: 0,
            total: Some(total),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            times: Times {
                shown_s: 12.0,
                work_s: 50.0,
                fixed_after_s: Some(20.0),
                whole_s: 120.0,
                overhead_s: 10.0,
            },
        }
    }

    #[test]
    fn a_pair_names_what_differs_and_times_never_do() {
        let id = ScenarioId::new("one");
        let mut slower = side(0.9, &["kubectl_get"]);
        slower.times.whole_s = 500.0;
        let same = Pair::new(id.clone(), Seed(1), side(0.9, &["kubectl_get"]), slower);
        assert_eq!(same.differs, [""; 0]);
        let other = Pair::new(
            id,
            Seed(1),
            side(0.9, &["kubectl_get"]),
            side(0.5, &["kubectl_logs"]),
        );
        assert_eq!(
            other.differs,
            [
                "score: embedded 0.900, real 0.500",
                "tools: embedded kubectl_get, real kubectl_logs"
            ]
        );
        let sheet = Sheet {
            agent: "rules".to_owned(),
            seed: Seed(1),
            embedded: "embedded v1".to_owned(),
            real: "lab v1".to_owned(),
            pairs: vec![same, other],
        };
        let text = sheet.markdown();
        assert!(
            text.contains("1 of 2 agree") && text.contains("- score: embedded 0.900"),
            "{text}"
        );
    }

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let once = between_markers(&page, "new\n").unwrap();
        assert_eq!(once, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(between_markers(&once, "new").unwrap(), once);
        assert_eq!(between_markers("no markers", "new"), None);
    }
}
