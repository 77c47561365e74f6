//! A workspace with a small locked experiment.

use std::path::Path;
use std::sync::Arc;

use agent_breakage::agent::choice::Choice;
use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::config::Workspace;
use agent_breakage::embed::BuiltIn;
use agent_breakage::experience::learner::Learner;
use agent_breakage::experience::{Reader, seeds};
use agent_breakage::experiment::execute::{ExecuteError, Execution, Materials, Told};
use agent_breakage::experiment::ledger::{Entry, Event, RunEntry, chain};
use agent_breakage::experiment::locked::Locked;
use agent_breakage::experiment::plan::{Plan, Retrieval, Serving};
use agent_breakage::experiment::registration::{
    FORMAT, LockedArm, LockedCorpus, LockedRubric, LockedScenario, Registration,
};
use agent_breakage::experiment::status::runs;
use agent_breakage::experiment::verify::{Copy, Source, Verification, verify};
use agent_breakage::experiment::{adopt, canonical, inputs, load, templates};
use agent_breakage::ids::{RegistrationHash, RunId};
use agent_breakage::scenario::library::Library;
use agent_breakage::store::{Batch, Store};
use tokio::sync::watch;

/// A time that is no clock's.
pub const NOW: &str = "2031-02-03T04:05:06Z";

/// The falsification template with few scenarios and blocks.
pub fn plan(library: &Library, scenarios: usize, blocks: u32) -> Plan {
    let template = templates::template("falsification").unwrap();
    let mut plan = load::plan(template.text, "plan.yaml", library)
        .unwrap()
        .plan;
    plan.scenarios.truncate(scenarios);
    plan.blocks = blocks;
    plan
}

pub fn serving() -> Serving {
    Serving {
        k: 3,
        max_distance: None,
        pool_cap: None,
        sources: Vec::new(),
        same_scenario: false,
    }
}

/// Gives the control arm another retrieval.
pub fn with_control(mut plan: Plan, retrieval: Retrieval) -> Plan {
    let control = plan.control.clone();
    for arm in plan.arms.iter_mut().filter(|arm| arm.id == control) {
        arm.retrieval = retrieval.clone();
    }
    plan
}

/// What locking does.
pub fn lock(store: &Arc<Store>, library: &Library, plan: Plan) -> RegistrationHash {
    let embedder = BuiltIn::Lexical.embedder();
    if store.postmortem_count().unwrap() == 0 {
        let learner = Learner::new(store.clone(), embedder.clone());
        learner.import(&seeds::entries(), |_| ()).unwrap();
    }
    let reader = Reader::new(Some(store.clone()));
    let snapshot = reader.snapshot(embedder.as_ref()).unwrap();
    let snapshot = snapshot.without_quarantined();
    let fixtures = Fixtures::compiled_in();
    let scenarios = plan.scenarios.iter().map(|planned| {
        let scenario = library.scenario(planned.id.as_str()).unwrap();
        LockedScenario {
            id: planned.id.clone(),
            sha256: scenario.sha256.clone(),
            text: scenario.text.clone(),
            fixture_sha256: fixtures.load(&scenario.fixture).unwrap().sha256,
            qualified: true,
        }
    });
    let rubric = library.rubric(plan.rubric.as_str()).unwrap();
    let rubric_text = inputs::rubric_text(rubric).unwrap();
    let arms = plan.arms.iter().map(|arm| {
        let agent = Choice::parse(&arm.agent).unwrap().make();
        LockedArm {
            id: arm.id.clone(),
            agent: arm.agent.clone(),
            agent_version: agent.version().to_owned(),
            simulation: agent.is_simulation(),
        }
    });
    let registration = Registration {
        format: FORMAT,
        breakage_version: env!("CARGO_PKG_VERSION").to_owned(),
        scenarios: scenarios.collect(),
        rubric: LockedRubric {
            id: rubric.id.clone(),
            sha256: canonical::sha256_hex(&rubric_text),
            text: rubric_text,
            near_miss: rubric.near_miss,
            exact_primary: rubric.exact_primary,
        },
        vocabulary_sha256: inputs::vocabulary_sha256(library.vocabulary()).unwrap(),
        arms: arms.collect(),
        corpus: LockedCorpus {
            embedder: embedder.identity(),
            sha256: snapshot.content_hash().to_owned(),
            entries: snapshot.len(),
        },
        operating: Vec::new(),
        amends: None,
        plan,
    };
    let text = canonical::to_string(&registration).unwrap();
    let hash = RegistrationHash::new(canonical::sha256_hex(&text));
    let mut batch = Batch::default();
    batch.registration(hash.as_str(), text);
    let corpus = snapshot.freeze().to_json().unwrap();
    batch.experiment_corpus(snapshot.content_hash(), corpus);
    let event = Event::Locked {
        breakage_version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: None,
        git_dirty: false,
    };
    chain::begin(&mut batch, &hash, NOW, [event]).unwrap();
    store.write(&batch).unwrap();
    hash
}

