//! Puts an analysis into sections, in the order in which a sceptic asks: what was promised, what happened to every run,
//! was the treatment delivered, what was decided, and on which numbers that rests.

mod delivery;
mod results;
mod robustness;

use crate::experiment::analysis::model::{Analysis, Decision, Verdict};
use crate::report::document::{Block, Cell, Document, Figure, Row, Section, Table, Tone, Warning};
use crate::report::experiment::words;

/// Hex digits of a hash that are shown where the whole one stands elsewhere.
const SHORT_HASH: usize = 12;

pub(super) fn document(analysis: &Analysis) -> Document {
    let mut sections = vec![
        registration(analysis),
        delivery::flow(analysis),
        delivery::manipulation(analysis),
        decision(analysis),
    ];
    sections.extend(results::sections(analysis));
    sections.extend(robustness::sections(analysis));
    sections.push(calibration(analysis));
    sections.push(again(analysis));
    Document {
        title: analysis.registration.title.clone(),
        warnings: warnings(analysis),
        answer: answer(analysis),
        sections,
        footer: format!(
            "breakage {}, registration {}",
            analysis.registration.breakage_version, analysis.registration.hash
        ),
    }
}

/// The answer, the matrix and the results, without what they rest on.
pub(super) fn summary(analysis: &Analysis) -> Document {
    let whole = document(analysis);
    let kept = ["decision", "scenarios", "pooled", "tiers"];
    Document {
        sections: whole
            .sections
            .into_iter()
            .filter(|section| kept.contains(&section.id.as_str()))
            .collect(),
        ..whole
    }
}

fn warnings(analysis: &Analysis) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if analysis.registration.simulation {
        warnings.push(Warning {
            label: "Simulation",
            text: "The agents in this experiment are simulated. What they earn tests the instrument; the result is no \
                   evidence about real agents."
                .to_owned(),
        });
    }
    let standing = &analysis.standing;
    if !standing.confirmatory {
        let why = match standing.exploratory_because.is_empty() {
            true => "The registered plan was not kept.".to_owned(),
            false => format!("Because: {}.", standing.exploratory_because.join("; ")),
        };
        warnings.push(Warning {
            label: "Exploratory",
            text: format!(
                "Nothing in this report decides anything: it can suggest what to register next. {why}"
            ),
        });
    }
    if !standing.complete {
        warnings.push(Warning {
            label: "Incomplete",
            text: format!(
                "{} of {} planned runs have ended ({}).",
                standing.ended_runs,
                standing.planned_runs,
                words::count(
                    u64::from(standing.complete_blocks),
                    "complete block",
                    "complete blocks"
                ),
            ),
        });
    }
    if !analysis.manipulation.passed {
        warnings.push(Warning {
            label: "Treatment not delivered",
            text: "The check of the manipulation failed, so there is no verdict: what the arms scored says nothing \
                   about the treatment."
                .to_owned(),
        });
    }
    warnings
}

/// Verdict, landed row and hash.
fn answer(analysis: &Analysis) -> Vec<(String, Cell)> {
    let decision = &analysis.decision;
    let landed = match (&decision.row, analysis.standing.confirmatory) {
        (Some(row), true) => format!("{} (row {row} of the matrix)", decision.decision),
        (Some(row), false) => format!(
            "none; exploratory. The data fall in row {row} ({})",
            decision.decision
        ),
        (None, _) => format!("{} (no row: there is no verdict)", decision.decision),
    };
    let mut answer = vec![
        ("Decision".to_owned(), landed.into()),
        ("Because".to_owned(), decision.because.as_str().into()),
        ("Verdict".to_owned(), pooled_verdict(analysis)),
    ];
    if let Some(counts) = scenario_counts(decision) {
        answer.push(("Scenarios".to_owned(), counts.into()));
    }
    let status = match analysis.standing.confirmatory {
        true if !analysis.standing.amendments.is_empty() => "confirmatory, under an amended plan",
        true => "confirmatory: the registered plan was kept",
        false => "exploratory",
    };
    answer.push(("Standing".to_owned(), status.into()));
    answer.push((
        "Registration".to_owned(),
        Cell::with(analysis.registration.hash.as_str(), Tone::Code),
    ));
    answer
}

