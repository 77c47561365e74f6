//! `breakage scenario compare`: the same runs on the embedded cluster and on a real one, side by side.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::sync::watch;

use crate::agent::choice::Choice;
use crate::cli::context::{Asked, ContextArgs, Purpose, agree, connect, restore_command};
use crate::cli::failure::{BELOW_THRESHOLD, Failure, INTERRUPTED};
use crate::cli::output::Output;
use crate::cli::run::lasting::{left, make_ready, tell_closed};
use crate::cli::run::{agents, refuse_unknown_fixture};
use crate::cli::scenario::{open_fixtures, open_library, unusable};
use crate::cli::{Context, interrupt};
use crate::clock;
use crate::cluster::target::Target;
use crate::config::Workspace;
use crate::ids::Seed;
use crate::inject::journal::Place;
use crate::qualify::stand::{Stand, Trial};
use crate::qualify::{Materials, QualifyError, keep, waiting};
use crate::record::ClusterFacts;
use crate::report::fidelity::{Pair, Sheet, Side, between_markers, points};
use crate::run::{Finished, HEALTHY_SOAK_S, RunKind, SETTLE, Watching};
use crate::scenario::library::Library;
use crate::scenario::model::Scenario;
use crate::score;
use crate::store::Store;

/// Compare runs on the embedded cluster with the same runs on a real one
///
/// Each scenario runs once on either with the same agent and seed. Compared are the end of the run, diagnosis, repair,
/// regressions, score and the order of tools; times are shown. The runs are kept nowhere. Exit code 2 when any differs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage scenario compare --all --context lab
  breakage scenario compare replicas-zero-advocate --context lab --output docs/fidelity.md")]
pub struct Args {
    /// Scenarios' ids, or paths of files
    #[arg(required_unless_present = "all", value_name = "ID")]
    pub scenarios: Vec<String>,
    /// Every scenario of the library that can be run
    #[arg(long, conflicts_with = "scenarios")]
    pub all: bool,
    /// The agent that responds
    #[arg(long, default_value = "rules", value_parser = agents::Names)]
    pub agent: String,
    /// The seed of the runs
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Take the runs on the real cluster from the workspace's records where there are some, the newest of each
    #[arg(long)]
    pub recorded: bool,
    /// Write the report into a Markdown file: between its markers if it has them, else as the whole
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: ContextArgs,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let library = open_library(context)?;
    let agent = agents::chosen(&args.agent)?;
    let scenarios = chosen_scenarios(&library, args)?;
    let (stop, interrupted) = watch::channel(false);
    let materials = Materials::new(&library, open_fixtures(context)?, interrupted)
        .map_err(Failure::internal)?;
    for scenario in &scenarios {
        refuse_unknown_fixture(&materials.fixtures, scenario)?;
    }
    let store = Arc::new(workspace.store().map_err(Failure::input)?);
    let Some(chosen) = args.place.chosen()? else {
        return Err(Failure::usage(anyhow::anyhow!(
            "the embedded cluster is compared with another one"
        ))
        .hint("--context NAME names a kubeconfig's context"));
    };
    let asked = Asked {
        command: "breakage scenario compare",
        yes: args.place.yes,
    };
    agree(context, &chosen, &store, &asked)?;
    interrupt::listen_leaving(stop, left(context, &chosen));
    clock::block_on(chosen.pace, async {
        let target = connect(context, chosen, Purpose::Use(&store)).await?;
        make_ready(context, &store, &target).await?;
        let comparison = Comparison {
            context,
            args,
            materials: &materials,
            agent: &agent,
            store: &store,
            target: &target,
        };
        let pairs = comparison.pairs(&scenarios).await;
        tell_closed(context, &store, &Place::of(&target));
        let Some(pairs) = pairs? else {
            context
                .output
                .note("interrupted; nothing of this comparison is kept");
            return Ok(ExitCode::from(INTERRUPTED));
        };
        let named = |facts: &ClusterFacts| format!("{} {}", facts.kind.as_str(), facts.version);
        tell(
            context,
            args,
            &Sheet {
                agent: args.agent.clone(),
                seed: Seed(args.seed),
                embedded: named(&keep::embedded()),
                real: named(&target.facts()),
                pairs,
            },
        )
    })
    .map_err(Failure::internal)?
}

fn chosen_scenarios(library: &Library, args: &Args) -> Result<Vec<Arc<Scenario>>, Failure> {
    if args.all {
        let all = library.scenarios().cloned().map(Arc::new);
        return Ok(all
            .filter(|one| waiting::for_what(one, false).is_empty())
            .collect());
    }
    let named = args.scenarios.iter();
    named
        .map(|id| library.scenario(id).map(Arc::new).map_err(unusable))
        .collect()
}

