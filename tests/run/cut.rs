//! A process that is cut off before or after any of its writes to a cluster that outlives it, in virtual time.
//!
//! The embedded cluster stands behind a target that does not end with the process. Cutting off is dropping the run, or
//! the recovery, at the write: nothing of it runs after that, as after SIGKILL.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_breakage::agent;
use agent_breakage::cluster::remote;
use agent_breakage::cluster::state::{self, ClusterState};
use agent_breakage::cluster::target::{Service, Target};
use agent_breakage::ids::Seed;
use agent_breakage::record::{FrameworkCode, RunState};
use agent_breakage::run::recover::{Recovery, recover};
use agent_breakage::run::standing::Proof;
use agent_breakage::run::{Order, RunKind, Watching, once};
use agent_breakage::scenario::model::Scenario;
use tokio::sync::Notify;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use crate::bench::{Bench, paused};

/// Where a process is cut off.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The number of the write, from 0.
    write: u64,
    /// Once the cluster has done it, but before the answer is seen.
    after: bool,
}

/// Lets the writes before the cut through, and says when the cut is reached.
fn cutting(cut: Cut, reached: Arc<Notify>) -> impl FnOnce(Service) -> Service {
    move |inner| {
        let writes = Arc::new(AtomicU64::new(0));
        BoxCloneSyncService::new(tower::service_fn(
            move |request: http::Request<kube::client::Body>| {
                let (inner, reached, writes) = (inner.clone(), reached.clone(), writes.clone());
                async move {
                    let dry = request.uri().query().unwrap_or_default().contains("dryRun");
                    let is_write = request.method() != http::Method::GET && !dry;
                    let here = is_write && writes.fetch_add(1, Ordering::Relaxed) == cut.write;
                    if here && !cut.after {
                        reached.notify_one();
                        return std::future::pending().await;
                    }
                    let answer = inner.oneshot(request).await;
                    if here {
                        reached.notify_one();
                        return std::future::pending().await;
                    }
                    answer
                }
            },
        ))
    }
}

/// The same cluster as one that outlives the process.
async fn lasting(embedded: &Target) -> Target {
    remote::over(embedded.service(), "in process", "lasting".to_owned(), None)
        .await
        .unwrap()
}

/// Runs until the cut; false when the run came to its end before.
async fn run_until(
    bench: &Bench,
    scenario: &Scenario,
    seed: u64,
    target: &Target,
    cut: Cut,
) -> bool {
    let reached = Arc::new(Notify::new());
    let target = target.clone().behind(cutting(cut, reached.clone()));
    let order = Order {
        scenario: Arc::new(scenario.clone()),
        seed: Seed(seed),
        qualified: false,
        kind: RunKind::Incident,
        watching: Watching::AsNeeded,
        part: None,
    };
    let setting = bench.setting();
    let rules = agent::by_name("rules").unwrap();
    let mut quiet = |_| ();
    tokio::select! {
        outcome = once(&setting, &order, rules.as_ref(), &target, &mut quiet) => {
            let state = outcome.unwrap().record.state;
            assert_eq!(state, RunState::Scored, "{cut:?}");
            false
        }
        () = reached.notified() => true,
    }
}

/// Writes of a recovery at which it is cut off itself: its undo, and several within the reset.
const CUTS_OF_A_RECOVERY: [u64; 6] = [0, 1, 2, 4, 8, 14];

/// Recovers, after having been cut off itself.
async fn recovered(bench: &Bench, target: &Target) -> Recovery {
    for write in CUTS_OF_A_RECOVERY {
        let reached = Arc::new(Notify::new());
        let cut = Cut {
            write,
            after: write % 2 == 0,
        };
        let cut_off = target.clone().behind(cutting(cut, reached.clone()));
        tokio::select! {
            recovery = recover(&bench.store, Some(&cut_off)) => return recovery.unwrap(),
            () = reached.notified() => {}
        }
    }
    recover(&bench.store, Some(target)).await.unwrap()
}

