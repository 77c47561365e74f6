//! Label and field selectors: their grammar in queries, their form in objects, and matching.

use serde_json::Value;
use winnow::ascii::multispace0;
use winnow::combinator::{alt, delimited, opt, preceded, separated, terminated};
use winnow::prelude::*;
use winnow::token::take_while;

use crate::embedded::api::status::Status;
use crate::embedded::kind::Kind;

/// A conjunction of requirements on labels; the empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl Labels {
    /// Parses the `labelSelector` of a query.
    pub fn parse(text: &str) -> Result<Labels, Status> {
        let mut input = text;
        let parsed = delimited(multispace0, separated(0.., requirement, ','), multispace0)
            .parse_next(&mut input);
        match parsed {
            Ok(list) if input.is_empty() => Ok(Labels(list)),
            _ => {
                let found = input.split([',', ' ']).next().unwrap_or_default();
                Err(Status::bad_request(format!(
                    "unable to parse requirement: found '{found}', expected: identifier, 'in', 'notin', '=', '==', '!=', 'gt', 'lt' or ','"
                )))
            }
        }
    }

    /// From a `LabelSelector` in an object (`matchLabels` and `matchExpressions`). An absent selector
    /// (`null`) matches nothing, an empty one everything; `None` stands for the former.
    pub fn of(selector: &Value) -> Option<Labels> {
        let selector = selector.as_object()?;
        let mut list: Vec<Requirement> = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                list.push(Requirement {
                    key: key.clone(),
                    test: Test::In(vec![value.as_str().unwrap_or_default().to_owned()]),
                });
            }
        }
        for expression in array(selector.get("matchExpressions")) {
            let values = || {
                array(expression.get("values"))
                    .iter()
                    .filter_map(|value| value.as_str().map(str::to_owned))
                    .collect()
            };
            let test = match expression["operator"].as_str().unwrap_or_default() {
                "In" => Test::In(values()),
                "NotIn" => Test::NotIn(values()),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Absent,
                _ => return None,
            };
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            list.push(Requirement { key, test });
        }
        Some(Labels(list))
    }

    /// From a plain map of labels, as in a Service's `spec.selector`; `None` when it is absent or empty.
    pub fn of_map(map: &Value) -> Option<Labels> {
        let map = map.as_object().filter(|map| !map.is_empty())?;
        Some(Labels(
            map.iter()
                .map(|(key, value)| Requirement {
                    key: key.clone(),
                    test: Test::In(vec![value.as_str().unwrap_or_default().to_owned()]),
                })
                .collect(),
        ))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's `metadata.labels` satisfy every requirement.
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_labels(&object["metadata"]["labels"])
    }

    /// Whether a map of labels satisfies every requirement.
    pub fn matches_labels(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key).and_then(Value::as_str);
            match &requirement.test {
                Test::In(values) => value.is_some_and(|v| values.iter().any(|one| one == v)),
                Test::NotIn(values) => !value.is_some_and(|v| values.iter().any(|one| one == v)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Greater(bound) => number(value).is_some_and(|n| n > *bound),
                Test::Less(bound) => number(value).is_some_and(|n| n < *bound),
            }
        })
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn word<'a>(input: &mut &'a str) -> ModalResult<&'a str> {
    take_while(1.., |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')
    })
    .parse_next(input)
}

fn spaced<'a>(input: &mut &'a str) -> ModalResult<&'a str> {
    delimited(multispace0, word, multispace0).parse_next(input)
}

fn requirement(input: &mut &str) -> ModalResult<Requirement> {
    multispace0.parse_next(input)?;
    if opt('!').parse_next(input)?.is_some() {
        let key = spaced.parse_next(input)?.to_owned();
        return Ok(Requirement {
            key,
            test: Test::Absent,
        });
    }
    let key = terminated(word, multispace0).parse_next(input)?.to_owned();
    let test = opt(test).parse_next(input)?.unwrap_or(Test::Exists);
    multispace0.parse_next(input)?;
    Ok(Requirement { key, test })
}

fn test(input: &mut &str) -> ModalResult<Test> {
    alt((
        preceded("!=", value).map(|value| Test::NotIn(vec![value])),
        preceded(alt(("==", "=")), value).map(|value| Test::In(vec![value])),
        preceded("notin", set).map(Test::NotIn),
        preceded("in", set).map(Test::In),
        preceded(alt((">", "gt")), bound).map(Test::Greater),
        preceded(alt(("<", "lt")), bound).map(Test::Less),
    ))
    .parse_next(input)
}

/// One value, which may be empty.
fn value(input: &mut &str) -> ModalResult<String> {
    preceded(multispace0, opt(word))
        .map(|word: Option<&str>| word.unwrap_or_default().to_owned())
        .parse_next(input)
}

/// A parenthesised list of values.
fn set(input: &mut &str) -> ModalResult<Vec<String>> {
    delimited(
        (multispace0, '('),
        separated(1.., terminated(value, multispace0), ','),
        ')',
    )
    .parse_next(input)
}

fn bound(input: &mut &str) -> ModalResult<i64> {
    preceded(multispace0, word)
        .verify_map(|word: &str| word.parse::<i64>().ok())
        .parse_next(input)
}

/// A conjunction of requirements on fields, checked against the fields that its kind supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<FieldTest>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTest {
    field: String,
    equal: bool,
    value: String,
}

