//! What a plan says about tests, exclusions, power, the manipulation check and the multiverse.

use crate::experiment::load::{need_words, number, place};
use crate::experiment::plan::{Exclusions, Manipulation, Multiverse, PowerPlan, Primary, Tests};
use crate::ids::MicroPoints;
use crate::scenario::decode::{Fields, items, whole};
use crate::scenario::problem::Notes;

/// The keys of `tests`.
pub const TESTS_KEYS: [&str; 3] = ["primary", "alpha", "co_primary"];
/// The keys of `exclusions`.
pub const EXCLUSIONS_KEYS: [&str; 2] = ["retries", "cap"];
/// The keys of `power`.
pub const POWER_KEYS: [&str; 5] = ["sigma", "sigma_source", "sigma_runs", "rho", "target"];
/// The keys of `manipulation`.
pub const MANIPULATION_KEYS: [&str; 2] = ["min_exposed", "min_tier_difference"];
/// The keys of `multiverse`.
pub const MULTIVERSE_KEYS: [&str; 2] = ["near_miss", "weight_vectors"];

const DEFAULT_ALPHA: u32 = 50_000;
/// An error rate beyond one in five is no test.
const MAX_ALPHA: u32 = 200_000;
const DEFAULT_RETRIES: u32 = 1;
/// A run of ours that fails six times over will fail again; what is wrong is not chance.
const MAX_RETRIES: u32 = 5;
const DEFAULT_CAP: u32 = 50_000;
/// With half of the runs gone nothing is left of the randomisation.
const MAX_CAP: u32 = 500_000;
/// Standard deviation of totals within the published cells.
const DEFAULT_SIGMA: u32 = 130_000;
const DEFAULT_SIGMA_SOURCE: &str =
    "the published runs, whose cells have standard deviations from 0.10 to 0.16";
/// Scores from 0 to 1 cannot spread more.
const MAX_SIGMA: u32 = 500_000;
/// More runs than a pilot has; its sigma would be exact.
const MAX_SIGMA_RUNS: u32 = 100_000;
/// At 1 the difference of a pair would have no spread.
const MAX_RHO: u32 = 990_000;
const DEFAULT_TARGET: u32 = 800_000;
/// Under a half a coin would do; 1 is never reached.
const TARGETS: std::ops::RangeInclusive<u32> = 500_000..=999_000;
const DEFAULT_MIN_EXPOSED: u32 = 800_000;
const DEFAULT_MIN_TIER_DIFFERENCE: u32 = 500_000;
const WHOLE: u32 = 1_000_000;
/// The published near-miss credit with steps of half of it to both sides.
const DEFAULT_NEAR_MISS: [u32; 5] = [0, 175_000, 350_000, 525_000, 700_000];
/// A table of more rows is not read.
const MAX_NEAR_MISS: usize = 20;
const DEFAULT_WEIGHT_VECTORS: u32 = 200;
/// Each scores every run again; beyond this the share kept does not change in a digit that is printed.
const MAX_WEIGHT_VECTORS: u32 = 10_000;

/// A mapping whose keys all have defaults: `None` for a wrong one, `Some(None)` where it is not given.
fn section<'a>(
    fields: &Fields<'a>,
    key: &str,
    known: &[&str],
    notes: &mut Notes,
) -> Option<Option<Fields<'a>>> {
    let Some(node) = fields.get(key) else {
        return Some(None);
    };
    let inner = Fields::of(node, key, notes)?;
    inner.known(known, notes);
    Some(Some(inner))
}

pub(super) fn tests(fields: &Fields<'_>, notes: &mut Notes) -> Option<Tests> {
    let Some(inner) = section(fields, "tests", &TESTS_KEYS, notes)? else {
        return Some(Tests {
            primary: Primary::PairedSignFlip,
            alpha: MicroPoints(DEFAULT_ALPHA),
            co_primary: false,
        });
    };
    let words = [
        ("paired-sign-flip", Primary::PairedSignFlip),
        ("stratified-permutation", Primary::StratifiedPermutation),
    ];
    let primary = match inner.get("primary") {
        Some(_) => inner.need_word("primary", &words, notes),
        None => Some(Primary::PairedSignFlip),
    };
    let alpha = number::share_or(&inner, "alpha", DEFAULT_ALPHA, 1..=MAX_ALPHA, notes);
    let co_primary = inner.flag("co_primary", notes);
    Some(Tests {
        primary: primary?,
        alpha: alpha?,
        co_primary,
    })
}

