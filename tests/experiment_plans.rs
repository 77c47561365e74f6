//! Plan files from outside: the templates load as they are, and every mistake is told with its line, column and field.

use agent_breakage::experiment::load::{self, Loaded};
use agent_breakage::experiment::plan::{Primary, Retrieval, TierKind, Writes};
use agent_breakage::experiment::templates::{TEMPLATES, template};
use agent_breakage::scenario::library::Library;

fn library() -> Library {
    Library::open(None).unwrap_or_else(|error| panic!("{error}"))
}

fn load(text: &str) -> Loaded {
    load::plan(text, "my.yaml", &library()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn lines(text: &str) -> Vec<String> {
    match load::plan(text, "my.yaml", &library()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.lines(),
    }
}

/// A short plan that loads; tests change one part of it.
const PLAN: &str = r#"id: short
title: A short plan
authors: [Ann, Bob]
prior_data: None.
hypotheses:
  - {id: h1, text: It helps., direction: higher}
sesoi: 0.05
control: control
arms:
  - {id: treatment, agent: simulated, retrieval: on}
  - {id: control, agent: simulated, retrieval: off}
scenarios: [secret-missing-key-advocate, replicas-zero-advocate]
blocks: 20
matrix:
  rows:
    - {id: harm, decision: stop, ships: false, when: harm > 0 or pooled == harm}
    - {id: go, decision: go, ships: true, when: pooled == benefit and harm == 0}
    - {id: rest, decision: wait, ships: false, next: more, when: "harm == 0 and not pooled in (benefit, harm)"}
  no_decision: mend and repeat
"#;

#[test]
fn the_short_plan_loads_with_its_defaults_filled_in() {
    let loaded = load(PLAN);
    let plan = &loaded.plan;
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!(plan.sesoi.0, 50_000);
    assert_eq!(plan.rubric.as_str(), "v0.1");
    assert_eq!(plan.seed, 1);
    assert_eq!(plan.tests.primary, Primary::PairedSignFlip);
    assert_eq!((plan.tests.alpha.0, plan.tests.co_primary), (50_000, false));
    assert_eq!(
        (plan.exclusions.retries, plan.exclusions.cap.0),
        (1, 50_000)
    );
    assert_eq!((plan.power.sigma.0, plan.power.rho.0), (130_000, 0));
    assert_eq!(plan.power.target.0, 800_000);
    assert!(plan.power.sigma_source.contains("published"));
    assert!(plan.looks.is_empty() && !plan.blinded && plan.tiers.is_none());
    assert_eq!(plan.corpus.writes, Writes::Frozen);
    assert_eq!(plan.corpus.embedder, "lexical");
    assert!(plan.scenarios.iter().all(|scenario| scenario.weight == 1));
    assert_eq!(plan.multiverse.near_miss.len(), 5);
    assert_eq!(plan.multiverse.weight_vectors, 200);
    let Retrieval::On(serving) = &plan.arms[0].retrieval else {
        panic!("{:?}", plan.arms[0]);
    };
    assert_eq!((serving.k, serving.pool_cap), (3, None));
    assert_eq!(plan.cells().len(), 4);
    assert_eq!(plan.runs(), 80);
    assert_eq!(loaded.scenarios.len(), 2);
}

#[test]
fn every_template_loads_and_passes_the_check_of_its_matrix() {
    for (name, runs) in [
        ("falsification", 120),
        ("density-sweep", 240),
        ("density-sweep-published", 240),
        ("n40-rerun", 160),
        ("aa", 120),
    ] {
        let loaded = load(template(name).unwrap().text);
        assert_eq!(loaded.plan.runs(), runs, "{name}");
        let warned = loaded.warnings.iter().map(|problem| problem.line(name));
        let warned: Vec<String> = warned.collect();
        if name == "density-sweep-published" {
            assert_eq!(warned.len(), 1, "{warned:?}");
            assert!(warned[0].contains("end in treatment_not_delivered"));
        } else {
            assert!(warned.is_empty(), "{name}: {warned:?}");
        }
    }
    assert_eq!(TEMPLATES.len(), 5);
    assert!(load(template("aa").unwrap().text).plan.is_aa());
    let sweep = load(template("density-sweep").unwrap().text).plan;
    assert_eq!(sweep.tiers.unwrap().kind, TierKind::Corpus);
}

/// The plan with one piece replaced, which must stand in it exactly once.
fn with(old: &str, new: &str) -> String {
    assert_eq!(PLAN.matches(old).count(), 1, "{old}");
    PLAN.replace(old, new)
}

/// One mistake, and the whole line that tells it.
fn told(old: &str, new: &str, expected: &str) {
    let found = lines(&with(old, new));
    assert_eq!(found, [expected], "{new}");
}

#[test]
fn a_missing_or_misspelt_key_is_told_with_what_was_expected() {
    told(
        "id: short\n",
        "",
        "my.yaml:1:1: id: missing, expected a kebab-case id",
    );
    told(
        "id: short",
        "id: Short Plan",
        "my.yaml:1:5: id: `Short Plan` is not kebab-case, expected small letters, digits and single hyphens",
    );
    told(
        "blocks: 20",
        "blocks: 20\nlook: [10]",
        "my.yaml:14:1: look: unknown key (did you mean `looks`?)",
    );
    told(
        "prior_data: None.",
        "prior_data: ''",
        "my.yaml:4:13: prior_data: says nothing, expected what you have seen already of data on the question, or that it is none",
    );
    told(
        "direction: higher",
        "direction: hihger",
        "my.yaml:6:42: hypotheses[0].direction: unknown word `hihger` (did you mean `higher`?), expected one of higher, lower, either",
    );
    told(
        "authors: [Ann, Bob]",
        "authors: []",
        "my.yaml:3:10: authors: is empty, expected a name",
    );
}

#[test]
fn a_number_that_would_be_rounded_or_makes_no_sense_is_refused() {
    told(
        "sesoi: 0.05",
        "sesoi: 0.0500001",
        "my.yaml:7:8: sesoi: expected a decimal from 0 to 1 with at most six places, such as 0.25, found the number 0.0500001",
    );
    told(
        "sesoi: 0.05",
        "sesoi: 0",
        "my.yaml:7:8: sesoi: expected a decimal from 0.000001 to 0.5, found 0",
    );
    told(
        "blocks: 20",
        "blocks: 1",
        "my.yaml:13:9: blocks: expected a whole number from 2 to 10000, found 1",
    );
    told(
        "blocks: 20",
        "blocks: 20\nseed: 9007199254740992",
        "my.yaml:14:7: seed: expected a whole number from 0 to 9007199254740991, found the number 9007199254740992",
    );
    told(
        "blocks: 20",
        "blocks: 20\ntests: {alpha: 0.5}",
        "my.yaml:14:16: tests.alpha: expected a decimal from 0.000001 to 0.2, found 0.5",
    );
    told(
        "blocks: 20",
        "blocks: 20\npower: {sigma: 0.1}",
        "my.yaml:14:8: power.sigma_source: missing, expected where that sigma comes from",
    );
    told(
        "blocks: 20",
        "blocks: 20\nlooks: [10, 5]",
        "my.yaml:14:13: looks[1]: is not after the look before, expected ascending numbers of complete blocks",
    );
    told(
        "blocks: 20",
        "blocks: 20\nlooks: [20]",
        "my.yaml:14:9: looks[0]: expected a whole number from 2 to 19, found 20",
    );
}

#[test]
fn what_a_plan_names_must_be_there() {
    told(
        "replicas-zero-advocate",
        "replica-zero-advocate",
        "my.yaml:12:42: scenarios[1]: there is no scenario `replica-zero-advocate`, did you mean replicas-zero-advocate?; \
         `breakage scenario list` shows every id",
    );
    told(
        "replicas-zero-advocate",
        "secret-missing-key-advocate",
        "my.yaml:12:42: scenarios[1]: `secret-missing-key-advocate` stands in line 12 already",
    );
    told(
        "replicas-zero-advocate",
        "otel-cart-failure",
        "my.yaml:12:42: scenarios[1]: needs flagd, otel-demo, prometheus, which the embedded cluster does not have; give every arm a context",
    );
    told(
        "{id: treatment, agent: simulated,",
        "{id: treatment, agent: simulatd,",
        "my.yaml:10:28: arms[0].agent: there is no agent \"simulatd\"; did you mean --agent simulated?",
    );
    told(
        "control: control",
        "control: contrl",
        "my.yaml:8:10: control: there is no arm `contrl` (did you mean `control`?), expected one of treatment, control",
    );
    let rubric = lines(&with("blocks: 20", "blocks: 20\nrubric: v0.2"));
    assert_eq!(rubric.len(), 1);
    assert!(
        rubric[0]
            .starts_with("my.yaml:14:9: rubric: there is no rubric `v0.2` (did you mean `v0.1`?)"),
        "{rubric:?}"
    );
}

#[test]
fn a_control_serves_nothing_unless_every_arm_is_the_same() {
    let served = lines(&with(
        "simulated, retrieval: off}",
        "simulated, retrieval: {mode: on, k: 5}}",
    ));
    assert_eq!(served.len(), 1);
    assert!(
        served[0].starts_with(
            "my.yaml:8:10: control: arm `control` serves past incidents, expected retrieval off"
        ),
        "{served:?}"
    );
    let aa = load(&with("retrieval: off}", "retrieval: on}"));
    assert!(aa.plan.is_aa());
    let deterministic = load(&with(
        "retrieval: off}",
        "retrieval: deterministic-control}",
    ));
    assert!(!deterministic.plan.arms[1].retrieval.serves());
    let placebo = lines(&with("retrieval: off}", "retrieval: placebo}"));
    assert!(placebo[0].contains("a placebo is an arm beside the control"));
    told(
        "simulated, retrieval: off}",
        "simulated, retrieval: {mode: off, k: 3}}",
        "my.yaml:11:60: arms[1].retrieval.k: says what is served, but mode off serves nothing; leave it out",
    );
}

#[test]
fn arms_that_differ_in_two_things_are_warned_about() {
    let loaded = load(&with(
        "{id: treatment, agent: simulated,",
        "{id: treatment, agent: rules,",
    ));
    let warned: Vec<String> = loaded.warnings.iter().map(|w| w.line("my.yaml")).collect();
    assert_eq!(
        warned,
        [
            "my.yaml:10:5: arms[0]: differs from the control in agent and retrieval: a difference of scores cannot be put \
          down to one of them"
        ]
    );
}

#[test]
fn tiers_ascend_and_their_codes_sum_to_nothing() {
    let tiers = |list: &str| {
        with(
            "blocks: 20",
            &format!("blocks: 20\ntiers: {{kind: corpus, tiers: [{list}]}}"),
        )
    };
    let fine = "{id: 5, size: 5, code: -1}, {id: full, size: full, code: 1}";
    assert_eq!(load(&tiers(fine)).plan.cells().len(), 6);
    for (list, expected) in [
        (
            "{id: 5, size: 5, code: -1}, {id: full, size: full, code: 2}",
            "my.yaml:14:30: tiers.tiers: the codes sum to 1, expected 0",
        ),
        (
            "{id: 5, size: 5, code: 0}, {id: full, size: full, code: 0}",
            "my.yaml:14:30: tiers.tiers: every code is 0, so that the contrast tests nothing",
        ),
        (
            "{id: 5, size: 5, code: 0}",
            "my.yaml:14:30: tiers.tiers: has one tier, expected at least two",
        ),
        (
            "{id: full, size: full, code: 1}, {id: 5, size: 5, code: -1}",
            "my.yaml:14:64: tiers.tiers[1].size: is not larger than the tier before, `full`; expected ascending sizes, full last",
        ),
        (
            "{id: 5, size: 5, code: -1}, {id: 5, size: 9, code: 1}",
            "my.yaml:14:64: tiers.tiers[1].id: `5` stands in line 14 already",
        ),
        (
            "{id: a/b, size: 5, code: -1}, {id: full, size: full, code: 1}",
            "my.yaml:14:36: tiers.tiers[0].id: `a/b` is no tier's id, expected small letters, digits and hyphens, at most 60",
        ),
    ] {
        let found = lines(&tiers(list));
        assert!(
            found.iter().any(|line| line == expected),
            "{list}: {found:#?}"
        );
    }
}

#[test]
fn a_matrix_with_a_hole_or_an_overlap_is_refused_with_an_example() {
    let hole = lines(&with(
        "not pooled in (benefit, harm)",
        "not pooled in (benefit, harm, invalid)",
    ));
    assert_eq!(hole.len(), 1, "{hole:?}");
    assert!(
        hole[0]
            .starts_with("my.yaml:16:5: matrix.rows: no row matches pooled invalid, scenarios: "),
        "{hole:?}"
    );
    let overlap = lines(&with(
        "harm == 0 and not pooled in (benefit, harm)",
        "harm == 0 and pooled != harm",
    ));
    assert_eq!(overlap.len(), 1, "{overlap:?}");
    assert!(
        overlap[0].starts_with(
            "my.yaml:18:66: matrix.rows[2].when: row `rest` matches pooled benefit, scenarios: "
        ),
        "{overlap:?}"
    );
    assert!(overlap[0].contains("and so does row `go` before it"));
}

#[test]
fn a_row_that_ships_over_a_harmed_scenario_is_refused() {
    let text = PLAN
        .replace("when: harm > 0 or pooled == harm", "when: pooled == harm")
        .replace("pooled == benefit and harm == 0", "pooled == benefit")
        .replace("harm == 0 and not pooled in", "not pooled in");
    let found = lines(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("my.yaml:17:49: matrix.rows[1].when: row `go` ships and matches pooled benefit, scenarios: "),
        "{found:?}"
    );
    assert!(found[0].contains("1 harm") || found[0].contains("2 harm"));
}

#[test]
fn a_guard_s_error_points_into_its_text() {
    told(
        "when: pooled == benefit and harm == 0}",
        "when: pooled == benefit and hram == 0}",
        "my.yaml:17:71: matrix.rows[1].when: unknown word `hram` (did you mean `harm`?), expected one of benefit, harm, \
         equivalent, no_benefit, inconclusive, degenerate, invalid, scenarios, pooled, and, or, not",
    );
    told(
        "id: go, decision: go, ships: true,",
        "id: go, decision: go,",
        "my.yaml:17:7: matrix.rows[1].ships: missing, expected true where the decision puts the treatment to use, else false",
    );
}

#[test]
fn every_problem_of_a_file_is_told_at_once_in_order() {
    let text = PLAN
        .replace("id: short", "id: Short")
        .replace("sesoi: 0.05", "sesoi: five")
        .replace("blocks: 20", "blocks: many")
        .replace(
            "agent: simulated, retrieval: on",
            "agent: gpt, retrieval: onn",
        );
    let found = lines(&text);
    let places: Vec<&str> = found
        .iter()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "my.yaml:1:5",
            "my.yaml:7:8",
            "my.yaml:10:28",
            "my.yaml:10:44",
            "my.yaml:13:9"
        ],
        "{found:#?}"
    );
}

