//! Mutations parse to typed values or are refused with a column.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn one(text: &str) -> (String, Value) {
    let mutation = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(mutation.assignments.len(), 1, "{text}");
    let assignment = &mutation.assignments[0];
    (assignment.dotted(), assignment.value.clone())
}

fn error(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn values_have_the_types_they_are_written_in() {
    for (written, value) in [
        (r#""32Mi""#, json!("32Mi")),
        ("32Mi", json!("32Mi")),
        ("'it''s'", json!("it's")),
        (r#""a\nb""#, json!("a\nb")),
        ("0", json!(0)),
        ("0.5", json!(0.5)),
        ("true", json!(true)),
        ("null", json!(null)),
        ("[]", json!([])),
        ("{}", json!({})),
        (
            r#"["serve", --port, 8080]"#,
            json!(["serve", "--port", 8080]),
        ),
        (
            r#"{limits: {cpu: 10m}, "a b": [1]}"#,
            json!({"limits": {"cpu": "10m"}, "a b": [1]}),
        ),
        (
            "ghcr.io/acme/advocate-api:2.4.1",
            json!("ghcr.io/acme/advocate-api:2.4.1"),
        ),
        ("on", json!("on")),
        ("1_000", json!("1_000")),
    ] {
        assert_eq!(one(&format!("spec.x = {written}")).1, value, "{written}");
    }
}

#[test]
fn paths_take_indexes_names_and_keys_with_dots() {
    for path in [
        "spec.replicas",
        "spec.template.spec.containers[0].image",
        "spec.template.spec.containers[name=api].image",
        r#"metadata.annotations["example.com/role"]"#,
        r#"data["app.properties"]"#,
        r#"data["a~1b"]"#,
    ] {
        assert_eq!(one(&format!("{path} = x")).0, path);
    }
}

#[test]
fn lines_and_semicolons_separate_assignments() {
    let mutation = parse("a.b = 1\n\n  a.c = \"x; y\"; a.d = [1,\n 2]\n").unwrap();
    let paths: Vec<String> = mutation
        .assignments
        .iter()
        .map(Assignment::dotted)
        .collect();
    assert_eq!(paths, ["a.b", "a.c", "a.d"]);
    assert_eq!(mutation.assignments[1].value, json!("x; y"));
}

#[test]
fn errors_name_the_column() {
    assert!(error("").contains("mutation is empty"));
    assert_eq!(
        error("spec.replicas"),
        "column 14: expected `=` after the path"
    );
    assert!(error("spec.replicas = ").starts_with("column 17: expected a value"));
    assert!(error("spec.replicas == 1").starts_with("column 16: expected a single `=`"));
    assert!(error("spec..replicas = 1").starts_with("column 6: expected a key"));
    assert!(error("spec.x[01] = 1").starts_with("column 8: expected an index"));
    assert!(error("spec.x[0 = 1").starts_with("column 9: expected `]`"));
    assert!(error("metadata.labels.a/b = 1").contains(r#"["a/b"]"#));
    assert!(error("[0].x = 1").contains("begins with a key"));
    assert!(error("spec.x = \"open").starts_with("column 10: this quote is not closed"));
    assert!(error("spec.x = [1, 2").starts_with("column 10: this bracket is not closed"));
    assert!(error("spec.x = two words").contains("expected the end of the line"));
    assert!(error("spec.x = 0644").contains("0644"));
    assert!(error("spec.replicas = 2e0").contains("2e0"));
    assert!(error("spec.x = True").contains("unclear"));
    assert!(error("a.b = 1; a.b = 2").starts_with("column 10: this path is assigned twice"));
    assert!(error(&format!("a.b = {}", "[".repeat(99))).contains("levels deep"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = parse(&text);
        let _ = parse_path(&text);
    }

    #[test]
    fn near_misses_never_panic(text in "[a-c.\\[\\]{}='\"\\\\;:, 0-9é\\n]{0,60}") {
        let _ = parse(&text);
    }
}
