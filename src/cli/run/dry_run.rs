//! `breakage run --dry-run`: what would change and how it would be undone, read from a fresh cluster or from the one
//! named; nothing written.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::Context;
use crate::cli::context::{Purpose, connect};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::run::Args;
use crate::clock;
use crate::cluster::fixture::Fixtures;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::reset::{self, Owned};
use crate::cluster::target::Target;
use crate::ids::Seed;
use crate::inject::change::{ObjectRef, Plan, shown};
use crate::inject::{self, InjectError, field};
use crate::scenario::model::Scenario;

pub(super) fn run(
    context: &Context,
    args: &Args,
    fixtures: &Fixtures,
    scenario: &Scenario,
    chosen: Option<Chosen>,
) -> Result<ExitCode, Failure> {
    let plan = match chosen {
        Some(chosen) => clock::block_on(chosen.pace, async {
            let target = connect(context, chosen, Purpose::LookOrRestore).await?;
            planned(&target, scenario).await
        })
        .map_err(Failure::internal)??,
        None => tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(Failure::internal)?
            .block_on(plan(Seed(args.seed), fixtures, scenario))?,
    };
    if args.json {
        context.output.json(&as_json(scenario, &plan))?;
    } else {
        context.output.print(&as_text(scenario, &plan))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn plan(seed: Seed, fixtures: &Fixtures, scenario: &Scenario) -> Result<Plan, Failure> {
    let target = Target::embedded(seed);
    let client = target.client();
    let fixture = fixtures.load(&scenario.fixture).map_err(Failure::input)?;
    reset::apply(&client, &fixture, &mut Owned::default())
        .await
        .map_err(Failure::cluster)?;
    planned(&target, scenario).await
}

/// What stands in a cluster that outlives the process is taken as it is.
async fn planned(target: &Target, scenario: &Scenario) -> Result<Plan, Failure> {
    let planned = inject::plan(&target.client(), &scenario.injector, &target.now_text()).await;
    planned.map_err(|error| {
        let missing = matches!(error, InjectError::TargetMissing { .. });
        let failure = Failure::cluster(error);
        if missing && !target.ends_with_process() {
            failure.hint("a first run makes the fixture stand there; --dry-run writes nothing")
        } else {
            failure
        }
    })
}

fn as_text(scenario: &Scenario, plan: &Plan) -> String {
    let mut text = format!(
        "{}: the injector {} would change\n\n",
        scenario.id,
        scenario.injector.type_name()
    );
    let mut table = Output::table_keeping(&["object", "field", "from", "to"], &[0]);
    for one in &plan.created {
        table.add_row([
            one.object.to_string(),
            "(the object)".to_owned(),
            shown(&one.object, None),
            shown(&one.object, one.manifest.get("spec")),
        ]);
    }
    for one in &plan.evictions {
        let to = format!("evicted; {} makes another", one.owner);
        table.add_row([
            one.pod.to_string(),
            "(the object)".to_owned(),
            "ready".to_owned(),
            to,
        ]);
    }
    for change in &plan.changes {
        for one in &change.fields {
            table.add_row([
                change.object.to_string(),
                field::dotted(&one.path),
                shown(&change.object, one.old.as_ref()),
                shown(&change.object, one.new.as_ref()),
            ]);
        }
    }
    text.push_str(&table.to_string());
    text.push_str("\n\nUndo: ");
    if !plan.created.is_empty() {
        text.push_str("the new object is deleted by its uid, unless somebody else changed it.\n");
    }
    if !plan.evictions.is_empty() {
        text.push_str("an eviction cannot be taken back, which is reported.\n");
    }
    if !plan.changes.is_empty() {
        text.push_str(
            "each field that still has the new value gets the old one back; a field that somebody \
             else\nchanged is kept and reported. ",
        );
    }
    text.push_str("Then the namespaces are reset to the fixture. Nothing was written.");
    for warning in &plan.warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    text
}

/// The object of a row.
fn row(object: &ObjectRef) -> serde_json::Value {
    json!({"kind": object.kind, "namespace": object.namespace, "name": object.name})
}

fn as_json(scenario: &Scenario, plan: &Plan) -> serde_json::Value {
    let fields: Vec<serde_json::Value> = plan
        .changes
        .iter()
        .flat_map(|change| {
            change.fields.iter().map(|one| {
                json!({
                    "kind": change.object.kind,
                    "namespace": change.object.namespace,
                    "name": change.object.name,
                    "path": field::dotted(&one.path),
                    "from": shown(&change.object, one.old.as_ref()),
                    "to": shown(&change.object, one.new.as_ref()),
                    "undo": shown(&change.object, one.old.as_ref()),
                })
            })
        })
        .collect();
    let created: Vec<serde_json::Value> = plan
        .created
        .iter()
        .map(|one| {
            let mut row = row(&one.object);
            row["spec"] = one.manifest["spec"].clone();
            row["undo"] = "deleted".into();
            row
        })
        .collect();
    let evictions: Vec<serde_json::Value> = plan
        .evictions
        .iter()
        .map(|one| {
            let mut row = row(&one.pod);
            row["made_anew_by"] = one.owner.as_str().into();
            row["undo"] = serde_json::Value::Null;
            row
        })
        .collect();
    json!({
        "scenario_id": scenario.id,
        "injector": scenario.injector.type_name(),
        "written": false,
        "created": created,
        "evictions": evictions,
        "changes": fields,
        "warnings": plan.warnings,
    })
}
