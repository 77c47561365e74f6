//! From an HTTP answer to one sample. Total over any bytes.

use serde::Deserialize;
use serde_json::Value;

use crate::record::observation::Answer;

/// Characters of an unexpected answer that are repeated.
const WORDS: usize = 200;

/// One number and when it was computed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// On Prometheus' own clock, in seconds.
    pub(super) at_s: f64,
    pub(super) value: f64,
    pub(super) text: String,
    /// It stands for a series and not for a number of the query itself.
    pub(super) of_a_series: bool,
}

#[derive(Deserialize)]
struct Reply {
    status: String,
    data: Option<Data>,
    #[serde(rename = "errorType", default)]
    error_type: String,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    result_type: String,
    result: Value,
}

/// Reads an answer that is neither a redirect nor a question for a login.
pub(super) fn read(status: u16, kind: Option<&str>, body: &[u8]) -> Result<Sample, Answer> {
    let Ok(reply) = serde_json::from_slice::<Reply>(body) else {
        return Err(Answer::Failed(format!(
            "it answered {status} with {} that is not an answer of Prometheus ({}); is this its address, and does it \
             want a login?",
            kind.unwrap_or("something"),
            first_words(body)
        )));
    };
    match (reply.status.as_str(), reply.data) {
        ("success", Some(data)) if status == 200 => result(&data),
        _ => {
            let said = format!(
                "it answered {status}, {}: {}",
                reply.error_type,
                first_words(reply.error.as_bytes())
            );
            // What the query did is told by 400 and 422; everything else is the server's state of this moment. A query
            // that took too long may be answered by a server that has less to do.
            let about_the_query = matches!(status, 400 | 422);
            let passing = matches!(reply.error_type.as_str(), "timeout" | "canceled");
            Err(if about_the_query && !passing {
                Answer::Refused(said)
            } else {
                Answer::Failed(said)
            })
        }
    }
}

fn result(data: &Data) -> Result<Sample, Answer> {
    match data.result_type.as_str() {
        "scalar" => sample(&data.result, false),
        "vector" => {
            let series = data
                .result
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            match series {
                [] => Err(Answer::NoData("no series matches".to_owned())),
                [one] if one.get("histogram").is_some() => Err(refused(
                    "it gives a native histogram; ask for one number of it, as by histogram_quantile",
                )),
                [one] => sample(&one["value"], true),
                _ => Err(refused(&format!(
                    "it gives {} series; say how they become one number, as by sum, max or min",
                    series.len()
                ))),
            }
        }
        other => Err(refused(&format!(
            "it gives a {}; one number is needed, as by rate, avg_over_time or count",
            first_words(other.as_bytes())
        ))),
    }
}

fn refused(reason: &str) -> Answer {
    Answer::Refused(reason.to_owned())
}

/// `[1700000000.1, "0.5"]`, the number as Go writes it: `NaN`, `+Inf`, `1e-7`.
fn sample(pair: &Value, of_a_series: bool) -> Result<Sample, Answer> {
    let read = || {
        let at_s = pair.get(0)?.as_f64()?;
        let text = pair.get(1)?.as_str()?;
        let value = text.parse().ok()?;
        Some(Sample {
            at_s,
            value,
            text: text.to_owned(),
            of_a_series,
        })
    };
    read().ok_or_else(|| {
        let words = first_words(pair.to_string().as_bytes());
        Answer::Failed(format!("it answered {words} in place of a sample"))
    })
}

/// The first characters in one line that moves no cursor.
pub(super) fn first_words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars()
        .filter(|c| !c.is_control())
        .take(WORDS)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vector(result: Value) -> Result<Sample, Answer> {
        typed("vector", result)
    }

    fn typed(kind: &str, result: Value) -> Result<Sample, Answer> {
        let body = json!({"status": "success", "data": {"resultType": kind, "result": result}});
        read(200, Some("application/json"), body.to_string().as_bytes())
    }

    fn series(value: &str) -> Value {
        json!({"metric": {}, "value": [1700000000.5, value]})
    }

    #[test]
    fn numbers_are_read_as_prometheus_writes_them() {
        let value = |text: &str| vector(json!([series(text)])).unwrap().value;
        assert_eq!(value("1e-7"), 1e-7);
        assert_eq!(value("+Inf"), f64::INFINITY);
        assert_eq!(value("-Inf"), f64::NEG_INFINITY);
        assert!(value("NaN").is_nan());
        assert_eq!(typed("scalar", json!([1, "2.5"])).unwrap().value, 2.5);
    }

    #[test]
    fn nothing_is_no_data_and_two_series_are_the_scenarios_mistake_in_either_order() {
        assert!(matches!(vector(json!([])), Err(Answer::NoData(_))));
        for (first, second) in [("0.1", "0.9"), ("0.9", "0.1")] {
            let Err(Answer::Refused(said)) = vector(json!([series(first), series(second)])) else {
                panic!("two series were taken for one");
            };
            assert!(said.contains("2 series") && said.contains("sum"), "{said}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        for kind in ["matrix", "string"] {
            let Err(Answer::Refused(said)) = typed(kind, json!([])) else {
                panic!("{kind} was taken for a number");
            };
            assert!(said.contains(kind), "{said}");
        }
        let histogram = json!([{"metric": {}, "histogram": [1, {"count": "3"}]}]);
        let Err(Answer::Refused(said)) = vector(histogram) else {
            panic!("a histogram was taken for a number");
        };
        assert!(said.contains("histogram"), "{said}");
    }

    #[test]
    fn a_bad_query_is_the_scenarios_and_a_busy_server_is_asked_again() {
        let error =
            |kind: &str| json!({"status": "error", "errorType": kind, "error": "no"}).to_string();
        for (status, kind, refused) in [
            (422, "execution", true),
            (400, "bad_data", true),
            (503, "timeout", false),
            (503, "unavailable", false),
            (422, "canceled", false),
            (500, "internal", false),
        ] {
            let answer = read(status, None, error(kind).as_bytes()).unwrap_err();
            assert_eq!(
                matches!(answer, Answer::Refused(_)),
                refused,
                "{status} {kind}"
            );
        }
    }

    #[test]
    fn any_other_bytes_are_told_and_not_taken_for_an_answer() {
        for body in [
            &b"<html><title>Log in</title>"[..],
            b"",
            b"{}",
            b"[1]",
            b"\xff\x1b[2J",
        ] {
            let Err(Answer::Failed(said)) = read(200, Some("text/html"), body) else {
                panic!("{body:?} was taken for an answer");
            };
            assert!(said.contains("200") && !said.contains('\u{1b}'), "{said}");
        }
        for pair in [json!([1]), json!([1, 2]), json!("x"), json!([1, "0x"])] {
            assert!(vector(json!([{"metric": {}, "value": pair}])).is_err());
        }
    }
}