impl Fields {
    /// Parses the `fieldSelector` of a query about `kind`. A field that the kind does not support is
    /// refused with 400.
    pub fn parse(kind: Kind, text: &str) -> Result<Fields, Status> {
        let mut list = Vec::new();
        for term in split_terms(text).iter().filter(|term| !term.is_empty()) {
            let (field, equal, value) = if let Some((field, value)) = term.split_once("!=") {
                (field, false, value)
            } else if let Some((field, value)) = term.split_once("==") {
                (field, true, value)
            } else if let Some((field, value)) = term.split_once('=') {
                (field, true, value)
            } else {
                return Err(Status::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            if !supported(kind, field) {
                return Err(Status::bad_request(unsupported_text(kind, field)));
            }
            list.push(FieldTest {
                field: field.to_owned(),
                equal,
                value: unescape(value),
            });
        }
        Ok(Fields(list))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name that the selector asks for, if it asks for exactly one.
    pub fn name(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|test| test.equal && test.field == "metadata.name")
            .map(|test| test.value.as_str())
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|test| (field_text(object, &test.field) == test.value) == test.equal)
    }
}

fn unsupported_text(kind: Kind, field: &str) -> String {
    match kind {
        Kind::Pod
        | Kind::Event
        | Kind::Node
        | Kind::Namespace
        | Kind::Secret
        | Kind::Job
        | Kind::ReplicaSet => format!("field label not supported: {field}"),
        _ => format!(
            "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
    }
}

fn supported(kind: Kind, field: &str) -> bool {
    if field == "metadata.name" || field == "metadata.namespace" {
        return true;
    }
    let extra: &[&str] = match kind {
        Kind::Pod => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        Kind::Event => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Kind::Node => &["spec.unschedulable"],
        Kind::Namespace => &["status.phase"],
        Kind::Secret => &["type"],
        Kind::Job => &["status.successful"],
        Kind::ReplicaSet => &["status.replicas"],
        _ => &[],
    };
    extra.contains(&field)
}

/// The value of a selectable field as text; absent fields are empty, absent booleans `false`.
fn field_text(object: &Value, field: &str) -> String {
    let value = match field {
        "source" => {
            let component = &object["source"]["component"];
            if component.as_str().is_some_and(|text| !text.is_empty()) {
                component
            } else {
                &object["reportingComponent"]
            }
        }
        "status.podIPs" => &object["status"]["podIPs"][0]["ip"],
        "status.successful" => &object["status"]["succeeded"],
        _ => field.split('.').fold(object, |at, part| &at[part]),
    };
    match value {
        Value::String(text) => text.clone(),
        Value::Null if field == "spec.unschedulable" || field == "spec.hostNetwork" => {
            "false".to_owned()
        }
        Value::Null if field == "status.replicas" || field == "status.successful" => "0".to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        if let Some(last) = terms.last_mut() {
            last.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            plain.extend(chars.next());
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labelled(text: &str, labels: Value) -> bool {
        Labels::parse(text).unwrap().matches_labels(&labels)
    }

    #[test]
    fn every_operator_of_label_selectors_works() {
        let web =
            json!({"app": "web", "tier": "front", "app.kubernetes.io/part-of": "shop", "n": "7"});
        for text in [
            "",
            "app=web",
            "app == web",
            "app=web,tier!=back",
            "app in (web, api)",
            "app notin (db)",
            "app",
            "!missing",
            "app.kubernetes.io/part-of=shop",
            "n>6,n<8",
            " app in (web),tier ",
            "missing!=x",
            "missing notin (x)",
        ] {
            assert!(labelled(text, web.clone()), "{text}");
        }
        for text in [
            "app=api",
            "!app",
            "missing",
            "app in (db,api)",
            "app notin (web)",
            "n>7",
            "app=",
        ] {
            assert!(!labelled(text, web.clone()), "{text}");
        }
        for text in ["app in web", "=x", "app=web,,", "a b", "app=web)"] {
            assert_eq!(Labels::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn an_absent_selector_is_not_an_empty_one() {
        assert_eq!(Labels::of(&Value::Null), None);
        assert!(Labels::of(&json!({})).unwrap().matches(&json!({})));
        assert_eq!(Labels::of_map(&json!({})), None);
        let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]});
        let selector = Labels::of(&selector).unwrap();
        assert!(selector.matches_labels(&json!({"a": "1"})));
        assert!(!selector.matches_labels(&json!({"a": "1", "b": ""})));
    }

    #[test]
    fn field_selectors_know_their_kind() {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
        let fields = Fields::parse(Kind::Pod, "spec.nodeName=n1,status.phase!=Failed").unwrap();
        assert!(fields.matches(&pod));
        let error = Fields::parse(Kind::Pod, "spec.foo=1").unwrap_err();
        assert_eq!(error.message, "field label not supported: spec.foo");
        let node = Fields::parse(Kind::Node, "spec.unschedulable=false").unwrap();
        assert!(node.matches(&json!({"metadata": {}, "spec": {}})));
        let event = Fields::parse(
            Kind::Event,
            "involvedObject.fieldPath=spec.containers{a\\,b}",
        )
        .unwrap();
        assert!(event.matches(&json!({"involvedObject": {"fieldPath": "spec.containers{a,b}"}})));
    }
}
