//! Cases of several scenarios.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::report::cases::inputs::{Arms, Inputs, number, numbers, summary, whole, wrong};
use crate::report::cases::single::sampled;
use crate::report::cases::{Answer, CaseError, Request};
use crate::report::published::Published;
use crate::stats::permutation::{self, Stratum};
use crate::stats::sample::{Sample, Summary};
use crate::stats::stratified::{self, Pair};

/// Rows of `[n, mean, sd, n, mean, sd]`, treatment first.
pub(super) fn stratified(request: &Request) -> Result<Answer, CaseError> {
    let rows = request.inputs.rows("strata", 6)?;
    let mut strata: Vec<Pair> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let arm = |from: usize| {
            let field = format!("strata[{at}][{from}]");
            let n = whole(row[from]).ok_or_else(|| wrong(&field, "a whole number"))?;
            summary(n, row[from + 1], row[from + 2], &field)
        };
        strata.push((arm(0)?, arm(3)?));
    }
    if strata.is_empty() {
        return Err(wrong("strata", "a list with at least one scenario"));
    }
    let inverse_variance = match stratified::inverse_variance(&strata) {
        Some(weights) => weighted(&strata, &weights)?,
        None => Answer::default()
            .with(
                "status",
                "degenerate: a scenario has no variance to weigh it by",
            )
            .value(),
    };
    Ok(Answer::default()
        .with(
            "equal",
            weighted(&strata, &stratified::equal(strata.len()))?,
        )
        .with("size", weighted(&strata, &stratified::size(&strata))?)
        .with("invvar", inverse_variance))
}

fn weighted(strata: &[Pair], weights: &[f64]) -> Result<Value, CaseError> {
    let found = stratified::pooled(strata, weights)
        .map_err(|error| CaseError::Undefined(error.to_string()))?;
    let interval = found.interval(0.95);
    let answer = Answer::default()
        .with("weights", found.weights.clone())
        .with("estimate", found.estimate)
        .with("se", found.se)
        .with_some("t", found.t)
        .with_some("df", found.df)
        .with_some("p_two_sided", found.p_two_sided)
        .with_some("ci95_low", interval.map(|interval| interval.low))
        .with_some("ci95_high", interval.map(|interval| interval.high))
        .with_some("cochran_Q", found.heterogeneity.map(|h| h.q))
        .with_some("Q_df", found.heterogeneity.map(|h| h.df))
        .with_some("Q_p", found.heterogeneity.map(|h| h.p))
        .with_some("I2", found.heterogeneity.map(|h| h.i2));
    Ok(match found.t {
        Some(_) => answer,
        None if found.estimate == 0.0 => answer.with("status", "degenerate_identical"),
        None => answer.with("status", "degenerate_separated"),
    }
    .value())
}

/// Scores of treatment and control.
type Lists = (Vec<f64>, Vec<f64>);

/// Scores by scenario, labels permuted within each, all scenarios with the same weight unless `weights` says otherwise.
pub(super) fn permutation(request: &Request) -> Result<Answer, CaseError> {
    let strata = request.inputs.list("strata")?;
    if strata.is_empty() {
        return Err(wrong("strata", "a list with at least one scenario"));
    }
    let weights = weights(&request.inputs, strata.len())?;
    let mut lists: Vec<Lists> = Vec::new();
    for (at, stratum) in strata.iter().enumerate() {
        let scores = |name: &str| {
            let field = format!("strata[{at}].{name}");
            let value = stratum
                .get(name)
                .ok_or_else(|| CaseError::Missing(field.clone()))?;
            numbers(value, &field)
        };
        lists.push((scores("x")?, scores("y")?));
    }
    // One unit for all scenarios: their differences are added up.
    let flat =
        |pick: fn(&Lists) -> &Vec<f64>| lists.iter().flat_map(pick).copied().collect::<Vec<f64>>();
    for (at, (x, y)) in lists.iter().enumerate() {
        if x.is_empty() || y.is_empty() {
            return Err(wrong(
                &format!("strata[{at}]"),
                "a scenario with scores in both arms",
            ));
        }
    }
    let all = Arms::new(flat(|l| &l.0), flat(|l| &l.1), "strata[].")?;
    let (mut from_x, mut from_y) = (all.x.iter().copied(), all.y.iter().copied());
    let samples: Vec<(Sample, Sample)> = lists
        .iter()
        .map(|(x, y)| {
            (
                Sample::new(from_x.by_ref().take(x.len())),
                Sample::new(from_y.by_ref().take(y.len())),
            )
        })
        .collect();
    let strata: Vec<Stratum> = samples
        .iter()
        .zip(weights)
        .map(|((x, y), weight)| Stratum { x, y, weight })
        .collect();
    let found = permutation::stratified(&strata);
    let answer = Answer::default()
        .with("stat", found.statistic * all.unit)
        .with("p_two_sided", found.p_two_sided)
        .with("p_greater", found.p_greater)
        .with("arrangements", counted(&found.arrangements));
    Ok(sampled(answer, &found))
}