/// A workspace on disk with a locked experiment; nobody holds its store.
pub fn workspace(folder: &Path, edit: impl FnOnce(Plan) -> Plan) -> RegistrationHash {
    let library = Library::open(Some(folder)).unwrap();
    let store = Arc::new(Workspace::at(folder).store().unwrap());
    lock(&store, &library, edit(plan(&library, 2, 3)))
}

/// A locked experiment in memory.
pub struct Bench {
    pub library: Library,
    pub store: Arc<Store>,
    pub hash: RegistrationHash,
    pub stop: watch::Sender<bool>,
}

impl Bench {
    pub fn new(edit: impl FnOnce(Plan) -> Plan) -> Bench {
        let library = Library::open(None).unwrap();
        let store = Arc::new(Store::in_memory().unwrap());
        let plan = edit(plan(&library, 1, 2));
        let hash = lock(&store, &library, plan);
        Bench {
            library,
            store,
            hash,
            stop: watch::Sender::new(false),
        }
    }

    pub fn prepare(&self) -> Result<Execution, ExecuteError> {
        let locked = Locked::find(&self.store, self.hash.as_str()).unwrap();
        let materials = Materials {
            store: self.store.clone(),
            library: &self.library,
            fixtures: Arc::new(Fixtures::compiled_in()),
            interrupted: self.stop.subscribe(),
            now: Arc::new(|| NOW.to_owned()),
        };
        Execution::prepare(&materials, locked)
    }

    /// Runs whatever is left.
    pub fn carry_out(&self, jobs: usize, mut tell: impl FnMut(Told)) -> bool {
        let execution = self.prepare().unwrap();
        execution.start().unwrap();
        for segment in execution.segments() {
            execution.embedded(&segment, jobs, &mut tell).unwrap();
        }
        execution.finish().unwrap()
    }

    pub fn entries(&self) -> Vec<Entry> {
        chain::read(&self.store, &self.hash).unwrap()
    }

    pub fn runs(&self) -> Vec<RunEntry> {
        runs(&self.entries()).cloned().collect()
    }

    pub fn texts(&self) -> Texts {
        Texts::of(&self.store, &self.hash)
    }

    pub fn verify(&self) -> Verification {
        self.texts().verify(&self.library)
    }
}

/// Everything that `verify` reads, to be altered.
#[derive(Clone)]
pub struct Texts {
    pub hash: String,
    pub registration: String,
    pub ledger: Vec<(u64, String)>,
    pub records: Vec<(RunId, String)>,
    pub kept: Vec<(RunId, bool)>,
    pub copy: Option<Copy>,
    pub corpus: Option<String>,
}

impl Texts {
    pub fn of(store: &Store, hash: &RegistrationHash) -> Texts {
        let entries = chain::read(store, hash).unwrap();
        let record = |run: &RunId| (run.clone(), store.record_as_kept(run).unwrap().unwrap());
        let registration = store.registration(hash.as_str()).unwrap().unwrap();
        let read: Registration = serde_json::from_str(&registration).unwrap();
        Texts {
            hash: hash.to_string(),
            ledger: store.ledger(hash.as_str()).unwrap(),
            records: runs(&entries).map(|run| record(&run.run_id)).collect(),
            kept: adopt::kept(store, hash).unwrap(),
            copy: None,
            corpus: store.experiment_corpus(&read.corpus.sha256).unwrap(),
            registration,
        }
    }

    pub fn verify(&self, library: &Library) -> Verification {
        let record = |run: &RunId| {
            let found = self.records.iter().find(|(id, _)| id == run);
            Ok(found.map(|(_, text)| text.clone()))
        };
        verify(&Source {
            hash: self.hash.clone(),
            registration: self.registration.clone(),
            ledger: self.ledger.clone(),
            record: &record,
            kept: self.kept.clone(),
            copy: self.copy.clone(),
            corpus: self.corpus.clone(),
            vocabulary: library.vocabulary(),
        })
    }

    /// Writes the ledger anew from altered entries, with a chain that holds: what only the plan can tell is wrong.
    pub fn rechained(&self, edit: impl Fn(&mut Vec<Event>)) -> Texts {
        let entries = self.ledger.iter();
        let mut events: Vec<Event> = entries
            .map(|(_, text)| serde_json::from_str::<Entry>(text).unwrap().event)
            .collect();
        edit(&mut events);
        let hash = RegistrationHash::new(self.hash.as_str());
        let mut last: Option<Entry> = None;
        let mut ledger = Vec::new();
        for event in events {
            let entry = Entry::after(last.as_ref(), &hash, NOW.to_owned(), event).unwrap();
            ledger.push((entry.seq, entry.text().unwrap()));
            last = Some(entry);
        }
        Texts {
            ledger,
            ..self.clone()
        }
    }
}
