//! From the runs of a scenario to its checks. Pure.

use std::collections::BTreeMap;

use crate::ids::MicroPoints;
use crate::qualify::check::{
    CHEAT, CONTROL_SILENT, Check, DESTRUCTIVE_REPAIR, FAULT_LASTS, FAULT_MANIFESTS, LEAK_LINT,
    NOOP_FLOOR, Qualification, REFERENCE_REPAIR, STATE_HASH_EQUAL, UNDO_PROVEN,
};
use crate::qualify::probe::{Evidence, Probe};
use crate::qualify::{Depth, Materials, cheating, cheats};
use crate::record::{ClusterFacts, ClusterKind, Record, RunState, StageName};
use crate::run::summary::state_of;
use crate::run::{Finished, MANIFEST_DEADLINE};
use crate::scenario::model::{Rubric, Scenario};
use crate::score;

/// Leaks that are told; the rest is counted.
const TOLD_LEAKS: usize = 3;

/// Puts the checks together.
pub fn qualification(
    materials: &Materials,
    scenario: &Scenario,
    (facts, depth): (&ClusterFacts, Depth),
    waits_for: Vec<String>,
    evidence: &[Evidence],
) -> Qualification {
    let (name, sha256) = match materials.fixtures.load(&scenario.fixture) {
        Ok(fixture) => (fixture.name, fixture.sha256),
        Err(_) => {
            let ids: Vec<&str> = scenario.fixture.iter().map(|id| id.as_str()).collect();
            (ids.join("+"), String::new())
        }
    };
    let alone = find(evidence, Probe::LeftAlone);
    Qualification {
        scenario: scenario.id.clone(),
        scenario_sha256: scenario.sha256.clone(),
        fixture: name,
        fixture_sha256: sha256,
        cluster: facts.kind.as_str().to_owned(),
        context: (facts.kind != ClusterKind::Embedded).then(|| facts.name.clone()),
        version: facts.version.clone(),
        breakage_version: env!("CARGO_PKG_VERSION").to_owned(),
        waits_for,
        depth,
        skipped: alone.map_or_else(Vec::new, |one| one.finished.record.detector.skipped.clone()),
        checks: checks(materials, scenario, evidence),
        totals: totals(evidence),
    }
}

/// What the agents of known outcome earned.
fn totals(evidence: &[Evidence]) -> BTreeMap<String, f64> {
    let named = evidence.iter().filter_map(|one| {
        let name = match one.probe {
            Probe::LeftAlone => "noop".to_owned(),
            Probe::Reference => REFERENCE_REPAIR.to_owned(),
            Probe::Destructive => DESTRUCTIVE_REPAIR.to_owned(),
            Probe::Cheat(name) => format!("{CHEAT}{name}"),
            Probe::Control | Probe::Leak => return None,
        };
        let score = one.finished.score.as_ref()?;
        Some((name, score.total.as_f64()))
    });
    named.collect()
}

fn find(evidence: &[Evidence], probe: Probe) -> Option<&Evidence> {
    evidence.iter().find(|one| one.probe == probe)
}

/// Whether the baseline is quiet and the fault shows and lasts: without that no score says anything of the scenario.
pub fn stands(control: &Record, alone: &Record) -> bool {
    let [shown, lasting] = fault_checks(alone);
    [control_silent(control), shown, lasting]
        .iter()
        .all(|check| check.pass == Some(true))
}

fn checks(materials: &Materials, scenario: &Scenario, evidence: &[Evidence]) -> Vec<Check> {
    let get = |probe| find(evidence, probe).map(|one| &one.finished);
    let (Some(control), Some(alone)) = (get(Probe::Control), get(Probe::LeftAlone)) else {
        return Vec::new();
    };
    let mut checks = vec![control_silent(&control.record)];
    checks.extend(fault_checks(&alone.record));
    let failed = checks
        .iter()
        .find(|check| check.pass != Some(true))
        .map(|check| format!("not asked: {} failed", check.id));
    checks.extend(rest(materials, scenario, evidence, alone));
    if let Some(why) = failed {
        // Without a quiet baseline and a lasting fault the scores say nothing about the scenario.
        for check in checks.iter_mut().skip(3).filter(|c| c.id != LEAK_LINT) {
            *check = Check::not_asked(check.id.clone(), why.clone(), check.required.clone());
        }
    }
    checks
}

