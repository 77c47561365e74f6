//! A scenario as a person or a script reads it: one row of the list, or everything about one.
//!
//! Values of Secrets are left out.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::ids::{CategoryId, FixtureId, MechanismId};
use crate::scenario::model::{
    Assignment, Condition, Credits, EvictCount, EvictTarget, Injector, Plane, ProtectedField,
    RepairStep, Scenario, Status, Tier,
};

/// One line of the list.
#[derive(Serialize)]
pub struct Row<'a> {
    pub id: &'a str,
    pub tier: Tier,
    pub plane: Plane,
    pub symptom_class: &'a str,
    pub source_tranche: Option<&'a str>,
    pub status: Status,
    pub difficulty: &'a str,
    pub primary_category: &'a CategoryId,
    pub fixture: &'a [FixtureId],
    pub needs: &'a [String],
    pub is_override: bool,
}

impl<'a> Row<'a> {
    pub fn of(scenario: &'a Scenario) -> Row<'a> {
        Row {
            id: scenario.id.as_str(),
            tier: scenario.tier,
            plane: scenario.plane,
            symptom_class: &scenario.symptom_class,
            source_tranche: scenario.source_tranche.as_deref(),
            status: scenario.status,
            difficulty: &scenario.difficulty,
            primary_category: &scenario.ground_truth.primary_category,
            fixture: &scenario.fixture,
            needs: &scenario.needs,
            is_override: scenario.is_override,
        }
    }
}

/// Everything about a scenario.
#[derive(Serialize)]
pub struct View<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    origin: &'a str,
    alert: &'a str,
    injector: Value,
    manifest_when: Vec<Value>,
    fixed_when: Vec<Value>,
    regressed_when: Vec<Value>,
    time_budget_s: u32,
    scope: &'a [String],
    credits: Credits,
    secondary_categories: &'a [CategoryId],
    mechanism: Option<&'a MechanismId>,
    #[serde(serialize_with = "protected_fields")]
    protected: &'a [ProtectedField],
    reference_repair: Vec<String>,
    sha256: &'a str,
}

impl<'a> View<'a> {
    pub fn of(scenario: &'a Scenario) -> View<'a> {
        let conditions = |list: &[Condition]| list.iter().map(condition).collect();
        View {
            row: Row::of(scenario),
            origin: &scenario.origin,
            alert: &scenario.alert,
            injector: injector(&scenario.injector),
            manifest_when: conditions(&scenario.manifest_when),
            fixed_when: conditions(&scenario.detector.fixed_when),
            regressed_when: conditions(&scenario.detector.regressed_when),
            time_budget_s: scenario.scorer.time_budget_s,
            scope: &scenario.scorer.scope,
            credits: scenario.scorer.credits,
            secondary_categories: &scenario.ground_truth.secondary_categories,
            mechanism: scenario.mechanism.as_ref(),
            protected: &scenario.protected,
            reference_repair: scenario.reference_repair.iter().map(repair).collect(),
            sha256: &scenario.sha256,
        }
    }

    /// As text for a person.
    pub fn text(&self) -> String {
        let row = &self.row;
        let mut text = format!(
            "{}  ({}, {}, {})\n",
            row.id,
            word(&row.tier),
            word(&row.status),
            row.difficulty
        );
        let mut line =
            |label: &str, value: &str| text.push_str(&format!("  {label:<12} {value}\n"));
        line("alert", self.alert);
        line("origin", self.origin);
        line("symptom", row.symptom_class);
        line("fixture", &join(row.fixture));
        if !row.needs.is_empty() {
            line("needs", &row.needs.join(", "));
        }
        for (index, part) in injector_lines(&self.injector).iter().enumerate() {
            line(if index == 0 { "fault" } else { "" }, part);
        }
        line("truth", row.primary_category.as_str());
        if !self.secondary_categories.is_empty() {
            line("secondary", &join(self.secondary_categories));
        }
        if let Some(mechanism) = self.mechanism {
            line("mechanism", mechanism.as_str());
        }
        let lists = [
            ("shows when", &self.manifest_when),
            ("fixed when", &self.fixed_when),
            ("regressed", &self.regressed_when),
        ];
        for (label, list) in lists {
            for (index, condition) in list.iter().enumerate() {
                line(
                    if index == 0 { label } else { "" },
                    &condition_line(condition),
                );
            }
        }
        line(
            "budget",
            &format!("{} s, scope {}", self.time_budget_s, self.scope.join(", ")),
        );
        for (index, entry) in self.protected_lines().iter().enumerate() {
            line(if index == 0 { "protected" } else { "" }, entry);
        }
        for (index, entry) in self.reference_repair.iter().enumerate() {
            line(if index == 0 { "repair" } else { "" }, entry);
        }
        text
    }

    /// Objects with their protected paths below them, so that the lines stay short.
    fn protected_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut last = String::new();
        for field in self.protected {
            let object = format!("{} {}/{}", field.kind, field.namespace, field.name);
            if object != last {
                lines.push(object.clone());
                last = object;
            }
            if !field.path.is_empty() {
                lines.push(format!("  {}", field.path));
            }
        }
        lines
    }
}

