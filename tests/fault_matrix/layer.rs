//! A layer around a cluster's service that does to requests what networks and API servers do, and watches what we write.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_breakage::cluster::target::Service;
use agent_breakage::inject::journal::JournalEntry;
use agent_breakage::record::StageName;
use agent_breakage::store::Store;
use bytes::Bytes;
use http::header::USER_AGENT;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt, service_fn};

use crate::workspace::Deed;

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// What is done to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Refused with a status and, perhaps, the wish to wait so many seconds.
    Refuse(u16, Option<u64>),
    /// No answer, ever.
    Hang,
    /// The connection breaks before the server has seen the request, or after it has done what was asked.
    DropBefore,
    DropAfter,
    /// The request is carried out and its answer is no JSON.
    Garble,
    /// A read is answered with the first answer that was ever given to it.
    Oldest,
    /// A read is answered with the last answer from before the trouble.
    Frozen,
    /// The clock leaps while the request is on its way.
    Leap(Duration),
    /// Something happens to the cluster's objects just before the request arrives.
    Do(Deed),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Ours,
    Agents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Any,
    Reads,
    Writes,
}

/// Which requests meet what.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    pub stage: StageName,
    pub whose: Whose,
    pub verb: Verb,
    /// Part of the path; empty for all.
    pub path: &'static str,
    /// So many matching requests pass before.
    pub after: usize,
    /// So many meet it then.
    pub times: usize,
    pub act: Act,
}

/// For ever, as far as a stage goes.
pub const ALWAYS: usize = usize::MAX;

/// The layer's memory, shared with the test.
#[derive(Clone)]
pub struct Troubles {
    inner: Arc<Mutex<Inner>>,
    store: Arc<Store>,
}

struct Inner {
    troubles: Vec<(Trouble, usize)>,
    stage: Option<StageName>,
    over: bool,
    /// Per read: the first answer and the newest that went through unharmed.
    answers: BTreeMap<String, (Bytes, Bytes)>,
    unjournalled: Vec<String>,
    /// The newest entry that stood in the journal while we wrote.
    entry: Option<JournalEntry>,
    met: usize,
}

impl Troubles {
    pub fn new(troubles: &[Trouble], store: Arc<Store>) -> Troubles {
        Troubles {
            store,
            inner: Arc::new(Mutex::new(Inner {
                troubles: troubles.iter().map(|trouble| (*trouble, 0)).collect(),
                stage: None,
                over: false,
                answers: BTreeMap::new(),
                unjournalled: Vec::new(),
                entry: None,
                met: 0,
            })),
        }
    }

    pub fn layer(&self) -> impl FnOnce(Service) -> Service {
        let troubles = self.clone();
        move |inner| {
            BoxCloneSyncService::new(service_fn(move |request| {
                let (troubles, inner) = (troubles.clone(), inner.clone());
                async move { troubles.meet(inner, request).await }
            }))
        }
    }

    pub fn enter(&self, stage: StageName) {
        self.inner.lock().unwrap().stage = Some(stage);
    }

    /// From now on nothing goes wrong.
    pub fn stop(&self) {
        self.inner.lock().unwrap().over = true;
    }

    /// Requests that met trouble.
    pub fn met(&self) -> usize {
        self.inner.lock().unwrap().met
    }

    /// Writes of ours for which nothing stood in the journal.
    pub fn unjournalled(&self) -> Vec<String> {
        self.inner.lock().unwrap().unjournalled.clone()
    }

    pub fn entry(&self) -> Option<JournalEntry> {
        self.inner.lock().unwrap().entry.clone()
    }