#[test]
fn hostile_files_end_in_messages() {
    for text in [
        "",
        "- 1",
        "id: [",
        "id: &a [*a]",
        "\u{feff}id: x",
        "id: x\nid: y",
        "arms: {a: b}",
        "arms: [1, 2]",
        "scenarios: {}",
        "matrix: 5",
        "matrix: {rows: [{}]}",
        "tiers: []",
        "retrieval: {mode: {}}",
    ] {
        assert!(!lines(text).is_empty(), "{text}");
    }
}

#[test]
fn a_plan_of_more_runs_than_a_ledger_holds_is_refused() {
    let text = with("blocks: 20", "blocks: 10000").replace(
        "[secret-missing-key-advocate, replicas-zero-advocate]",
        "[secret-missing-key-advocate, replicas-zero-advocate, cpu-limit-throttling-advocate, image-pull-failure-advocate, \
         env-var-missing-advocate, liveness-probe-always-fails-advocate, oom-advocate-api-k8s-only, \
         readiness-probe-misconfigured-advocate, secret-wrong-password-advocate, bad-command-crashloop-advocate, \
         serviceaccount-missing-advocate]",
    );
    let found = lines(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .contains("blocks: 22 cells in 10000 blocks are 220000 runs, expected at most 200000")
    );
}
