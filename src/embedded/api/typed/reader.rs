//! A serde deserializer over JSON values that knows where it is and of which Go type it is reading a part.
//!
//! It exists for its findings: fields that the type does not know, and the first value of a wrong type, told in
//! the words of the real server's decoder.

use std::any::type_name;
use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, Visitor};
use serde_json::{Map, Value};

use crate::embedded::quantity::Quantity;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Field(String),
    Index(usize),
}

/// What reading an object into its type brought to light.
#[derive(Debug, Default)]
pub struct Findings {
    /// Paths of fields that the type does not know, in reading order.
    pub unknown: Vec<Vec<Step>>,
    /// The first value of a wrong type; reading ends there.
    pub mismatch: Option<Mismatch>,
}

/// A value that is not of its field's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    Type {
        /// What stands there: `string`, `number 1.5`, `object`.
        found: String,
        /// Innermost struct, such as `DeploymentSpec`.
        owner: String,
        /// Fields from the root, without indexes and map keys.
        path: String,
        /// Go type of the field.
        wanted: String,
    },
    /// A type that reads itself refused the value, in its own words.
    Own(String),
}

impl Mismatch {
    /// As the JSON decoder says it.
    pub fn json_text(&self) -> String {
        match self {
            Mismatch::Type {
                found,
                owner,
                path,
                wanted,
            } => format!(
                "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}"
            ),
            Mismatch::Own(text) => text.clone(),
        }
    }

    /// As the converter says it that strategic merge patches use.
    pub fn converter_text(&self) -> String {
        match self {
            Mismatch::Type { found, wanted, .. } => {
                let found = found.split(' ').next().unwrap_or_default();
                if wanted.starts_with("[]") {
                    format!("cannot restore slice from {found}")
                } else if wanted.starts_with("map[") {
                    format!("cannot restore map from {found}")
                } else if wanted.contains('.') {
                    format!("cannot restore struct from: {found}")
                } else if wanted == "string" {
                    let found = match found {
                        "number" => "int64",
                        other => other,
                    };
                    format!("cannot convert {found} to string")
                } else {
                    format!("unrecognized type: {wanted}")
                }
            }
            Mismatch::Own(text) => text.clone(),
        }
    }
}

/// A path as it is shown: `spec.containers[0].name`.
pub fn path_text(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Removes the field at a path.
pub fn remove(object: &mut Value, steps: &[Step]) {
    let Some((Step::Field(last), parents)) = steps.split_last() else {
        return;
    };
    let mut at = object;
    for step in parents {
        let next = match step {
            Step::Field(name) => at.get_mut(name),
            Step::Index(index) => at.get_mut(index),
        };
        match next {
            Some(next) => at = next,
            None => return,
        }
    }
    if let Some(map) = at.as_object_mut() {
        map.remove(last);
    }
}

/// Reads an object as a `T` and tells what was found on the way.
pub fn read<T: for<'de> Deserialize<'de>>(object: &Value) -> Findings {
    let unknown = RefCell::new(Vec::new());
    let reader = Reader {
        value: object,
        at: &At {
            parent: None,
            step: Step::Field(String::new()),
            in_map: false,
        },
        owner: "",
        unknown: &unknown,
    };
    let mismatch = T::deserialize(reader).err().map(|error| error.0);
    Findings {
        unknown: unknown.into_inner(),
        mismatch,
    }
}

/// Where the reader is, as a list that grows on the stack.
struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step,
    /// The step is a key of a map, which the JSON decoder's paths leave out.
    in_map: bool,
}

impl At<'_> {
    fn steps(&self) -> Vec<Step> {
        let Some(parent) = self.parent else {
            return Vec::new();
        };
        let mut steps = parent.steps();
        steps.push(self.step.clone());
        steps
    }

    fn fields(&self) -> Vec<String> {
        let Some(parent) = self.parent else {
            return Vec::new();
        };
        let mut fields = parent.fields();
        if let (Step::Field(name), false) = (&self.step, self.in_map) {
            fields.push(name.clone());
        }
        fields
    }
}