    async fn meet(&self, inner: Service, request: Request<Body>) -> Result<Answer, BoxError> {
        let agent = request.headers().get(USER_AGENT);
        let whose = match agent.is_some_and(|text| text.as_bytes().starts_with(b"kubectl/")) {
            true => Whose::Ours,
            false => Whose::Agents,
        };
        let read = request.method() == Method::GET;
        let dry_run = request.uri().query().is_some_and(|q| q.contains("dryRun"));
        let asked = request.uri().to_string();
        if whose == Whose::Ours && !read && !dry_run {
            self.look_into_the_journal(request.method(), request.uri().path());
        }
        match self.act_on(whose, read, request.uri().path()) {
            None => {
                let answer = inner.oneshot(request).await?;
                match read {
                    true => self.remembered(&asked, answer).await,
                    false => Ok(answer),
                }
            }
            Some(Act::Refuse(code, wait)) => Ok(refusal(code, wait)),
            Some(Act::Hang) => std::future::pending().await,
            Some(Act::DropBefore) => Err("connection refused".into()),
            Some(Act::DropAfter) => {
                inner.oneshot(request).await?;
                Err("connection reset by peer".into())
            }
            Some(Act::Garble) => {
                inner.oneshot(request).await?;
                Ok(answer(200, Bytes::from_static(b"{\"kind\": \"Depl")))
            }
            Some(act @ (Act::Oldest | Act::Frozen)) => {
                let known = self.inner.lock().unwrap().answers.get(&asked).cloned();
                match known {
                    Some((oldest, newest)) => Ok(answer(
                        200,
                        if act == Act::Oldest { oldest } else { newest },
                    )),
                    None => inner.oneshot(request).await,
                }
            }
            Some(Act::Leap(by)) => {
                tokio::time::advance(by).await;
                inner.oneshot(request).await
            }
            Some(Act::Do(deed)) => {
                deed.done(&kube::Client::new(inner.clone(), "default"))
                    .await;
                inner.oneshot(request).await
            }
        }
    }

    fn act_on(&self, whose: Whose, read: bool, path: &str) -> Option<Act> {
        let mut inner = self.inner.lock().unwrap();
        let (stage, over) = (inner.stage?, inner.over);
        let mut act = None;
        for (trouble, seen) in &mut inner.troubles {
            let verb = match trouble.verb {
                Verb::Any => true,
                Verb::Reads => read,
                Verb::Writes => !read,
            };
            let matches = trouble.stage == stage
                && trouble.whose == whose
                && verb
                && path.contains(trouble.path);
            if over || !matches {
                continue;
            }
            let due = *seen >= trouble.after && *seen - trouble.after < trouble.times;
            *seen += 1;
            if due && act.is_none() {
                act = Some(trouble.act);
            }
        }
        inner.met += usize::from(act.is_some());
        act
    }

    /// Once the fault may have been written, whatever we write must be foreseen by an entry on disk.
    fn look_into_the_journal(&self, method: &Method, path: &str) {
        let entry = JournalEntry::all(&self.store).unwrap().pop();
        let mut inner = self.inner.lock().unwrap();
        if inner.over {
            return;
        }
        let injecting = matches!(
            inner.stage,
            Some(StageName::Inject | StageName::Manifest | StageName::Work | StageName::Settle)
        );
        let named = entry.as_ref().is_some_and(|entry| {
            let mut objects = entry.plan.changes.iter();
            objects.any(|change| path.ends_with(&format!("/{}", change.object.name)))
        });
        if (injecting && !named) || (inner.stage == Some(StageName::Undo) && entry.is_none()) {
            inner.unjournalled.push(format!("{method} {path}"));
        }
        if entry.is_some() {
            inner.entry = entry;
        }
    }

    async fn remembered(&self, asked: &str, unharmed: Answer) -> Result<Answer, BoxError> {
        let (head, body) = unharmed.into_parts();
        let body = body.collect().await?.to_bytes();
        if head.status.is_success() {
            let mut inner = self.inner.lock().unwrap();
            let first = body.clone();
            let entry = inner.answers.entry(asked.to_owned());
            entry.or_insert((first, Bytes::new())).1 = body.clone();
        }
        Ok(Response::from_parts(head, boxed(body)))
    }
}

fn refusal(code: u16, wait: Option<u64>) -> Answer {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "the server is not in the mood",
    });
    let mut refusal = answer(code, Bytes::from(status.to_string()));
    if let Some(seconds) = wait {
        let headers = refusal.headers_mut();
        headers.insert(http::header::RETRY_AFTER, seconds.into());
    }
    refusal
}

fn answer(code: u16, body: Bytes) -> Answer {
    let answer = Response::builder().status(code);
    let answer = answer.header("content-type", "application/json");
    answer.body(boxed(body)).unwrap()
}

fn boxed(body: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::from(body).map_err(BoxError::from).boxed_unsync()
}
