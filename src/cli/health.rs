//! `breakage health`: whether the instrument does its own part.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::config::Workspace;
use crate::embed::{BuiltIn, Embedder};
use crate::experience::Reader;
use crate::experience::policy::Policy;
use crate::experience::seeds;
use crate::experience::snapshot::{Hit, Snapshot};
use crate::record::{Record, Retrieval, Served};
use crate::report::health::health;
use crate::report::observed;

/// Our own failures over time, and whether retrieval answers the same question in the same way
///
/// No score is read, so that runs of sealed experiments count as well.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage health
  breakage health --json")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let store = context.existing_store(&workspace)?;
    let records = match &store {
        Some(store) => store.records().map_err(Failure::input)?,
        None => Vec::new(),
    };
    let seeds = seeds::of_workspace(workspace.folder()).map_err(Failure::input)?;
    let mut scan = Scan {
        reader: Reader::new(store).with_seeds(seeds),
        corpora: BTreeMap::new(),
    };
    let found = health(&records, &mut |record, retrieval| {
        scan.answer(record, retrieval)
    });
    match args.json {
        true => context.output.json(&found)?,
        false => context.output.print(&observed::health(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Today's corpus under one embedder; nothing where this build does not have the embedder.
type Corpus = Option<(Arc<dyn Embedder>, Snapshot)>;

/// Today's corpus under each embedder that records name.
struct Scan {
    reader: Reader,
    corpora: BTreeMap<String, Corpus>,
}

impl Scan {
    /// What an exact scan serves today; nothing where the corpus is not what it was. Runs of experiments had a frozen
    /// corpus of their own, which `experiment verify` checks.
    fn answer(&mut self, record: &Record, retrieval: &Retrieval) -> Option<Vec<Served>> {
        let facts = &record.retrieval;
        if record.experiment.is_some() {
            return None;
        }
        let id = facts.embedder.to_string();
        let reader = &self.reader;
        let corpus = self.corpora.entry(id).or_insert_with(|| {
            let embedder = BuiltIn::ALL
                .into_iter()
                .map(BuiltIn::embedder)
                .find(|embedder| embedder.identity() == facts.embedder)?;
            let snapshot = reader.snapshot(embedder.as_ref()).ok()?;
            Some((embedder, snapshot))
        });
        let (embedder, snapshot) = corpus.as_ref()?;
        let policy = Policy {
            k: facts.k,
            max_distance: facts.max_distance,
            pool_cap: facts.pool_cap,
            excluded_scenarios: facts.excluded_scenarios.iter().cloned().collect(),
            ..Policy::default_for(embedder.as_ref())
        };
        if snapshot.eligible(&policy) != facts.corpus_size {
            return None;
        }
        let hits = snapshot
            .similar_to(embedder.as_ref(), &retrieval.query, &policy)
            .ok()?;
        Some(hits.iter().map(Hit::served).collect())
    }
}