#[derive(Debug)]
struct ReadError(Mismatch);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.json_text())
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(text: T) -> ReadError {
        ReadError(Mismatch::Own(text.to_string()))
    }
}

#[derive(Clone, Copy)]
struct Reader<'p> {
    value: &'p Value,
    at: &'p At<'p>,
    owner: &'p str,
    unknown: &'p RefCell<Vec<Vec<Step>>>,
}

impl Reader<'_> {
    fn mismatch(&self, wanted: &str) -> ReadError {
        let found = match self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            // An integer where one is wanted was out of range or fractional: then the literal is shown.
            Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        ReadError(Mismatch::Type {
            found,
            owner: self.owner.to_owned(),
            path: self.at.fields().join("."),
            wanted: wanted.to_owned(),
        })
    }
}

/// The Go spelling of a Rust type's name.
fn go_type(rust: &str) -> String {
    if let Some(inner) = argument(rust, "Vec<") {
        return format!("[]{}", go_type(inner));
    }
    if let Some(inner) = argument(rust, "Option<") {
        return go_type(inner);
    }
    if let Some(inner) = argument(rust, "BTreeMap<") {
        let value = inner.split_once(", ").map_or("", |(_, value)| value);
        return format!("map[string]{}", go_type(value));
    }
    let name = rust.rsplit("::").next().unwrap_or(rust);
    match name {
        "String" | "str" => "string".to_owned(),
        "i32" => "int32".to_owned(),
        "i64" => "int64".to_owned(),
        "bool" => "bool".to_owned(),
        "f64" => "float64".to_owned(),
        "ByteString" => "[]uint8".to_owned(),
        "Quantity" => "resource.Quantity".to_owned(),
        "IntOrString" => "intstr.IntOrString".to_owned(),
        _ => {
            let version = ["v1", "v2"]
                .into_iter()
                .find(|version| rust.contains(&format!("::{version}::")))
                .unwrap_or("v1");
            format!("{version}.{name}")
        }
    }
}

