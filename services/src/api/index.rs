//! The index of cases: memory that is really used, and work that really costs processor time.

use std::time::Duration;

use acme_services::api::INDEX_STEP_MB;
use rustix::time::{ClockId, clock_gettime};

const MIB: usize = 1 << 20;
/// How much is verified between two looks at the clock, in bytes.
const BLOCK: usize = 64 << 10;

/// The index in memory, in parts of one MiB with the sum that each must have.
pub struct Index {
    parts: Vec<(Vec<u64>, u64)>,
}

impl Index {
    /// Builds an index of so many MiB and tells how many there are after each step.
    pub fn build(size_mib: u64, mut loaded: impl FnMut(u64)) -> Index {
        let mut parts = Vec::new();
        // Any non-zero start will do: the words must only differ, so that no page is like another.
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        for done in 1..=size_mib {
            let part: Vec<u64> = (0..MIB / size_of::<u64>())
                .map(|_| {
                    word ^= word << 13;
                    word ^= word >> 7;
                    word ^= word << 17;
                    word
                })
                .collect();
            let sum = sum(&part);
            parts.push((part, sum));
            if done % INDEX_STEP_MB == 0 {
                loaded(done);
            }
        }
        Index { parts }
    }

    /// Verifies the index from its start on, over and over, until this thread has spent `budget` of processor time or
    /// `wanted` says that nobody waits for it. False when a part is damaged.
    pub fn verify(&self, budget: Duration, wanted: impl Fn() -> bool) -> bool {
        let end = spent() + budget;
        loop {
            for (part, expected) in &self.parts {
                let mut total = 0_u64;
                for block in part.chunks(BLOCK / size_of::<u64>()) {
                    if spent() >= end || !wanted() {
                        return true;
                    }
                    total = total.wrapping_add(sum(block));
                }
                if total != *expected {
                    return false;
                }
            }
            if self.parts.is_empty() || spent() >= end || !wanted() {
                return true;
            }
        }
    }
}

/// The sum of a block; of a part's blocks together, that of the part.
fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| {
        sum.wrapping_add(word.rotate_left((word & 63) as u32))
    })
}

/// Processor time that this thread has spent so far.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_told_and_the_whole_index_is_held() {
        let mut told = Vec::new();
        let index = Index::build(2 * INDEX_STEP_MB + 1, |loaded| told.push(loaded));
        assert_eq!(told, [INDEX_STEP_MB, 2 * INDEX_STEP_MB]);
        let held: usize = index.parts.iter().map(|(part, _)| part.len() * 8).sum();
        assert_eq!(held, (2 * INDEX_STEP_MB as usize + 1) * MIB);
    }

    #[test]
    fn a_check_spends_the_processor_time_that_it_is_given() {
        let index = Index::build(1, |_| {});
        let before = spent();
        assert!(index.verify(Duration::from_millis(20), || true));
        assert!(spent() - before >= Duration::from_millis(20));
    }

    #[test]
    fn a_damaged_part_is_found() {
        let mut index = Index::build(1, |_| {});
        index.parts[0].0[70_000] ^= 1;
        assert!(!index.verify(Duration::from_secs(1), || true));
    }

    #[test]
    fn a_check_that_nobody_waits_for_ends_at_once() {
        let index = Index::build(1, |_| {});
        let before = spent();
        assert!(index.verify(Duration::from_secs(60), || false));
        assert!(spent() - before < Duration::from_secs(1));
    }

    #[test]
    fn an_empty_index_is_healthy() {
        assert!(Index::build(0, |_| {}).verify(Duration::from_secs(60), || true));
    }
}
