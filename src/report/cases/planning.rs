//! Cases of distributions, power, rates and looks: numbers in, numbers out.

use serde_json::{Map, Value};

use crate::report::cases::inputs::{whole, wrong};
use crate::report::cases::single::probabilities;
use crate::report::cases::{Answer, CaseError, Request, pair};
use crate::stats::distribution::{noncentral_t_cdf, t_cdf, t_quantile, t_two_sided};
use crate::stats::power as design;
use crate::stats::proportion::{clopper_pearson, newcombe, wilson};
use crate::stats::sample::max_sd;
use crate::stats::sequential::{self as looking, Spending, e_value};

/// More looks than an experiment has blocks.
const MAX_LOOKS: u64 = 200;

pub(super) fn student_t(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    let mut answer = Answer::default();
    if inputs.has("points") {
        let points = inputs.rows("points", 2)?;
        for (at, point) in points.iter().enumerate() {
            positive(point[1], &format!("points[{at}][1]"))?;
        }
        let each = |f: fn(f64, f64) -> f64| -> Vec<f64> {
            points.iter().map(|point| f(point[0], point[1])).collect()
        };
        answer = answer
            .with("cdf", each(t_cdf))
            .with("two_sided_p", each(t_two_sided));
    }
    if inputs.has("quantiles") {
        let quantiles = inputs.rows("quantiles", 2)?;
        for (at, quantile) in quantiles.iter().enumerate() {
            positive(quantile[1], &format!("quantiles[{at}][1]"))?;
            if !(quantile[0] > 0.0 && quantile[0] < 1.0) {
                return Err(wrong(&format!("quantiles[{at}][0]"), "between 0 and 1"));
            }
        }
        let ppf: Vec<f64> = quantiles.iter().map(|q| t_quantile(q[0], q[1])).collect();
        answer = answer.with("ppf", ppf);
    }
    if answer.0.is_empty() {
        return Err(CaseError::Missing("points or inputs.quantiles".to_owned()));
    }
    Ok(answer)
}

pub(super) fn noncentral_t(request: &Request) -> Result<Answer, CaseError> {
    let rows = request.inputs.rows("t_df_nc", 3)?;
    let mut cdf = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        positive(row[1], &format!("t_df_nc[{at}][1]"))?;
        cdf.push(noncentral_t_cdf(row[0], row[1], row[2]));
    }
    Ok(Answer::default().with("cdf", cdf))
}

fn positive(value: f64, field: &str) -> Result<f64, CaseError> {
    if value > 0.0 {
        return Ok(value);
    }
    Err(wrong(field, "above 0"))
}

fn runs(value: f64, least: u64, field: &str) -> Result<u64, CaseError> {
    whole(value)
        .filter(|n| *n >= least)
        .ok_or_else(|| wrong(field, &format!("a whole number of at least {least}")))
}

/// `cases` for the power of designs, `n_for` and `mde_for` for what a power needs.
pub(super) fn power(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    let alpha = inputs.level_or("alpha", 0.05)?;
    let mut answer = Answer::default();
    if inputs.has("cases") {
        let mut found = Vec::new();
        for (at, row) in inputs.rows("cases", 4)?.iter().enumerate() {
            let field = format!("cases[{at}]");
            let sd = positive(row[1], &format!("{field}[1]"))?;
            let n1 = runs(row[2], 1, &format!("{field}[2]"))?;
            let n2 = runs(row[3], 1, &format!("{field}[3]"))?;
            if n1 + n2 < 3 {
                return Err(wrong(&field, "a design of at least 3 runs"));
            }
            found.push(design::power(row[0], sd, n1, n2, alpha));
        }
        answer = answer.with("power", found);
    }
    if inputs.has("n_for") {
        let mut found = Vec::new();
        for (at, row) in inputs.rows("n_for", 3)?.iter().enumerate() {
            let field = format!("n_for[{at}]");
            let sd = positive(row[1], &format!("{field}[1]"))?;
            let n = design::n_for(row[0], sd, row[2], alpha).ok_or_else(|| {
                CaseError::Undefined(format!("inputs.{field}: no n reaches this power"))
            })?;
            found.push(n);
        }
        answer = answer.with("n", found);
    }
    if inputs.has("mde_for") {
        let mut found = Vec::new();
        for (at, row) in inputs.rows("mde_for", 3)?.iter().enumerate() {
            let field = format!("mde_for[{at}]");
            let n = runs(row[0], 2, &format!("{field}[0]"))?;
            let sd = positive(row[1], &format!("{field}[1]"))?;
            let mde = design::mde(n, n, sd, row[2], alpha).ok_or_else(|| {
                CaseError::Undefined(format!("inputs.{field}: the power is not above alpha"))
            })?;
            found.push(mde);
        }
        answer = answer.with("mde", found);
    }
    if answer.0.is_empty() {
        return Err(CaseError::Missing("cases, n_for or mde_for".to_owned()));
    }
    Ok(answer)
}

