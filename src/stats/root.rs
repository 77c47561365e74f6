//! Where a function of one variable crosses zero.

/// More halvings of an interval than an f64 has bits.
const MAX_STEPS: usize = 200;
/// Doublings of a bracket before it is said that there is no root.
const MAX_EXPANSIONS: usize = 60;

/// A root of `f` between `low` and `high`, by the Illinois form of false position with a halving wherever that is slow.
/// Nothing where the ends do not have different signs, or where `f` is not a number: a comparison with NaN would send
/// the search to an arbitrary end.
pub fn between(low: f64, high: f64, mut f: impl FnMut(f64) -> f64) -> Option<f64> {
    let (mut a, mut b) = (low, high);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa.is_nan() || fb.is_nan() || a.is_nan() || b.is_nan() {
        return None;
    }
    if fa == 0.0 {
        return Some(a);
    }
    if fb == 0.0 {
        return Some(b);
    }
    if (fa > 0.0) == (fb > 0.0) {
        return None;
    }
    for step in 0..MAX_STEPS {
        let width = b - a;
        if width.abs() <= 2.0 * f64::EPSILON * (a.abs() + b.abs()) + f64::MIN_POSITIVE {
            break;
        }
        let secant = a - fa * (b - a) / (fb - fa);
        let inside = secant.is_finite() && (secant - a) * (secant - b) < 0.0;
        let middle = if inside && step % 3 != 2 {
            secant
        } else {
            a + width / 2.0
        };
        let fm = f(middle);
        if fm.is_nan() {
            return None;
        }
        if fm == 0.0 || middle == a || middle == b {
            return Some(middle);
        }
        if (fm > 0.0) == (fb > 0.0) {
            fa /= 2.0;
        } else {
            (a, fa) = (b, fb);
        }
        (b, fb) = (middle, fm);
    }
    Some(b)
}

/// As [`between`], from `start` upwards by doubled steps until the sign changes.
pub fn above(start: f64, step: f64, mut f: impl FnMut(f64) -> f64) -> Option<f64> {
    let sign = f(start);
    let mut step = step;
    let mut low = start;
    for _ in 0..MAX_EXPANSIONS {
        let high = low + step;
        let value = f(high);
        if value.is_nan() || sign.is_nan() {
            return None;
        }
        if value == 0.0 || (value > 0.0) != (sign > 0.0) {
            return between(low, high, f);
        }
        low = high;
        step *= 2.0;
    }
    None
}