fn same(before: &ClusterState, after: &ClusterState, cut: Cut) {
    assert_eq!(
        before.hash(),
        after.hash(),
        "{cut:?}: {:?}",
        before.differences(after)
    );
}

#[test]
fn a_run_cut_off_at_any_write_is_restored_and_has_one_record() {
    let bench = Bench::new();
    let scenario = bench
        .library
        .scenario("secret-missing-key-advocate")
        .unwrap();
    paused().block_on(async {
        let embedded = Target::embedded(Seed(5));
        let target = lasting(&embedded).await;
        let never = Cut {
            write: u64::MAX,
            after: false,
        };
        assert!(!run_until(&bench, &scenario, 1, &target, never).await);
        let before = state::read(&target.client()).await.unwrap();
        let mut runs = 1;
        let mut undone = 0;
        'writes: for write in 0.. {
            for after in [false, true] {
                let cut = Cut { write, after };
                runs += 1;
                if !run_until(&bench, &scenario, runs, &target, cut).await {
                    break 'writes;
                }
                let recovery = recovered(&bench, &target).await;
                undone += u64::from(matches!(recovery.proof, Some(Proof::AsReference { .. })));
                assert!(recovery.left.is_none(), "{cut:?}: {recovery:?}");
                same(&before, &state::read(&target.client()).await.unwrap(), cut);
                let records = bench.store.records().unwrap();
                assert_eq!(records.len() as u64, runs, "{cut:?}");
                let state = &records.last().unwrap().state;
                assert!(
                    matches!(
                        state,
                        RunState::FrameworkError {
                            code: FrameworkCode::Crashed,
                            ..
                        }
                    ),
                    "{cut:?}: {state:?}"
                );
                let again = recover(&bench.store, Some(&target)).await.unwrap();
                assert_eq!(again, Recovery::default(), "{cut:?}");
            }
        }
        // Two objects of the fault, the repair, the undo and the reset: each was met from both sides.
        assert!(runs > 10 && undone > 8, "{runs} runs, {undone} proven");
    });
}

#[test]
fn a_first_run_cut_off_while_the_fixture_is_made_leaves_no_namespace_behind() {
    let scenario = Bench::new()
        .library
        .scenario("replicas-zero-advocate")
        .unwrap();
    // Namespaces, their tokens, and the first objects in them.
    for write in [0, 1, 2, 5, 12] {
        for after in [false, true] {
            let cut = Cut { write, after };
            let bench = Bench::new();
            paused().block_on(async {
                let embedded = Target::embedded(Seed(5));
                let target = lasting(&embedded).await;
                let empty = state::read(&target.client()).await.unwrap();
                assert!(run_until(&bench, &scenario, 1, &target, cut).await);
                let recovery = recovered(&bench, &target).await;
                assert_eq!(
                    recovery.proof,
                    Some(Proof::Removed),
                    "{cut:?}: {recovery:?}"
                );
                same(&empty, &state::read(&target.client()).await.unwrap(), cut);
                assert_eq!(bench.store.records().unwrap().len(), 1, "{cut:?}");
            });
        }
    }
}

#[test]
fn a_namespace_that_somebody_else_makes_after_a_crash_is_not_taken_for_ours() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    paused().block_on(async {
        let embedded = Target::embedded(Seed(5));
        let target = lasting(&embedded).await;
        let cut = Cut {
            write: 0,
            after: false,
        };
        assert!(run_until(&bench, &scenario, 1, &target, cut).await);
        assert_eq!(bench.store.creating().unwrap().len(), 1);
        let resource = agent_breakage::cluster::resource::of_kind("Namespace").unwrap();
        let theirs = serde_json::json!({"metadata": {"name": "prod-advocate"}});
        resource
            .create(&target.client(), "", &theirs)
            .await
            .unwrap();
        let before = state::read(&target.client()).await.unwrap();
        let recovery = recovered(&bench, &target).await;
        assert!(recovery.left.is_none(), "{recovery:?}");
        same(&before, &state::read(&target.client()).await.unwrap(), cut);
        assert!(bench.store.creating().unwrap().is_empty());
    });
}
