//! Agents that break down, never end, or flood: their failure and never ours, with bounded memory, and told.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::time::Duration;

use agent_breakage::agent::{Agent, AgentError, Desk, MAX_HYPOTHESES, StatedHypothesis};
use agent_breakage::gateway::record::{MAX_READS, NOT_KEPT};
use agent_breakage::ids::CategoryId;
use agent_breakage::record::{Record, RunState, StageName};
use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::layer::{ALWAYS, Act, Trouble, Verb, Whose};
use crate::workspace::{Shop, account, broken, word};

/// What an unruly agent does.
#[derive(Clone, Copy, Debug)]
enum Manner {
    PanicAtOnce,
    PanicBeforeItsFuture,
    PanicLater,
    NeverEnd,
    WakeForEver,
    Read,
    Suppose,
    Retrieve,
    GiantAccount,
    NestedBody,
    ComputeForLong,
}

struct Unruly(Manner);

impl Agent for Unruly {
    fn name(&self) -> &str {
        "unruly"
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let manner = self.0;
        if matches!(manner, Manner::PanicBeforeItsFuture) {
            panic!("no future");
        }
        Box::pin(async move {
            match manner {
                Manner::PanicAtOnce | Manner::PanicBeforeItsFuture => panic!("no"),
                Manner::PanicLater => {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    panic!("not any more");
                }
                Manner::NeverEnd => std::future::pending().await,
                Manner::WakeForEver => loop {
                    tokio::task::yield_now().await;
                },
                Manner::Read => loop {
                    let path = "/api/v1/namespaces/shop/secrets/web-key";
                    let look = http::Request::get(path).body(Vec::new()).unwrap();
                    let _ = desk.client.request::<Value>(look).await;
                },
                Manner::Suppose => {
                    for number in 0..5_000 {
                        desk.notes.hypothesis(supposition(number));
                    }
                }
                Manner::Retrieve => {
                    for number in 0..5_000 {
                        desk.past
                            .similar_to(&format!("{number} {}", "x".repeat(100)));
                    }
                }
                Manner::GiantAccount => {
                    let mut giant = account();
                    giant.final_diagnosis = "x".repeat(64 << 20);
                    desk.notes.postmortem(giant);
                }
                Manner::NestedBody => {
                    let path = "/apis/apps/v1/namespaces/shop/deployments/web";
                    let nested = format!("{}1", "{\"a\":".repeat(200_000));
                    let write = http::Request::patch(path)
                        .header("content-type", "application/merge-patch+json")
                        .body(nested.into_bytes())
                        .unwrap();
                    let _ = desk.client.request::<Value>(write).await;
                }
                Manner::ComputeForLong => {
                    let started = std::time::Instant::now();
                    while started.elapsed() < Duration::from_millis(300) {
                        std::hint::spin_loop();
                    }
                }
            }
            Ok(())
        })
    }
}

fn supposition(number: usize) -> StatedHypothesis {
    StatedHypothesis {
        primary_category: CategoryId::new(format!("category-{number}")),
        secondary_categories: Vec::new(),
        confidence: 0.5,
        reasoning: "because".to_owned(),
    }
}

fn of(manner: Manner) -> Record {
    let outcome = Shop::new().run(&Unruly(manner), &[], 1);
    assert_eq!(broken(&outcome), Vec::<String>::new(), "{manner:?}");
    let record = outcome.finished.record;
    assert_eq!(record.state, RunState::Timeout, "{manner:?}");
    assert!(
        !record.detector.fixed && record.undo.succeeded,
        "{manner:?}"
    );
    record
}

fn note(record: &Record) -> &str {
    let work = record.stages.iter().find(|s| s.stage == StageName::Work);
    work.unwrap().note.as_deref().unwrap()
}

#[test]
fn an_agent_that_breaks_down_fails_itself_whenever_it_does() {
    for manner in [
        Manner::PanicAtOnce,
        Manner::PanicBeforeItsFuture,
        Manner::PanicLater,
    ] {
        assert_eq!(note(&of(manner)), "the agent broke down", "{manner:?}");
    }
}

#[test]
fn an_agent_that_never_ends_or_never_rests_ends_with_its_budget() {
    for manner in [Manner::NeverEnd, Manner::WakeForEver, Manner::Read] {
        let record = of(manner);
        assert_eq!(note(&record), "the time budget ended", "{manner:?}");
        if matches!(manner, Manner::Read) {
            assert_eq!(record.actions.len(), MAX_READS + 1);
            let last = record.actions.last().unwrap();
            assert_eq!(last.tool, NOT_KEPT);
            assert!(last.summary.contains("further reads"), "{}", last.summary);
        }
    }
}

#[test]
fn an_agent_that_computes_for_long_takes_no_time_on_the_runs_clock() {
    of(Manner::ComputeForLong);
}

#[test]
fn what_does_not_fit_into_the_record_is_told_in_it() {
    let record = of(Manner::Suppose);
    assert_eq!(record.hypotheses.len(), MAX_HYPOTHESES);
    let newest = record.hypotheses.last().unwrap();
    assert_eq!(newest.primary_category.as_str(), "category-4999");
    assert!(note(&record).ends_with("4500 further hypotheses were not kept"));
    let record = of(Manner::Retrieve);
    let last = record.retrievals.last().unwrap();
    assert!(last.error.as_deref().unwrap().contains("no more than 200"));
    assert_eq!(record.retrievals.len(), 201);
    let record = of(Manner::GiantAccount);
    assert!(record.postmortem.is_none());
    assert!(note(&record).contains("final_diagnosis has 67108864 bytes"));
}

#[test]
fn a_body_that_is_nested_without_end_is_refused_and_does_no_harm() {
    let record = of(Manner::NestedBody);
    let action = record.actions.first().unwrap();
    assert!(
        !action.changed_something && action.status >= 400,
        "{action:?}"
    );
}

/// Asks once and leaves without an account, whatever the answer.
struct Leaver;

impl Agent for Leaver {
    fn name(&self) -> &str {
        "leaver"
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(async move {
            let path = "/api/v1/namespaces/shop/secrets/web-key";
            let look = http::Request::get(path).body(Vec::new()).unwrap();
            let _ = desk.client.request::<Value>(look).await;
            Ok(())
        })
    }
}

#[test]
fn leaving_after_a_request_without_an_answer_is_the_clusters_failure_and_after_a_refusal_the_agents()
 {
    let shop = Shop::new();
    let ended = |act| {
        let trouble = Trouble {
            stage: StageName::Work,
            whose: Whose::Agents,
            verb: Verb::Any,
            path: "",
            after: 0,
            times: ALWAYS,
            act,
        };
        word(&shop.run(&Leaver, &[trouble], 1).finished)
    };
    assert_eq!(ended(Act::DropBefore), "cluster-unreachable");
    assert_eq!(ended(Act::DropAfter), "cluster-unreachable");
    // Answers that an agent can bring about itself are its own.
    assert_eq!(ended(Act::Refuse(500, None)), "timeout");
    assert_eq!(ended(Act::Refuse(403, None)), "timeout");
}
