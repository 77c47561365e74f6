//! What we may do in a cluster: one table of rights, printed as a manifest and asked of the server.
//!
//! Every request of this program falls under a row, and every row is needed by one. A right on a namespaced type reaches
//! every namespace, because a role cannot name namespaces that do not exist yet; the program itself writes only in those
//! it created.

use std::collections::BTreeSet;
use std::fmt;

use http::{Method, Request};
use serde_json::{Value, json};

use crate::cluster::ClusterError;
use crate::cluster::retry::{self, Asked, Repeat};

/// Rights that belong together.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// What needs them: the comment in the manifest, and the reason in messages.
    pub why: &'static str,
    /// The API group; empty for the core.
    pub group: &'static str,
    pub resources: &'static [&'static str],
    pub verbs: &'static [&'static str],
    pub need: Need,
}

/// How much depends on a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No run without it.
    Run,
    /// As [`Need::Run`], and only for the namespaces of fixtures, by name.
    OwnNamespaces,
    /// Something is told less well without it.
    Help,
}

const READ: &[&str] = &["get", "list"];
const WRITE: &[&str] = &["create", "patch", "delete"];

const fn rule(
    why: &'static str,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Rule {
    Rule {
        why,
        group,
        resources,
        verbs,
        need: Need::Run,
    }
}

const CORE_OBJECTS: &[&str] = &[
    "serviceaccounts",
    "secrets",
    "configmaps",
    "resourcequotas",
    "limitranges",
    "persistentvolumeclaims",
    "services",
    "pods",
];
const APPS: &[&str] = &["statefulsets", "daemonsets", "deployments", "replicasets"];
const BATCH: &[&str] = &["jobs", "cronjobs"];
const NETWORKING: &[&str] = &["networkpolicies", "ingresses"];
const BUDGETS: &[&str] = &["poddisruptionbudgets"];
const AUTOSCALERS: &[&str] = &["horizontalpodautoscalers"];

const STATE: &str = "The state of the cluster is read before and after a run, in every namespace, so that a change \
                     outside the namespaces of fixtures is seen";
const FIXTURES: &str = "Objects of fixtures are made, faults are patches of them or objects beside them, and everything \
                        is put back";

/// Everything that a run, a preparation or an examination asks for.
pub const RULES: &[Rule] = &[
    rule(
        "A cluster is known by the uid of kube-system; namespaces of fixtures are looked for and made",
        "",
        &["namespaces"],
        &["get", "list", "create"],
    ),
    Rule {
        why: "Only namespaces of fixtures are changed back and removed, and of these only those that were made here",
        group: "",
        resources: &["namespaces"],
        verbs: &["update", "delete"],
        need: Need::OwnNamespaces,
    },
    rule(STATE, "", &["nodes"], READ),
    rule(STATE, "", CORE_OBJECTS, READ),
    rule(STATE, "apps", APPS, READ),
    rule(STATE, "batch", BATCH, READ),
    rule(STATE, "networking.k8s.io", NETWORKING, READ),
    rule(STATE, "policy", BUDGETS, READ),
    rule(STATE, "autoscaling", AUTOSCALERS, READ),
    rule(
        STATE,
        "rbac.authorization.k8s.io",
        &["roles", "rolebindings"],
        READ,
    ),
    rule(
        STATE,
        "admissionregistration.k8s.io",
        &[
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
        ],
        READ,
    ),
    rule(
        "Agents look at what happened and at who answers for a service",
        "",
        &["events", "endpoints"],
        READ,
    ),
    rule("Agents read logs", "", &["pods/log"], &["get"]),
    rule(FIXTURES, "", CORE_OBJECTS, WRITE),
    rule(FIXTURES, "apps", APPS, WRITE),
    rule(FIXTURES, "batch", BATCH, WRITE),
    rule(FIXTURES, "networking.k8s.io", NETWORKING, WRITE),
    rule(FIXTURES, "policy", BUDGETS, WRITE),
    rule(FIXTURES, "autoscaling", AUTOSCALERS, WRITE),
    rule(
        "A fault may be an eviction",
        "",
        &["pods/eviction"],
        &["create"],
    ),
    rule(
        "Agents scale workloads",
        "apps",
        &["deployments/scale", "statefulsets/scale"],
        &["patch"],
    ),
    Rule {
        why: "The nodes' signs of life tell the cluster's time where the server's answers do not",
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["list"],
        need: Need::Help,
    },
    Rule {
        why: "Custom kinds, whose objects are not looked at, are named",
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        verbs: &["list"],
        need: Need::Help,
    },
    Rule {
        why: "Agents look at the use of CPU and memory, where the cluster measures it",
        group: "metrics.k8s.io",
        resources: &["nodes", "pods"],
        verbs: READ,
        need: Need::Help,
    },
];

