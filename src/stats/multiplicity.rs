//! p adjusted for the number of tests in a family. The order of the input is kept; nothing exceeds 1.

/// Holm's step-down: the family-wise error, under any dependence.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let m = p.len();
    let mut adjusted = vec![0.0; m];
    let mut highest = 0.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        highest = highest.max((m - rank) as f64 * p[at]).min(1.0);
        adjusted[at] = highest;
    }
    adjusted
}

/// Benjamini and Hochberg: the false discovery rate, where the tests are independent or positively dependent.
pub fn bh(p: &[f64]) -> Vec<f64> {
    step_up(p, 1.0)
}

/// Benjamini and Yekutieli: the false discovery rate under any dependence.
pub fn by(p: &[f64]) -> Vec<f64> {
    step_up(p, (1..=p.len()).map(|i| 1.0 / i as f64).sum())
}

pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    let m = p.len() as f64;
    p.iter().map(|p| (p * m).min(1.0)).collect()
}

fn step_up(p: &[f64], factor: f64) -> Vec<f64> {
    let m = p.len();
    let mut adjusted = vec![0.0; m];
    let mut lowest = 1.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        lowest = lowest.min(factor * m as f64 / (rank + 1) as f64 * p[at]);
        adjusted[at] = lowest;
    }
    adjusted
}

/// Positions from the smallest p to the largest, equal ones in the order of the input.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}
