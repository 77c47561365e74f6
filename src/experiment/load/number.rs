//! Numbers of a plan: decimals become millionths, and what would be rounded is refused.

use std::ops::RangeInclusive;

use crate::experiment::canonical::MAX_INTEGER;
use crate::ids::MicroPoints;
use crate::scenario::decode::{Fields, canonical_number, fraction, whole};
use crate::scenario::problem::Notes;
use crate::scenario::yaml::{Body, Node};

/// Where a plan names no seed.
const DEFAULT_SEED: u64 = 1;
/// Contrast weights are small whole numbers; larger ones say the same in another unit.
const MAX_CODE: i64 = 1000;
/// Cosine distance goes from 0 to 2.
const MAX_DISTANCE_MICRO: u32 = 2_000_000;

/// A decimal from 0 to 1, within a range of millionths, that must be given.
pub(super) fn need_share(
    fields: &Fields<'_>,
    key: &str,
    expected: &str,
    range: RangeInclusive<u32>,
    notes: &mut Notes,
) -> Option<MicroPoints> {
    let node = fields.need(key, expected, notes)?;
    share(node, &fields.sub(key), range, notes)
}

/// As [`need_share`], with what holds where it is not given.
pub(super) fn share_or(
    fields: &Fields<'_>,
    key: &str,
    default: u32,
    range: RangeInclusive<u32>,
    notes: &mut Notes,
) -> Option<MicroPoints> {
    match fields.get(key) {
        Some(node) => share(node, &fields.sub(key), range, notes),
        None => Some(MicroPoints(default)),
    }
}

pub(super) fn share(
    node: &Node,
    path: &str,
    range: RangeInclusive<u32>,
    notes: &mut Notes,
) -> Option<MicroPoints> {
    let share = fraction(node, path, notes)?;
    if range.contains(&share.0) {
        return Some(share);
    }
    let message = format!(
        "expected a decimal from {} to {}, found {}",
        decimal(*range.start()),
        decimal(*range.end()),
        decimal(share.0)
    );
    notes.problem(node.at, path, message);
    None
}

/// Millionths as a person writes them: 50000 is 0.05.
pub fn decimal(micro: u32) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A whole number, with what holds where it is not given.
pub(super) fn whole_or(
    fields: &Fields<'_>,
    key: &str,
    default: u32,
    range: RangeInclusive<u32>,
    notes: &mut Notes,
) -> Option<u32> {
    match fields.get(key) {
        Some(node) => whole(node, &fields.sub(key), range, notes),
        None => Some(default),
    }
}

/// The plan's seed.
pub(super) fn seed(fields: &Fields<'_>, notes: &mut Notes) -> Option<u64> {
    let Some(node) = fields.get("seed") else {
        return Some(DEFAULT_SEED);
    };
    let number = plain(node).and_then(|number| number.as_u64());
    let fits = number.filter(|number| *number <= MAX_INTEGER);
    if fits.is_none() {
        let message = format!(
            "expected a whole number from 0 to {MAX_INTEGER}, found {}",
            node.what()
        );
        notes.problem(node.at, "seed", message);
    }
    fits
}

/// A contrast's weight.
pub(super) fn code(fields: &Fields<'_>, notes: &mut Notes) -> Option<i32> {
    let node = fields.need("code", "the contrast's weight of the tier", notes)?;
    let number = plain(node).and_then(|number| number.as_i64());
    let fits = number.filter(|number| number.abs() <= MAX_CODE);
    if fits.is_none() {
        let message = format!(
            "expected a whole number from -{MAX_CODE} to {MAX_CODE}, found {}",
            node.what()
        );
        notes.problem(node.at, &fields.sub("code"), message);
    }
    fits.and_then(|number| i32::try_from(number).ok())
}

/// A cosine distance in millionths.
pub(super) fn distance(node: &Node, path: &str, notes: &mut Notes) -> Option<u32> {
    let parsed = plain(node).and_then(|number| {
        let text = number.to_string();
        let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
        let places = (places.len() <= 6).then(|| format!("{places:0<6}"))?;
        format!("{whole}{places}").parse::<u32>().ok()
    });
    let fits = parsed.filter(|micro| *micro <= MAX_DISTANCE_MICRO);
    if fits.is_none() {
        let message = format!(
            "expected a cosine distance from 0 to 2 with at most six places, found {}",
            node.what()
        );
        notes.problem(node.at, path, message);
    }
    fits
}

fn plain(node: &Node) -> Option<serde_json::Number> {
    match &node.body {
        Body::Plain(scalar) => canonical_number(&scalar.text),
        _ => None,
    }
}
