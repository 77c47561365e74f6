//! How often a treatment run scores above a control run (Brunner and Munzel 2000).

use serde::Serialize;

use crate::stats::Interval;
use crate::stats::distribution::{t_critical, t_two_sided};
use crate::stats::sample::Sample;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BrunnerMunzel {
    /// P(X > Y) + P(X = Y) / 2, with x as treatment; 1/2 where neither tends to be higher.
    pub p_hat: f64,
    /// Positive where treatment is higher (the opposite sign of scipy's). Nothing where the placements do not vary: all
    /// scores tied, or the arms completely apart.
    pub w: Option<f64>,
    pub df: Option<f64>,
    pub p_two_sided: Option<f64>,
    /// Of `p_hat`; may leave 0 to 1.
    pub interval95: Option<Interval>,
}

impl BrunnerMunzel {
    /// P(X > Y) - P(X < Y).
    pub fn cliffs_delta(&self) -> f64 {
        2.0 * self.p_hat - 1.0
    }
}

/// Nothing of an empty arm.
pub fn brunner_munzel(x: &Sample, y: &Sample) -> Option<BrunnerMunzel> {
    let (nx, ny) = (x.n() as f64, y.n() as f64);
    if x.n() == 0 || y.n() == 0 {
        return None;
    }
    let (above_y, above_x) = (placements(x, y), placements(y, x));
    let wins: i128 = above_y.iter().sum();
    let p_hat = wins as f64 / (2.0 * nx * ny);
    let mut found = BrunnerMunzel {
        p_hat,
        w: None,
        df: None,
        p_two_sided: None,
        interval95: None,
    };
    let (Some(vx), Some(vy)) = (variance(&above_y), variance(&above_x)) else {
        return Some(found);
    };
    // Placements are counts of the other arm's runs: as shares of them their variances are those of p_hat.
    let (vx, vy) = (vx / (ny * ny) / nx, vy / (nx * nx) / ny);
    let total = vx + vy;
    if total > 0.0 {
        let (sx, sy) = (vx / total, vy / total);
        let se = total.sqrt();
        let df = 1.0 / (sx * sx / (nx - 1.0) + sy * sy / (ny - 1.0));
        let w = (p_hat - 0.5) / se;
        found.w = Some(w);
        found.df = Some(df);
        found.p_two_sided = Some(t_two_sided(w, df));
        found.interval95 = Some(Interval::around(p_hat, t_critical(0.95, df) * se));
    }
    Some(found)
}

/// For each of `of`, twice how many of `among` lie below it, a tie counting one.
fn placements(of: &Sample, among: &Sample) -> Vec<i128> {
    let among = among.values();
    of.values()
        .iter()
        .map(|score| {
            let below = among.partition_point(|other| other < score);
            let up_to = among.partition_point(|other| other <= score);
            (below + up_to) as i128
        })
        .collect()
}

/// Of halves of the counts, over integers until the last step, so that equal placements have none.
fn variance(doubled: &[i128]) -> Option<f64> {
    let n = doubled.len() as i128;
    if n < 2 {
        return None;
    }
    let sum: i128 = doubled.iter().sum();
    let squares: i128 = doubled.iter().map(|count| count * count).sum();
    Some((squares * n - sum * sum) as f64 / (4 * n * (n - 1)) as f64)
}
