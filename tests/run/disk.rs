//! A disk that fails after so many writes or syncs, below whole runs and below single commits.
//!
//! What a power cut leaves is what was synced, with any part of what was written since.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::io;
use std::sync::{Arc, Mutex};

use agent_breakage::agent;
use agent_breakage::cluster::reset;
use agent_breakage::cluster::state;
use agent_breakage::cluster::target::Target;
use agent_breakage::embed::BuiltIn;
use agent_breakage::experience::learner::Learner;
use agent_breakage::experience::seeds;
use agent_breakage::ids::Seed;
use agent_breakage::record::{FrameworkCode, RunState};
use agent_breakage::run::recover::{Recovery, recover};
use agent_breakage::run::{Order, RunKind, Watching, once};
use agent_breakage::store::{Batch, Store};
use proptest::prelude::*;
use redb::StorageBackend;

use crate::bench::{Bench, namespaces, paused};

/// Bytes in memory that can be told to fail.
#[derive(Clone, Debug, Default)]
struct Disk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync: where and what.
    written: Vec<(usize, Vec<u8>)>,
    /// Nothing: it never fails.
    writes_left: Option<u64>,
    syncs_left: Option<u64>,
}

impl Disk {
    fn of(bytes: Vec<u8>) -> Disk {
        let disk = Disk::default();
        disk.state.lock().unwrap().bytes = bytes;
        disk
    }

    fn fail_after(&self, writes: Option<u64>, syncs: Option<u64>) {
        let mut state = self.state.lock().unwrap();
        state.writes_left = writes;
        state.syncs_left = syncs;
    }

    /// What is there after a power cut of which a part of the unsynced writes survived.
    fn after_power_cut(&self, survived: impl Fn(usize) -> bool) -> Disk {
        let state = self.state.lock().unwrap();
        let mut bytes = state.synced.clone();
        for (index, (at, data)) in state.written.iter().enumerate() {
            if survived(index) {
                let end = at + data.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(data);
            }
        }
        Disk::of(bytes)
    }
}

