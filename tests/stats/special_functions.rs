//! A second implementation of each special function, by quadrature of its density or by direct summation: a fault of the
//! library's would otherwise be a fault of ours.

use agent_breakage::stats::distribution::{
    beta_quantile, chi_squared_sf, f_sf, incomplete_beta, noncentral_t_cdf, noncentral_t_sf,
    normal_cdf, normal_quantile, normal_sf, t_cdf, t_critical, t_quantile, t_sf,
};
use statrs::function::gamma::ln_gamma;

/// The integral by the tanh-sinh rule, which converges fast and does not look at the ends, where densities may be
/// infinite.
fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 1.0 / 512.0;
    const REACH: i32 = 512 * 4;
    let half = (high - low) / 2.0;
    let mut sum = 0.0;
    for at in -REACH..=REACH {
        let t = f64::from(at) * STEP;
        let inner = std::f64::consts::FRAC_PI_2 * t.sinh();
        let weight = std::f64::consts::FRAC_PI_2 * t.cosh() / inner.cosh().powi(2);
        // The distance to the nearer end keeps its digits.
        let to_end = half * 2.0 / (1.0 + (2.0 * inner.abs()).exp());
        let x = if at < 0 { low + to_end } else { high - to_end };
        if x > low && x < high {
            let value = f(x);
            if value.is_finite() {
                sum += weight * value;
            }
        }
    }
    sum * half * STEP
}

fn close(name: &str, ours: f64, second: f64, relative: f64) {
    let difference = (ours - second).abs();
    assert!(
        difference <= relative * second.abs(),
        "{name}: {ours:e} and {second:e} differ by {difference:e}"
    );
}

fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Lanczos (g = 7, nine terms), independent of the library's.
fn lanczos_ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = (1..9).fold(C[0], |sum, i| sum + C[i] / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[test]
fn ln_gamma_agrees_with_a_second_approximation() {
    for x in [0.5, 1.0, 1.5, 2.0, 3.7, 10.0, 19.5, 100.0, 250.5] {
        let (ours, second) = (ln_gamma(x), lanczos_ln_gamma(x));
        assert!(
            (ours - second).abs() < 1e-11 * second.abs().max(1.0),
            "{x}: {ours} {second}"
        );
    }
}

#[test]
fn the_normal_agrees_with_quadrature_far_into_its_tail() {
    for z in [0.0, 0.3, 1.0, 1.959_964, 4.0, 8.0, 15.0, 30.0] {
        let second = integral(z, z + 40.0, normal_density);
        close(&format!("sf({z})"), normal_sf(z), second, 1e-9);
    }
    for p in [1e-20, 1e-6, 0.025, 0.2, 0.5, 0.7, 0.975, 0.999_999] {
        close(
            &format!("cdf(quantile({p}))"),
            normal_cdf(normal_quantile(p)),
            p,
            1e-12,
        );
    }
    assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    assert_eq!(normal_quantile(1.0), f64::INFINITY);
}

/// With t = sqrt(df) tan(a), the density is a power of a cosine on a finite range.
fn t_sf_by_quadrature(t: f64, df: f64) -> f64 {
    let constant = (lanczos_ln_gamma((df + 1.0) / 2.0) - lanczos_ln_gamma(df / 2.0)).exp()
        / std::f64::consts::PI.sqrt();
    // From the angle's complement, so that its small values keep their digits.
    let from = (df.sqrt() / t).atan();
    let from = if t > 0.0 {
        from
    } else {
        from + std::f64::consts::PI
    };
    constant * integral(0.0, from, |b| b.sin().powf(df - 1.0))
}

#[test]
fn students_t_agrees_with_quadrature_from_the_center_to_1e_minus_32() {
    for (t, df) in [
        (2.154_066, 37.484_752),
        (0.2, 5.0),
        (-1.3, 19.0),
        (3.36, 21.78),
        (12.0, 21.78),
        (40.0, 38.0),
        (1.0, 1.0),
        (2.0, 200.0),
        (0.5, 1.3),
    ] {
        close(
            &format!("t_sf({t}, {df})"),
            t_sf(t, df),
            t_sf_by_quadrature(t, df),
            1e-8,
        );
        close(
            &format!("t_cdf(-{t}, {df})"),
            t_cdf(-t, df),
            t_sf(t, df),
            1e-12,
        );
    }
    for (p, df) in [
        (0.975, 37.48),
        (0.9, 2.5),
        (0.6, 1.0),
        (1e-9, 12.0),
        (0.5, 4.0),
    ] {
        close(
            &format!("t_cdf(t_quantile({p}, {df}))"),
            t_cdf(t_quantile(p, df), df),
            p,
            1e-11,
        );
    }
}

/// The mean over the estimated spread v of the normal's cdf at t v.
fn noncentral_by_quadrature(t: f64, df: f64, nc: f64) -> f64 {
    let constant = std::f64::consts::LN_2 + df / 2.0 * (df / 2.0).ln() - lanczos_ln_gamma(df / 2.0);
    let density = |v: f64| (constant + (df - 1.0) * v.ln() - df * v * v / 2.0).exp();
    let spread = 14.0 / (2.0 * df).sqrt();
    let (low, high) = ((1.0 - spread).max(0.0), 1.0 + spread);
    integral(low, high, |v| density(v) * normal_cdf(t * v - nc))
}

#[test]
fn the_noncentral_t_agrees_with_quadrature() {
    for (t, df, nc) in [
        (2.024_394_2, 38.0, 1.216_260_6),
        (-2.024_394_2, 38.0, 1.216_260_6),
        (1.971_906_4, 212.0, 2.8),
        (0.0, 10.0, 1.5),
        (3.0, 5.0, 2.0),
        (-1.0, 20.0, 0.5),
        (5.0, 3.0, 6.0),
        (1.0, 78.0, -2.0),
        (10.0, 38.0, 5.0),
        (12.0, 400.0, 12.5),
        (45.0, 60.0, 44.0),
        (75.0, 60.0, 70.0),
        (55.0, 30.0, 59.0),
        (2.5, 4.0, 0.0),
    ] {
        let (ours, second) = (
            noncentral_t_cdf(t, df, nc),
            noncentral_by_quadrature(t, df, nc),
        );
        assert!(
            (ours - second).abs() < 1e-9,
            "({t}, {df}, {nc}): {ours} {second}"
        );
        let sum = ours + noncentral_t_sf(t, df, nc);
        assert!((sum - 1.0).abs() < 1e-12, "({t}, {df}, {nc}): {sum}");
    }
}

#[test]
fn the_noncentral_t_is_never_nan_for_numbers() {
    for t in [
        -1e300,
        -1e3,
        -40.0,
        -1.0,
        0.0,
        1e-300,
        1.0,
        40.0,
        1e3,
        1e300,
        f64::INFINITY,
    ] {
        for df in [0.5, 1.0, 2.5, 38.0, 1e6, 1e12] {
            let mut last = 1.0;
            for nc in [-1e4, -60.0, -38.0, -1.0, 0.0, 1.0, 38.0, 60.0, 1e4] {
                let p = noncentral_t_cdf(t, df, nc);
                assert!((0.0..=1.0).contains(&p), "({t}, {df}, {nc}): {p}");
                assert!(
                    p <= last + 1e-9,
                    "({t}, {df}, {nc}): rises to {p} from {last}"
                );
                last = p;
            }
        }
    }
}

#[test]
fn chi_squared_agrees_with_sums_and_quadrature() {
    for (x, half_df) in [(0.5, 1), (5.98, 1), (13.6, 2), (40.0, 5), (300.0, 3)] {
        // For even degrees of freedom the tail is a Poisson sum.
        let rate: f64 = x / 2.0;
        let mut term = (-rate).exp();
        let mut second = 0.0;
        for k in 0..half_df {
            second += term;
            term *= rate / f64::from(k + 1);
        }
        close(
            &format!("chi2({x}, {})", 2 * half_df),
            chi_squared_sf(x, 2.0 * f64::from(half_df)),
            second,
            1e-10,
        );
    }
    // One degree of freedom is a squared normal.
    close(
        "chi2(3.84, 1)",
        chi_squared_sf(3.84, 1.0),
        2.0 * normal_sf(3.84_f64.sqrt()),
        1e-10,
    );
}

#[test]
fn the_incomplete_beta_agrees_with_quadrature_and_its_quantile_inverts_it() {
    for (a, b, x) in [
        (0.5, 19.0, 0.1),
        (1.0, 1.0, 0.3),
        (2.5, 3.5, 0.7),
        (30.0, 12.0, 0.65),
        (76.0, 925.0, 0.055),
    ] {
        let constant = (lanczos_ln_gamma(a + b) - lanczos_ln_gamma(a) - lanczos_ln_gamma(b)).exp();
        let second = constant * integral(0.0, x, |u| u.powf(a - 1.0) * (1.0 - u).powf(b - 1.0));
        close(
            &format!("I({a}, {b}, {x})"),
            incomplete_beta(a, b, x),
            second,
            1e-9,
        );
        close(
            "quantile",
            beta_quantile(incomplete_beta(a, b, x), a, b),
            x,
            1e-9,
        );
    }
}

#[test]
fn f_agrees_with_t_and_with_quadrature() {
    // F on 1 and n degrees of freedom is t squared.
    for (t, df) in [(1.3, 19.0), (2.1, 57.0), (6.0, 8.0)] {
        close("F", f_sf(t * t, 1.0, df), 2.0 * t_sf(t, df), 1e-9);
    }
    let (d1, d2, x): (f64, f64, f64) = (2.0, 57.0, 2.9);
    // On 2 degrees of freedom the tail is a power.
    close(
        "F(2, 57)",
        f_sf(x, d1, d2),
        (1.0 + d1 * x / d2).powf(-d2 / 2.0),
        1e-10,
    );
}

#[test]
fn critical_values_are_those_of_printed_tables() {
    for (level, df, printed) in [
        (0.95, 19.0, 2.093_024),
        (0.99, 19.0, 2.860_935),
        (0.95, 78.0, 1.990_847),
        (0.95, 1.0, 12.706_205),
    ] {
        close("t", t_critical(level, df), printed, 1e-6);
    }
}
