//! The difference in units of the spread.

use serde::Serialize;
use statrs::function::gamma::ln_gamma;

use crate::stats::Interval;
use crate::stats::distribution::noncentral_t_cdf;
use crate::stats::root;
use crate::stats::sample::Summary;

/// Hedges' g with a 95 % interval by the noncentral t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HedgesG {
    pub g: f64,
    /// Nothing where |t| is so large that the noncentral t cannot be inverted.
    pub interval: Option<Interval>,
    pub sd_pooled: f64,
    /// Cohen's, uncorrected.
    pub d: f64,
    /// What corrects d for small n.
    pub j: f64,
    /// By the large-sample formula; for information.
    pub se_large_sample: f64,
}

/// x as treatment. Nothing where no score varies.
pub fn hedges_g(x: &Summary, y: &Summary) -> Option<HedgesG> {
    let (nx, ny) = (x.n as f64, y.n as f64);
    let nu = nx + ny - 2.0;
    let pooled = ((nx - 1.0) * x.sd * x.sd + (ny - 1.0) * y.sd * y.sd) / nu;
    let sd_pooled = pooled.sqrt();
    let d = (x.mean - y.mean) / sd_pooled;
    if !(nu > 0.0 && sd_pooled > 0.0 && d.is_finite()) {
        return None;
    }
    let j = correction(nu);
    let size = (nx * ny / (nx + ny)).sqrt();
    let interval = noncentrality_interval(d * size, nu).map(|nc| Interval {
        low: nc.low / size * j,
        high: nc.high / size * j,
    });
    let g = j * d;
    Some(HedgesG {
        g,
        interval,
        sd_pooled,
        d,
        j,
        se_large_sample: ((nx + ny) / (nx * ny) + d * d / (2.0 * nu)).sqrt() * j,
    })
}

/// Hedges 1981, exact: Gamma(nu/2) / (sqrt(nu/2) Gamma((nu-1)/2)). At nu = 1 it is 0.
fn correction(nu: f64) -> f64 {
    if nu <= 1.0 {
        return 0.0;
    }
    (ln_gamma(nu / 2.0) - 0.5 * (nu / 2.0).ln() - ln_gamma((nu - 1.0) / 2.0)).exp()
}

/// The noncentralities under which `t` is at the 97.5 and the 2.5 % point.
fn noncentrality_interval(t: f64, nu: f64) -> Option<Interval> {
    const TAIL: f64 = 0.025;
    // Far enough on both sides for any nu: the sampling error of a noncentrality grows with t over sqrt(2 nu).
    let reach = 6.0 + 4.0 * t.abs() / (2.0 * nu).sqrt() + t.abs();
    let at = |p: f64| root::between(t - reach, t + reach, |nc| noncentral_t_cdf(t, nu, nc) - p);
    Some(Interval {
        low: at(1.0 - TAIL)?,
        high: at(TAIL)?,
    })
}