/// One right of the table that is not granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    pub verb: &'static str,
    pub resource: &'static str,
    pub group: &'static str,
    /// The object, where only some are needed.
    pub name: Option<String>,
    pub why: &'static str,
    /// Whether a run is impossible without it.
    pub needed: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.name {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

/// Asks the server for every right of the table. `namespaces` are those of the fixtures, the only ones of which some
/// rights are needed.
///
/// One question lists what we may do; what that list does not hold is asked one by one, since some servers cannot tell it
/// whole.
///
/// # Errors
/// A server that does not answer, or does not let us ask.
pub async fn missing(
    client: &kube::Client,
    namespaces: &BTreeSet<String>,
) -> Result<Vec<Missing>, ClusterError> {
    let granted = Granted::ask(client).await?;
    let mut missing = Vec::new();
    for right in wanted(namespaces) {
        if !granted.covers(&right) && !is_allowed(client, &right).await? {
            missing.push(right);
        }
    }
    missing.sort();
    Ok(missing)
}

/// Every right of the table, one by one.
fn wanted(namespaces: &BTreeSet<String>) -> Vec<Missing> {
    let mut rights = Vec::new();
    for rule in RULES {
        let names: Vec<Option<&String>> = match rule.need {
            Need::OwnNamespaces => namespaces.iter().map(Some).collect(),
            Need::Run | Need::Help => vec![None],
        };
        for (resource, verb) in rule.resources.iter().flat_map(|resource| {
            let verbs = rule.verbs.iter();
            verbs.map(move |verb| (resource, verb))
        }) {
            rights.extend(names.iter().map(|name| Missing {
                verb,
                resource,
                group: rule.group,
                name: name.cloned(),
                why: rule.why,
                needed: rule.need != Need::Help,
            }));
        }
    }
    rights
}

/// The rules that the server lists as granted to us.
struct Granted(Vec<Value>);

impl Granted {
    async fn ask(client: &kube::Client) -> Result<Granted, ClusterError> {
        // In a namespace that cannot exist, so that rights in one namespace are not taken for rights in all.
        let spec = json!({"namespace": NOWHERE});
        let mut answer = review(client, "SelfSubjectRulesReview", &spec).await?;
        Ok(Granted(match answer["resourceRules"].take() {
            Value::Array(rules) => rules,
            _ => Vec::new(),
        }))
    }

    fn covers(&self, right: &Missing) -> bool {
        let holds = |rule: &Value, field: &str, wanted: &str| {
            let listed = rule[field].as_array().into_iter().flatten();
            let mut listed = listed.filter_map(Value::as_str);
            listed.any(|one| one == "*" || one == wanted)
        };
        self.0.iter().any(|rule| {
            let named = rule["resourceNames"]
                .as_array()
                .filter(|names| !names.is_empty());
            let name_fits = named.is_none()
                || right
                    .name
                    .as_deref()
                    .is_some_and(|name| holds(rule, "resourceNames", name));
            name_fits
                && holds(rule, "verbs", right.verb)
                && holds(rule, "apiGroups", right.group)
                && holds(rule, "resources", right.resource)
        })
    }
}

/// No namespace's name: they have no dots.
const NOWHERE: &str = "no.where";

async fn is_allowed(client: &kube::Client, right: &Missing) -> Result<bool, ClusterError> {
    let (resource, subresource) = right
        .resource
        .split_once('/')
        .unwrap_or((right.resource, ""));
    let spec = json!({"resourceAttributes": {
        "verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource,
        "name": right.name.as_deref().unwrap_or_default(),
    }});
    let answer = review(client, "SelfSubjectAccessReview", &spec).await?;
    Ok(answer["allowed"] == true)
}

/// Posts a review and answers its status.
async fn review(client: &kube::Client, kind: &str, spec: &Value) -> Result<Value, ClusterError> {
    let plural = format!("{}s", kind.to_lowercase());
    let path = format!("/apis/authorization.k8s.io/v1/{plural}");
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let request = Request::builder()
        .method(Method::POST)
        .uri(&path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())
        .map_err(|source| ClusterError::Request {
            path: path.clone(),
            source,
        })?;
    let asked = Asked {
        label: format!("POST {path}"),
        plural: "reviews",
        request,
    };
    // A review stores nothing.
    let mut answer = retry::send(client, &asked, Repeat::Harmless).await?;
    Ok(answer["status"].take())
}

/// Whose rights a manifest grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub namespace: String,
    pub name: String,
}

