//! Exact distributions on integers: sums of independent parts, and what lies in their tails.
//!
//! Scores take few values, so that billions of arrangements come down to some hundreds of different sums.

/// A value with its weight.
pub type Point = (i64, f64);

/// Points of one distribution. Beyond it an exact p takes more time and memory than it is worth over a sampled one.
pub const MAX_STATES: usize = 5_000_000;
/// Products of weights in one convolution: half a second, and only where they come down to few sums.
const MAX_PRODUCTS: usize = 500_000_000;
/// A row of counters is used where it is at most this many times as long as there are points to add up.
const DENSE_SPAN: usize = 4;
/// Convolutions larger than this leave out the ends of their parts.
const TRIM_ABOVE: usize = 4_000_000;
/// The share of a distribution that is left out at either end. It is added to every p, which is thereby never too small.
const TRIMMED_SHARE: f64 = 1e-20;

/// A distribution on integers with a total weight of 1 less what was left out.
#[derive(Clone, Debug)]
pub struct Lattice {
    /// Ascending, each value once.
    points: Vec<Point>,
    /// Weight that was left out at the ends.
    dropped: f64,
}

/// How much of a distribution lies at and beyond two values, `low` not above `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tails {
    /// At most `low`.
    pub lower: f64,
    /// At least `high`.
    pub upper: f64,
    pub at_low: f64,
    pub at_high: f64,
}

impl Tails {
    pub fn add(&mut self, other: Tails) {
        self.lower += other.lower;
        self.upper += other.upper;
        self.at_low += other.at_low;
        self.at_high += other.at_high;
    }

    /// As shares of a total weight.
    pub fn over(self, total: f64) -> Tails {
        Tails {
            lower: self.lower / total,
            upper: self.upper / total,
            at_low: self.at_low / total,
            at_high: self.at_high / total,
        }
    }
}

impl Lattice {
    /// All weight on one value.
    pub fn at(value: i64) -> Lattice {
        Lattice {
            points: vec![(value, 1.0)],
            dropped: 0.0,
        }
    }

    /// Of points in any order; weights are scaled to a total of 1. Nothing without weight.
    pub fn new(points: Vec<Point>) -> Option<Lattice> {
        let mut points = merged(&[(0, 1.0, &points)]);
        let total: f64 = points.iter().map(|(_, weight)| weight).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        for point in &mut points {
            point.1 /= total;
        }
        Some(Lattice {
            points,
            dropped: 0.0,
        })
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Each value `factor` times as large, plus `shift`. Nothing where a value leaves an i64.
    pub fn scaled(mut self, factor: i64, shift: i64) -> Option<Lattice> {
        for point in &mut self.points {
            point.0 = point.0.checked_mul(factor)?.checked_add(shift)?;
        }
        if factor < 0 {
            self.points.reverse();
        }
        Some(self)
    }

    fn span(&self) -> Option<usize> {
        let (low, high) = (self.points.first()?.0, self.points.last()?.0);
        usize::try_from(high.checked_sub(low)?).ok()
    }

    /// Of the sum of two independent values. Nothing beyond the limits.
    pub fn plus(&self, other: &Lattice) -> Option<Lattice> {
        let (mut a, mut b) = (self.clone(), other.clone());
        if a.points.len().checked_mul(b.points.len())? > TRIM_ABOVE {
            a.trim();
            b.trim();
        }
        if a.points.len() > b.points.len() {
            std::mem::swap(&mut a, &mut b);
        }
        let products = a.points.len().checked_mul(b.points.len())?;
        let sums = a.span()?.checked_add(b.span()?)?.min(products);
        if products > MAX_PRODUCTS || sums > MAX_STATES {
            return None;
        }
        let parts: Vec<Part> = a
            .points
            .iter()
            .map(|(value, weight)| (*value, *weight, b.points.as_slice()))
            .collect();
        let points = merge(&parts)?;
        Some(Lattice {
            points,
            dropped: a.dropped + b.dropped,
        })
    }

    /// Of the sum of `n` independent values. Nothing beyond the limits.
    pub fn times(&self, n: usize) -> Option<Lattice> {
        let mut sum = Lattice::at(0);
        let mut power = self.clone();
        let mut left = n;
        while left > 0 {
            if left & 1 == 1 {
                sum = sum.plus(&power)?;
            }
            left >>= 1;
            if left > 0 {
                power = power.plus(&power)?;
            }
        }
        Some(sum)
    }

    fn trim(&mut self) {
        let cut = |points: &mut dyn Iterator<Item = &Point>| {
            let (mut count, mut weight) = (0, 0.0);
            for point in points {
                if weight + point.1 > TRIMMED_SHARE {
                    break;
                }
                weight += point.1;
                count += 1;
            }
            (count, weight)
        };
        let (low, low_weight) = cut(&mut self.points.iter());
        let (high, high_weight) = cut(&mut self.points.iter().rev());
        if low + high < self.points.len() {
            self.points.truncate(self.points.len() - high);
            self.points.drain(..low);
            self.dropped += low_weight + high_weight;
        }
    }
}

/// Tails of the sum of independent parts. The last sum of two is never formed: for each value of the one it is looked up
/// how much of the other lies beyond. Nothing beyond the limits.
pub fn tails_of_sum(mut parts: Vec<Lattice>, low: i64, high: i64) -> Option<Tails> {
    while parts.len() > 2 {
        // The two shortest first: what becomes long is multiplied least often.
        parts.sort_by_key(|part| std::cmp::Reverse(part.points.len()));
        let a = parts.pop()?;
        let b = parts.pop()?;
        parts.push(a.plus(&b)?);
    }
    let a = parts.pop().unwrap_or_else(|| Lattice::at(0));
    let b = parts.pop().unwrap_or_else(|| Lattice::at(0));
    let mut tails = tails_of_two(&a.points, &b.points, low, high);
    let dropped = a.dropped + b.dropped;
    tails.lower = (tails.lower + dropped).min(1.0);
    tails.upper = (tails.upper + dropped).min(1.0);
    Some(tails)
}

/// Weights of `a` times weights of `b` whose sums lie in the tails.
pub fn tails_of_two(a: &[Point], b: &[Point], low: i64, high: i64) -> Tails {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    // Summed from the ends, so that small tails keep their digits.
    let mut up_to = Vec::with_capacity(long.len() + 1);
    let mut sum = 0.0;
    up_to.push(sum);
    for (_, weight) in long {
        sum += weight;
        up_to.push(sum);
    }
    let mut from = vec![0.0; long.len() + 1];
    for (at, (_, weight)) in long.iter().enumerate().rev() {
        from[at] = from[at + 1] + weight;
    }
    let weight_at = |at: usize, value: i64| match long.get(at) {
        Some((found, weight)) if *found == value => *weight,
        _ => 0.0,
    };
    let mut tails = Tails::default();
    for (value, weight) in short {
        let (rest_low, rest_high) = (low.saturating_sub(*value), high.saturating_sub(*value));
        let above_low = long.partition_point(|(v, _)| *v <= rest_low);
        tails.lower += weight * up_to[above_low];
        if above_low > 0 {
            tails.at_low += weight * weight_at(above_low - 1, rest_low);
        }
        let at_high = long.partition_point(|(v, _)| *v < rest_high);
        tails.upper += weight * from[at_high];
        tails.at_high += weight * weight_at(at_high, rest_high);
    }
    tails
}

/// Points to be shifted by the first and multiplied by the second.
pub type Part<'a> = (i64, f64, &'a [Point]);