fn pooled_verdict(analysis: &Analysis) -> Cell {
    let Some(verdict) = analysis.decision.verdicts.pooled else {
        return Cell::with("none", Tone::Caution);
    };
    let note = &analysis.registration;
    let mut cell = match primary_pooled(analysis) {
        Some(pooled) => {
            let mut cell = words::verdict_cell(verdict, pooled.material, &pooled.fragile);
            cell.text.push_str(&format!(
                ": {} {}, p {}",
                words::signed(pooled.estimate),
                words::maybe_interval(pooled.ci95),
                words::p(pooled.p)
            ));
            cell
        }
        None => words::verdict_cell(verdict, false, &[]),
    };
    if verdict != Verdict::Invalid {
        cell.text.push_str("; ");
        cell.text
            .push_str(&words::meaning(verdict, note.sesoi, note.alpha));
    }
    if !analysis.standing.confirmatory {
        cell.text.push_str(" (exploratory)");
    }
    cell
}

fn primary_pooled(analysis: &Analysis) -> Option<&crate::experiment::analysis::model::Pooled> {
    analysis.comparisons.first()?.pooled.as_ref()
}

fn scenario_counts(decision: &Decision) -> Option<String> {
    let counts = &decision.verdicts;
    let parts: Vec<String> = [
        (counts.benefit, Verdict::Benefit),
        (counts.harm, Verdict::Harm),
        (counts.equivalent, Verdict::Equivalent),
        (counts.no_benefit, Verdict::NoBenefit),
        (counts.inconclusive, Verdict::Inconclusive),
        (counts.degenerate, Verdict::Degenerate),
        (counts.invalid, Verdict::Invalid),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, verdict)| format!("{number} {}", words::verdict(verdict)))
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn registration(analysis: &Analysis) -> Section {
    let note = &analysis.registration;
    let mut facts = vec![
        ("Hash", note.hash.to_string()),
        ("Id", note.id.to_string()),
        ("Authors", list_or(&note.authors, "not named")),
        ("Locked", locked(analysis)),
        ("Prior data", said(&note.prior_data)),
        (
            "Smallest effect of interest",
            format!(
                "{} of the total (scale 0 to 1)",
                words::number(note.sesoi, 3)
            ),
        ),
        (
            "Primary test",
            format!(
                "{}, alpha {}, two-sided",
                note.primary_test,
                words::number(note.alpha, 3)
            ),
        ),
        ("Rubric", note.rubric.to_string()),
        (
            "Size",
            format!(
                "{} of {} cells, {} planned runs",
                words::count(u64::from(note.blocks), "block", "blocks"),
                analysis.flow.len(),
                analysis.standing.planned_runs
            ),
        ),
        (
            "Corpus",
            format!(
                "{} entries, embedder {}, sha256 {}",
                note.corpus_entries,
                note.embedder,
                short(&note.corpus_sha256)
            ),
        ),
    ];
    facts.push(("Looks registered", looks_registered(analysis)));
    facts.push((
        "Looks taken",
        list_or(&analysis.standing.looks_taken, "none"),
    ));
    facts.push(("Amendments", list_or(&analysis.standing.amendments, "none")));
    let facts = facts
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value))
        .collect();
    let mut blocks = vec![Block::Facts(facts), hypotheses(analysis), arms(analysis)];
    blocks.push(Block::Heading("Departures from the plan".to_owned()));
    blocks.push(match analysis.standing.deviations.is_empty() {
        true => Block::Paragraph("None noted.".to_owned()),
        false => Block::List(analysis.standing.deviations.clone()),
    });
    Section {
        id: "registration".to_owned(),
        title: "Registration".to_owned(),
        blocks,
    }
}

