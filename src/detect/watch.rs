//! Conditions over time: a pure tracker fed with observations.
//!
//! [`Stretch`] follows conditions that must hold together; [`Watch`] follows a detector's two lists;
//! [`Manifest`] waits for a fault to show. Time is the observations' own `at_ms`; nothing here waits.

use std::collections::BTreeMap;

use crate::detect::condition::Condition;
use crate::detect::evaluate::{Reading, RestartBaseline, Truth, evaluate, restart_baseline};
use crate::detect::expression::{Test, WorkloadField};
use crate::detect::promql;
use crate::record::observation::Observation;

/// One true reading may be a lucky instant; two are a stretch.
const MIN_SAMPLES: u32 = 2;
/// As many readings without an answer in a row end a stretch: it is no longer known to be unbroken.
pub const MAX_UNKNOWN_IN_A_ROW: u32 = 3;
/// A stretch passes only while no more than this share of its readings, in percent, had no answer.
pub const MAX_UNKNOWN_PERCENT: u64 = 25;
/// Readings further apart than this do not join into one stretch: anything could have happened between.
pub const MAX_GAP_MS: u64 = 30_000;
/// Without a `manifest_when` of its own, a fault has shown once every `fixed_when` was false for this long without a
/// break: longer than the gap of an ordinary rollout, which any harmless change of a template opens.
pub const DEFAULT_MANIFEST_MS: u64 = 10_000;

/// How long conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Each its own `sustained_for_s`.
    Own,
    /// All this long, for soaks and re-checks.
    Seconds(u32),
}

/// One condition followed over time.
#[derive(Clone, Debug)]
struct Track {
    condition: Condition,
    window_ms: u64,
    /// Samples that a stretch needs.
    min_samples: u32,
    since_ms: Option<u64>,
    last_known_ms: u64,
    samples: u32,
    unknown: u32,
    unknown_in_a_row: u32,
    baseline: Option<RestartBaseline>,
    last: Option<Reading>,
    /// At least one reading had an answer, or might have had one.
    ever_evaluable: bool,
    /// What was seen when it was false for the first time.
    first_lapse: Option<String>,
}

impl Track {
    fn new(condition: &Condition, window: Window, one_sample_for_zero: bool) -> Track {
        let seconds = match window {
            Window::Own => condition.sustained_for_s,
            Window::Seconds(seconds) => seconds,
        };
        // What Prometheus answers may rest on samples as old as the query reaches back. A recovery is proven only once
        // the condition has held for longer than that: then at least the newest sample is of that time.
        let proves_recovery = window == Window::Own && !one_sample_for_zero;
        let reach_ms = promql::reach_ms(&condition.expression.test);
        let reach_ms = reach_ms.filter(|_| proves_recovery).unwrap_or(0);
        Track {
            condition: condition.clone(),
            window_ms: (u64::from(seconds) * 1000).max(reach_ms),
            min_samples: if one_sample_for_zero && seconds == 0 {
                1
            } else {
                MIN_SAMPLES
            },
            since_ms: None,
            last_known_ms: 0,
            samples: 0,
            unknown: 0,
            unknown_in_a_row: 0,
            baseline: None,
            last: None,
            ever_evaluable: false,
            first_lapse: None,
        }
    }

    fn feed(&mut self, observation: &Observation) {
        let counts_restarts = matches!(
            self.condition.expression.test,
            Test::Workload {
                field: WorkloadField::Restarts,
                ..
            }
        );
        if counts_restarts && self.baseline.is_none() {
            self.baseline = Some(restart_baseline(observation));
        }
        let empty = RestartBaseline::new();
        let reading = evaluate(
            &self.condition,
            observation,
            self.baseline.as_ref().unwrap_or(&empty),
        );
        match reading.truth {
            Truth::True => self.held(observation.at_ms),
            Truth::False => {
                self.first_lapse.get_or_insert_with(|| reading.seen.clone());
                self.break_off();
                if counts_restarts && self.rebases() {
                    self.baseline = Some(restart_baseline(observation));
                }
            }
            Truth::Unknown => self.unanswered(),
            Truth::NotObserved | Truth::Unevaluable => self.break_off(),
        }
        self.ever_evaluable |= reading.truth != Truth::Unevaluable;
        self.last = Some(reading);
    }

