//! Cases of one comparison.

use serde_json::Value;

use crate::report::cases::inputs::{list, numbers, whole, wrong};
use crate::report::cases::{Answer, CaseError, Request, pair};
use crate::stats::exclusion::{self, Table};
use crate::stats::permutation::{Method, Permutation, sign_flip, two_sample};
use crate::stats::proportion::{binomial_two_sided, clopper_pearson};
use crate::stats::sample::{Sample, Summary};
use crate::stats::welch::{Degenerate, Welch};
use crate::stats::{bca as bootstrap, brunner_munzel as placements, drift as order};
use crate::stats::{effect, multiplicity as adjust, paired as pairs, tost as equivalence};

/// What a test without a t is answered with.
pub(super) fn status(degenerate: Degenerate) -> &'static str {
    match degenerate {
        Degenerate::Identical => "degenerate_identical",
        Degenerate::Separated => "degenerate_separated",
    }
}

/// Two arms by their scores, or by their summaries.
struct Compared {
    x: Summary,
    y: Summary,
    samples: Option<(Sample, Sample)>,
}

impl Compared {
    fn new(request: &Request) -> Result<Compared, CaseError> {
        if request.inputs.has("x") || request.inputs.has("y") {
            let arms = request.inputs.arms()?;
            let (x, y) = arms.summaries()?;
            return Ok(Compared {
                x,
                y,
                samples: Some(arms.samples()),
            });
        }
        let (x, y) = request.inputs.summaries()?;
        Ok(Compared {
            x,
            y,
            samples: None,
        })
    }

    fn welch(&self) -> Result<Welch, Answer> {
        crate::stats::welch::welch(&self.x, &self.y)
            .map_err(|degenerate| self.without_t(degenerate))
    }

    /// Both arms are constant, so that the permutation p is known from the sizes alone.
    fn without_t(&self, degenerate: Degenerate) -> Answer {
        let constant = |arm: &Summary, level: i64| {
            // What a permutation of more runs than this would take is not worth it for a case.
            const MOST: u64 = 10_000;
            Sample::new((0..arm.n.min(MOST)).map(|_| level))
        };
        let p = match (&self.samples, degenerate) {
            (Some((x, y)), _) => two_sample(x, y).p_two_sided,
            (None, Degenerate::Identical) => 1.0,
            (None, Degenerate::Separated) => {
                two_sample(&constant(&self.x, 1), &constant(&self.y, 0)).p_two_sided
            }
        };
        Answer::default()
            .with("delta", self.x.mean - self.y.mean)
            .with("status", status(degenerate))
            .with("permutation_p_two_sided", p)
    }
}

pub(super) fn welch(request: &Request) -> Result<Answer, CaseError> {
    let compared = Compared::new(request)?;
    Ok(match compared.welch() {
        Ok(welch) => Answer::default()
            .with("delta", welch.delta)
            .with("se", welch.se)
            .with("t", welch.t)
            .with("df", welch.df)
            .with("p_two_sided", welch.p_two_sided())
            .with("p_greater", welch.p_greater())
            .with("ci95", pair(welch.interval(0.95))),
        Err(degenerate) => degenerate,
    })
}

pub(super) fn tost(request: &Request) -> Result<Answer, CaseError> {
    let margin = request.inputs.number("margin")?;
    if margin <= 0.0 {
        return Err(wrong("margin", "above 0"));
    }
    let compared = Compared::new(request)?;
    Ok(match compared.welch() {
        Ok(welch) => {
            let found = equivalence::tost(&welch, margin);
            Answer::default()
                .with("p", found.p)
                .with("t_lower", found.t_lower)
                .with("p_lower", found.p_lower)
                .with("t_upper", found.t_upper)
                .with("p_upper", found.p_upper)
                .with("ci90", pair(found.ci90))
        }
        Err(degenerate) => degenerate,
    })
}

