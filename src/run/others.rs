//! Who changed what outside our namespaces: the agent, or the cluster's other users. Pure, over what the gateway recorded.
//!
//! A cluster that is shared never stands still: other people's workloads roll, their Secrets are renewed, nodes come and
//! go. Closing it over that would close it after every run. So a difference outside our namespaces is the agent's only where
//! its recorded writes could have made it: in a namespace that it wrote to, or anywhere once it wrote something whose reach
//! is not known (an object of the whole cluster, a request that was not kept one by one). Our own writes stay in our
//! namespaces.

use std::collections::BTreeSet;

use crate::cluster::state::{ClusterState, Difference, ObjectKey};
use crate::gateway::record::NOT_KEPT;
use crate::inject::change::Plan;
use crate::record::Action;

/// How far an agent's writes may have reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    ours: BTreeSet<String>,
    /// Namespaces that are not ours and were written to.
    touched: BTreeSet<String>,
    /// It wrote what may have consequences anywhere.
    anywhere: bool,
    /// Kinds that it wrote in each of our namespaces: plural and namespace.
    within: BTreeSet<(String, String)>,
    /// What the fault itself created.
    fault: BTreeSet<ObjectKey>,
}

impl Reach {
    /// `ours` are the namespaces that we created.
    pub fn of(actions: &[Action], ours: &BTreeSet<String>) -> Reach {
        let mut reach = Reach {
            ours: ours.clone(),
            ..Reach::default()
        };
        for action in actions.iter().filter(|action| action.changed_something) {
            let plural = action.resource.split(['.', '/']).next().unwrap_or_default();
            if plural.ends_with("reviews") {
                // Questions that are asked by creating them, such as whether one may do something; nothing is stored.
                continue;
            }
            if action.tool == NOT_KEPT {
                reach.anywhere = true;
            } else if !action.namespace.is_empty() {
                reach
                    .within
                    .insert((plural.to_owned(), action.namespace.clone()));
                if !ours.contains(&action.namespace) {
                    reach.touched.insert(action.namespace.clone());
                }
            } else if plural == "namespaces" && !action.name.is_empty() {
                reach.touched.insert(action.name.clone());
            } else {
                reach.anywhere = true;
            }
        }
        reach
    }

    /// With a fault that creates objects, which are nobody else's.
    pub fn beside(mut self, plan: Option<&Plan>) -> Reach {
        let created = plan.iter().flat_map(|plan| &plan.created);
        self.fault = created
            .map(|one| ObjectKey {
                kind: one.object.kind.clone(),
                namespace: one.object.namespace.clone(),
                name: one.object.name.clone(),
            })
            .collect();
        self
    }

    /// Whether a change of an object is certainly not the agent's.
    pub fn is_others(&self, key: &ObjectKey) -> bool {
        let namespace = match key.kind.as_str() {
            "Namespace" => &key.name,
            _ => &key.namespace,
        };
        !self.anywhere && !self.ours.contains(namespace) && !self.touched.contains(namespace)
    }

    /// A state in which what others changed is as it was, and these changes.
    pub fn apart(
        &self,
        before: &ClusterState,
        now: ClusterState,
    ) -> (ClusterState, Vec<Difference>) {
        let mut others = before.differences(&now);
        others.retain(|difference| self.is_others(&difference.key));
        let now = now.taking_as_before(before, |key| self.is_others(key));
        (now, others)
    }

    /// Why a run says nothing about its agent: nodes that went or do not work, and limits that somebody put into our
    /// namespaces, where the agent had no hand in either.
    pub fn interference(&self, before: &ClusterState, now: &ClusterState) -> Vec<String> {
        let mut found = Vec::new();
        if !self.anywhere {
            let lost_before = before.lost_nodes(None);
            let mut lost = now.lost_nodes(Some(before));
            lost.retain(|node| !lost_before.contains(node));
            found.extend(lost);
        }
        for key in now.objects.keys() {
            let Some((_, plural)) = LIMITS.iter().find(|(kind, _)| *kind == key.kind) else {
                continue;
            };
            if self.fault.contains(key) {
                continue;
            }
            let agents = (*plural).to_owned();
            let by_agent = self.anywhere || self.within.contains(&(agents, key.namespace.clone()));
            if self.ours.contains(&key.namespace) && !before.objects.contains_key(key) && !by_agent
            {
                found.push(format!("{key} was created by somebody else"));
            }
        }
        found
    }
}