/// Whole weights, or shares in millionths of 1.
fn weights(inputs: &Inputs, strata: usize) -> Result<Vec<u64>, CaseError> {
    if !inputs.has("weights") {
        return Ok(vec![1; strata]);
    }
    const SCALE: f64 = 1e6;
    let given = inputs.numbers("weights")?;
    let sound = given.len() == strata
        && given.iter().all(|w| (0.0..1e9).contains(w))
        && given.iter().any(|w| *w > 0.0);
    if !sound {
        return Err(wrong(
            "weights",
            "one number of at least 0 per scenario, not all 0",
        ));
    }
    if given.iter().all(|w| w.fract() == 0.0) {
        return Ok(given.iter().map(|w| *w as u64).collect());
    }
    Ok(given.iter().map(|w| (w * SCALE).round() as u64).collect())
}

/// As a number while every reader of JSON keeps its digits, then as a text.
fn counted(arrangements: &str) -> Value {
    const SAFE: u64 = 1 << 53;
    match arrangements.parse::<u64>() {
        Ok(number) if number <= SAFE => Value::from(number),
        _ => Value::from(arrangements),
    }
}

/// Scenarios by name, in the order in which they stand in the text.
struct InOrder(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = InOrder;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(InOrder(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Means of unequal arms, pooled naively and within scenarios.
pub(super) fn simpson(request: &Request) -> Result<Answer, CaseError> {
    let InOrder(scenarios) = serde_json::from_str(request.text)
        .map_err(|error| CaseError::NotACase(error.to_string()))?;
    let (mut differences, mut sums) = (Vec::new(), [[0.0; 2]; 2]);
    for (name, scenario) in &scenarios {
        let get = |key: &str| {
            let field = format!("{name}.{key}");
            let value = scenario
                .get(key)
                .ok_or_else(|| CaseError::Missing(field.clone()))?;
            number(value, &field)
        };
        let (n_t, mean_t) = (get("n_t")?, get("mean_t")?);
        let (n_c, mean_c) = (get("n_c")?, get("mean_c")?);
        if n_t <= 0.0 || n_c <= 0.0 {
            return Err(wrong(&format!("{name}.n_t and n_c"), "above 0"));
        }
        differences.push(mean_t - mean_c);
        sums[0][0] += n_t * mean_t;
        sums[0][1] += n_t;
        sums[1][0] += n_c * mean_c;
        sums[1][1] += n_c;
    }
    if differences.is_empty() {
        return Err(CaseError::Undefined("inputs has no scenario".to_owned()));
    }
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let naive = sums[0][0] / sums[0][1] - sums[1][0] / sums[1][1];
    Ok(Answer::default()
        .with("naive_pooled_delta", naive)
        .with("stratified_equal", mean)
        .with("per_scenario", differences))
}

/// Of the published density sweep: the treatment effect from the smallest tier to the largest.
pub(super) fn tier_trend(request: &Request) -> Result<Answer, CaseError> {
    let data = request.inputs.text("data")?;
    if !data.contains("published-results.json") {
        return Err(wrong(
            "data",
            "the published results: `published-results.json ...`",
        ));
    }
    let codes: Vec<f64> = if request.inputs.has("codes") {
        request.inputs.numbers("codes")?
    } else {
        vec![-1.0, 0.0, 1.0]
    };
    let published = Published::built_in();
    let groups: Vec<(Summary, f64)> = published.tier_groups(&codes).ok_or_else(|| {
        wrong(
            "codes",
            "a list of one number per tier of the published sweep",
        )
    })?;
    let found = stratified::contrast(&groups);
    Ok(Answer::default()
        .with("estimate", found.estimate)
        .with("se", found.se)
        .with_some("t", found.t)
        .with_some("df", found.df)
        .with_some("p", found.p))
}
