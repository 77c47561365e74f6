//! What a cluster offers to runs and what stands in their way, found out by asking and by trying.
//!
//! Every check answers with what was found and what to do about it. A check that could not be made says so: silence is
//! never taken for health.

mod network;
mod nodes;
mod server;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::ClusterError;
use crate::cluster::access;
use crate::cluster::fixture::Fixture;
use crate::cluster::ownership::Owned;
use crate::cluster::pull::{self, Pulled, Verdict};
use crate::cluster::resource;

/// The namespaces in which checks make pods.
pub const NAMESPACES: &[&str] = &[pull::NAMESPACE, network::NAMESPACE];

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    Good,
    /// Worth knowing; no run is harmed.
    Note,
    /// It could not be found out.
    Unknown,
    /// Some runs may fail, or not count.
    Warning,
    /// No run will succeed.
    Problem,
}

impl Grade {
    pub fn word(self) -> &'static str {
        match self {
            Grade::Good => "good",
            Grade::Note => "note",
            Grade::Unknown => "unknown",
            Grade::Warning => "warning",
            Grade::Problem => "problem",
        }
    }
}

/// One check's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable, for programs.
    pub check: &'static str,
    pub grade: Grade,
    pub found: String,
    /// Each a thing to do.
    pub todo: Vec<String>,
}

impl Finding {
    pub fn new(check: &'static str, grade: Grade, found: impl Into<String>) -> Finding {
        Finding {
            check,
            grade,
            found: found.into(),
            todo: Vec::new(),
        }
    }

    #[must_use]
    pub fn todo(mut self, what: impl Into<String>) -> Finding {
        self.todo.push(what.into());
        self
    }

    fn not_told(check: &'static str, error: &ClusterError) -> Finding {
        Finding::new(check, Grade::Unknown, chain(error))
    }
}

/// What is examined, and how far it may go.
pub struct Examination<'a> {
    pub client: kube::Client,
    /// As `/version` answers.
    pub version: String,
    /// What would be made to stand.
    pub fixture: &'a Fixture,
    /// Every namespace in which something of ours may be.
    pub namespaces: &'a BTreeSet<String>,
    /// What the services run from.
    pub image: &'a str,
    /// This machine's time; nothing where the cluster has a time of its own.
    pub now: Option<Timestamp>,
    /// Why no pods may be made; nothing where they may.
    pub only_look: Option<String>,
}

impl Examination<'_> {
    /// Every check, in the order in which a person would mend what they find. Nothing is left behind.
    pub async fn run(&self, owned: &mut Owned) -> Vec<Finding> {
        let client = &self.client;
        let mut findings = vec![server::version(&self.version)];
        findings.push(self.rights().await);
        findings.push(server::clock(client, self.now).await);
        findings.push(self.namespaces(owned).await);
        findings.extend(nodes::findings(client, self.fixture, owned).await);
        findings.push(server::limits(client, self.fixture, self.namespaces).await);
        findings.push(server::webhooks(client, self.namespaces).await);
        findings.push(server::metrics(client).await);
        if let Some(reason) = &self.only_look {
            for check in ["image", "network-policy"] {
                let found = format!("not tried: {reason}");
                findings.push(Finding::new(check, Grade::Unknown, found));
            }
            return findings;
        }
        let pulled = pull::check(client, owned, self.image).await;
        let runs = pulled.as_ref().is_ok_and(Pulled::runs_everywhere);
        findings.push(image(self.image, pulled));
        findings.push(if runs {
            network::policy(client, owned, self.image).await
        } else {
            let found = "not tried: the pods that show it need the services' image";
            Finding::new(network::CHECK, Grade::Unknown, found)
        });
        findings
    }

    async fn rights(&self) -> Finding {
        const CHECK: &str = "rights";
        let missing = match access::missing(&self.client, self.namespaces).await {
            Ok(missing) => missing,
            Err(error) => return Finding::not_told(CHECK, &error),
        };
        let listed = |needed: bool| -> Vec<String> {
            let some = missing.iter().filter(|right| right.needed == needed);
            some.map(ToString::to_string).collect()
        };
        let (needed, helpful) = (listed(true), listed(false));
        let todo = "breakage cluster rbac | kubectl apply -f -, by somebody who may";
        if !needed.is_empty() {
            let found = format!("missing: {}", needed.join(", "));
            return Finding::new(CHECK, Grade::Problem, found).todo(todo);
        }
        if !helpful.is_empty() {
            let found = format!("runs are possible; missing: {}", helpful.join(", "));
            return Finding::new(CHECK, Grade::Note, found).todo(todo);
        }
        Finding::new(CHECK, Grade::Good, "everything that runs need is allowed")
    }

    /// Namespaces that stand where fixtures want to stand and are not ours.
    async fn namespaces(&self, owned: &Owned) -> Finding {
        const CHECK: &str = "namespaces";
        let all = match resource::of_kind("Namespace") {
            Ok(kind) => kind.list(&self.client, "").await,
            Err(error) => Err(error),
        };
        let all = match all {
            Ok(all) => all,
            Err(error) => return Finding::not_told(CHECK, &error),
        };
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for namespace in &all {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            let uid = namespace["metadata"]["uid"].as_str().unwrap_or_default();
            if owned.namespaces.contains_key(uid) {
                ours.push(name);
            } else if self.namespaces.contains(name) {
                others.push(name);
            }
        }
        if !others.is_empty() {
            let found = format!(
                "{} exist and were not made from this workspace: they are never touched",
                others.join(", ")
            );
            return Finding::new(CHECK, Grade::Problem, found).todo(
                "use the workspace that made them (breakage cluster down there), remove them, or take another cluster",
            );
        }
        let found = match ours.as_slice() {
            [] => "none of ours is there, and no name is taken".to_owned(),
            ours => format!("ours: {}", ours.join(", ")),
        };
        Finding::new(CHECK, Grade::Good, found)
    }
}