    /// A condition that wants few restarts starts counting anew after it was broken; one that waits for
    /// restarts counts from the first reading.
    fn rebases(&self) -> bool {
        match &self.condition.expression.test {
            Test::Workload { op, .. } => op.bounds_from_above(),
            _ => false,
        }
    }

    fn held(&mut self, at_ms: u64) {
        let joined =
            self.since_ms.is_some() && at_ms.saturating_sub(self.last_known_ms) <= MAX_GAP_MS;
        if !joined {
            self.since_ms = Some(at_ms);
            self.samples = 0;
            self.unknown = 0;
        }
        self.samples = self.samples.saturating_add(1);
        self.unknown_in_a_row = 0;
        self.last_known_ms = at_ms;
    }

    fn unanswered(&mut self) {
        self.unknown = self.unknown.saturating_add(1);
        self.unknown_in_a_row = self.unknown_in_a_row.saturating_add(1);
        if self.unknown_in_a_row >= MAX_UNKNOWN_IN_A_ROW {
            self.since_ms = None;
        }
    }

    fn break_off(&mut self) {
        self.since_ms = None;
        self.samples = 0;
        self.unknown = 0;
        self.unknown_in_a_row = 0;
    }

    fn is_true_now(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|reading| reading.truth == Truth::True)
    }

    fn is_unknown_now(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|reading| reading.truth == Truth::Unknown)
    }

    /// Cannot be answered here, and the file says to pass it over.
    fn is_skipped(&self) -> bool {
        self.condition.skip_if_unevaluable && self.last.is_some() && !self.ever_evaluable
    }

    fn is_unevaluable(&self) -> bool {
        !self.condition.skip_if_unevaluable && self.last.is_some() && !self.ever_evaluable
    }

    fn passes(&self) -> bool {
        let Some(since_ms) = self.since_ms else {
            return false;
        };
        let readings = u64::from(self.samples) + u64::from(self.unknown);
        self.is_true_now()
            && self.last_known_ms.saturating_sub(since_ms) >= self.window_ms
            && self.samples >= self.min_samples
            && u64::from(self.unknown) * 100 <= readings * MAX_UNKNOWN_PERCENT
    }

    fn line(&self) -> String {
        match &self.last {
            Some(reading) => format!("{}: {}", self.condition.text, reading.seen),
            None => format!("{}: not read", self.condition.text),
        }
    }
}

/// Conditions that must hold together, all at the same time, each for its window.
#[derive(Clone, Debug)]
pub struct Stretch {
    tracks: Vec<Track>,
    /// When watching began.
    from_ms: Option<u64>,
    last_ms: Option<u64>,
    readings: u32,
    unknown_readings: u32,
    /// The newest reading without an answer, and what it said instead.
    last_unknown: Option<(u64, String)>,
    /// Time that ended with a reading without an answer, or in which nobody read although it should have been several
    /// times.
    unseen_ms: u64,
}

impl Stretch {
    pub fn new(conditions: &[Condition], window: Window) -> Stretch {
        let tracks = conditions
            .iter()
            .map(|condition| Track::new(condition, window, false))
            .collect();
        Stretch {
            tracks,
            from_ms: None,
            last_ms: None,
            readings: 0,
            unknown_readings: 0,
            last_unknown: None,
            unseen_ms: 0,
        }
    }

    /// Says when watching began, so that time before the first reading counts as unseen too.
    #[must_use]
    pub fn watching_from(mut self, at_ms: u64) -> Stretch {
        self.from_ms = Some(at_ms);
        self
    }