pub(super) fn paired(request: &Request) -> Result<Answer, CaseError> {
    let arms = request.inputs.arms()?;
    if arms.x.len() != arms.y.len() {
        return Err(CaseError::Undefined(format!(
            "inputs.x has {} scores and inputs.y {}: pairs need as many",
            arms.x.len(),
            arms.y.len()
        )));
    }
    let found = pairs::paired(&arms.x, &arms.y).ok_or_else(|| {
        CaseError::Undefined("fewer than two pairs: no spread, no test".to_owned())
    })?;
    let differences: Vec<i64> = arms.x.iter().zip(&arms.y).map(|(x, y)| x - y).collect();
    let flipped = sign_flip(&differences);
    let (x, y) = arms.summaries()?;
    let unpaired = crate::stats::welch::welch(&x, &y).ok();
    let interval = found
        .interval95
        .map(|interval| Value::from(vec![interval.low * arms.unit, interval.high * arms.unit]));
    let answer = Answer::default()
        .with("mean_diff", found.mean_diff * arms.unit)
        .with("sd_diff", found.sd_diff * arms.unit)
        .with("df", found.df)
        .with("sign_flip_p_two_sided", flipped.p_two_sided)
        .with("sign_flip_p_greater", flipped.p_greater)
        .with_some("t", found.t)
        .with_some("p_two_sided", found.p_two_sided)
        .with_some("ci95", interval)
        .with_some("correlation", found.rho)
        .with_some(
            "unpaired_welch_p",
            unpaired.map(|welch| welch.p_two_sided()),
        );
    let answer = sampled(answer, &flipped);
    Ok(match found.t {
        Some(_) => answer,
        None if found.mean_diff == 0.0 => answer.with("status", "degenerate_identical"),
        None => answer.with("status", "degenerate: all differences are equal"),
    })
}

pub(super) fn hedges_g(request: &Request) -> Result<Answer, CaseError> {
    let compared = Compared::new(request)?;
    let Some(found) = effect::hedges_g(&compared.x, &compared.y) else {
        return Ok(Answer::default()
            .with("sd_pooled", 0.0)
            .with("status", "degenerate: g undefined"));
    };
    Ok(Answer::default()
        .with("sd_pooled", found.sd_pooled)
        .with("cohens_d", found.d)
        .with("J", found.j)
        .with("hedges_g", found.g)
        .with_some("g_ci95_low", found.interval.map(|interval| interval.low))
        .with_some("g_ci95_high", found.interval.map(|interval| interval.high))
        .with("g_se_large_sample", found.se_large_sample))
}

pub(super) fn multiplicity(request: &Request) -> Result<Answer, CaseError> {
    let p = probabilities(request)?;
    Ok(Answer::default()
        .with("holm", adjust::holm(&p))
        .with("bh", adjust::bh(&p))
        .with("by", adjust::by(&p))
        .with("bonferroni", adjust::bonferroni(&p)))
}

pub(super) fn probabilities(request: &Request) -> Result<Vec<f64>, CaseError> {
    let p = request.inputs.numbers("p")?;
    match p.iter().position(|p| !(0.0..=1.0).contains(p)) {
        Some(at) => Err(wrong(&format!("p[{at}]"), "between 0 and 1")),
        None => Ok(p),
    }
}

pub(super) fn permutation(request: &Request) -> Result<Answer, CaseError> {
    let arms = request.inputs.arms()?;
    let (x, y) = arms.samples();
    let found = two_sample(&x, &y);
    let answer = Answer::default()
        .with("mean_diff", found.statistic * arms.unit)
        .with("p_two_sided", found.p_two_sided)
        .with("p_greater", found.p_greater)
        .with_some("p_two_sided_studentised", found.studentised)
        .with("arrangements", found.arrangements.as_str());
    Ok(sampled(answer, &found))
}

/// Says so where p was sampled.
pub(super) fn sampled(answer: Answer, found: &Permutation) -> Answer {
    match found.method {
        Method::Exact => answer,
        Method::MonteCarlo { .. } => answer.with("method", found.method.label()),
    }
}

pub(super) fn brunner_munzel(request: &Request) -> Result<Answer, CaseError> {
    let (x, y) = request.inputs.arms()?.samples();
    let found = placements::brunner_munzel(&x, &y)
        .ok_or_else(|| CaseError::Undefined("an arm has no run".to_owned()))?;
    let answer = Answer::default().with("p_hat", found.p_hat);
    let Some(w) = found.w else {
        return Ok(answer
            .with("status", "degenerate: use the exact permutation p")
            .with("permutation_p_two_sided", two_sample(&x, &y).p_two_sided));
    };
    Ok(answer
        .with("W", w)
        .with("W_scipy_sign", -w)
        .with("cliffs_delta", found.cliffs_delta())
        .with_some("df", found.df)
        .with_some("p_two_sided", found.p_two_sided)
        .with_some("ci95_low", found.interval95.map(|interval| interval.low))
        .with_some("ci95_high", found.interval95.map(|interval| interval.high)))
}

