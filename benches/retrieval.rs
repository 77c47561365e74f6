//! How long retrieval takes: embedding a text, and finding the nearest postmortems among more and more of them.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use agent_breakage::embed::BuiltIn;
use agent_breakage::experience::Reader;
use agent_breakage::experience::entry::Entry;
use agent_breakage::experience::learner::Learner;
use agent_breakage::experience::policy::Policy;
use agent_breakage::experience::seeds;
use agent_breakage::ids::PostmortemId;
use agent_breakage::store::Store;
use criterion::{Criterion, criterion_group, criterion_main};

const QUERY: &str = "advocate-api crash loops since 09:41: pod has restarted 7 times, exit code 1, log says that a \
                     required variable is missing, the secret was changed this morning";

/// The seeds again and again, each time with another service's name, so that no two texts are equal.
fn corpus(size: usize) -> Vec<Entry> {
    let seeds = seeds::entries();
    (0..size)
        .map(|n| {
            let mut entry = seeds[n % seeds.len()].clone();
            entry.id = PostmortemId::new(format!("pm-{n:06}"));
            entry
                .postmortem
                .final_diagnosis
                .push_str(&format!(" Seen on service-{n} of team-{}.", n % 97));
            entry
        })
        .collect()
}

fn embedding(criterion: &mut Criterion) {
    let texts: Vec<String> = seeds::entries().iter().map(Entry::key_text).collect();
    for built_in in BuiltIn::ALL {
        let embedder = built_in.embedder();
        criterion.bench_function(
            &format!("embed/{}/one key text", built_in.name()),
            |bench| {
                let mut at = 0;
                bench.iter(|| {
                    at = (at + 1) % texts.len();
                    black_box(embedder.embed(&texts[at]).is_ok())
                });
            },
        );
    }
}

fn retrieval(criterion: &mut Criterion) {
    let embedder = BuiltIn::Lexical.embedder();
    let policy = Policy::default_for(embedder.as_ref());
    for size in [41, 1_000, 10_000] {
        let store = Arc::new(Store::in_memory().expect("memory is there"));
        Learner::new(store.clone(), embedder.clone())
            .import(&corpus(size), |_| {})
            .expect("seeds are acceptable");
        let reader = Reader::new(Some(store));
        let snapshot = reader
            .snapshot(embedder.as_ref())
            .expect("everything is embedded");
        let query = embedder.embed(QUERY).expect("the query has words");
        criterion.bench_function(&format!("nearest/{size}"), |bench| {
            bench.iter(|| black_box(snapshot.nearest(&query, &policy).len()));
        });
        criterion.bench_function(&format!("snapshot/{size}"), |bench| {
            bench.iter(|| black_box(reader.snapshot(embedder.as_ref()).is_ok()));
        });
    }
}

fn storing(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for size in [41, 1_000, 10_000] {
        let path = folder.path().join(format!("{size}.redb"));
        let embedder = BuiltIn::Lexical.embedder();
        let store = Arc::new(Store::open_or_create(&path).expect("a new store"));
        Learner::new(store.clone(), embedder)
            .import(&corpus(size), |_| {})
            .expect("seeds are acceptable");
        criterion.bench_function(
            &format!("journal entry written and erased/{size}"),
            |bench| {
                bench.iter(|| {
                    store.journal_put("run", &size).expect("a writable store");
                    store.journal_erase("run").expect("a writable store")
                });
            },
        );
        drop(store);
        criterion.bench_function(&format!("open and close/{size}"), |bench| {
            bench.iter(|| black_box(Store::open(&path).is_ok()));
        });
    }
}

criterion_group! {
    name = benches;
    // Short, because ten thousand postmortems take seconds to set up and two cores are what a laptop spares.
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = embedding, retrieval, storing
}
criterion_main!(benches);