/// The manifest for `kubectl apply`: the account, a role of exactly the table, and their binding. Comments say what each
/// rule is for.
pub fn manifest(account: &Account, namespaces: &BTreeSet<String>) -> String {
    // In quotes: a name may look like a number.
    let (namespace, name) = (
        format!("{:?}", account.namespace),
        format!("{:?}", account.name),
    );
    let mut rules = String::new();
    let mut said = "";
    for rule in RULES {
        // Rules with one reason stand together under it.
        if rule.why != said {
            rules.push_str(&wrapped(rule.why));
            said = rule.why;
        }
        rules.push_str(&format!(
            "  - apiGroups: [{:?}]\n    resources: [{}]\n",
            rule.group,
            rule.resources.join(", ")
        ));
        if rule.need == Need::OwnNamespaces {
            let names: Vec<String> = namespaces.iter().map(|one| format!("{one:?}")).collect();
            rules.push_str(&format!("    resourceNames: [{}]\n", names.join(", ")));
        }
        rules.push_str(&format!("    verbs: [{}]\n", rule.verbs.join(", ")));
    }
    format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         ---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n{rules}\
         ---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {name}\n\
         subjects:\n  - kind: ServiceAccount\n    name: {name}\n    namespace: {namespace}\n"
    )
}

/// Width of comments in the manifest.
const COMMENT_WIDTH: usize = 96;

/// A text as comment lines in the list of rules.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::from("  #")];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].len() + 1 + word.len() > COMMENT_WIDTH {
            lines.push(String::from("  #"));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::resource::RESOURCES;

    fn namespaces() -> BTreeSet<String> {
        ["prod-a".to_owned(), "prod-b".to_owned()].into()
    }

    fn right(verb: &'static str, group: &'static str, resource: &'static str) -> Missing {
        Missing {
            verb,
            resource,
            group,
            name: None,
            why: "",
            needed: true,
        }
    }

    #[test]
    fn everything_whose_state_counts_may_be_read() {
        let rights = wanted(&namespaces());
        for resource in RESOURCES {
            let group = match resource.prefix.split_once('/') {
                Some(("apis", rest)) => rest.split('/').next().unwrap(),
                _ => "",
            };
            for verb in ["get", "list"] {
                let has = rights.iter().any(|right| {
                    (right.verb, right.group, right.resource) == (verb, group, resource.plural)
                });
                assert!(has, "{verb} {}", resource.plural);
            }
        }
    }

    #[test]
    fn a_listed_rule_covers_what_it_names_and_nothing_else() {
        let rules = json!([
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"]},
            {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]},
            {"verbs": ["delete"], "apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["prod-a"]},
        ]);
        let granted = Granted(rules.as_array().unwrap().clone());
        assert!(granted.covers(&right("get", "", "pods")));
        assert!(granted.covers(&right("get", "", "pods/log")));
        assert!(granted.covers(&right("patch", "apps", "deployments")));
        assert!(!granted.covers(&right("list", "", "pods")));
        assert!(!granted.covers(&right("get", "policy", "pods")));
        let named = |name: &str| Missing {
            name: Some(name.to_owned()),
            ..right("delete", "", "namespaces")
        };
        assert!(granted.covers(&named("prod-a")));
        assert!(!granted.covers(&named("prod-b")));
        // A right for one name is none for all.
        assert!(!granted.covers(&right("delete", "", "namespaces")));
    }

    #[test]
    fn only_the_namespaces_of_fixtures_may_be_removed() {
        let named: Vec<String> = wanted(&namespaces())
            .iter()
            .filter(|right| right.resource == "namespaces" && right.verb == "delete")
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            named,
            ["delete namespaces prod-a", "delete namespaces prod-b"]
        );
    }
}
