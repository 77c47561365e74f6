//! Rules of loading that one file alone does not show: defaults, neutrality of alerts and of injected values.

use std::collections::BTreeSet;

use super::*;
use crate::scenario::library::Library;
use crate::scenario::model::PathStep;

const PLAIN: &str = r#"
id: web-probe
plane: config
symptom_class: not-ready
origin: synthetic:probe path renamed
difficulty: easy
tier: coverage
status: active
injector:
  type: deployment-patch
  target: {ns: prod-advocate, deploy: advocate-api}
  mutation: spec.template.spec.containers[name=api].image = shop/web:2
detector:
  fixed_when:
    - expression: deployment.prod-advocate.advocate-api.readyReplicas == desiredReplicas
scorer:
  time_budget_s: 600
  scope: [prod-advocate]
  credits: {detected: 0.2, diagnosed: 0.3, fixed: 0.3, no_regressions: 0.2}
ground_truth:
  primary_category: deployment-rollout-failure
"#;

fn library() -> Library {
    Library::open(None).unwrap_or_else(|error| panic!("{error}"))
}

fn load(text: &str) -> Scenario {
    scenario(text, "f", library().vocabulary())
        .unwrap_or_else(|problems| panic!("{problems}"))
        .scenario
}

#[test]
fn what_a_file_leaves_out_is_filled_in_without_giving_the_cause_away() {
    let scenario = load(PLAIN);
    assert_eq!(scenario.alert, "advocate-api in prod-advocate is degraded");
    assert_eq!(scenario.fixture, [FixtureId::new("advocate")]);
    assert!(
        scenario.manifest_when.is_empty()
            && scenario.protected.is_empty()
            && scenario.needs.is_empty()
    );
    let Injector::DeploymentPatch { mutation, .. } = &scenario.injector else {
        panic!("not a patch")
    };
    assert!(
        mutation.assignments[0]
            .path
            .contains(&PathStep::Named("api".to_owned()))
    );

    let elsewhere = load(&PLAIN.replace("prod-advocate", "shop"));
    assert_eq!(elsewhere.fixture, [FixtureId::new("shop")]);
    let only_prometheus = PLAIN.replace(
        "deployment.prod-advocate.advocate-api.readyReplicas == desiredReplicas",
        "error_rate{ns=prod-advocate} < 0.1",
    );
    let scenario = load(&only_prometheus);
    assert_eq!(scenario.alert, "services in prod-advocate are degraded");
    assert_eq!(scenario.needs, ["prometheus"]);
}

#[test]
fn a_condition_outside_of_the_scope_is_a_warning() {
    let text = PLAIN.replace(
        "- expression: deployment.prod-advocate",
        "- expression: deployment.prod-billing",
    );
    let loaded = scenario(&text, "f", library().vocabulary()).unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].message.contains("prod-billing"));
}

#[test]
fn the_task_holds_no_truth() {
    for scenario in library().scenarios() {
        let task = serde_json::to_string(&scenario.task()).unwrap();
        for hidden in [
            scenario.id.as_str(),
            scenario.ground_truth.primary_category.as_str(),
            scenario.injector.type_name(),
        ] {
            assert!(!task.contains(hidden), "{}: {task}", scenario.id);
        }
    }
}

#[test]
fn alerts_name_symptom_and_service_in_a_handful_of_wordings() {
    const CAUSES: [&str; 14] = [
        "secret", "password", "probe", "limit", "memory", "cpu", "image", "replica", "request",
        "env", "account", "flag", "command", "scaled",
    ];
    let library = library();
    let alerts: BTreeSet<&str> = library
        .scenarios()
        .filter(|scenario| scenario.injector.namespace() == "prod-advocate")
        .map(|scenario| scenario.alert.as_str())
        .collect();
    assert!(alerts.len() <= 4, "{alerts:?}");
    for scenario in library.scenarios() {
        let alert = scenario.alert.to_lowercase();
        let told = CAUSES.iter().find(|cause| alert.contains(*cause));
        assert!(told.is_none(), "{}: {alert}", scenario.id);
    }
}

/// The texts of a fault that an agent can read off the cluster.
fn injected_texts(injector: &Injector) -> Vec<String> {
    match injector {
        Injector::DeploymentPatch { mutation, .. } | Injector::ConfigmapPatch { mutation, .. } => {
            mutation
                .assignments
                .iter()
                .map(|one| one.value.to_string())
                .collect()
        }
        Injector::SecretContent { values, ops, .. } => {
            let values = values.iter().map(|(_, value)| value.clone());
            values.chain(ops.iter().map(ToString::to_string)).collect()
        }
        Injector::NetworkPolicy { spec, .. } => vec![spec.to_string()],
        Injector::FlagdFlag { variant, .. } => vec![variant.clone()],
        Injector::PodEvict { .. } => Vec::new(),
    }
}

#[test]
fn injected_values_do_not_give_the_game_away() {
    const TELLTALE: [&str; 14] = [
        "wrong", "broken", "fault", "chaos", "inject", "test", "invalid", "bench", "breakage",
        "bad", "fake", "dummy", "nonexist", "missing",
    ];
    for scenario in library().scenarios() {
        for text in injected_texts(&scenario.injector) {
            let lower = text.to_lowercase();
            let told = TELLTALE.iter().find(|word| lower.contains(*word));
            assert!(told.is_none(), "{}: {text}", scenario.id);
            assert!(!lower.contains(scenario.id.as_str()), "{}", scenario.id);
        }
    }
}

#[test]
fn no_injected_field_is_protected_and_every_repair_names_the_target() {
    for scenario in library().scenarios() {
        let Injector::DeploymentPatch {
            deployment,
            mutation,
            ..
        } = &scenario.injector
        else {
            continue;
        };
        for one in &mutation.assignments {
            let path = one.dotted();
            let clash = scenario.protected.iter().find(|field| {
                field.kind == "Deployment"
                    && field.name == *deployment
                    && path.starts_with(&field.path)
            });
            assert!(clash.is_none(), "{}: {path}", scenario.id);
        }
        let names = |step: &crate::scenario::model::RepairStep| match step {
            crate::scenario::model::RepairStep::Patch { name, .. }
            | crate::scenario::model::RepairStep::Restart { name, .. } => name == deployment,
        };
        assert!(
            scenario.reference_repair.iter().any(names),
            "{}",
            scenario.id
        );
    }
}