fn locked(analysis: &Analysis) -> String {
    let note = &analysis.registration;
    let commit = match &note.git_commit {
        Some(commit) => format!("commit {}", short(commit)),
        None => "no git commit recorded".to_owned(),
    };
    format!(
        "{}, breakage {}, {commit}",
        note.locked_at, note.breakage_version
    )
}

fn looks_registered(analysis: &Analysis) -> String {
    let looks = &analysis.standing.looks_registered;
    if looks.is_empty() {
        return "none: scores stay sealed to the end".to_owned();
    }
    let after: Vec<String> = looks.iter().map(ToString::to_string).collect();
    format!("after block {}", after.join(", "))
}

fn hypotheses(analysis: &Analysis) -> Block {
    let mut table = Table::new("Hypotheses", &["<id", "hypothesis", "<predicts"]);
    for one in &analysis.registration.hypotheses {
        table.row(vec![
            one.id.as_str().into(),
            one.text.as_str().into(),
            words::direction(one.direction).into(),
        ]);
    }
    Block::Table(table)
}

fn arms(analysis: &Analysis) -> Block {
    let note = &analysis.registration;
    let mut table = Table::new("Arms", &["<arm", "<role", "agent", "retrieval", "<cluster"]);
    for one in &note.arms {
        let role = if one.id == note.control {
            "control"
        } else {
            "treatment"
        };
        let kind = if one.simulation {
            " (a simulation)"
        } else {
            ""
        };
        table.row(vec![
            one.id.as_str().into(),
            role.into(),
            format!("{} {}{kind}", one.agent, one.agent_version).into(),
            one.retrieval.as_str().into(),
            one.context.as_deref().unwrap_or("embedded").into(),
        ]);
    }
    Block::Table(table)
}

fn decision(analysis: &Analysis) -> Section {
    let decision = &analysis.decision;
    let rule = match &decision.row {
        Some(row) => {
            let when = decision.rows.iter().find(|one| one.id == *row);
            let when = when.map_or("", |row| row.when.as_str());
            match analysis.standing.confirmatory {
                true => format!(
                    "The data landed in row {row}: {when}. Decision: {}.",
                    decision.decision
                ),
                false => format!(
                    "Exploratory: the data fall in row {row} ({when}), and nothing is decided by it."
                ),
            }
        }
        None => format!(
            "No row applies. Registered for this case: {}.",
            decision.no_decision
        ),
    };
    // The rule is the reason where a row was landed in.
    let said = rule.contains(&decision.because);
    let mut blocks = vec![Block::Paragraph(rule)];
    if !said {
        blocks.push(Block::Paragraph(decision.because.clone()));
    }
    blocks.push(Block::Table(matrix(decision)));
    if !decision.operating.is_empty() {
        blocks.push(Block::Paragraph(
            "How often each row is landed in when the true difference is known, at the planned size. A row that is \
             landed in often where nothing differs is weak evidence."
                .to_owned(),
        ));
        blocks.push(Block::Figure(Figure::Operating));
        blocks.push(Block::Table(operating(decision)));
    }
    Section {
        id: "decision".to_owned(),
        title: "Decision".to_owned(),
        blocks,
    }
}

fn matrix(decision: &Decision) -> Table {
    let mut table = Table::new(
        "Decision matrix as registered",
        &["", "<row", "when", "decision", "what it would take"],
    );
    for row in &decision.rows {
        let landed = decision.row.as_ref() == Some(&row.id);
        table.rows.push(Row {
            cells: vec![
                (if landed { ">" } else { "" }).into(),
                row.id.as_str().into(),
                Cell::with(row.when.as_str(), Tone::Code),
                row.decision.as_str().into(),
                row.next.as_deref().unwrap_or(words::MISSING).into(),
            ],
            marked: landed,
        });
    }
    let none = decision.row.is_none();
    table.rows.push(Row {
        cells: vec![
            (if none { ">" } else { "" }).into(),
            "none".into(),
            "no verdict".into(),
            decision.no_decision.as_str().into(),
            words::MISSING.into(),
        ],
        marked: none,
    });
    table
}

