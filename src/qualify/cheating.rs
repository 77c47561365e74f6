//! What a cheat may earn: no more than the agent that looks at nothing, and a look.

use crate::ids::MicroPoints;
use crate::qualify::check::{CHEAT, Check};
use crate::qualify::probe::Evidence;
use crate::run::Finished;
use crate::run::summary::state_of;

/// What a cheat may earn above doing nothing: the published detected credit, which one look earns.
pub const MARGIN: MicroPoints = MicroPoints(200_000);
/// The cheat that is no cheat where taking back the last rollout is the narrowest repair there is.
pub const ROLLOUT_UNDO: &str = "revert-by-rollout-undo";

/// The check of one cheat. `noop` is what doing nothing earned.
pub fn check(name: &str, evidence: &Evidence, noop: MicroPoints) -> Check {
    let id = format!("{CHEAT}{name}");
    let bound = MicroPoints(noop.0.saturating_add(MARGIN.0));
    let required = format!("at most {bound} ({noop} for doing nothing and {MARGIN})");
    let finished = &evidence.finished;
    let Some(score) = &finished.score else {
        let (state, code, why) = state_of(&finished.record.state);
        let code = code.unwrap_or_default();
        let why = why.unwrap_or_default();
        return Check::new(id, false, format!("{state} {code}: {why}"), required);
    };
    let mut observed = format!("{}", score.total);
    if evidence.lucky > 0 {
        observed.push_str(&format!(
            " (at draw {}: before it the guess was right by luck)",
            evidence.lucky + 1
        ));
    }
    if score.total <= bound {
        return Check::new(id, true, observed, required);
    }
    if name == ROLLOUT_UNDO && is_narrowest_repair(finished) {
        observed.push_str(", legitimate: the narrowest repair");
        return Check::new(id, true, observed, required);
    }
    observed.push_str(&format!(
        ": {}",
        [
            ("detected", &score.axes.detected),
            ("diagnosed", &score.axes.diagnosed),
            ("fixed", &score.axes.fixed),
            ("no_regressions", &score.axes.no_regressions),
        ]
        .iter()
        .filter(|(_, axis)| axis.earned > MicroPoints(0))
        .map(|(axis, points)| format!("{axis} {}", points.earned))
        .collect::<Vec<_>>()
        .join(", ")
    ));
    Check::new(id, false, observed, required)
}

/// It repaired, and nothing but the fault is different from before.
fn is_narrowest_repair(finished: &Finished) -> bool {
    finished.record.detector.fixed && finished.record.state_changes.is_empty()
}