/// The argument of a generic type of this name.
fn argument<'a>(rust: &'a str, opening: &str) -> Option<&'a str> {
    let head = rust.split('<').next().unwrap_or_default();
    let name = opening.trim_end_matches('<');
    if head.rsplit("::").next() != Some(name) {
        return None;
    }
    rust.get(head.len() + 1..)?.strip_suffix('>')
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let number_or_text = type_name::<V::Value>().ends_with("IntOrString");
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(_) | Value::Object(_) | Value::Array(_) if number_or_text => {
                let mut error = self.mismatch("int32");
                if let Mismatch::Type { found, .. } = &error.0 {
                    error = ReadError(Mismatch::Own(format!(
                        "json: cannot unmarshal {found} into Go value of type int32"
                    )));
                }
                Err(error)
            }
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => visitor.visit_i64(whole),
                (None, Some(float)) => visitor.visit_f64(float),
                (None, None) => Err(self.mismatch("int64")),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Null => visitor.visit_bool(false),
            _ => Err(self.mismatch("bool")),
        }
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match (self.value, self.value.as_i64().map(i32::try_from)) {
            (_, Some(Ok(number))) => visitor.visit_i32(number),
            (Value::Null, _) => visitor.visit_i32(0),
            _ => Err(self.mismatch("int32")),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match (self.value, self.value.as_i64()) {
            (_, Some(number)) => visitor.visit_i64(number),
            (Value::Null, _) => visitor.visit_i64(0),
            _ => Err(self.mismatch("int64")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value.as_f64() {
            Some(number) => visitor.visit_f64(number),
            None => Err(self.mismatch("float64")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            Value::String(text) => {
                if type_name::<V::Value>().ends_with("ByteString")
                    && let Some(at) = base64_fault(text)
                {
                    return Err(ReadError(Mismatch::Own(format!(
                        "illegal base64 data at input byte {at}"
                    ))));
                }
                visitor.visit_str(text)
            }
            Value::Null => visitor.visit_str(""),
            _ => Err(self.mismatch("string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name != "Quantity" {
            return visitor.visit_newtype_struct(self);
        }
        let text = match self.value {
            Value::String(text) => text.clone(),
            Value::Null => "0".to_owned(),
            other => other.to_string(),
        };
        if Quantity::parse(&text).is_err() {
            return Err(ReadError(Mismatch::Own(quantity_fault(&text).to_owned())));
        }
        visitor.visit_newtype_struct(StrDeserializer::<ReadError>::new(&text))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let empty = Vec::new();
        let list = match self.value {
            Value::Array(list) => list,
            Value::Null => &empty,
            _ => return Err(self.mismatch(&go_type(type_name::<V::Value>()))),
        };
        visitor.visit_seq(Elements {
            reader: self,
            rest: list.iter().enumerate(),
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.visit_fields(visitor, self.owner, true)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.visit_fields(visitor, name, false)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.unknown.borrow_mut().push(self.at.steps());
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 u8 u16 u32 u64 f32 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}

impl Reader<'_> {
    fn visit_fields<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        owner: &str,
        is_map: bool,
    ) -> Result<V::Value, ReadError> {
        let empty = Map::new();
        let map = match self.value {
            Value::Object(map) => map,
            Value::Null => &empty,
            _ => return Err(self.mismatch(&go_type(type_name::<V::Value>()))),
        };
        visitor.visit_map(Fields {
            reader: Reader { owner, ..self },
            rest: map.iter(),
            current: None,
            is_map,
        })
    }
}

struct Elements<'p> {
    reader: Reader<'p>,
    rest: std::iter::Enumerate<std::slice::Iter<'p, Value>>,
}

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some((index, value)) = self.rest.next() else {
            return Ok(None);
        };
        let at = At {
            parent: Some(self.reader.at),
            step: Step::Index(index),
            in_map: false,
        };
        let reader = Reader {
            value,
            at: &at,
            ..self.reader
        };
        seed.deserialize(reader).map(Some)
    }
}

struct Fields<'p> {
    reader: Reader<'p>,
    rest: serde_json::map::Iter<'p>,
    current: Option<(&'p String, &'p Value)>,
    is_map: bool,
}

impl<'de> de::MapAccess<'de> for Fields<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else {
            return Ok(None);
        };
        seed.deserialize(StrDeserializer::<ReadError>::new(key))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((key, value)) = self.current else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        let at = At {
            parent: Some(self.reader.at),
            step: Step::Field(key.clone()),
            in_map: self.is_map,
        };
        let reader = Reader {
            value,
            at: &at,
            ..self.reader
        };
        seed.deserialize(reader)
    }
}

/// Why a text is no quantity: its form is wrong, or only its suffix is unknown.
fn quantity_fault(text: &str) -> &'static str {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_number = suffix.len() < unsigned.len();
    let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if has_number && digits.bytes().all(|b| b.is_ascii_digit()) {
        "unable to parse quantity's suffix"
    } else {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    }
}

/// The byte at which the real decoder gives up on a base64 text, if it does. Line breaks are skipped.
fn base64_fault(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let in_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let Some(first_bad) = bytes.iter().position(|(_, byte)| !in_alphabet(*byte)) else {
        let quantum = bytes.len() % 4;
        return (quantum != 0).then(|| text.len() - quantum);
    };
    let (offset, byte) = bytes[first_bad];
    let place = first_bad % 4;
    if byte != b'=' || place < 2 {
        return Some(offset);
    }
    let mut next = first_bad + 1;
    if place == 2 {
        match bytes.get(next) {
            None => return Some(text.len()),
            Some((offset, byte)) if *byte != b'=' => return Some(*offset),
            Some(_) => next += 1,
        }
    }
    bytes.get(next).map(|(offset, _)| *offset)
}
