//! Seeded draws. Each is a function of seed, purpose and number alone: no draw shifts another.

use crate::ids::Seed;

/// Where one incident's draws come from.
#[derive(Clone, Copy)]
pub(super) struct Chance(pub Seed);

impl Chance {
    /// Evenly from 0 up to, not including, 1.
    pub fn unit(self, purpose: &str, number: u64) -> f64 {
        /// The bits of a double's mantissa.
        const BITS: u32 = 53;
        (self.0.child(purpose, number).0 >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
    }

    pub fn happens(self, purpose: &str, number: u64, probability: f64) -> bool {
        self.unit(purpose, number) < probability
    }

    /// One of some things, each as likely as the others.
    pub fn pick<'a, T>(self, purpose: &str, number: u64, things: &'a [T]) -> Option<&'a T> {
        // The product stays below the length, which a count of things in memory cannot exceed.
        let index = (self.unit(purpose, number) * things.len() as f64) as usize;
        things.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_independent_of_each_other() {
        let chance = Chance(Seed(9));
        let draws: Vec<f64> = (0..10_000).map(|n| chance.unit("a", n)).collect();
        let mean = draws.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        assert_ne!(chance.unit("a", 0), chance.unit("b", 0));
        assert!(!chance.happens("a", 0, 0.0) && chance.happens("a", 0, 1.0));
        assert_eq!(chance.pick::<u8>("a", 0, &[]), None);
    }
}
