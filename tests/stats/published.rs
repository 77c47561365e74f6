//! The published results, recomputed.

use agent_breakage::report::published::claims::claim_checks;
use agent_breakage::report::published::{Published, check};

/// Numbers of the data that are recomputed. Fewer would mean that some went out of sight.
const LEAST_CHECKS: usize = 1_000;

#[test]
fn every_number_of_the_published_data_is_reproduced() {
    let checks = check(Published::built_in());
    let wrong: Vec<String> = checks
        .iter()
        .filter(|check| !check.agrees)
        .map(|check| {
            format!(
                "{}: {:?} in the data, {} ours",
                check.place, check.golden, check.ours
            )
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        checks.len(),
        wrong.join("\n")
    );
    assert!(checks.len() > LEAST_CHECKS, "{} checks", checks.len());
}

#[test]
fn the_data_holds_every_published_cell() {
    let published = Published::built_in();
    assert_eq!(published.cells.len(), 14);
    assert_eq!(published.pooled.len(), 4);
    assert_eq!(published.families().len(), 5);
}

#[test]
fn our_numbers_bear_out_what_was_found_of_the_claims() {
    let claims = claim_checks(Published::built_in());
    assert_eq!(claims.len(), 10);
    let not_recomputed: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.recomputed.is_none())
        .map(|claim| claim.claim.as_str())
        .collect();
    // The runs at n=3 were published as before and after, without their spread.
    assert_eq!(not_recomputed.len(), 1, "{not_recomputed:?}");
    for claim in claims {
        if let Some(recomputed) = claim.recomputed {
            assert!(
                recomputed.supports_verdict,
                "{}: {}",
                claim.claim, recomputed.text
            );
        }
    }
}