struct Comparison<'a> {
    context: &'a Context,
    args: &'a Args,
    materials: &'a Materials,
    agent: &'a Choice,
    store: &'a Arc<Store>,
    target: &'a Target,
}

impl Comparison<'_> {
    /// Nothing after an interruption.
    async fn pairs(&self, scenarios: &[Arc<Scenario>]) -> Result<Option<Vec<Pair>>, Failure> {
        let count = u64::try_from(scenarios.len()).unwrap_or(u64::MAX);
        let bar = self.context.output.progress(count, "scenarios");
        let mut pairs = Vec::new();
        for scenario in scenarios {
            bar.set_message(scenario.id.to_string());
            let embedded = self.once(&Stand::Embedded, scenario).await?;
            let there = Stand::Lasting {
                target: self.target,
                store: self.store,
            };
            let real = match self.recorded(scenario)? {
                Some(recorded) => recorded,
                None => self.once(&there, scenario).await?,
            };
            if *self.materials.interrupted.borrow() {
                return Ok(None);
            }
            if real.record.undo.quarantined {
                let place = Place::of(self.target);
                return Err(Failure::cluster(anyhow::anyhow!(
                    "the run of {} left the cluster closed",
                    scenario.id
                ))
                .hint(restore_command(self.context, &place)));
            }
            let seed = Seed(self.args.seed);
            pairs.push(Pair::new(
                scenario.id.clone(),
                seed,
                side(&embedded),
                side(&real),
            ));
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(Some(pairs))
    }

    async fn once(&self, stand: &Stand<'_>, scenario: &Arc<Scenario>) -> Result<Finished, Failure> {
        let trial = Trial {
            scenario,
            kind: RunKind::Incident,
            watching: Watching::AsNeeded,
            seed: Seed(self.args.seed),
            agent: &|| self.agent.make(),
        };
        match stand.run(self.materials, &trial).await {
            Err(QualifyError::Interrupted) => Err(Failure::input(QualifyError::Interrupted)),
            other => other.map_err(Failure::internal),
        }
    }

    /// The newest run of the same text, agent and seed on this kind and version of cluster.
    fn recorded(&self, scenario: &Scenario) -> Result<Option<Finished>, Failure> {
        if !self.args.recorded {
            return Ok(None);
        }
        let facts = self.target.facts();
        let mut records = self.store.records().map_err(Failure::input)?;
        records.retain(|record| {
            record.scenario_sha256 == scenario.sha256
                && record.agent.name == self.args.agent
                && record.seed == Seed(self.args.seed)
                && record.cluster == facts
                && !record.healthy
        });
        Ok(records.pop().map(|record| {
            let (rubric, vocabulary) = (&self.materials.rubric, &self.materials.vocabulary);
            let score = score::score(scenario, &record, rubric, vocabulary).ok();
            Finished { record, score }
        }))
    }
}

fn side(finished: &Finished) -> Side {
    let asked = (f64::from(HEALTHY_SOAK_S), SETTLE.as_secs_f64());
    Side::of(&finished.record, finished.score.as_ref(), asked)
}

fn tell(context: &Context, args: &Args, sheet: &Sheet) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.output {
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let report = sheet.markdown();
        let text = between_markers(&page, &report).unwrap_or(report);
        std::fs::write(path, text).map_err(Failure::input)?;
    }
    if args.json {
        context.output.json(sheet)?;
    } else {
        context.output.print(&table(sheet))?;
    }
    Ok(if sheet.agreeing() == sheet.pairs.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BELOW_THRESHOLD)
    })
}

fn table(sheet: &Sheet) -> String {
    let headings = [
        "scenario",
        "embedded",
        "real",
        "whole s",
        "runner's own s",
        "differs in",
    ];
    let mut table = Output::table_keeping(&headings, &[0]);
    for pair in &sheet.pairs {
        let times = (&pair.embedded.times, &pair.real.times);
        let what = pair.differs.iter();
        let what: Vec<&str> = what.filter_map(|text| text.split(':').next()).collect();
        table.add_row([
            pair.scenario.to_string(),
            points(pair.embedded.total),
            points(pair.real.total),
            format!("{:.0} / {:.0}", times.0.whole_s, times.1.whole_s),
            format!("{:.0} / {:.0}", times.0.overhead_s, times.1.overhead_s),
            if what.is_empty() {
                "-".to_owned()
            } else {
                what.join(", ")
            },
        ]);
    }
    let mut text = format!(
        "{table}\n\n{} of {} agree ({} and {})",
        sheet.agreeing(),
        sheet.pairs.len(),
        sheet.embedded,
        sheet.real
    );
    for pair in &sheet.pairs {
        for difference in &pair.differs {
            text.push_str(&format!("\n{}: {difference}", pair.scenario));
        }
    }
    text
}