pub(super) fn proportions(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    let mut answer = Answer::default();
    if inputs.has("k") {
        let (k, n) = (inputs.counts("k")?, inputs.counts("n")?);
        if k.len() != n.len() {
            return Err(wrong("n", "as long as inputs.k"));
        }
        let (mut scores, mut exact) = (Vec::new(), Vec::new());
        for (at, (k, n)) in k.iter().zip(&n).enumerate() {
            let found = wilson(*k, *n, 0.95).zip(clopper_pearson(*k, *n, 0.95));
            let (score, clopper) = found.ok_or_else(|| {
                CaseError::Undefined(format!(
                    "inputs.k[{at}] is {k} of {n}: not enough runs, or more than all"
                ))
            })?;
            scores.push(pair(score));
            exact.push(pair(clopper));
        }
        answer = answer.with("wilson", scores).with("clopper_pearson", exact);
    }
    if inputs.has("diff") {
        let counts = inputs.counts("diff")?;
        let [k1, n1, k2, n2] = counts[..] else {
            return Err(wrong("diff", "a list of k1, n1, k2, n2"));
        };
        let interval = newcombe(k1, n1, k2, n2).ok_or_else(|| {
            CaseError::Undefined("inputs.diff: not enough runs, or more than all".to_owned())
        })?;
        let key = format!("newcombe_{k1}of{n1}_minus_{k2}of{n2}");
        answer = answer.with(&key, pair(interval));
    }
    if answer.0.is_empty() {
        return Err(CaseError::Missing(
            "k and inputs.n, or inputs.diff".to_owned(),
        ));
    }
    Ok(answer)
}

pub(super) fn feasibility(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    let n = inputs.count("n")?;
    let (low, high) = (inputs.number_or("lo", 0.0)?, inputs.number_or("hi", 1.0)?);
    let mean = inputs.number("mean")?;
    if n < 2 {
        return Err(wrong("n", "a whole number of at least 2"));
    }
    if !(low..=high).contains(&mean) {
        return Err(wrong("mean", "between lo and hi"));
    }
    Ok(Answer::default().with("max_sd", max_sd(n, mean, low, high)))
}

/// By what the inputs hold; `looks` alone stands for boundaries or for unplanned looks, as the id says, or for both.
pub(super) fn sequential(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    if inputs.has("d") {
        return betting(request);
    }
    if inputs.has("p") {
        return e_values(request);
    }
    let looks = inputs.counts("looks")?;
    if let Some(wrong_one) = looks.iter().find(|l| !(1..=MAX_LOOKS).contains(*l)) {
        return Err(wrong(
            "looks",
            &format!("a list of numbers from 1 to {MAX_LOOKS} ({wrong_one} is in it)"),
        ));
    }
    let looks: Vec<u32> = looks.into_iter().map(|look| look as u32).collect();
    let alpha = inputs.level_or("alpha", 0.05)?;
    let mut answer = Answer::default();
    let peeking = request.rest.starts_with("peek");
    let spending = request.rest.starts_with("spend") || request.rest.starts_with("bound");
    if !peeking {
        for (key, plan) in [("obf", Spending::Obf), ("pocock", Spending::Pocock)] {
            answer = answer.with(key, Value::Object(boundaries(plan, alpha, &looks)?));
        }
    }
    if !spending {
        let critical = crate::stats::distribution::normal_quantile(1.0 - alpha / 2.0);
        let errors: Vec<f64> = looks
            .iter()
            .map(|looks| looking::peeking_error(*looks, critical))
            .collect();
        answer = answer.with("error", errors);
    }
    Ok(answer)
}

fn boundaries(plan: Spending, alpha: f64, looks: &[u32]) -> Result<Map<String, Value>, CaseError> {
    let mut found = Map::new();
    for looks in looks {
        let bounds = looking::boundaries(plan, alpha, &looking::equally_spaced(*looks))
            .ok_or_else(|| {
                CaseError::Undefined(format!("no boundaries for {looks} looks at alpha {alpha}"))
            })?;
        found.insert(looks.to_string(), Value::from(bounds));
    }
    Ok(found)
}

fn e_values(request: &Request) -> Result<Answer, CaseError> {
    let p = probabilities(request)?;
    if p.contains(&0.0) {
        return Err(wrong("p", "a list of numbers above 0"));
    }
    let kappa: Vec<f64> = p.iter().map(|p| e_value::kappa(*p)).collect();
    let integral: Vec<f64> = p.iter().map(|p| e_value::integral(*p)).collect();
    Ok(Answer::default()
        .with("kappa_product", kappa.iter().product::<f64>())
        .with("kappa", kappa)
        .with("integral_product", integral.iter().product::<f64>())
        .with("integral", integral)
        .with("fisher_combined_p", e_value::fisher_combined(&p)))
}

fn betting(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    let cap = inputs.number_or("c", 0.5)?;
    let alpha = inputs.level_or("alpha", 0.05)?;
    if !(cap > 0.0 && cap <= 1.0) {
        return Err(wrong("c", "above 0 and at most 1"));
    }
    let bets = looking::betting(&inputs.numbers("d")?, inputs.number("B")?, alpha, cap)
        .ok_or_else(|| {
            wrong(
                "d",
                "a list of differences of at most inputs.B, which is above 0",
            )
        })?;
    let rows: Vec<Value> = bets
        .iter()
        .map(|bet| Value::from(vec![bet.lambda, bet.capital_up, bet.capital_down, bet.e]))
        .collect();
    Ok(Answer::default()
        .with("lambda_Kplus_Kminus_E", rows)
        .with("anytime_p", looking::anytime_p(&bets)))
}