/// All parts together, ascending, each value once. The order of additions depends on nothing but the input. Nothing where
/// there are more than [`MAX_STATES`] different values, or a value leaves an i64.
pub fn merge(parts: &[Part]) -> Option<Vec<Point>> {
    let ends = parts
        .iter()
        .filter_map(|(shift, _, points)| Some((*shift, points.first()?.0, points.last()?.0)));
    let mut range: Option<(i64, i64)> = None;
    for (shift, first, last) in ends {
        let (first, last) = (first.checked_add(shift)?, last.checked_add(shift)?);
        let (low, high) = range.unwrap_or((first, last));
        range = Some((low.min(first), high.max(last)));
    }
    let Some((low, high)) = range else {
        return Some(Vec::new());
    };
    let total: usize = parts.iter().map(|(_, _, points)| points.len()).sum();
    let span = usize::try_from(high.checked_sub(low)?).ok()?;
    if span < total.saturating_mul(DENSE_SPAN) && span < DENSE_SPAN * MAX_STATES {
        return Some(counted(parts, low, span));
    }
    (total <= DENSE_SPAN * MAX_STATES)
        .then(|| merged(parts))
        .filter(|points| points.len() <= MAX_STATES)
}

fn counted(parts: &[Part], low: i64, span: usize) -> Vec<Point> {
    let mut counters = vec![0.0; span + 1];
    for (shift, factor, points) in parts {
        let shift = shift - low;
        for (value, weight) in *points {
            counters[(value + shift) as usize] += weight * factor;
        }
    }
    counters
        .into_iter()
        .enumerate()
        .filter(|(_, weight)| *weight > 0.0)
        .map(|(at, weight)| (low + at as i64, weight))
        .collect()
}

fn merged(parts: &[Part]) -> Vec<Point> {
    let mut all: Vec<Point> = parts
        .iter()
        .flat_map(|(shift, factor, points)| {
            points
                .iter()
                .map(move |(value, weight)| (value + shift, weight * factor))
        })
        .collect();
    // Stable, so that equal values are added in the order of the input.
    all.sort_by_key(|(value, _)| *value);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    all
}

/// C(n, k) odds^k for every k, as shares of the largest: sums of hundreds overflow no f64. Over arrangements that all
/// take the same number in total, `odds` changes every weight by the same factor; near the share that is taken it keeps
/// the weights that matter from vanishing.
pub fn binomial_weights(n: u32, odds: f64) -> Vec<f64> {
    let n = n as usize;
    let mode = ((n + 1) as f64 * odds / (1.0 + odds)).floor() as usize;
    let mode = mode.min(n);
    let mut weights = vec![1.0; n + 1];
    for k in mode + 1..=n {
        weights[k] = weights[k - 1] * odds * (n - k + 1) as f64 / k as f64;
    }
    for k in (0..mode).rev() {
        weights[k] = weights[k + 1] / odds * (k + 1) as f64 / (n - k) as f64;
    }
    weights
}

pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b > 0 {
        (a, b) = (b, a % b);
    }
    // Of numbers that fit an i128 all but the smallest have a divisor that fits.
    i128::try_from(a).unwrap_or(1)
}
