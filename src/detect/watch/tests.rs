//! Sequences of readings: stretches, unknown readings, regressions, faults that show.

use proptest::prelude::*;

use super::*;
use crate::detect::expression::Expression;
use crate::record::observation::{PodFacts, WorkloadFacts};

const READY: &str = "deployment.shop.web.readyReplicas == desiredReplicas";
const CALM: &str = "deployment.shop.web.restarts == 0";

fn condition(text: &str, sustained_for_s: u32) -> Condition {
    Condition {
        sustained_for_s,
        ..Condition::plain(Expression::parse(text).unwrap())
    }
}

#[derive(Clone, Copy, Debug)]
enum Seen {
    Ready,
    Bad,
    Nothing,
}

fn observation(at_s: u64, seen: Seen, restarts: i64) -> Observation {
    let mut observation = Observation {
        at_ms: at_s * 1000,
        pods: vec![PodFacts {
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
            uid: "p1".to_owned(),
            owner: Some(("Deployment".to_owned(), "web".to_owned())),
            phase: "Running".to_owned(),
            ready: true,
            restarts,
            terminating: false,
        }],
        ..Observation::default()
    };
    let ready = match seen {
        Seen::Ready => 1,
        Seen::Bad => 0,
        Seen::Nothing => {
            observation
                .unread
                .insert("deployment.shop.web".to_owned(), "503".to_owned());
            return observation;
        }
    };
    let web = WorkloadFacts {
        uid: "u".to_owned(),
        generation: 1,
        observed_generation: 1,
        desired: 1,
        replicas: 1,
        ready,
        updated: 1,
        available: ready,
    };
    observation
        .deployments
        .insert(Observation::key("shop", "web"), web);
    observation
}

fn feed(stretch: &mut Stretch, samples: &[(u64, Seen)]) {
    for (at_s, seen) in samples {
        stretch.feed(&observation(*at_s, *seen, 0));
    }
}

#[test]
fn only_an_unbroken_stretch_counts_and_its_start_is_reported() {
    let mut stretch = Stretch::new(&[condition(READY, 30)], Window::Own);
    feed(
        &mut stretch,
        &[
            (0, Seen::Ready),
            (5, Seen::Ready),
            (10, Seen::Bad),
            (15, Seen::Ready),
            (40, Seen::Ready),
        ],
    );
    assert_eq!(stretch.passed_since_ms(), None, "25 s are not 30 s");
    feed(&mut stretch, &[(45, Seen::Ready)]);
    assert_eq!(stretch.passed_since_ms(), Some(15_000));
    feed(&mut stretch, &[(46, Seen::Bad)]);
    assert_eq!(stretch.passed_since_ms(), None);
}

#[test]
fn one_sample_is_a_lucky_instant_even_without_a_window() {
    let mut stretch = Stretch::new(&[condition(READY, 0)], Window::Own);
    feed(&mut stretch, &[(1, Seen::Ready)]);
    assert!(stretch.holds_now());
    assert_eq!(stretch.passed_since_ms(), None);
    feed(&mut stretch, &[(1, Seen::Ready)]);
    assert_eq!(
        stretch.passed_since_ms(),
        None,
        "the same moment twice is one sample"
    );
    feed(&mut stretch, &[(2, Seen::Ready)]);
    assert_eq!(stretch.passed_since_ms(), Some(1000));
}

#[test]
fn a_reading_without_an_answer_neither_proves_nor_breaks() {
    let mut stretch = Stretch::new(&[condition(READY, 30)], Window::Own);
    let mut samples: Vec<(u64, Seen)> = (0..7).map(|i| (i * 5, Seen::Ready)).collect();
    samples[3].1 = Seen::Nothing;
    feed(&mut stretch, &samples);
    assert_eq!(stretch.passed_since_ms(), Some(0));
    assert_eq!(stretch.unknown_readings(), 1);

    let mut blind = Stretch::new(&[condition(READY, 10)], Window::Own);
    feed(
        &mut blind,
        &[
            (0, Seen::Ready),
            (5, Seen::Nothing),
            (10, Seen::Nothing),
            (15, Seen::Nothing),
            (20, Seen::Ready),
        ],
    );
    assert_eq!(
        blind.passed_since_ms(),
        None,
        "three unknown readings in a row end the stretch"
    );

    let mut half = Stretch::new(&[condition(READY, 10)], Window::Own);
    feed(
        &mut half,
        &[
            (0, Seen::Ready),
            (5, Seen::Nothing),
            (10, Seen::Ready),
            (15, Seen::Nothing),
            (20, Seen::Ready),
        ],
    );
    assert_eq!(half.passed_since_ms(), None, "too large a share is unknown");
}

#[test]
fn a_slow_reading_is_bridged_and_a_long_hole_is_not() {
    let mut stretch = Stretch::new(&[condition(READY, 30)], Window::Own);
    feed(
        &mut stretch,
        &[(0, Seen::Ready), (20, Seen::Ready), (30, Seen::Ready)],
    );
    assert_eq!(stretch.passed_since_ms(), Some(0));
    let mut stretch = Stretch::new(&[condition(READY, 30)], Window::Own);
    feed(&mut stretch, &[(0, Seen::Ready), (600, Seen::Ready)]);
    assert_eq!(stretch.passed_since_ms(), None);
}