/// Kinds with which others may keep an agent from repairing, with their plurals.
const LIMITS: &[(&str, &str)] = &[
    ("ResourceQuota", "resourcequotas"),
    ("LimitRange", "limitranges"),
    ("NetworkPolicy", "networkpolicies"),
    ("PodDisruptionBudget", "poddisruptionbudgets"),
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::MicroPoints;

    fn action(resource: &str, namespace: &str, name: &str) -> Action {
        Action {
            at_ms: 0,
            tool: "kubectl_patch".to_owned(),
            verb: "patch".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            tier: 2,
            reversibility: MicroPoints(0),
            status: 200,
            changed_something: true,
            summary: String::new(),
        }
    }

    fn ours() -> BTreeSet<String> {
        BTreeSet::from(["prod".to_owned()])
    }

    fn state(objects: &[(&str, Value)]) -> ClusterState {
        let mut state = ClusterState::default();
        for (kind, object) in objects {
            state.add(kind, object);
        }
        state
    }

    fn object(namespace: &str, name: &str, value: u32) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name, "uid": "u"}, "data": {"k": value.to_string()}})
    }

    #[test]
    fn what_other_tenants_change_is_theirs_unless_the_agent_wrote_there() {
        let before = state(&[("ConfigMap", object("tenant", "a", 1))]);
        let now = || {
            state(&[
                ("ConfigMap", object("tenant", "a", 2)),
                ("ConfigMap", object("third", "b", 1)),
            ])
        };
        let apart = |actions: &[Action]| {
            let (same, others) = Reach::of(actions, &ours()).apart(&before, now());
            (before.differences(&same).len(), others.len())
        };
        assert_eq!(apart(&[]), (0, 2));
        assert_eq!(apart(&[action("deployments.apps", "prod", "api")]), (0, 2));
        assert_eq!(apart(&[action("configmaps", "tenant", "a")]), (1, 1));
        assert_eq!(apart(&[action("namespaces", "", "third")]), (1, 1));
        assert_eq!(apart(&[action("nodes", "", "n1")]), (2, 0));
        let mut flood = action("", "", "");
        flood.tool = NOT_KEPT.to_owned();
        assert_eq!(apart(&[flood]), (2, 0));
        let mut refused = action("configmaps", "tenant", "a");
        refused.changed_something = false;
        assert_eq!(apart(&[refused]), (0, 2));
    }

    #[test]
    fn a_change_in_our_own_namespaces_is_never_somebody_elses() {
        let before = state(&[("ConfigMap", object("prod", "a", 1))]);
        let now = state(&[("ConfigMap", object("prod", "a", 2))]);
        let (same, others) = Reach::of(&[], &ours()).apart(&before, now);
        assert_eq!((before.differences(&same).len(), others.len()), (1, 0));
    }

    #[test]
    fn a_lost_node_and_somebody_elses_quota_spoil_a_run_and_the_agents_own_do_not() {
        let node = |ready: &str| {
            json!({"metadata": {"name": "n1", "uid": "n"}, "spec": {},
                   "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady"}]}})
        };
        let quota = json!({"metadata": {"namespace": "prod", "name": "q", "uid": "q"}, "spec": {}});
        let before = state(&[("Node", node("True"))]);
        let told = |actions: &[Action], now: &[(&str, Value)]| {
            Reach::of(actions, &ours()).interference(&before, &state(now))
        };
        assert_eq!(told(&[], &[("Node", node("True"))]), [""; 0]);
        assert_eq!(
            told(&[], &[("Node", node("False"))]),
            ["Node n1: not ready (KubeletNotReady)"]
        );
        assert_eq!(told(&[], &[]), ["Node n1 is gone"]);
        assert_eq!(told(&[action("nodes", "", "n1")], &[]), [""; 0]);
        let with_quota = [("Node", node("True")), ("ResourceQuota", quota)];
        assert_eq!(
            told(&[], &with_quota),
            ["ResourceQuota prod/q was created by somebody else"]
        );
        assert_eq!(
            told(&[action("resourcequotas", "prod", "q")], &with_quota),
            [""; 0]
        );
    }
}
