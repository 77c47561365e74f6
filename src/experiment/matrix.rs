//! The decision matrix: guards over verdicts, checked so that every outcome that can come lands in exactly one row.
//!
//! Rows are tried by enumeration, not by proof: with at most [`MAX_SCENARIOS`] scenarios there are few enough vectors of
//! verdict counts to try each with every verdict of the pooled test. Where no pooled verdict is reached at all (the
//! treatment was not delivered, the estimate is undefined) no row is asked: the plan's `no_decision` stands.

pub mod guard;
pub mod operating;

use std::fmt;

use crate::experiment::analysis::model::{Verdict, VerdictCounts};
use crate::experiment::plan::{Matrix, Row};

pub use crate::experiment::matrix::guard::{Guard, GuardError};

/// With 20 scenarios there are 230 230 vectors of counts with 7 pooled verdicts each: a second's work. Each further one
/// multiplies it by a quarter.
pub const MAX_SCENARIOS: usize = 20;

/// Every verdict, as the language spells it.
pub const VERDICTS: [(&str, Verdict); 7] = [
    ("benefit", Verdict::Benefit),
    ("harm", Verdict::Harm),
    ("equivalent", Verdict::Equivalent),
    ("no_benefit", Verdict::NoBenefit),
    ("inconclusive", Verdict::Inconclusive),
    ("degenerate", Verdict::Degenerate),
    ("invalid", Verdict::Invalid),
];

/// A row whose guard has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedRow {
    pub id: String,
    pub ships: bool,
    pub guard: Guard,
}

/// What is wrong with a matrix as a whole. Each shows one combination of verdicts as the example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No row matches.
    Hole { example: VerdictCounts },
    /// Two rows match; their places in the list.
    Overlap {
        first: usize,
        second: usize,
        example: VerdictCounts,
    },
    /// A row that ships matches although somebody is harmed.
    ShipsHarm { row: usize, example: VerdictCounts },
    /// No combination reaches the row.
    Unreachable { row: usize },
}

/// A combination as a person reads it: `pooled harm, scenarios: 2 benefit, 1 inconclusive`.
pub struct Told<'a>(pub &'a VerdictCounts);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pooled = self.0.pooled.map_or("none", word);
        write!(f, "pooled {pooled}, scenarios:")?;
        let given = VERDICTS
            .iter()
            .map(|(name, verdict)| (name, count(self.0, *verdict)))
            .filter(|(_, count)| *count > 0);
        for (place, (name, count)) in given.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma} {count} {name}")?;
        }
        Ok(())
    }
}

/// A verdict as the language spells it.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Benefit => "benefit",
        Verdict::Harm => "harm",
        Verdict::Equivalent => "equivalent",
        Verdict::NoBenefit => "no_benefit",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Degenerate => "degenerate",
        Verdict::Invalid => "invalid",
    }
}

/// How many scenarios got a verdict.
pub fn count(counts: &VerdictCounts, verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Benefit => counts.benefit,
        Verdict::Harm => counts.harm,
        Verdict::Equivalent => counts.equivalent,
        Verdict::NoBenefit => counts.no_benefit,
        Verdict::Inconclusive => counts.inconclusive,
        Verdict::Degenerate => counts.degenerate,
        Verdict::Invalid => counts.invalid,
    }
}

/// Adds one scenario's verdict.
pub fn tally(counts: &mut VerdictCounts, verdict: Verdict) {
    let slot = match verdict {
        Verdict::Benefit => &mut counts.benefit,
        Verdict::Harm => &mut counts.harm,
        Verdict::Equivalent => &mut counts.equivalent,
        Verdict::NoBenefit => &mut counts.no_benefit,
        Verdict::Inconclusive => &mut counts.inconclusive,
        Verdict::Degenerate => &mut counts.degenerate,
        Verdict::Invalid => &mut counts.invalid,
    };
    *slot += 1;
}

