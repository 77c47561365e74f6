//! Weight vectors drawn around a given one.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, Gamma};

/// Four weights summing to 1 from a Dirichlet distribution with parameters `concentration * base`: their mean is `base`. By
/// inversion of the gamma distribution, so that draw `number` of a seed is the same everywhere. A weight of 0 stays 0.
pub fn weights_around(base: [f64; 4], concentration: f64, seed: u64, number: u64) -> [f64; 4] {
    let mut generator = ChaCha20Rng::seed_from_u64(seed);
    generator.set_stream(number);
    let parts = base.map(|weight| {
        // Strictly between 0 and 1.
        let unit = ((generator.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        match Gamma::new(weight * concentration, 1.0) {
            Ok(gamma) => gamma.inverse_cdf(unit),
            Err(_) => 0.0,
        }
    });
    let sum: f64 = parts.iter().sum();
    if sum > 0.0 {
        parts.map(|part| part / sum)
    } else {
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_weights_sum_to_one_and_lie_around_the_given() {
        let base = [0.2, 0.3, 0.3, 0.2];
        let draws: Vec<[f64; 4]> = (0..400).map(|n| weights_around(base, 50.0, 0, n)).collect();
        for draw in &draws {
            assert!((draw.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(draw.iter().all(|weight| *weight > 0.0));
        }
        for axis in 0..4 {
            let mean = draws.iter().map(|draw| draw[axis]).sum::<f64>() / 400.0;
            assert!((mean - base[axis]).abs() < 0.01, "{axis}: {mean}");
        }
        assert_eq!(draws[7], weights_around(base, 50.0, 0, 7));
    }

    #[test]
    fn a_weight_of_nothing_stays_nothing() {
        assert_eq!(
            weights_around([0.0, 0.0, 1.0, 0.0], 50.0, 0, 0),
            [0.0, 0.0, 1.0, 0.0]
        );
    }
}