pub(super) fn bca(request: &Request) -> Result<Answer, CaseError> {
    let arms = request.inputs.arms()?;
    let (x, y) = arms.samples();
    let found = match bootstrap::bca(&x, &y, 0.95) {
        Ok(found) => found,
        Err(bootstrap::Unreported::TooManyValues) => {
            return Err(CaseError::Undefined(
                bootstrap::Unreported::TooManyValues.to_string(),
            ));
        }
        Err(_) => {
            return Ok(Answer::default().with("status", "degenerate: interval not reported"));
        }
    };
    let scaled = |interval: crate::stats::Interval| {
        Value::from(vec![interval.low * arms.unit, interval.high * arms.unit])
    };
    Ok(Answer::default()
        .with("theta", found.theta * arms.unit)
        .with("proportion_below", found.proportion_below)
        .with("z0", found.z0)
        .with("acceleration", found.acceleration)
        .with("alpha_low", found.alpha_low)
        .with("alpha_high", found.alpha_high)
        .with("ci95", scaled(found.interval))
        .with("percentile_ci95", scaled(found.percentile)))
}

pub(super) fn drift(request: &Request) -> Result<Answer, CaseError> {
    let y = request.inputs.numbers("y")?;
    let found = if request.inputs.has("x") {
        order::slope_on(&request.inputs.numbers("x")?, &y)
    } else {
        order::slope(&y)
    };
    let found = found.ok_or_else(|| {
        CaseError::Undefined("a slope needs scores at two different places".to_owned())
    })?;
    let answer = Answer::default().with("slope", found.slope);
    Ok(match found.t {
        Some(_) => answer.with_some("se", found.se).with_some("p", found.p),
        None => answer.with("status", "degenerate: no scatter around the line"),
    })
}

/// Rejections among label-shuffled datasets.
pub(super) fn label_shuffle(request: &Request) -> Result<Answer, CaseError> {
    let inputs = &request.inputs;
    let datasets = inputs.count("M")?;
    let alpha = inputs.level_or("alpha", 0.05)?;
    let (mut p, mut intervals) = (Vec::new(), Vec::new());
    for rejected in inputs.counts("k")? {
        let found = binomial_two_sided(rejected, datasets, alpha)
            .zip(clopper_pearson(rejected, datasets, 0.99));
        let (of_k, interval) =
            found.ok_or_else(|| wrong("k", "at most M, with M of at least 1"))?;
        p.push(of_k);
        intervals.push(pair(interval));
    }
    Ok(Answer::default().with("p", p).with("ci99", intervals))
}

pub(super) fn exclusions(request: &Request) -> Result<Answer, CaseError> {
    let mut p = Vec::new();
    for (at, table) in request.inputs.list("tables")?.iter().enumerate() {
        let field = format!("tables[{at}]");
        p.push(exclusion::fisher_two_sided(two_by_two(table, &field)?));
    }
    Ok(Answer::default().with("p_two_sided", p))
}

fn two_by_two(table: &Value, field: &str) -> Result<Table, CaseError> {
    let mut cells = Vec::new();
    for (at, row) in list(table, field)?.iter().enumerate() {
        let place = format!("{field}[{at}]");
        let row = numbers(row, &place)?;
        let row: Option<Vec<u64>> = row.into_iter().map(whole).collect();
        cells.push(row.ok_or_else(|| wrong(&place, "a list of two counts"))?);
    }
    match cells.as_slice() {
        [top, bottom] => match (top.as_slice(), bottom.as_slice()) {
            ([a, b], [c, d]) => {
                let largest = [a, b, c, d].into_iter().max().copied().unwrap_or(0);
                /// Tables of more runs than there can be would be enumerated cell by cell.
                const MOST: u64 = 1_000_000;
                if largest > MOST {
                    return Err(wrong(field, "a table of counts up to a million"));
                }
                Ok([[*a, *b], [*c, *d]])
            }
            _ => Err(wrong(field, "a table of two rows of two counts")),
        },
        _ => Err(wrong(field, "a table of two rows of two counts")),
    }
}