/// What came of letting pods run from the image.
pub fn image(image: &str, pulled: Result<Pulled, ClusterError>) -> Finding {
    const CHECK: &str = "image";
    let pulled = match pulled {
        Ok(pulled) => pulled,
        Err(error) => return Finding::not_told(CHECK, &error),
    };
    if pulled.by_node.is_empty() {
        return Finding::new(CHECK, Grade::Problem, "no node takes pods");
    }
    let bad = pulled.by_node.iter().find(|(_, v)| **v != Verdict::Runs);
    let Some((node, verdict)) = bad else {
        let found = format!(
            "{image} runs on {} of {} nodes asked",
            pulled.by_node.len(),
            pulled.by_node.len()
        );
        return Finding::new(CHECK, Grade::Good, found);
    };
    match verdict {
        Verdict::CannotPull { message } => {
            let found = format!("node {node} cannot pull {image}: {message}");
            let mut finding = Finding::new(CHECK, Grade::Problem, found);
            finding.todo = ways_to_bring(image, pulled.always);
            finding
        }
        Verdict::CannotStart { message } => Finding::new(
            CHECK,
            Grade::Problem,
            format!("node {node} has {image} and cannot start it: {message}"),
        )
        .todo("use an image for the nodes' kind of machine: breakage fixture image packs one for this machine's"),
        Verdict::Undecided { message } => Finding::new(
            CHECK,
            Grade::Problem,
            format!("no pod came to run from {image} on node {node}: {message}"),
        )
        .todo("look at the node and at what is waiting there: kubectl describe node"),
        Verdict::Runs => Finding::new(CHECK, Grade::Good, "it runs"),
    }
}

/// The three ways to bring the image to nodes that cannot pull it.
pub fn ways_to_bring(image: &str, always: bool) -> Vec<String> {
    let mut ways = vec![format!(
        "a registry that the nodes reach: breakage fixture image --push HOST/REPO:TAG, then breakage cluster up with --image HOST/REPO:TAG in place of {image}"
    )];
    if always {
        ways.push(
            "the server makes every pod pull (imagePullPolicy Always), so that an image that is on the node already is not enough"
                .to_owned(),
        );
        return ways;
    }
    ways.insert(
        0,
        "k3d: breakage fixture image --output services.tar && k3d image import services.tar -c CLUSTER".to_owned(),
    );
    ways.push(
        "on every node: breakage fixture image --output services.tar, then there: ctr -n k8s.io images import services.tar"
            .to_owned(),
    );
    ways
}

/// An error with its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text.push_str(&format!(": {one}"));
        cause = one.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulled(verdict: Verdict, always: bool) -> Finding {
        let by_node = [("n1".to_owned(), Verdict::Runs), ("n2".to_owned(), verdict)].into();
        image(
            "lab/services:1",
            Ok(Pulled {
                by_node,
                not_asked: 0,
                always,
            }),
        )
    }

    #[test]
    fn an_image_that_cannot_be_pulled_is_told_in_the_kubelets_words_with_three_ways() {
        let message = "ErrImagePull: no such host".to_owned();
        let finding = pulled(
            Verdict::CannotPull {
                message: message.clone(),
            },
            false,
        );
        assert_eq!(finding.grade, Grade::Problem);
        assert!(finding.found.contains("n2") && finding.found.contains(&message));
        assert_eq!(finding.todo.len(), 3, "{:?}", finding.todo);
        // Where every pod must pull, bringing it to the node does not help.
        let finding = pulled(Verdict::CannotPull { message }, true);
        assert!(
            !finding.todo.concat().contains("import"),
            "{:?}",
            finding.todo
        );
    }

    #[test]
    fn one_node_that_cannot_is_a_problem_and_none_at_all_too() {
        assert_eq!(pulled(Verdict::Runs, false).grade, Grade::Good);
        let message = "exec format error".to_owned();
        assert_eq!(
            pulled(Verdict::CannotStart { message }, false).grade,
            Grade::Problem
        );
        assert_eq!(image("i", Ok(Pulled::default())).grade, Grade::Problem);
    }
}