#[test]
fn all_conditions_must_hold_at_the_same_time() {
    let conditions = [condition(READY, 20), condition(CALM, 20)];
    let mut stretch = Stretch::new(&conditions, Window::Own);
    // Ready throughout, but restarting every 15 s.
    for at_s in 0..60 {
        stretch.feed(&observation(
            at_s,
            Seen::Ready,
            i64::try_from(at_s / 15).unwrap(),
        ));
        assert_eq!(stretch.passed_since_ms(), None, "at {at_s} s");
    }
    // The last restart was seen as a break at 45 s; counting starts anew with the reading after it.
    for at_s in 60..=65 {
        stretch.feed(&observation(at_s, Seen::Ready, 3));
    }
    assert_eq!(stretch.passed_since_ms(), None);
    stretch.feed(&observation(66, Seen::Ready, 3));
    assert_eq!(stretch.passed_since_ms(), Some(46_000));
}

#[test]
fn a_regression_stays_once_it_tripped() {
    let regressed = condition("deployment.shop.web.readyReplicas == 0", 10);
    let mut watch = Watch::new(&[condition(READY, 0)], &[regressed]);
    for (at_s, seen) in [
        (0, Seen::Ready),
        (5, Seen::Bad),
        (10, Seen::Bad),
        (14, Seen::Bad),
    ] {
        watch.feed(&observation(at_s, seen, 0));
    }
    assert_eq!(watch.regressions().count(), 0);
    watch.feed(&observation(15, Seen::Bad, 0));
    watch.feed(&observation(20, Seen::Ready, 0));
    let tripped: Vec<&Tripped> = watch.regressions().collect();
    assert_eq!(tripped.len(), 1);
    assert_eq!((tripped[0].since_ms, tripped[0].at_ms), (5000, 15_000));
}

#[test]
fn conditions_without_prometheus_are_skipped_only_when_they_say_so() {
    let mut skippable = condition("promql: up == 1", 0);
    skippable.skip_if_unevaluable = true;
    let mut watch = Watch::new(&[condition(READY, 0), skippable.clone()], &[]);
    watch.feed(&observation(0, Seen::Ready, 0));
    watch.feed(&observation(1, Seen::Ready, 0));
    assert_eq!(watch.fixed().passed_since_ms(), Some(0));
    assert_eq!(watch.skipped(), ["promql: up == 1"]);

    let mut only = Stretch::new(&[skippable], Window::Own);
    feed(&mut only, &[(0, Seen::Ready), (1, Seen::Ready)]);
    assert_eq!(only.passed_since_ms(), None, "nothing was proven");

    let mut strict = Stretch::new(&[condition("promql: up == 1", 0)], Window::Own);
    feed(&mut strict, &[(0, Seen::Ready), (1, Seen::Ready)]);
    assert_eq!(
        (strict.passed_since_ms(), strict.unevaluable().len()),
        (None, 1)
    );
}

#[test]
fn a_fault_shows_when_every_condition_is_false_or_by_its_own_rule() {
    let mut default = Manifest::new(&[], &[condition(READY, 30)]);
    default.feed(&observation(0, Seen::Ready, 0));
    assert_eq!((default.shown_ms(), default.missing().len()), (None, 1));
    default.feed(&observation(1, Seen::Nothing, 0));
    assert_eq!(default.shown_ms(), None, "not known to be false");
    let mut late = observation(2, Seen::Bad, 0);
    late.deployments
        .values_mut()
        .for_each(|web| web.generation = 2);
    default.feed(&late);
    assert_eq!(
        default.shown_ms(),
        None,
        "the controller has not looked yet"
    );
    for at_s in [3, 9, 12] {
        default.feed(&observation(at_s, Seen::Bad, 0));
    }
    assert_eq!(default.shown_ms(), None, "no longer than a rollout's gap");
    default.feed(&observation(13, Seen::Bad, 0));
    assert_eq!(default.shown_ms(), Some(13_000));

    let mut gap = Manifest::new(&[], &[condition(READY, 30)]);
    let readings = [
        (0, Seen::Bad),
        (8, Seen::Ready),
        (10, Seen::Bad),
        (19, Seen::Bad),
    ];
    for (at_s, seen) in readings {
        gap.feed(&observation(at_s, seen, 0));
    }
    assert_eq!(gap.shown_ms(), None, "a break starts the count anew");

    let mut own = Manifest::new(&[condition("deployment.shop.web.restarts >= 2", 0)], &[]);
    for (at_s, restarts) in [(0, 5), (10, 6), (20, 7)] {
        own.feed(&observation(at_s, Seen::Ready, restarts));
    }
    assert_eq!(
        own.shown_ms(),
        Some(20_000),
        "counted from the first reading"
    );
}

proptest! {
    #[test]
    fn a_tracker_passes_only_after_its_window_and_regressions_never_shrink(
        steps in proptest::collection::vec((0u64..20, 0u8..3), 1..60),
        window in 0u32..60,
    ) {
        let regressed = condition("deployment.shop.web.readyReplicas == 0", window);
        let mut watch = Watch::new(&[condition(READY, window)], &[regressed]);
        let mut at_s = 0;
        let mut last_bad_ms = None;
        let mut seen_before = 0;
        for (step, kind) in steps {
            at_s += step;
            let seen = [Seen::Ready, Seen::Bad, Seen::Nothing][usize::from(kind)];
            let fresh = step > 0 || seen_before == 0 && watch.fixed().readings() == 0;
            watch.feed(&observation(at_s, seen, 0));
            if fresh && matches!(seen, Seen::Bad) {
                last_bad_ms = Some(at_s * 1000);
            }
            if let Some(since) = watch.fixed().passed_since_ms() {
                prop_assert!(at_s * 1000 >= since + u64::from(window) * 1000);
                prop_assert!(last_bad_ms.is_none_or(|bad| bad < since));
            }
            let count = watch.regressions().count();
            prop_assert!(count >= seen_before);
            seen_before = count;
        }
    }
}
