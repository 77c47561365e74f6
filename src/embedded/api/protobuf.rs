//! Request bodies in protobuf, as generated clients of Kubernetes 1.32 and later send them, turned into JSON.
//!
//! Reading goes by a table of fields; a field that it does not know is skipped, as a server skips it. Answers are
//! never written in protobuf: every client that sends it also reads JSON.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::embedded::api::protobuf::wire::{Payload, Reader, Truncated};
use crate::embedded::api::status::Status;
use crate::embedded::time::Time;

mod wire;

/// The media type of such bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What they begin with.
const MAGIC: &[u8] = b"k8s\0";

/// Every type by its package and name, such as `corev1.Pod`.
static TYPES: LazyLock<BTreeMap<&str, Type>> = LazyLock::new(|| {
    include_str!("protobuf/fields.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, fields)| (name, fields.split(' ').filter_map(Field::parse).collect()))
        .collect()
});

/// Fields by number.
type Type = BTreeMap<u64, Field>;

struct Field {
    name: &'static str,
    /// Left out when zero: the type has no way to tell an absent value from a zero.
    omitted_when_zero: bool,
    /// Its fields stand in the type itself.
    inline: bool,
    kind: &'static str,
}

impl Field {
    /// Number and field of `1:replicas:number`.
    fn parse(text: &'static str) -> Option<(u64, Field)> {
        let mut parts = text.splitn(3, ':');
        let number = parts.next()?.parse().ok()?;
        let name = parts.next()?;
        let field = Field {
            name: name.trim_end_matches(['?', '^']),
            omitted_when_zero: name.ends_with('?'),
            inline: name.ends_with('^'),
            kind: parts.next()?,
        };
        Some((number, field))
    }
}

/// What a field of the table is, for who describes types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A repeated kind, by its spelling in the table.
    List(&'static str),
    /// A map from text to a kind, by its spelling in the table.
    Map(&'static str),
    /// Another type of the table.
    Message(&'static str),
    /// One that is written without inner fields.
    Plain(&'static str),
}

impl FieldType {
    /// From a kind's spelling in the table.
    pub fn of(kind: &'static str) -> FieldType {
        match (kind.strip_prefix('*'), kind.strip_prefix('%')) {
            (Some(item), _) => FieldType::List(item),
            (None, Some(value)) => FieldType::Map(value),
            (None, None) if TYPES.contains_key(kind) => FieldType::Message(kind),
            (None, None) => FieldType::Plain(kind),
        }
    }
}

/// A field as it stands in the JSON of its type.
pub struct FieldInfo {
    pub name: &'static str,
    pub inline: bool,
    pub kind: FieldType,
}

/// The fields of a type; none for one that the table does not hold.
pub fn fields(type_name: &str) -> impl Iterator<Item = FieldInfo> {
    let fields = TYPES.get(type_name).into_iter().flat_map(BTreeMap::values);
    fields.map(|field| FieldInfo {
        name: field.name,
        inline: field.inline,
        kind: FieldType::of(field.kind),
    })
}

/// Decodes a body into the JSON of its object, kind and version included.
pub fn decode(body: &[u8]) -> Result<Value, Status> {
    let refused = |why: &str| Status::bad_request(format!("body is not valid protobuf: {why}"));
    let body = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| refused("it does not begin with the prefix of Kubernetes"))?;
    let envelope = Envelope::read(body).map_err(|_| refused("it breaks off"))?;
    let name = type_name(&envelope.api_version, &envelope.kind);
    let Some(fields) = TYPES.get(name.as_str()) else {
        return Err(refused(&format!(
            "no kind \"{}\" is registered for version \"{}\"",
            envelope.kind, envelope.api_version
        )));
    };
    let mut object = message(fields, envelope.raw).map_err(|_| refused("it breaks off"))?;
    object.insert("kind".to_owned(), envelope.kind.into());
    object.insert("apiVersion".to_owned(), envelope.api_version.into());
    Ok(Value::Object(object))
}

/// What every body is wrapped in.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, Truncated> {
        let mut envelope = Envelope::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, payload)) = reader.next()? {
            match (number, payload) {
                (1, Payload::Bytes(meta)) => {
                    let mut meta = Reader::new(meta);
                    while let Some((number, payload)) = meta.next()? {
                        match number {
                            1 => envelope.api_version = payload.text(),
                            2 => envelope.kind = payload.text(),
                            _ => {}
                        }
                    }
                }
                (2, Payload::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// The name under which the table holds a kind.
pub fn type_name(api_version: &str, kind: &str) -> String {
    // Options come in the version of what they are about.
    if kind == "DeleteOptions" {
        return "metav1.DeleteOptions".to_owned();
    }
    match api_version.split_once('/') {
        None => format!("core{api_version}.{kind}"),
        Some((group, version)) => {
            let short = group.split('.').next().unwrap_or_default();
            format!("{short}{version}.{kind}")
        }
    }
}

fn message(fields: &Type, bytes: &[u8]) -> Result<Map<String, Value>, Truncated> {
    let mut object = Map::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        let Some(field) = fields.get(&number) else {
            continue;
        };
        if let Some(kind) = field.kind.strip_prefix('*') {
            let list = object
                .entry(field.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let (Some(list), Some(entry)) = (list.as_array_mut(), value(kind, payload)?) {
                list.push(entry);
            }
        } else if let Some(kind) = field.kind.strip_prefix('%') {
            let map = object
                .entry(field.name)
                .or_insert_with(|| Value::Object(Map::new()));
            if let (Some(map), Some((key, entry))) = (map.as_object_mut(), pair(kind, payload)?) {
                map.insert(key, entry);
            }
        } else if let Some(single) = value(field.kind, payload)? {
            match single {
                Value::Object(inner) if field.inline => object.extend(inner),
                zero if field.omitted_when_zero && is_zero(&zero) => {}
                single => {
                    object.insert(field.name.to_owned(), single);
                }
            }
        }
    }
    Ok(object)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

/// One value; nothing for what stands for an absent one.
fn value(kind: &str, payload: Payload) -> Result<Option<Value>, Truncated> {
    Ok(match (kind, &payload) {
        ("number", Payload::Number(number)) => Some((*number).into()),
        ("flag", Payload::Number(number)) => Some((*number != 0).into()),
        ("text", Payload::Bytes(_)) => Some(payload.text().into()),
        ("bytes", Payload::Bytes(bytes)) => Some(STANDARD.encode(bytes).into()),
        ("time" | "microtime", Payload::Bytes(bytes)) => time(kind, bytes)?,
        ("quantity", Payload::Bytes(bytes)) => {
            let text = first(bytes)?.map_or(String::new(), |payload| payload.text());
            (!text.is_empty()).then(|| text.into())
        }
        ("intorstring", Payload::Bytes(bytes)) => Some(number_or_text(bytes)?),
        ("raw", Payload::Bytes(bytes)) => match first(bytes)? {
            Some(Payload::Bytes(json)) => serde_json::from_slice(json).ok(),
            _ => None,
        },
        (name, Payload::Bytes(bytes)) => match TYPES.get(name) {
            Some(fields) => Some(Value::Object(message(fields, bytes)?)),
            None => None,
        },
        _ => None,
    })
}

/// The first field of a message that holds little else.
fn first(bytes: &[u8]) -> Result<Option<Payload<'_>>, Truncated> {
    Ok(Reader::new(bytes).next()?.map(|(_, payload)| payload))
}

/// An entry of a map.
fn pair(kind: &str, payload: Payload) -> Result<Option<(String, Value)>, Truncated> {
    let Payload::Bytes(bytes) = payload else {
        return Ok(None);
    };
    let (mut key, mut entry) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => key = payload.text(),
            2 => entry = value(kind, payload)?,
            _ => {}
        }
    }
    // An empty value may be left out on the wire.
    Ok(Some((key, entry.unwrap_or_else(|| "".into()))))
}

/// Seconds and nanoseconds since the Unix epoch; a zero time is an absent one.
fn time(kind: &str, bytes: &[u8]) -> Result<Option<Value>, Truncated> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match (number, payload) {
            (1, Payload::Number(number)) => seconds = number,
            (2, Payload::Number(number)) => nanos = number,
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(None);
    }
    let moment = Time::from_micros(
        seconds
            .saturating_mul(1_000_000)
            .saturating_add(nanos / 1000),
    );
    Ok(Some(match kind {
        "microtime" => moment.micros_text().into(),
        _ => moment.seconds_text().into(),
    }))
}

fn number_or_text(bytes: &[u8]) -> Result<Value, Truncated> {
    let (mut is_text, mut whole, mut text) = (false, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match (number, &payload) {
            (1, Payload::Number(kind)) => is_text = *kind == 1,
            (2, Payload::Number(number)) => whole = *number,
            (3, Payload::Bytes(_)) => text = payload.text(),
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { whole.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend(bytes);
        out
    }

    fn number(field: u8, value: u8) -> Vec<u8> {
        vec![field << 3, value]
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &meta), &field(2, raw)].concat()
    }

    #[test]
    fn a_deployment_keeps_pointer_zeros_and_loses_other_zeros() {
        let metadata = [
            field(1, b"web"),
            field(3, b""),
            field(8, b""),
            field(11, &[field(1, b"app"), field(2, b"web")].concat()),
        ]
        .concat();
        let probe = [
            field(
                1,
                &field(
                    2,
                    &[
                        field(1, b"/"),
                        field(2, &[number(1, 1), field(3, b"http")].concat()),
                    ]
                    .concat(),
                ),
            ),
            number(2, 0),
        ]
        .concat();
        let limits = field(1, &[field(1, b"cpu"), field(2, &field(1, b"10m"))].concat());
        let container = [field(1, b"c"), field(8, &limits), field(11, &probe)].concat();
        let template = field(2, &field(2, &container));
        let spec = [
            number(1, 0),
            field(3, &template),
            number(5, 0),
            number(7, 0),
        ]
        .concat();
        let raw = [field(1, &metadata), field(2, &spec)].concat();
        assert_eq!(
            decode(&body("apps/v1", "Deployment", &raw)).unwrap(),
            json!({
                "kind": "Deployment", "apiVersion": "apps/v1",
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {"replicas": 0, "template": {"spec": {"containers": [{
                    "name": "c",
                    "resources": {"limits": {"cpu": "10m"}},
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                }]}}},
            })
        );
    }

    #[test]
    fn secrets_are_base64_again_and_options_are_known_in_every_version() {
        let data = field(2, &[field(1, b"k"), field(2, b"v")].concat());
        let secret = decode(&body("v1", "Secret", &data)).unwrap();
        assert_eq!(secret["data"], json!({"k": "dg=="}));
        let options = decode(&body("policy/v1", "DeleteOptions", &number(1, 0))).unwrap();
        assert_eq!(options["gracePeriodSeconds"], 0);
    }

    #[test]
    fn a_body_that_breaks_off_or_is_of_no_known_kind_is_refused() {
        let whole = body("v1", "Secret", &field(1, &field(1, b"name")));
        for end in 0..whole.len() {
            // A cut between two fields leaves a shorter body that is whole in itself.
            let _ = decode(&whole[..end]);
        }
        assert_eq!(decode(&whole[..whole.len() - 1]).unwrap_err().code, 400);
        assert_eq!(decode(b"{}").unwrap_err().code, 400);
        assert_eq!(decode(&body("v1", "Nope", b"")).unwrap_err().code, 400);
    }

    #[test]
    fn every_kind_named_in_the_table_stands_in_it() {
        for (name, fields) in TYPES.iter() {
            for field in fields.values() {
                let kind = field.kind.trim_start_matches(['*', '%']);
                let known = matches!(
                    kind,
                    "number"
                        | "flag"
                        | "text"
                        | "bytes"
                        | "time"
                        | "microtime"
                        | "quantity"
                        | "intorstring"
                        | "raw"
                );
                assert!(known || TYPES.contains_key(kind), "{name}: {kind}");
            }
        }
    }
}
