//! The language, and that holes, overlaps, shipped harm and dead rows are each found with an example.

use proptest::prelude::*;

use super::*;

fn row(id: &str, ships: bool, when: &str) -> ParsedRow {
    ParsedRow {
        id: id.to_owned(),
        ships,
        guard: Guard::parse(when).unwrap_or_else(|error| panic!("{when}: {error}")),
    }
}

fn counts(pooled: Verdict, benefit: u32, harm: u32, inconclusive: u32) -> VerdictCounts {
    VerdictCounts {
        pooled: Some(pooled),
        benefit,
        harm,
        inconclusive,
        ..VerdictCounts::default()
    }
}

fn is_true(when: &str, counts: &VerdictCounts) -> bool {
    Guard::parse(when).unwrap().matches(counts)
}

#[test]
fn and_binds_closer_than_or_and_not_closest() {
    let landed = counts(Verdict::Benefit, 2, 0, 1);
    for (when, expected) in [
        ("pooled == benefit", true),
        ("pooled != benefit", false),
        ("not pooled == harm", true),
        ("not pooled == benefit or harm == 0", true),
        ("not (pooled == benefit or harm == 0)", false),
        ("harm > 0 and pooled == benefit or benefit >= 2", true),
        ("harm > 0 and (pooled == benefit or benefit >= 2)", false),
        ("benefit + inconclusive == scenarios", true),
        ("2 <= benefit", true),
        ("benefit < 2", false),
        ("inconclusive > 1", false),
        ("pooled in (harm, benefit)", true),
        ("pooled not in (harm, benefit)", false),
        ("benefit!=scenarios", true),
    ] {
        assert_eq!(is_true(when, &landed), expected, "{when}");
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_place_and_what_may_be_meant() {
    for (when, offset, message) in [
        ("", 0, "expected pooled, the count"),
        ("pooled = benefit", 7, "equality is written =="),
        ("pooled == benfit", 10, "did you mean `benefit`?"),
        ("pooled == none", 10, "no_decision stands"),
        ("pooled benefit", 7, "expected `==`, `!=` or `in (...)`"),
        ("benefit >= 2 && harm == 0", 13, "write and"),
        ("benefits >= 2", 0, "did you mean `benefit`?"),
        ("benefit >= -1", 11, "no negative counts"),
        ("benefit >= 99999999999", 11, "whole number up to"),
        ("(benefit >= 1", 13, "expected `)`, found the end"),
        (
            "benefit >= 1 harm == 0",
            13,
            "expected `and`, `or` or the end",
        ),
        ("benefit", 7, "expected a comparison"),
        ("ä", 0, "has no meaning"),
        ("pooled in ()", 11, "expected a verdict"),
    ] {
        let error = Guard::parse(when).unwrap_err();
        assert_eq!(error.offset, offset, "{when}: {error}");
        assert!(error.message.contains(message), "{when}: {error}");
    }
}

#[test]
fn deep_nesting_and_long_texts_are_refused_and_not_recursed_into() {
    let deep = format!("{}harm == 0{}", "(".repeat(900), ")".repeat(900));
    assert!(Guard::parse(&deep).unwrap_err().message.contains("deeper"));
    let nots = format!("{}harm == 0", "not ".repeat(400));
    assert!(Guard::parse(&nots).unwrap_err().message.contains("deeper"));
    let long = vec!["harm == 0"; 400].join(" or ");
    assert!(Guard::parse(&long).unwrap_err().message.contains("longer"));
}

#[test]
fn there_are_588_combinations_of_three_scenarios() {
    let mut seen = 0;
    each_combination(3, |counts| {
        let total: u32 = VERDICTS.iter().map(|(_, each)| count(counts, *each)).sum();
        assert_eq!(total, 3);
        seen += 1;
    });
    assert_eq!(seen, 588);
}

fn sound() -> Vec<ParsedRow> {
    vec![
        row("stop", false, "harm > 0 or pooled == harm"),
        row(
            "continue",
            true,
            "pooled == benefit and benefit >= 2 and harm == 0",
        ),
        row(
            "more",
            false,
            "pooled != harm and harm == 0 and not (pooled == benefit and benefit >= 2)",
        ),
    ]
}

#[test]
fn a_total_matrix_without_overlap_has_no_flaw_at_any_size() {
    for scenarios in 1..=6 {
        let wrong = flaws(&sound(), scenarios);
        // With one scenario two benefits cannot be.
        let expected: &[Flaw] = if scenarios == 1 {
            &[Flaw::Unreachable { row: 1 }]
        } else {
            &[]
        };
        assert_eq!(wrong, expected, "{scenarios} scenarios");
    }
}

#[test]
fn a_hole_is_shown_by_a_combination_in_it() {
    let mut rows = sound();
    rows[2].guard = Guard::parse("pooled == inconclusive and harm == 0").unwrap();
    let wrong = flaws(&rows, 3);
    let [Flaw::Hole { example }] = wrong.as_slice() else {
        panic!("{wrong:?}");
    };
    assert_eq!(landed(&rows, example), None);
}

#[test]
fn an_overlap_names_both_rows_and_a_combination_in_both() {
    let mut rows = sound();
    rows[2].guard = Guard::parse("pooled != harm and harm == 0").unwrap();
    let wrong = flaws(&rows, 3);
    let [
        Flaw::Overlap {
            first: 1,
            second: 2,
            example,
        },
    ] = wrong.as_slice()
    else {
        panic!("{wrong:?}");
    };
    assert!(rows[1].guard.matches(example) && rows[2].guard.matches(example));
}

#[test]
fn a_row_that_ships_may_not_match_where_anybody_is_harmed() {
    let rows = vec![
        row("continue", true, "pooled == benefit and benefit >= 1"),
        row("rest", false, "not (pooled == benefit and benefit >= 1)"),
    ];
    let wrong = flaws(&rows, 3);
    let [Flaw::ShipsHarm { row: 0, example }] = wrong.as_slice() else {
        panic!("{wrong:?}");
    };
    assert!(example.harm > 0);
    assert_eq!(
        Told(&counts(Verdict::Benefit, 2, 1, 0)).to_string(),
        "pooled benefit, scenarios: 2 benefit, 1 harm"
    );
}

#[test]
fn without_a_pooled_verdict_no_row_is_asked() {
    let counts = VerdictCounts {
        invalid: 3,
        ..VerdictCounts::default()
    };
    assert_eq!(landed(&sound(), &counts), None);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(pooled|not|and|or|in|harm|benefit|==|<|\\(|\\)|,|\\+|[0-9]{1,9}| |ß){0,30}") {
        if let Err(error) = Guard::parse(&text) {
            prop_assert!(text.is_char_boundary(error.offset));
        }
    }
}