pub(super) fn exclusions(fields: &Fields<'_>, notes: &mut Notes) -> Option<Exclusions> {
    let Some(inner) = section(fields, "exclusions", &EXCLUSIONS_KEYS, notes)? else {
        return Some(Exclusions {
            retries: DEFAULT_RETRIES,
            cap: MicroPoints(DEFAULT_CAP),
        });
    };
    let retries = number::whole_or(&inner, "retries", DEFAULT_RETRIES, 0..=MAX_RETRIES, notes);
    let cap = number::share_or(&inner, "cap", DEFAULT_CAP, 0..=MAX_CAP, notes);
    Some(Exclusions {
        retries: retries?,
        cap: cap?,
    })
}

pub(super) fn power(fields: &Fields<'_>, notes: &mut Notes) -> Option<PowerPlan> {
    let default = PowerPlan {
        sigma: MicroPoints(DEFAULT_SIGMA),
        sigma_source: DEFAULT_SIGMA_SOURCE.to_owned(),
        sigma_runs: None,
        rho: MicroPoints(0),
        target: MicroPoints(DEFAULT_TARGET),
    };
    let Some(inner) = section(fields, "power", &POWER_KEYS, notes)? else {
        return Some(default);
    };
    let sigma = number::share_or(&inner, "sigma", DEFAULT_SIGMA, 1..=MAX_SIGMA, notes);
    let sigma_source = match (inner.get("sigma_source"), inner.get("sigma")) {
        (Some(_), _) => need_words(&inner, "sigma_source", "where sigma comes from", notes),
        (None, None) => Some(default.sigma_source),
        (None, Some(_)) => {
            inner.need("sigma_source", "where that sigma comes from", notes);
            None
        }
    };
    let sigma_runs = match inner.get("sigma_runs") {
        Some(node) => whole(node, "power.sigma_runs", 2..=MAX_SIGMA_RUNS, notes).map(Some),
        None => Some(None),
    };
    let rho = number::share_or(&inner, "rho", 0, 0..=MAX_RHO, notes);
    let target = number::share_or(&inner, "target", DEFAULT_TARGET, TARGETS, notes);
    Some(PowerPlan {
        sigma: sigma?,
        sigma_source: sigma_source?,
        sigma_runs: sigma_runs?,
        rho: rho?,
        target: target?,
    })
}

pub(super) fn manipulation(fields: &Fields<'_>, notes: &mut Notes) -> Option<Manipulation> {
    let Some(inner) = section(fields, "manipulation", &MANIPULATION_KEYS, notes)? else {
        return Some(Manipulation {
            min_exposed: MicroPoints(DEFAULT_MIN_EXPOSED),
            min_tier_difference: MicroPoints(DEFAULT_MIN_TIER_DIFFERENCE),
        });
    };
    let min_exposed =
        number::share_or(&inner, "min_exposed", DEFAULT_MIN_EXPOSED, 0..=WHOLE, notes);
    let min_tier_difference = number::share_or(
        &inner,
        "min_tier_difference",
        DEFAULT_MIN_TIER_DIFFERENCE,
        0..=WHOLE,
        notes,
    );
    if min_exposed == Some(MicroPoints(0)) {
        notes.warning(
            place(&inner, "min_exposed"),
            "manipulation.min_exposed",
            "0 lets an experiment speak in which no run was treated",
        );
    }
    Some(Manipulation {
        min_exposed: min_exposed?,
        min_tier_difference: min_tier_difference?,
    })
}

pub(super) fn multiverse(fields: &Fields<'_>, notes: &mut Notes) -> Option<Multiverse> {
    let default: Vec<MicroPoints> = DEFAULT_NEAR_MISS.into_iter().map(MicroPoints).collect();
    let Some(inner) = section(fields, "multiverse", &MULTIVERSE_KEYS, notes)? else {
        return Some(Multiverse {
            near_miss: default,
            weight_vectors: DEFAULT_WEIGHT_VECTORS,
        });
    };
    let near_miss = match inner.get("near_miss") {
        Some(node) => {
            let path = "multiverse.near_miss";
            let list = items(node, path, notes);
            if list.len() > MAX_NEAR_MISS {
                let message = format!("{} credits, expected at most {MAX_NEAR_MISS}", list.len());
                notes.problem(node.at, path, message);
            }
            let credits: Vec<Option<MicroPoints>> = list
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    number::share(item, &format!("{path}[{index}]"), 0..=WHOLE, notes)
                })
                .collect();
            credits.into_iter().collect()
        }
        None => Some(default),
    };
    let weight_vectors = number::whole_or(
        &inner,
        "weight_vectors",
        DEFAULT_WEIGHT_VECTORS,
        0..=MAX_WEIGHT_VECTORS,
        notes,
    );
    Some(Multiverse {
        near_miss: near_miss?,
        weight_vectors: weight_vectors?,
    })
}
