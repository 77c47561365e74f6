//! Switching a flag in a text, on a small stand-in of the demo's definition.

use super::*;

/// As people write it: tabs and spaces, keys in no order, text beyond ASCII, a key that stands in another flag too.
const TEXT: &str = "{\n\t\"$schema\": \"https://flagd.dev/schema/v0/flags.json\",\n\t\"flags\": {\n    \"imageSlowLoad\": {\n      \
    \"defaultVariant\": \"off\",   \"description\": \"größer\",\n      \"state\": \"ENABLED\",\n      \
    \"variants\": {\"10sec\": 10000, \"5sec\": 5000, \"off\": 0}\n    },\n    \
    \"cartFailure\": {\"state\":\"ENABLED\",\"variants\":{\"on\":true,\"off\":false,\"10%\":0.1,\"1x\":1,\"5\":5,\"90%\":0.95},\
    \"defaultVariant\" : \"off\" , \"targeting\": {}},\n    \
    \"adManualGc\": {\"state\": \"DISABLED\", \"variants\": {\"on\": true}, \"defaultVariant\": \"on\"},\n    \
    \"paced\": {\"state\": \"ENABLED\", \"variants\": {\"on\": true, \"off\": false}, \"defaultVariant\": \"off\",\n      \
    \"targeting\": {\"if\": [true, \"off\"]}}\n  }\n}\n";

fn refused(text: &str, flag: &str, variant: &str) -> String {
    switch(text, flag, variant).unwrap_err().to_string()
}

#[test]
fn only_the_bytes_of_the_one_value_change() {
    for variant in ["on", "10%", "1x", "5", "90%"] {
        let switched = switch(TEXT, "cartFailure", variant).unwrap();
        let expected = TEXT.replace(
            "\"defaultVariant\" : \"off\" ,",
            &format!("\"defaultVariant\" : \"{variant}\" ,"),
        );
        assert_eq!(switched.text, expected, "{variant}");
        assert!(!switched.has_rule);
    }
    let switched = switch(TEXT, "imageSlowLoad", "10sec").unwrap();
    assert_eq!(
        switched.text,
        TEXT.replacen(
            "\"defaultVariant\": \"off\"",
            "\"defaultVariant\": \"10sec\"",
            1
        )
    );
}

#[test]
fn a_flag_that_already_has_the_variant_keeps_its_text() {
    let switched = switch(TEXT, "cartFailure", "off").unwrap();
    assert_eq!(switched.text, TEXT);
}

#[test]
fn unknown_flags_and_variants_are_refused_with_the_names_that_exist() {
    assert_eq!(
        refused(TEXT, "imageSlowLoad", "on"),
        "has no variant on of the flag imageSlowLoad; its variants are 10sec, 5sec, off"
    );
    assert_eq!(
        refused(TEXT, "cartfailure", "on"),
        "has no flag cartfailure; its flags are adManualGc, cartFailure, imageSlowLoad, paced"
    );
    // The value of a variant is not its name.
    for variant in ["true", "0.1", "5.0", "1"] {
        assert!(refused(TEXT, "cartFailure", variant).contains("no variant"));
    }
}

#[test]
fn a_disabled_flag_is_not_switched() {
    assert_eq!(
        refused(TEXT, "adManualGc", "on"),
        "has the flag adManualGc in state DISABLED, in which its variants are not served"
    );
}

#[test]
fn a_text_that_is_no_valid_definition_is_refused() {
    for text in [
        "",
        "{",
        "[]",
        "{\"flags\": []}",
        &TEXT.replace("\n  }\n}\n", "\n  },\n}\n"),
        &format!("{TEXT}x"),
        &format!("\u{feff}{TEXT}"),
    ] {
        let error = switch(text, "cartFailure", "on").unwrap_err();
        assert!(matches!(error, FlagError::Invalid(_)), "{text:?}: {error}");
    }
    assert!(refused("{}", "cartFailure", "on").contains("its flags are none"));
    let bare = "{\"flags\": {\"a\": {\"state\": \"ENABLED\", \"variants\": {\"on\": 1}}}}";
    assert!(refused(bare, "a", "on").ends_with("without the field defaultVariant"));
}

#[test]
fn a_targeting_rule_is_noticed() {
    assert!(switch(TEXT, "paced", "on").unwrap().has_rule);
}
