//! The decision matrix of a plan: its guards, and that exactly one row matches whatever comes out.

use crate::experiment::load::{Seen, need_words, some_items, unique_id};
use crate::experiment::matrix::{self, Flaw, Guard, ParsedRow, Told};
use crate::experiment::plan::{Matrix, Row};
use crate::scenario::decode::{Fields, text};
use crate::scenario::problem::{Notes, Position};
use crate::scenario::yaml::Node;

/// The keys of `matrix`.
pub const MATRIX_KEYS: [&str; 2] = ["rows", "no_decision"];
/// The keys of a row.
pub const ROW_KEYS: [&str; 5] = ["id", "decision", "when", "ships", "next"];
/// A person has to hold the matrix in the head.
const MAX_ROWS: usize = 20;

/// A row with where it and its guard stand.
struct Read {
    row: Row,
    guard: Guard,
    at: Position,
    when_at: Position,
}

/// `scenarios` is how many there are; without it the rows are only read.
pub(super) fn matrix(
    fields: &Fields<'_>,
    scenarios: Option<usize>,
    notes: &mut Notes,
) -> Option<Matrix> {
    let node = fields.need("matrix", "rows and no_decision", notes)?;
    let inner = Fields::of(node, "matrix", notes)?;
    inner.known(&MATRIX_KEYS, notes);
    let no_decision = need_words(
        &inner,
        "no_decision",
        "what happens where the treatment was not delivered or there is no estimate",
        notes,
    );
    let listed = inner.need("rows", "a list of id, when, decision and ships", notes)?;
    let list = some_items(listed, "matrix.rows", "a row", MAX_ROWS, notes)?;
    let mut seen = Seen::default();
    let decoded: Vec<Option<Read>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| row(item, &format!("matrix.rows[{index}]"), &mut seen, notes))
        .collect();
    let read: Vec<Read> = decoded.into_iter().collect::<Option<_>>()?;
    if let Some(scenarios) = scenarios {
        check(&read, scenarios as u32, listed.at, notes);
    }
    Some(Matrix {
        rows: read.into_iter().map(|read| read.row).collect(),
        no_decision: no_decision?,
    })
}

fn row(node: &Node, path: &str, seen: &mut Seen, notes: &mut Notes) -> Option<Read> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&ROW_KEYS, notes);
    let id = unique_id(&fields, seen, notes);
    let decision = need_words(&fields, "decision", "a word such as continue", notes);
    let expected = "true where the decision puts the treatment to use, else false";
    let ships = fields.need("ships", expected, notes).is_some() && fields.flag("ships", notes);
    let next = match fields.get("next") {
        Some(_) => {
            let expected = "the evidence that would decide, and its budget";
            Some(need_words(&fields, "next", expected, notes)?)
        }
        None => None,
    };
    let written = fields.need("when", "an expression over the verdicts", notes)?;
    let path = fields.sub("when");
    let when = text(written, &path, notes)?;
    let guard = match Guard::parse(&when) {
        Ok(guard) => guard,
        Err(error) => {
            notes.problem(written.position_of(error.offset), &path, error.message);
            return None;
        }
    };
    Some(Read {
        row: Row {
            id: id?,
            decision: decision?,
            when: when.trim().to_owned(),
            ships,
            next,
        },
        guard,
        at: node.at,
        when_at: written.at,
    })
}

fn check(read: &[Read], scenarios: u32, rows_at: Position, notes: &mut Notes) {
    let rows: Vec<ParsedRow> = read
        .iter()
        .map(|read| ParsedRow {
            id: read.row.id.clone(),
            ships: read.row.ships,
            guard: read.guard.clone(),
        })
        .collect();
    let when = |place: usize| format!("matrix.rows[{place}].when");
    for flaw in matrix::flaws(&rows, scenarios) {
        match flaw {
            Flaw::Hole { example } => notes.problem(
                rows_at,
                "matrix.rows",
                format!("no row matches {}; exactly one must", Told(&example)),
            ),
            Flaw::Overlap {
                first,
                second,
                example,
            } => notes.problem(
                read[second].when_at,
                &when(second),
                format!(
                    "row `{}` matches {}, and so does row `{}` before it; exactly one must",
                    rows[second].id,
                    Told(&example),
                    rows[first].id
                ),
            ),
            Flaw::ShipsHarm { row, example } => notes.problem(
                read[row].when_at,
                &when(row),
                format!(
                    "row `{}` ships and matches {}; a verdict of harm must keep it from shipping: add `and harm == 0`, \
                     and pooled other than harm",
                    rows[row].id,
                    Told(&example)
                ),
            ),
            Flaw::Unreachable { row } => notes.warning(
                read[row].at,
                &format!("matrix.rows[{row}]"),
                format!(
                    "row `{}` matches nothing that can come out of {scenarios} scenario(s)",
                    rows[row].id
                ),
            ),
        }
    }
    warn_about_undecided(read, scenarios, notes);
}

/// Where nothing is shown, a row should say what would show it.
fn warn_about_undecided(read: &[Read], scenarios: u32, notes: &mut Notes) {
    use crate::experiment::analysis::model::{Verdict, VerdictCounts};
    let undecided = VerdictCounts {
        pooled: Some(Verdict::Inconclusive),
        inconclusive: scenarios,
        ..VerdictCounts::default()
    };
    for (index, read) in read.iter().enumerate() {
        if read.row.next.is_none() && read.guard.matches(&undecided) {
            let message = format!(
                "row `{}` decides where every verdict is inconclusive; name in `next` the evidence that would decide and its \
                 budget, or that the matter stays undecided",
                read.row.id
            );
            notes.warning(read.at, &format!("matrix.rows[{index}]"), message);
        }
    }
}