    /// Takes a new observation; one that is not newer than the last is left out.
    pub fn feed(&mut self, observation: &Observation) {
        if self.last_ms.is_some_and(|last| observation.at_ms <= last) {
            return;
        }
        let from_ms = *self.from_ms.get_or_insert(observation.at_ms);
        let since_ms = self.last_ms.unwrap_or(from_ms);
        let passed_ms = observation.at_ms.saturating_sub(since_ms);
        self.last_ms = Some(observation.at_ms);
        self.readings = self.readings.saturating_add(1);
        for track in &mut self.tracks {
            track.feed(observation);
        }
        let unknown = self.tracks.iter().find(|track| track.is_unknown_now());
        if let Some(unknown) = unknown {
            self.last_unknown = Some((observation.at_ms, unknown.line()));
            self.unknown_readings = self.unknown_readings.saturating_add(1);
        }
        if passed_ms > MAX_GAP_MS || unknown.is_some() {
            self.unseen_ms = self.unseen_ms.saturating_add(passed_ms);
        }
    }

    /// Why nothing may be concluded from the readings, where that is so: too many of them had no answer, nobody looked
    /// for too long, or the newest ones, on which the conclusion hangs, had no answer.
    pub fn blind(&self) -> Option<String> {
        let hangs = self.passed_since_ms().is_none()
            && (self.tracks.iter().any(Track::is_unknown_now) || self.holds_now());
        let window_ms = self.tracks.iter().map(|track| track.window_ms).max();
        self.too_little_seen()
            .or_else(|| self.unknown_within(window_ms.filter(|_| hangs)?))
    }

    /// More than the tolerated share had no answer, by number or by time.
    fn too_little_seen(&self) -> Option<String> {
        let most = |part: u64, whole: u64| part.saturating_mul(100) > whole * MAX_UNKNOWN_PERCENT;
        if most(self.unknown_readings.into(), self.readings.into()) {
            return self.unanswered();
        }
        let lasted_ms = self.last_ms?.saturating_sub(self.from_ms?);
        most(self.unseen_ms, lasted_ms).then(|| {
            let told = self.unanswered();
            format!(
                "nothing was seen during {} of {} s{}",
                self.unseen_ms / 1000,
                lasted_ms / 1000,
                told.map(|told| format!(" ({told})")).unwrap_or_default()
            )
        })
    }

    /// A reading of the newest `window_ms` had no answer.
    fn unknown_within(&self, window_ms: u64) -> Option<String> {
        let (at_ms, _) = self.last_unknown.as_ref()?;
        let age_ms = self.last_ms?.saturating_sub(*at_ms);
        (age_ms <= window_ms).then(|| self.unanswered())?
    }

    fn unanswered(&self) -> Option<String> {
        let (_, line) = self.last_unknown.as_ref()?;
        Some(format!(
            "{} of {} readings had no answer, at last {line}",
            self.unknown_readings, self.readings
        ))
    }

    fn counted(&self) -> impl Iterator<Item = &Track> {
        self.tracks.iter().filter(|track| !track.is_skipped())
    }

    /// Whether every condition is true at the newest reading; false when all are skipped.
    pub fn holds_now(&self) -> bool {
        let mut any = false;
        for track in self.counted() {
            any = true;
            if !track.is_true_now() {
                return false;
            }
        }
        any
    }

    /// Start of the common stretch, once all have held together for their windows.
    pub fn passed_since_ms(&self) -> Option<u64> {
        let mut start = None;
        for track in self.counted() {
            if !track.passes() {
                return None;
            }
            start = start.max(track.since_ms);
        }
        start
    }

    /// Whether every condition that can be answered is definitely false at the newest reading.
    pub fn all_false_now(&self) -> bool {
        let is_false = |track: &Track| {
            track
                .last
                .as_ref()
                .is_some_and(|reading| reading.truth == Truth::False)
        };
        let mut counted = self.counted().peekable();
        counted.peek().is_some() && counted.all(is_false)
    }

