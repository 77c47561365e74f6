//! What `just real` does beyond what every push does, for the figures in the docs.

use serde_json::{Value, json};

use crate::tier::{Tier, WORKSPACE, take};

/// Set to 1: all advocate scenarios, 20 kills, and every scenario's qualification.
const VARIABLE: &str = "BREAKAGE_REAL_WHOLE";
/// Where a Prometheus answers, as for every command of the program.
const PROMETHEUS: &str = "BREAKAGE_PROMETHEUS_URL";

pub fn wanted() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "1")
}

/// One of the scenarios of the advocate services.
pub struct Listed {
    pub id: String,
    /// Whether it runs on the fixture that the short tier leaves in the cluster.
    pub plain: bool,
}

/// The scenarios that the published benchmark has for the advocate services: ten anchors and five about the shapes of
/// workloads. Without a Prometheus those that need one are left out.
pub fn advocate_scenarios(tier: &Tier) -> Vec<Listed> {
    let (code, told) = tier.told(WORKSPACE, &["scenario", "list", "--json"]);
    assert_eq!(code, Some(0), "{told}");
    let list: Value = serde_json::from_str(&told).unwrap();
    let measured = std::env::var_os(PROMETHEUS).is_some();
    let rows = list["scenarios"].as_array().unwrap().iter();
    let listed: Vec<Listed> = rows
        .filter(|row| {
            let tranche = row["source_tranche"].as_str();
            tranche.is_none_or(|tranche| tranche == "workload-shapes")
        })
        .filter(|row| measured || row["needs"] == json!([]))
        .map(|row| Listed {
            id: row["id"].as_str().unwrap().to_owned(),
            plain: row["fixture"] == json!(["advocate"]),
        })
        .collect();
    assert_eq!(listed.len(), if measured { 15 } else { 14 });
    listed
}

#[test]
fn every_scenario_qualifies_on_a_real_cluster() {
    let Some(tier) = take() else { return };
    if !wanted() {
        return;
    }
    let before = tier.held();
    let started = std::time::Instant::now();
    let (code, told) = tier.placed(WORKSPACE, &["scenario", "qualify", "--all", "--yes"]);
    println!(
        "{told}\nqualified in {:.0} s",
        started.elapsed().as_secs_f64()
    );
    assert_eq!(code, Some(0));
    tier.assert_as_before(&before, "qualify");
}

/// A table for people, as wide as its cells.
pub fn print_table<const COLUMNS: usize>(heads: &[&str; COLUMNS], rows: &[[String; COLUMNS]]) {
    let mut widths = heads.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let line = |cells: [&str; COLUMNS]| {
        let padded = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(*heads);
    for row in rows {
        line(std::array::from_fn(|column| row[column].as_str()));
    }
}