/// Takes one from what is left; an error once nothing is.
fn spend(left: &mut Option<u64>, why: &str) -> io::Result<()> {
    match left {
        Some(0) => Err(io::Error::other(why.to_owned())),
        Some(count) => {
            *count -= 1;
            Ok(())
        }
        None => Ok(()),
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock().unwrap();
        let at = usize::try_from(offset).unwrap();
        let found = state.bytes.get(at..at + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        spend(&mut state.writes_left, "no space left on the test's disk")?;
        state.bytes.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        spend(&mut state.syncs_left, "the test's disk does not sync")?;
        state.synced = state.bytes.clone();
        state.written.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        spend(&mut state.writes_left, "no space left on the test's disk")?;
        let at = usize::try_from(offset).unwrap();
        let end = at + data.len();
        let length = state.bytes.len().max(end);
        state.bytes.resize(length, 0);
        state.bytes[at..end].copy_from_slice(data);
        state.written.push((at, data.to_vec()));
        Ok(())
    }
}

/// What came of a run on a failing disk.
#[derive(Debug, PartialEq)]
enum Came {
    Kept,
    /// The run ended and its record could not be kept.
    NotKept,
    /// The fault was never written.
    NotBegun,
}

/// One run whose disk fails at some point; the cluster must be as before and every planned run come to one record.
fn run_on_a_disk_that_fails(writes: Option<u64>, syncs: Option<u64>) -> Came {
    let disk = Disk::default();
    let store = Arc::new(Store::over_backend(disk.clone()).unwrap());
    Learner::new(store.clone(), BuiltIn::Lexical.embedder())
        .import(&seeds::entries(), |_| ())
        .unwrap();
    let mut bench = Bench::new();
    bench.store = store;
    let scenario = bench
        .library
        .scenario("secret-missing-key-advocate")
        .unwrap();
    let order = Order {
        scenario: Arc::new(scenario),
        seed: Seed(3),
        qualified: false,
        kind: RunKind::Incident,
        watching: Watching::AsNeeded,
        part: None,
    };
    let setting = bench.setting();
    let rules = agent::by_name("rules").unwrap();
    disk.fail_after(writes, syncs);
    let (outcome, standing) = paused().block_on(async {
        let target = Target::embedded(order.seed);
        let outcome = once(&setting, &order, rules.as_ref(), &target, &mut |_| ()).await;
        let client = target.client();
        let rest = reset::at_rest(&client, reset::REST_DEADLINE, &namespaces()).await;
        let standing = rest.is_ok().then_some(state::read(&client).await.unwrap());
        (outcome, standing.map(|state| state.hash()))
    });
    drop(setting);
    drop(bench);
    let (came, record) = match outcome {
        Ok(finished) => (Came::Kept, finished.record),
        Err((_, finished)) => (Came::NotKept, finished.record),
    };
    let unavailable = matches!(
        record.state,
        RunState::FrameworkError {
            code: FrameworkCode::StoreUnavailable,
            ..
        }
    );
    if let Some(before) = &record.state_hash_before {
        assert_eq!(Some(before), standing.as_ref(), "the fault is still there");
    }
    if unavailable {
        assert!(!record.injected && !record.undo.attempted);
    }
    // The next start, on what a power cut leaves.
    let after = disk.after_power_cut(|_| false);
    let store = Arc::new(Store::over_backend(after).unwrap());
    paused().block_on(recover(&store, None)).unwrap();
    let again = paused().block_on(recover(&store, None)).unwrap();
    assert_eq!(again, Recovery::default());
    let records = store.records().unwrap();
    match came {
        Came::Kept => assert_eq!(records, [record]),
        _ => assert!(records.len() <= 1, "{records:?}"),
    }
    match came {
        Came::NotKept if unavailable => Came::NotBegun,
        other => other,
    }
}

#[test]
fn a_disk_that_fails_in_the_middle_of_a_run_costs_its_record_and_never_leaves_the_fault() {
    let mut seen = Vec::new();
    for syncs in [0, 1, 2, 3, 4, 5, 6, 12] {
        seen.push(run_on_a_disk_that_fails(None, Some(syncs)));
    }
    for writes in [0, 8, 20, 80] {
        seen.push(run_on_a_disk_that_fails(Some(writes), None));
    }
    for wanted in [Came::Kept, Came::NotKept, Came::NotBegun] {
        assert!(seen.contains(&wanted), "never {wanted:?}: {seen:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever was acknowledged is there after a power cut, whichever of the unsynced writes reached the disk.
    #[test]
    fn what_was_acknowledged_is_there_after_a_power_cut(
        sizes in prop::collection::vec(1usize..3000, 1..12),
        failing in prop_oneof![
            (0u64..60).prop_map(|writes| (Some(writes), None)),
            (0u64..25).prop_map(|syncs| (None, Some(syncs))),
        ],
        survivors in any::<u64>(),
    ) {
        let disk = Disk::default();
        let store = Store::over_backend(disk.clone()).unwrap();
        disk.fail_after(failing.0, failing.1);
        let mut acknowledged = Vec::new();
        for (number, size) in sizes.iter().enumerate() {
            let mut batch = Batch::default();
            batch.journal_put(&format!("entry-{number}"), &"x".repeat(*size)).unwrap();
            batch.own(&format!("uid-{number}"), "cluster/prod");
            if store.write(&batch).is_ok() {
                acknowledged.push((format!("entry-{number}"), "x".repeat(*size)));
            }
        }
        let cut = disk.after_power_cut(|index| survivors >> (index % 64) & 1 == 1);
        drop(store);
        let after = Store::over_backend(cut).unwrap();
        let entries: Vec<(String, String)> = after.journal().unwrap();
        let owned = after.owned().unwrap();
        for entry in &acknowledged {
            prop_assert!(entries.contains(entry), "{} is lost", entry.0);
        }
        // A batch is there whole or not at all.
        prop_assert_eq!(entries.len(), owned.len());
        prop_assert!(entries.len() <= acknowledged.len() + 1);
    }
}