    /// One line per condition that is not true at the newest reading, with what was seen.
    pub fn unmet(&self) -> Vec<String> {
        self.counted()
            .filter(|track| !track.is_true_now())
            .map(Track::line)
            .collect()
    }

    /// Conditions passed over because they cannot be evaluated here and say so.
    pub fn skipped(&self) -> Vec<String> {
        let skipped = self.tracks.iter().filter(|track| track.is_skipped());
        skipped.map(|track| track.condition.text.clone()).collect()
    }

    /// Conditions that cannot be evaluated here and may not be skipped: they can never pass.
    pub fn unevaluable(&self) -> Vec<String> {
        self.tracks
            .iter()
            .filter(|track| track.is_unevaluable())
            .map(Track::line)
            .collect()
    }

    /// Readings in which some condition had no answer.
    pub fn unknown_readings(&self) -> u32 {
        self.unknown_readings
    }

    pub fn readings(&self) -> u32 {
        self.readings
    }
}

/// A detector at work: `fixed_when` as one stretch, each `regressed_when` on its own.
#[derive(Clone, Debug)]
pub struct Watch {
    fixed: Stretch,
    regressed: Vec<Track>,
    last_ms: Option<u64>,
    /// Readings in which some `regressed_when` had no answer.
    unknown_regressed: u32,
    /// By position in the list, so that the order is the file's.
    tripped: BTreeMap<usize, Tripped>,
}

/// A regression that was seen. It stays, whatever comes after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tripped {
    /// The expression as written.
    pub condition: String,
    pub seen: String,
    /// Start of the stretch that tripped it.
    pub since_ms: u64,
    pub at_ms: u64,
}

impl Watch {
    pub fn new(fixed_when: &[Condition], regressed_when: &[Condition]) -> Watch {
        Watch {
            fixed: Stretch::new(fixed_when, Window::Own),
            regressed: regressed_when
                .iter()
                .map(|condition| Track::new(condition, Window::Own, true))
                .collect(),
            last_ms: None,
            unknown_regressed: 0,
            tripped: BTreeMap::new(),
        }
    }

    /// As [`Stretch::watching_from`].
    #[must_use]
    pub fn watching_from(mut self, at_ms: u64) -> Watch {
        self.fixed = self.fixed.watching_from(at_ms);
        self
    }

    pub fn feed(&mut self, observation: &Observation) {
        if self.last_ms.is_some_and(|last| observation.at_ms <= last) {
            return;
        }
        self.last_ms = Some(observation.at_ms);
        self.fixed.feed(observation);
        for (index, track) in self.regressed.iter_mut().enumerate() {
            track.feed(observation);
            let (true, Some(since_ms)) = (track.passes(), track.since_ms) else {
                continue;
            };
            self.tripped.entry(index).or_insert_with(|| Tripped {
                condition: track.condition.text.clone(),
                seen: track
                    .last
                    .as_ref()
                    .map(|reading| reading.seen.clone())
                    .unwrap_or_default(),
                since_ms,
                at_ms: observation.at_ms,
            });
        }
        if self.regressed.iter().any(Track::is_unknown_now) {
            self.unknown_regressed = self.unknown_regressed.saturating_add(1);
        }
    }

    /// Why neither "fixed" nor "regressed" may be concluded, where that is so.
    pub fn blind(&self) -> Option<String> {
        let share = u64::from(self.unknown_regressed) * 100;
        let regressed = share > u64::from(self.fixed.readings()) * MAX_UNKNOWN_PERCENT;
        self.fixed.blind().or_else(|| {
            regressed.then(|| {
                format!(
                    "{} of {} readings could not answer regressed_when",
                    self.unknown_regressed,
                    self.fixed.readings()
                )
            })
        })
    }

    /// The `fixed_when` conditions.
    pub fn fixed(&self) -> &Stretch {
        &self.fixed
    }

    /// The `fixed_when` conditions that were false at some moment, with what was seen at the first.
    pub fn lapses(&self) -> Vec<String> {
        self.fixed
            .counted()
            .filter_map(|track| {
                let seen = track.first_lapse.as_ref()?;
                Some(format!("{}: {seen}", track.condition.text))
            })
            .collect()
    }