/// The rows with their guards read.
///
/// # Errors
/// The first guard that cannot be read, with its row's place; a loaded plan has none.
pub fn parse(matrix: &Matrix) -> Result<Vec<ParsedRow>, (usize, GuardError)> {
    let rows = matrix.rows.iter().enumerate();
    rows.map(|(place, row)| {
        Ok(ParsedRow {
            id: row.id.clone(),
            ships: row.ships,
            guard: Guard::parse(&row.when).map_err(|error| (place, error))?,
        })
    })
    .collect()
}

/// The row that a combination of verdicts lands in. Nothing where there is no pooled verdict, or no row matches: then
/// the plan's `no_decision` stands.
pub fn decide<'m>(matrix: &'m Matrix, counts: &VerdictCounts) -> Option<&'m Row> {
    counts.pooled?;
    let matches = |row: &&Row| Guard::parse(&row.when).is_ok_and(|guard| guard.matches(counts));
    matrix.rows.iter().find(matches)
}

/// The place of the first of some rows that a combination matches.
pub fn landed(rows: &[ParsedRow], counts: &VerdictCounts) -> Option<usize> {
    counts.pooled?;
    rows.iter().position(|row| row.guard.matches(counts))
}

/// Everything wrong with the rows together, one example for each kind and pair of rows.
pub fn flaws(rows: &[ParsedRow], scenarios: u32) -> Vec<Flaw> {
    let mut found: Vec<Flaw> = Vec::new();
    let mut reached = vec![false; rows.len()];
    let mut note = |flaw: Flaw| {
        if !found.iter().any(|known| is_same_kind(known, &flaw)) {
            found.push(flaw);
        }
    };
    each_combination(scenarios, |counts| {
        let mut matching = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.guard.matches(counts));
        let Some((first, row)) = matching.next() else {
            note(Flaw::Hole { example: *counts });
            return;
        };
        reached[first] = true;
        let harmed = counts.harm > 0 || counts.pooled == Some(Verdict::Harm);
        if harmed && row.ships {
            note(Flaw::ShipsHarm {
                row: first,
                example: *counts,
            });
        }
        for (second, _) in matching {
            reached[second] = true;
            note(Flaw::Overlap {
                first,
                second,
                example: *counts,
            });
        }
    });
    let unreached = reached.iter().enumerate().filter(|(_, reached)| !**reached);
    found.extend(unreached.map(|(row, _)| Flaw::Unreachable { row }));
    found
}

fn is_same_kind(known: &Flaw, new: &Flaw) -> bool {
    match (known, new) {
        (Flaw::Hole { .. }, Flaw::Hole { .. }) => true,
        (
            Flaw::Overlap { first, second, .. },
            Flaw::Overlap {
                first: a,
                second: b,
                ..
            },
        ) => (first, second) == (a, b),
        (Flaw::ShipsHarm { row, .. }, Flaw::ShipsHarm { row: other, .. }) => row == other,
        _ => false,
    }
}

/// Every vector of verdict counts of so many scenarios, with every verdict of the pooled test.
pub fn each_combination(scenarios: u32, mut visit: impl FnMut(&VerdictCounts)) {
    let mut spread = [0u32; VERDICTS.len()];
    each_spread(&mut spread, 0, scenarios, &mut |spread| {
        let [
            benefit,
            harm,
            equivalent,
            no_benefit,
            inconclusive,
            degenerate,
            invalid,
        ] = *spread;
        for (_, pooled) in VERDICTS {
            visit(&VerdictCounts {
                pooled: Some(pooled),
                benefit,
                harm,
                equivalent,
                no_benefit,
                inconclusive,
                degenerate,
                invalid,
            });
        }
    });
}

/// Every way to spread `left` over the slots from `from` on.
fn each_spread(
    spread: &mut [u32; VERDICTS.len()],
    from: usize,
    left: u32,
    visit: &mut impl FnMut(&[u32; VERDICTS.len()]),
) {
    if from + 1 == spread.len() {
        spread[from] = left;
        visit(spread);
        return;
    }
    for here in 0..=left {
        spread[from] = here;
        each_spread(spread, from + 1, left - here, visit);
    }
}

#[cfg(test)]
mod tests;
