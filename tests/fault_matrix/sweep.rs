//! Every fault of the API and of the objects at every stage, once and for good, against the table in the documentation.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_breakage::record::{RunState, StageName};

use crate::layer::{ALWAYS, Act, Trouble, Verb, Whose};
use crate::workspace::{Deed, Mender, Shop, broken, word};

const STAGES: [StageName; 8] = [
    StageName::Prepare,
    StageName::Healthy,
    StageName::Inject,
    StageName::Manifest,
    StageName::Work,
    StageName::Settle,
    StageName::Undo,
    StageName::Clean,
];

/// A row of the table: what goes wrong, to whose requests, how often in a stage.
struct Row {
    name: &'static str,
    whose: Whose,
    verb: Verb,
    times: usize,
    act: Act,
    /// Where such requests are made at all.
    stages: &'static [StageName],
}

fn row(name: &'static str, verb: Verb, times: usize, act: Act) -> Row {
    Row {
        name,
        whose: Whose::Ours,
        verb,
        times,
        act,
        stages: match verb {
            Verb::Writes => WRITING,
            Verb::Any | Verb::Reads => &STAGES,
        },
    }
}

const WRITING: &[StageName] = &[
    StageName::Prepare,
    StageName::Inject,
    StageName::Undo,
    StageName::Clean,
];

fn rows() -> Vec<Row> {
    use Verb::{Any, Reads, Writes};
    let mut rows = Vec::new();
    for (name, verb, act) in [
        ("409 once", Writes, Act::Refuse(409, None)),
        ("429 once", Any, Act::Refuse(429, None)),
        ("429, wait 5 s, once", Any, Act::Refuse(429, Some(5))),
        ("500 once", Any, Act::Refuse(500, None)),
        ("no answer once", Any, Act::Hang),
        ("a write dropped after it was done", Writes, Act::DropAfter),
        ("garbled once", Any, Act::Garble),
    ] {
        rows.push(row(name, verb, 1, act));
    }
    for (name, verb, act) in [
        ("403", Any, Act::Refuse(403, None)),
        ("409", Writes, Act::Refuse(409, None)),
        ("429", Any, Act::Refuse(429, None)),
        ("429, wait 5 s", Any, Act::Refuse(429, Some(5))),
        ("500", Any, Act::Refuse(500, None)),
        ("503", Any, Act::Refuse(503, None)),
        ("no answer", Any, Act::Hang),
        ("dropped before it was done", Any, Act::DropBefore),
        ("dropped after it was done", Any, Act::DropAfter),
        ("every write dropped after", Writes, Act::DropAfter),
        ("garbled", Any, Act::Garble),
        ("oldest reads", Reads, Act::Oldest),
        ("frozen reads", Reads, Act::Frozen),
    ] {
        rows.push(row(name, verb, ALWAYS, act));
    }
    for (name, deed) in [
        ("Deployment deleted", Deed::Delete("Deployment", "web")),
        ("Deployment replaced", Deed::Recreate("Deployment", "web")),
        ("Secret deleted", Deed::Delete("Secret", "web-key")),
        ("Secret replaced", Deed::Recreate("Secret", "web-key")),
        ("namespace deleted", Deed::Delete("Namespace", "shop")),
        ("pods deleted", Deed::DeletePods),
    ] {
        rows.push(row(name, Any, 1, Act::Do(deed)));
    }
    let leap = Act::Leap(Duration::from_secs(2 * 3600));
    rows.push(row("clock leaps 2 h", Any, 1, leap));
    for (name, act) in [
        ("agent's requests: 503", Act::Refuse(503, None)),
        ("agent's requests: no answer", Act::Hang),
        ("agent's requests: dropped after", Act::DropAfter),
    ] {
        rows.push(Row {
            whose: Whose::Agents,
            stages: &[StageName::Work],
            ..row(name, Any, ALWAYS, act)
        });
    }
    rows
}

/// How one run of the sweep ended.
struct Cell {
    word: String,
    told: String,
    broken: Vec<String>,
}

fn one(shop: &Shop, row: &Row, stage: StageName) -> Cell {
    if !row.stages.contains(&stage) {
        return Cell {
            word: "–".to_owned(),
            told: String::new(),
            broken: Vec::new(),
        };
    }
    let trouble = Trouble {
        stage,
        whose: row.whose,
        verb: row.verb,
        path: "",
        after: 0,
        times: row.times,
        act: row.act,
    };
    let outcome = shop.run(&Mender, &[trouble], 1);
    let told = format!("{} in {stage:?}", row.name);
    let message = match &outcome.finished.record.state {
        RunState::FrameworkError { message, .. } => message.clone(),
        _ => String::new(),
    };
    Cell {
        word: match outcome.met {
            0 => "not met".to_owned(),
            _ => word(&outcome.finished),
        },
        broken: broken(&outcome),
        told: format!("{told}: {message} {:?}", outcome.finished.record.undo),
    }
}

/// All runs, on as many threads as the machine has to spare.
fn sweep() -> Vec<(&'static str, Vec<Cell>)> {
    let shop = Shop::new();
    let rows = rows();
    let next = AtomicUsize::new(0);
    let cells = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(index / STAGES.len()) else {
                        return;
                    };
                    let cell = one(&shop, row, STAGES[index % STAGES.len()]);
                    cells.lock().unwrap().insert(index, cell);
                }
            });
        }
    });
    let mut cells = cells.into_inner().unwrap().into_values();
    rows.iter()
        .map(|row| (row.name, cells.by_ref().take(STAGES.len()).collect()))
        .collect()
}

fn table(swept: &[(&str, Vec<Cell>)]) -> String {
    let mut text = String::from(
        "| what goes wrong | prepare | healthy | inject | manifest | work | settle | undo | clean |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, cells) in swept {
        let words: Vec<&str> = cells.iter().map(|cell| cell.word.as_str()).collect();
        writeln!(text, "| {name} | {} |", words.join(" | ")).unwrap();
    }
    text
}

fn counts(swept: &[(&str, Vec<Cell>)]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let cells = swept.iter().flat_map(|(_, cells)| cells);
    for cell in cells.filter(|cell| cell.word != "–") {
        *counts.entry(cell.word.as_str()).or_default() += 1;
    }
    let mut text = String::from("| end | runs |\n|---|---|\n");
    for (word, count) in counts {
        writeln!(text, "| {word} | {count} |").unwrap();
    }
    text
}

#[test]
fn every_fault_at_every_stage_ends_as_the_documentation_says() {
    let swept = sweep();
    let (table, counts) = (table(&swept), counts(&swept));
    println!("{table}\n{counts}");
    let told = swept.iter().flat_map(|(_, cells)| cells);
    for cell in told.filter(|cell| !cell.told.is_empty()) {
        println!("{} {:?}", cell.told, cell.broken);
    }
    let all = swept.iter().flat_map(|(_, cells)| cells);
    assert!(all.clone().all(|cell| cell.broken.is_empty()), "see above");
    let page = include_str!("../../docs/fault-matrix.md");
    assert!(
        page.contains(&table),
        "docs/fault-matrix.md has another table"
    );
    assert!(
        page.contains(&counts),
        "docs/fault-matrix.md has other counts"
    );
}