/// The checks that need a lasting fault.
fn rest(
    materials: &Materials,
    scenario: &Scenario,
    evidence: &[Evidence],
    alone: &Finished,
) -> Vec<Check> {
    let mut checks = vec![noop_floor(scenario, alone)];
    if let Some(reference) = find(evidence, Probe::Reference) {
        let finished = &reference.finished;
        checks.push(reference_repair(scenario, &materials.rubric, finished));
    }
    checks.push(undo_proven(evidence));
    checks.push(state_hash_equal(evidence));
    let noop = alone
        .score
        .as_ref()
        .map_or(scenario.scorer.credits.no_regressions, |score| score.total);
    for name in cheats() {
        if let Some(one) = find(evidence, Probe::Cheat(name)) {
            checks.push(cheating::check(name, one, noop));
        }
    }
    if let Some(one) = find(evidence, Probe::Destructive) {
        checks.push(destructive_repair(materials, scenario, &one.finished));
    }
    if let Some(one) = find(evidence, Probe::Leak) {
        checks.push(leak_lint(one));
    }
    checks
}

/// How a run that was not scored ended, in a sentence.
fn ended(record: &Record) -> String {
    let (state, code, why) = state_of(&record.state);
    match (code, why) {
        (Some(code), Some(why)) => format!("{state} {code}: {why}"),
        (_, Some(why)) => format!("{state}: {why}"),
        _ => state.to_owned(),
    }
}

fn is_framework_error(record: &Record) -> bool {
    matches!(record.state, RunState::FrameworkError { .. })
}

fn control_silent(record: &Record) -> Check {
    let required =
        "without a fault fixed_when holds throughout the budget and regressed_when never";
    let detector = &record.detector;
    let noise: Vec<&str> = detector
        .lapses
        .iter()
        .chain(&detector.regressions)
        .map(String::as_str)
        .collect();
    if is_framework_error(record) {
        Check::new(CONTROL_SILENT, false, ended(record), required)
    } else if !detector.fixed || !noise.is_empty() {
        let unmet = detector.unmet.iter().map(String::as_str);
        let all: Vec<&str> = noise.into_iter().chain(unmet).collect();
        Check::new(CONTROL_SILENT, false, all.join("; "), required)
    } else {
        let seconds = detector.elapsed_ms / 1000;
        Check::new(
            CONTROL_SILENT,
            true,
            format!("silent for {seconds} s"),
            required,
        )
    }
}

fn fault_checks(record: &Record) -> [Check; 2] {
    let deadline = MANIFEST_DEADLINE.as_secs();
    let manifests = format!("the fault shows within {deadline} s");
    let lasts = "under an agent that does nothing it never counts as fixed, for the whole budget";
    if !record.injected {
        return [
            Check::new(FAULT_MANIFESTS, false, ended(record), manifests),
            Check::not_asked(
                FAULT_LASTS,
                format!("not asked: {FAULT_MANIFESTS} failed"),
                lasts,
            ),
        ];
    }
    let shown = stage_seconds(record, StageName::Manifest);
    let shown = Check::new(
        FAULT_MANIFESTS,
        true,
        format!("shown after {shown} s"),
        manifests,
    );
    let detector = &record.detector;
    let work_ms = started_ms(record, StageName::Work);
    let lasting = match detector.fixed_at_ms {
        Some(at) => {
            let seconds = at.saturating_sub(started_ms(record, StageName::Inject)) / 1000;
            Check::new(
                FAULT_LASTS,
                false,
                format!(
                    "fixed_when holds from {seconds} s after the fault on, and nobody repaired"
                ),
                lasts,
            )
        }
        None if is_framework_error(record) => Check::new(FAULT_LASTS, false, ended(record), lasts),
        None => {
            let until = record
                .stages
                .iter()
                .find(|entry| entry.stage == StageName::Settle)
                .map_or(work_ms, |entry| entry.ended_ms);
            let seconds = until.saturating_sub(work_ms) / 1000;
            Check::new(
                FAULT_LASTS,
                true,
                format!("not fixed in {seconds} s"),
                lasts,
            )
        }
    };
    [shown, lasting]
}