/// Patterns in the order in which they were computed.
pub(super) fn patterns(decision: &Decision) -> Vec<&str> {
    let mut patterns: Vec<&str> = Vec::new();
    for (pattern, _, _) in &decision.operating {
        if !patterns.contains(&pattern.as_str()) {
            patterns.push(pattern);
        }
    }
    patterns
}

/// Rows of the matrix that the operating characteristics name, in the matrix' order, `none` last.
pub(super) fn operating_rows(decision: &Decision) -> Vec<&str> {
    let mut rows: Vec<&str> = decision.rows.iter().map(|row| row.id.as_str()).collect();
    for (_, row, _) in &decision.operating {
        if !rows.contains(&row.as_str()) {
            rows.push(row);
        }
    }
    rows
}

pub(super) fn probability(decision: &Decision, pattern: &str, row: &str) -> Option<f64> {
    decision
        .operating
        .iter()
        .find(|(p, r, _)| p == pattern && r == row)
        .map(|(_, _, probability)| *probability)
}

fn operating(decision: &Decision) -> Table {
    let patterns = patterns(decision);
    let headings: Vec<String> = std::iter::once("<row".to_owned())
        .chain(patterns.iter().map(|pattern| format!(">{pattern}")))
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new("Probability of each row by true difference", &headings);
    for row in operating_rows(decision) {
        let mut cells = vec![Cell::from(row)];
        cells.extend(patterns.iter().map(|pattern| {
            Cell::from(words::maybe(
                probability(decision, pattern, row),
                words::percent,
            ))
        }));
        table.rows.push(Row {
            cells,
            marked: decision.row.as_deref() == Some(row),
        });
    }
    table
}

fn calibration(analysis: &Analysis) -> Section {
    let blocks = match &analysis.calibration {
        None => vec![Block::Paragraph(
            "No calibration of this build is known. It measures how often the whole pipeline reports a difference \
             between equal arms, and how often it finds a planted one."
                .to_owned(),
        ),
        Block::Command("breakage calibrate".to_owned())],
        Some(note) => {
            let mut facts = vec![
                (
                    "Build".to_owned(),
                    format!("breakage {}, {}", note.breakage_version, note.at),
                ),
                (
                    "Equal arms".to_owned(),
                    format!(
                        "told apart in {} of {} datasets, 99 % interval {}",
                        note.aa_rejected,
                        note.aa_datasets,
                        words::bare_interval(note.aa_ci99, 4)
                    ),
                ),
            ];
            if let Some(planted) = note.planted {
                facts.push((
                    format!("Planted {}", words::signed(planted)),
                    format!("found in {} of {} datasets", note.planted_found, note.planted_datasets),
                ));
            }
            vec![Block::Facts(facts)]
        }
    };
    Section {
        id: "calibration".to_owned(),
        title: "Calibration of the instrument".to_owned(),
        blocks,
    }
}

fn again(analysis: &Analysis) -> Section {
    let standing = &analysis.standing;
    Section {
        id: "again".to_owned(),
        title: "Computing this again".to_owned(),
        blocks: vec![
            Block::Facts(vec![(
                "Ledger head".to_owned(),
                standing.ledger_head.clone(),
            )]),
            Block::Paragraph("The same ledger gives the same bytes:".to_owned()),
            Block::Command(standing.reanalysis.clone()),
        ],
    }
}

fn short(hash: &str) -> String {
    hash.chars().take(SHORT_HASH).collect()
}

fn said(text: &str) -> String {
    if text.trim().is_empty() {
        "nothing said".to_owned()
    } else {
        text.to_owned()
    }
}

fn list_or(items: &[String], empty: &str) -> String {
    if items.is_empty() {
        empty.to_owned()
    } else {
        items.join("; ")
    }
}