fn condition(condition: &Condition) -> Value {
    json!({
        "expression": condition.text,
        "sustained_for_s": condition.sustained_for_s,
        "skip_if_unevaluable": condition.skip_if_unevaluable,
        "allow_zero": condition.allow_zero,
    })
}

fn condition_line(condition: &Value) -> String {
    let mut line = condition["expression"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if let Some(seconds) = condition["sustained_for_s"]
        .as_u64()
        .filter(|seconds| *seconds > 0)
    {
        line.push_str(&format!(" for {seconds} s"));
    }
    if condition["skip_if_unevaluable"] == true {
        line.push_str(" (or skipped)");
    }
    line
}

fn injector(injector: &Injector) -> Value {
    let mut view = json!({"type": injector.type_name(), "ns": injector.namespace()});
    match injector {
        Injector::DeploymentPatch {
            deployment,
            mutation,
            ..
        } => {
            view["deployment"] = json!(deployment);
            view["mutation"] = mutation.assignments.iter().map(assignment).collect();
        }
        Injector::ConfigmapPatch {
            configmap,
            mutation,
            ..
        } => {
            view["configmap"] = json!(configmap);
            view["mutation"] = mutation.assignments.iter().map(assignment).collect();
        }
        Injector::SecretContent {
            secret,
            values,
            ops,
            ..
        } => {
            view["secret"] = json!(secret);
            view["keys"] = values.iter().map(changed_key).collect();
            view["operations"] = ops
                .iter()
                .map(|op| json!({"op": op["op"], "path": op["path"]}))
                .collect();
        }
        Injector::NetworkPolicy { spec, .. } => view["spec"] = spec.clone(),
        Injector::PodEvict {
            victims, how_many, ..
        } => {
            view["victims"] = json!(match victims {
                EvictTarget::Deployment(name) => format!("pods of Deployment {name}"),
                EvictTarget::StatefulSet(name) => format!("pods of StatefulSet {name}"),
                EvictTarget::Selector(selector) => format!("pods with {selector}"),
            });
            view["how_many"] = json!(match how_many {
                EvictCount::Percentage(percent) => format!("{percent}%"),
                EvictCount::Count(count) => count.to_string(),
            });
        }
        Injector::FlagdFlag {
            configmap,
            flag,
            variant,
            config_key,
            ..
        } => {
            view["configmap"] = json!(configmap);
            view["flag"] = json!(format!("{flag} = {variant} in {config_key}"));
        }
    }
    let restarted = injector.restart_workloads().iter();
    view["restarts"] = restarted
        .map(|one| format!("{} {}", one.kind, one.name))
        .collect();
    view
}

/// What happens to a key of a Secret, without its value.
fn changed_key((key, value): &(String, String)) -> String {
    let what = if value.is_empty() {
        "removed"
    } else {
        "replaced"
    };
    format!("{key} {what}")
}

/// The fault in lines of text: type and namespace first, then one line per further key.
fn injector_lines(view: &Value) -> Vec<String> {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut lines = vec![format!("{} in {}", text(&view["type"]), text(&view["ns"]))];
    let further = view
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "type" && *key != "ns");
    for (key, value) in further {
        match value {
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) => {
                lines.extend(items.iter().map(|item| format!("{key}: {}", text(item))));
            }
            _ => lines.push(format!("{key}: {}", text(value))),
        }
    }
    lines
}

fn assignment(assignment: &Assignment) -> String {
    format!("{} = {}", assignment.dotted(), assignment.value)
}

fn protected_fields<S: Serializer>(fields: &&[ProtectedField], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(fields.iter().map(|field| {
        json!({"kind": field.kind, "ns": field.namespace, "name": field.name, "path": field.path})
    }))
}

/// A repair step without its body, which may hold a credential.
fn repair(step: &RepairStep) -> String {
    match step {
        RepairStep::Patch {
            kind,
            namespace,
            name,
            patch_type,
            ..
        } => {
            format!("{patch_type} patch of {kind} {namespace}/{name}")
        }
        RepairStep::Restart {
            kind,
            namespace,
            name,
        } => format!("restart of {kind} {namespace}/{name}"),
    }
}

/// The word that stands for a value in files.
pub fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn join<T: ToString>(list: &[T]) -> String {
    list.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
