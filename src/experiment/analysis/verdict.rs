//! The rule that turns an interval and an exact p into a verdict. The planning of an experiment uses it too, so that its
//! operating characteristics are those of the analysis.

use crate::experiment::analysis::model::Verdict;
use crate::stats::Interval;
use crate::stats::distribution::t_quantile;

/// A difference with what its intervals need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub delta: f64,
    /// Above 0.
    pub se: f64,
    pub df: f64,
}

impl Estimate {
    /// Two-sided, by Student's t.
    pub fn interval(&self, level: f64) -> Interval {
        let half = self.half_width(level);
        Interval {
            low: self.delta - half,
            high: self.delta + half,
        }
    }

    pub fn half_width(&self, level: f64) -> f64 {
        t_quantile(f64::midpoint(1.0, level), self.df) * self.se
    }
}

/// What a verdict is asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub estimate: Estimate,
    /// The family's level, shared out by Bonferroni among its intervals.
    pub alpha: f64,
    /// Intervals in the family, at least 1.
    pub intervals: usize,
    /// The registered exact test's p, adjusted for the family.
    pub p_adjusted: f64,
    /// Unadjusted p of the exact test and of those that are computed beside it. A verdict that only some of them bear
    /// out is not given.
    pub p_of_tests: Vec<f64>,
    /// The smallest effect of interest.
    pub sesoi: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub verdict: Verdict,
    /// The interval clears the smallest effect of interest.
    pub material: bool,
    /// Interval and exact test, or the tests among themselves, fall on different sides of alpha.
    pub fragile: bool,
}

impl Question {
    /// The level of each interval of the family.
    pub fn level(&self) -> f64 {
        1.0 - self.alpha / self.intervals.max(1) as f64
    }

    /// Benefit, harm, equivalent, no benefit, else inconclusive: the first that holds.
    pub fn answer(&self) -> Answer {
        let interval = self.estimate.interval(self.level());
        let ninety = self.estimate.interval(0.90);
        let apart = interval.low > 0.0 || interval.high < 0.0;
        let rejected = self.p_adjusted <= self.alpha;
        let below = self.p_of_tests.iter().filter(|p| **p <= self.alpha).count();
        let split = below > 0 && below < self.p_of_tests.len();
        let fragile = apart != rejected || split;
        let found = apart && rejected && !split;
        let verdict = if found && interval.low > 0.0 {
            Verdict::Benefit
        } else if found {
            Verdict::Harm
        } else if -self.sesoi < ninety.low && ninety.high < self.sesoi {
            Verdict::Equivalent
        } else if interval.high < self.sesoi {
            Verdict::NoBenefit
        } else {
            Verdict::Inconclusive
        };
        let material = match verdict {
            Verdict::Benefit => interval.low > self.sesoi,
            Verdict::Harm => interval.high < -self.sesoi,
            _ => false,
        };
        Answer {
            verdict,
            material,
            fragile,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(delta: f64, se: f64, p: f64) -> Question {
        Question {
            estimate: Estimate {
                delta,
                se,
                df: 38.0,
            },
            alpha: 0.05,
            intervals: 1,
            p_adjusted: p,
            p_of_tests: vec![p, p],
            sesoi: 0.05,
        }
    }

    #[test]
    fn the_first_verdict_that_holds_is_given() {
        for (delta, se, p, verdict, material) in [
            (0.10, 0.01, 1e-6, Verdict::Benefit, true),
            (0.06, 0.02, 0.005, Verdict::Benefit, false),
            (-0.10, 0.01, 1e-6, Verdict::Harm, true),
            (0.02, 0.005, 1e-4, Verdict::Benefit, false),
            (0.00, 0.01, 0.99, Verdict::Equivalent, false),
            (-0.06, 0.04, 0.15, Verdict::NoBenefit, false),
            (0.06, 0.04, 0.15, Verdict::Inconclusive, false),
        ] {
            let answer = question(delta, se, p).answer();
            assert_eq!(
                (answer.verdict, answer.material),
                (verdict, material),
                "{delta} {se}"
            );
            assert!(!answer.fragile);
        }
    }

    #[test]
    fn tests_that_disagree_give_the_weaker_verdict_and_say_so() {
        let mut split = question(0.06, 0.02, 0.005);
        split.p_of_tests = vec![0.005, 0.06];
        assert_eq!(split.answer().verdict, Verdict::Inconclusive);
        assert!(split.answer().fragile);
        let mut corrected = question(0.06, 0.02, 0.005);
        corrected.p_adjusted = 0.09;
        assert_eq!(corrected.answer().verdict, Verdict::Inconclusive);
        assert!(corrected.answer().fragile);
    }

    #[test]
    fn intervals_widen_with_the_family() {
        let one = question(0.045, 0.02, 0.03);
        let three = Question {
            intervals: 3,
            ..one.clone()
        };
        assert_eq!(one.answer().verdict, Verdict::Benefit);
        assert_eq!(three.answer().verdict, Verdict::Inconclusive);
    }
}