    /// The `regressed_when` conditions that tripped, in the file's order.
    pub fn regressions(&self) -> impl Iterator<Item = &Tripped> {
        self.tripped.values()
    }

    /// `fixed_when` and `regressed_when` conditions that were skipped.
    pub fn skipped(&self) -> Vec<String> {
        let mut skipped = self.fixed.skipped();
        let regressed = self.regressed.iter().filter(|track| track.is_skipped());
        skipped.extend(regressed.map(|track| track.condition.text.clone()));
        skipped
    }

    /// Conditions of both lists that can never be evaluated here and may not be skipped.
    pub fn unevaluable(&self) -> Vec<String> {
        let mut lines = self.fixed.unevaluable();
        lines.extend(
            self.regressed
                .iter()
                .filter(|track| track.is_unevaluable())
                .map(Track::line),
        );
        lines
    }
}

/// Waits for a fault to show: the scenario's own `manifest_when`, else every `fixed_when` condition false for
/// [`DEFAULT_MANIFEST_MS`].
#[derive(Clone, Debug)]
pub struct Manifest {
    own: bool,
    stretch: Stretch,
    /// Since when every condition has been false without a break.
    false_since_ms: Option<u64>,
    shown_ms: Option<u64>,
}

impl Manifest {
    pub fn new(manifest_when: &[Condition], fixed_when: &[Condition]) -> Manifest {
        let own = !manifest_when.is_empty();
        let mut stretch = Stretch::new(if own { manifest_when } else { fixed_when }, Window::Own);
        for track in &mut stretch.tracks {
            // A fault that shows once has shown, unless the file asks for a duration.
            track.min_samples = if track.window_ms == 0 { 1 } else { MIN_SAMPLES };
        }
        Manifest {
            own,
            stretch,
            false_since_ms: None,
            shown_ms: None,
        }
    }

    /// As [`Stretch::watching_from`].
    #[must_use]
    pub fn watching_from(mut self, at_ms: u64) -> Manifest {
        self.stretch = self.stretch.watching_from(at_ms);
        self
    }

    pub fn feed(&mut self, observation: &Observation) {
        self.stretch.feed(observation);
        self.false_since_ms = self
            .stretch
            .all_false_now()
            .then(|| self.false_since_ms.unwrap_or(observation.at_ms));
        let shows = if self.own {
            self.stretch.passed_since_ms().is_some()
        } else {
            self.false_since_ms
                .is_some_and(|since| observation.at_ms.saturating_sub(since) >= DEFAULT_MANIFEST_MS)
        };
        if shows && self.shown_ms.is_none() {
            self.shown_ms = Some(observation.at_ms);
        }
    }

    /// Whether the scenario says itself when its fault shows.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// When the fault was known to show.
    pub fn shown_ms(&self) -> Option<u64> {
        self.shown_ms
    }

    /// Why it cannot be said that the fault does not show, where that is so.
    pub fn blind(&self) -> Option<String> {
        let windows = self.stretch.tracks.iter().map(|track| track.window_ms);
        let window_ms = windows.max()?.max(DEFAULT_MANIFEST_MS);
        self.stretch
            .too_little_seen()
            .or_else(|| self.stretch.unknown_within(window_ms))
    }

    /// What still speaks against it, one line per condition.
    pub fn missing(&self) -> Vec<String> {
        if self.own {
            return self.stretch.unmet();
        }
        let still_true = self.stretch.counted().filter(|track| {
            track
                .last
                .as_ref()
                .is_none_or(|reading| reading.truth != Truth::False)
        });
        still_true.map(Track::line).collect()
    }

    /// Conditions that can never be evaluated here and may not be skipped.
    pub fn unevaluable(&self) -> Vec<String> {
        self.stretch.unevaluable()
    }
}

#[cfg(test)]
mod tests;