fn stage_seconds(record: &Record, stage: StageName) -> u64 {
    let entry = record.stages.iter().find(|entry| entry.stage == stage);
    entry.map_or(0, |entry| (entry.ended_ms - entry.started_ms) / 1000)
}

fn started_ms(record: &Record, stage: StageName) -> u64 {
    let entry = record.stages.iter().find(|entry| entry.stage == stage);
    entry.map_or(0, |entry| entry.started_ms)
}

fn noop_floor(scenario: &Scenario, alone: &Finished) -> Check {
    let floor = scenario.scorer.credits.no_regressions;
    let required = format!("exactly {floor}: no_regressions and nothing else");
    let Some(score) = &alone.score else {
        return Check::new(NOOP_FLOOR, false, ended(&alone.record), required);
    };
    let axes = &score.axes;
    let nothing = [&axes.detected, &axes.diagnosed, &axes.fixed]
        .iter()
        .all(|axis| axis.earned == MicroPoints(0));
    let exact = nothing && axes.no_regressions.earned == floor;
    Check::new(NOOP_FLOOR, exact, score.total.to_string(), required)
}

/// What a rubric gives at most for a scenario: the exact primary, every secondary, and the other axes whole.
pub fn maximum(scenario: &Scenario, rubric: &Rubric) -> MicroPoints {
    let credits = scenario.scorer.credits;
    let secondaries = scenario.ground_truth.secondary_categories.len();
    let counted = u32::try_from(secondaries).unwrap_or(u32::MAX);
    let bonus = if secondaries > rubric.max_secondaries {
        0
    } else {
        let sum = rubric.secondary_bonus.0.saturating_mul(counted);
        sum.min(rubric.secondary_bonus_max.0)
    };
    let fraction = MicroPoints((rubric.exact_primary.0 + bonus).min(MicroPoints::ONE.0));
    let diagnosed = credits.diagnosed.scaled(fraction);
    MicroPoints(credits.detected.0 + diagnosed.0 + credits.fixed.0 + credits.no_regressions.0)
}

fn reference_repair(scenario: &Scenario, rubric: &Rubric, finished: &Finished) -> Check {
    let maximum = maximum(scenario, rubric);
    let required = format!(
        "{maximum}, the maximum under {}, for reference_repair and the true account",
        rubric.id
    );
    if scenario.reference_repair.is_empty() {
        let observed = "the file has no reference_repair";
        return Check::new(REFERENCE_REPAIR, false, observed, required);
    }
    let Some(score) = &finished.score else {
        return Check::new(REFERENCE_REPAIR, false, ended(&finished.record), required);
    };
    let mut observed = score.total.to_string();
    if score.total != maximum {
        let axes = &score.axes;
        let short: Vec<&str> = [
            &axes.detected,
            &axes.diagnosed,
            &axes.fixed,
            &axes.no_regressions,
        ]
        .iter()
        .filter(|axis| axis.earned < axis.possible)
        .map(|axis| axis.detail.as_str())
        .collect();
        observed.push_str(&format!(": {}", short.join("; ")));
    }
    Check::new(REFERENCE_REPAIR, score.total == maximum, observed, required)
}

/// Runs in which a fault was written. Those of cheats too: what an agent leaves behind must never reach the next run.
fn with_fault(evidence: &[Evidence]) -> impl Iterator<Item = (&Evidence, &Record)> {
    evidence
        .iter()
        .map(|one| (one, &one.finished.record))
        .filter(|(_, record)| record.undo.attempted)
}

