//! Whether the means of several groups differ at all (Fisher's analysis of variance).

use serde::Serialize;

use crate::stats::distribution::f_sf;
use crate::stats::sample::Summary;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OneWay {
    pub f: f64,
    pub df_between: f64,
    pub df_within: f64,
    pub p: f64,
}

/// Nothing for fewer than two groups, or where no score varies within any.
pub fn one_way(groups: &[Summary]) -> Option<OneWay> {
    let n: f64 = groups.iter().map(|group| group.n as f64).sum();
    let center = groups.iter().map(|g| g.n as f64 * g.mean).sum::<f64>() / n;
    let between: f64 = groups
        .iter()
        .map(|g| g.n as f64 * (g.mean - center).powi(2))
        .sum();
    let within: f64 = groups.iter().map(|g| g.df() * g.sd * g.sd).sum();
    let (df_between, df_within) = (groups.len() as f64 - 1.0, n - groups.len() as f64);
    if !(df_between > 0.0 && df_within > 0.0 && within > 0.0) {
        return None;
    }
    let f = between / df_between / (within / df_within);
    Some(OneWay {
        f,
        df_between,
        df_within,
        p: f_sf(f, df_between, df_within),
    })
}
