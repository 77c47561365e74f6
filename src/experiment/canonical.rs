//! One spelling of a value as JSON (RFC 8785), and its SHA-256: what registrations and ledger entries are hashed as.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The largest integer that every reader of JSON keeps: RFC 8785 has all numbers as doubles.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

#[derive(Debug, Error)]
pub enum CanonicalError {
    #[error("the value has no JSON form")]
    NoJson(#[source] serde_json::Error),
    /// It would be rounded without a word, and two values would have one hash.
    #[error("{0} is too large: canonical JSON keeps whole numbers up to {MAX_INTEGER}")]
    TooLarge(String),
}

/// The canonical JSON of a value: keys sorted by UTF-16 units, no blanks, numbers as ECMAScript prints them.
///
/// # Errors
/// A value without a JSON form, or a whole number that a double does not hold exactly.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    let value = serde_json::to_value(value).map_err(CanonicalError::NoJson)?;
    check_integers(&value)?;
    serde_json_canonicalizer::to_string(&value).map_err(CanonicalError::NoJson)
}

fn check_integers(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => {
            let size = number
                .as_u64()
                .or_else(|| number.as_i64().map(i64::unsigned_abs));
            match size {
                Some(size) if size > MAX_INTEGER => {
                    Err(CanonicalError::TooLarge(number.to_string()))
                }
                _ => Ok(()),
            }
        }
        Value::Array(items) => items.iter().try_for_each(check_integers),
        Value::Object(fields) => fields.values().try_for_each(check_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// SHA-256 of a text's UTF-8 bytes: 64 lower-case hex digits.
pub fn sha256_hex(text: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(text.as_ref()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn canonical(text: &str) -> String {
        let value: Value = serde_json::from_str(text).unwrap();
        to_string(&value).unwrap()
    }

    #[test]
    fn the_rfc_s_sample_comes_out_as_the_rfc_prints_it() {
        let sample = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        assert_eq!(
            canonical(sample),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
    }

    #[test]
    fn keys_go_by_utf_16_units_as_in_the_rfc() {
        let sample = "{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\
             \"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\",\
             \"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}";
        let text = canonical(sample);
        let places: Vec<usize> = [
            "Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew",
        ]
        .iter()
        .map(|word| text.find(word).unwrap())
        .collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn numbers_are_printed_as_the_rfc_s_table_of_doubles_says() {
        for (bits, expected) in [
            (0x0000_0000_0000_0000u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0001, "9007199254740994"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        ] {
            let number = f64::from_bits(bits);
            assert_eq!(to_string(&json!(number)).unwrap(), expected);
        }
    }

    #[test]
    fn a_whole_number_that_a_double_would_round_is_refused() {
        assert_eq!(to_string(&MAX_INTEGER).unwrap(), "9007199254740991");
        for number in [
            json!({"seed": MAX_INTEGER + 1}),
            json!([u64::MAX]),
            json!(i64::MIN),
        ] {
            let error = to_string(&number).unwrap_err().to_string();
            assert!(error.contains("too large"), "{error}");
        }
    }

    #[test]
    fn the_hash_is_that_of_the_standard_s_example() {
        assert_eq!(
            sha256_hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-(MAX_INTEGER as i64)..=MAX_INTEGER as i64).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_equal_and_written_equally_again(value in values()) {
            let text = to_string(&value).unwrap();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &value);
            prop_assert_eq!(to_string(&read).unwrap(), text);
        }
    }
}