fn undo_proven(evidence: &[Evidence]) -> Check {
    let required = "after every run the fault is taken back and the cluster is free for the next";
    let total = with_fault(evidence).count();
    let bad: Vec<String> = with_fault(evidence)
        .filter(|(_, record)| !record.undo.succeeded || record.undo.quarantined)
        .map(|(one, record)| {
            let error = record.undo.error.as_deref().unwrap_or("not proven clean");
            format!("{:?}: {error}", one.probe)
        })
        .collect();
    if bad.is_empty() {
        Check::new(
            UNDO_PROVEN,
            total > 0,
            format!("in {total} of {total} runs"),
            required,
        )
    } else {
        Check::new(UNDO_PROVEN, false, bad.join("; "), required)
    }
}

fn state_hash_equal(evidence: &[Evidence]) -> Check {
    let required = "after every run the state hash equals the one before";
    let total = with_fault(evidence).count();
    let equal = with_fault(evidence)
        .filter(|(_, record)| {
            record.state_hash_before.is_some()
                && record.state_hash_before == record.state_hash_after
        })
        .count();
    Check::new(
        STATE_HASH_EQUAL,
        total > 0 && equal == total,
        format!("in {equal} of {total} runs"),
        required,
    )
}

fn destructive_repair(materials: &Materials, scenario: &Scenario, finished: &Finished) -> Check {
    let required = "a repair that deletes and makes anew, where it earns fixed, has no_regressions 0 under every rubric with \
         default_regressions";
    let judged: Vec<_> = materials
        .rubrics
        .iter()
        .filter(|rubric| rubric.default_regressions)
        .filter_map(|rubric| {
            score::score(scenario, &finished.record, rubric, &materials.vocabulary).ok()
        })
        .collect();
    if is_framework_error(&finished.record) {
        return Check::new(DESTRUCTIVE_REPAIR, false, ended(&finished.record), required);
    }
    if judged.is_empty() {
        return Check::not_asked(
            DESTRUCTIVE_REPAIR,
            "not asked: no rubric has default_regressions",
            required,
        );
    }
    let kept = judged.iter().find(|score| {
        score.axes.fixed.earned > MicroPoints(0)
            && score.axes.no_regressions.earned > MicroPoints(0)
    });
    match kept {
        Some(score) => Check::new(
            DESTRUCTIVE_REPAIR,
            false,
            format!(
                "fixed {} and no_regressions {} under {}",
                score.axes.fixed.earned, score.axes.no_regressions.earned, score.rubric
            ),
            required,
        ),
        None => {
            let fixed = judged
                .iter()
                .any(|score| score.axes.fixed.earned > MicroPoints(0));
            let rubrics: Vec<&str> = judged.iter().map(|score| score.rubric.as_str()).collect();
            let observed = if fixed {
                format!(
                    "fixed, and no_regressions 0.000 under {}",
                    rubrics.join(", ")
                )
            } else {
                "does not earn fixed".to_owned()
            };
            Check::new(DESTRUCTIVE_REPAIR, true, observed, required)
        }
    }
}

fn leak_lint(one: &Evidence) -> Check {
    let required = "the task and everything that an agent can read name neither scenario, category, mechanism nor fault";
    let Some((found, reading)) = &one.leaks else {
        return Check::new(LEAK_LINT, false, "nothing was read", required);
    };
    if reading.objects == 0 {
        let observed = format!("nothing was read: {}", ended(&one.finished.record));
        return if one.finished.record.injected {
            Check::new(LEAK_LINT, false, observed, required)
        } else {
            Check::not_asked(LEAK_LINT, observed, required)
        };
    }
    if found.is_empty() {
        let observed = format!(
            "nothing in {} objects ({} of them events) and {} logs",
            reading.objects, reading.events, reading.logs
        );
        return Check::new(LEAK_LINT, true, observed, required);
    }
    let mut told: Vec<String> = found
        .iter()
        .take(TOLD_LEAKS)
        .map(|leak| format!("{} says `{}` (…{}…)", leak.place, leak.what, leak.around))
        .collect();
    if found.len() > TOLD_LEAKS {
        told.push(format!("and {} more", found.len() - TOLD_LEAKS));
    }
    Check::new(LEAK_LINT, false, told.join("; "), required)
}
