//! The server's tables against those of a real Kubernetes: `golden/tables-v1.34.4.json` holds, for every kind, objects
//! and the cells that the API server of v1.34.4 made of them.

use agent_breakage::embedded::api::table::{IncludeObject, TableForm, table};
use agent_breakage::embedded::kind::{KINDS, Kind};
use agent_breakage::embedded::time::Time;
use serde_json::{Value, json};

const FORM: TableForm = TableForm {
    api_version: "meta.k8s.io/v1",
    include: IncludeObject::None,
};

fn recorded() -> Vec<Value> {
    let golden: Value = serde_json::from_str(include_str!("golden/tables-v1.34.4.json"))
        .expect("the recording is JSON");
    golden["kinds"].as_array().expect("a list of kinds").clone()
}

/// One kind's table as ours, at the moment of the recording.
fn ours(recorded: &Value) -> Value {
    let kind = recorded["kind"].as_str().and_then(Kind::by_name);
    let kind = kind.expect("a kind that is served");
    let now = recorded["now"].as_str().and_then(Time::parse);
    let rows = recorded["rows"].as_array().expect("a list of rows");
    let objects = rows.iter().map(|row| &row["object"]);
    let now = now.expect("a time");
    table(kind, objects, &json!({}), now, FORM, true)
}

#[test]
fn every_kind_is_recorded() {
    let recorded = recorded();
    for info in KINDS {
        let found = recorded.iter().any(|one| one["kind"] == info.name);
        assert!(found, "{}", info.name);
    }
}

#[test]
fn columns_are_those_of_the_real_server() {
    for recorded in recorded() {
        let columns: Vec<Value> = ours(&recorded)["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|column| {
                json!([
                    column["name"],
                    column["type"],
                    column["format"],
                    column["priority"]
                ])
            })
            .collect();
        assert_eq!(json!(columns), recorded["columns"], "{}", recorded["kind"]);
    }
}

#[test]
fn cells_are_those_of_the_real_server() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for recorded in recorded() {
        let table = ours(&recorded);
        let rows = recorded["rows"].as_array().expect("rows");
        for (n, theirs) in rows.iter().enumerate() {
            let ours = &table["rows"][n];
            compared += 1;
            if ours["cells"] != theirs["cells"]
                || ours.get("conditions") != theirs.get("conditions")
            {
                let name = &theirs["object"]["metadata"]["name"];
                wrong.push(format!(
                    "{} {name}\n  ours   {}\n  theirs {}",
                    recorded["kind"], ours["cells"], theirs["cells"]
                ));
            }
        }
    }
    assert!(compared > 90, "only {compared} rows were recorded");
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
