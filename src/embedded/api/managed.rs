//! Field managers: who wrote which fields and when, as `metadata.managedFields` shows it.

use serde_json::{Value, json};

use crate::embedded::api::managed::set::{FieldSet, from_fields, index, to_fields};
use crate::embedded::api::write::{Part, WriteOptions, text};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;

pub mod set;

/// Longest manager name, in bytes; longer ones are cut, as there.
const MANAGER_MAX: usize = 128;

/// Who writes, by which operation, to which part, when.
#[derive(Clone, Debug)]
pub struct Writer {
    pub manager: String,
    pub part: Part,
    /// As `managedFields` names it; empty for the object itself.
    pub subresource: &'static str,
    pub now: Time,
    /// The fields of an applied configuration; `None` for an update, which owns what it changes.
    pub applied: Option<FieldSet>,
}

impl Writer {
    pub fn update(options: &WriteOptions, part: Part, now: Time) -> Writer {
        let mut manager = options.manager.clone();
        while manager.len() > MANAGER_MAX {
            manager.pop();
        }
        Writer {
            manager,
            part,
            subresource: part.subresource(),
            now,
            applied: None,
        }
    }

    fn operation(&self) -> &'static str {
        if self.applied.is_some() {
            "Apply"
        } else {
            "Update"
        }
    }
}

/// One manager's entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub manager: String,
    pub operation: String,
    pub api_version: String,
    pub subresource: String,
    pub time: String,
    pub fields: FieldSet,
}

impl Entry {
    /// The entries of an object.
    pub fn all(object: &Value) -> Vec<Entry> {
        object["metadata"]["managedFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| Entry {
                manager: text(&entry["manager"]).to_owned(),
                operation: text(&entry["operation"]).to_owned(),
                api_version: text(&entry["apiVersion"]).to_owned(),
                subresource: text(&entry["subresource"]).to_owned(),
                time: text(&entry["time"]).to_owned(),
                fields: from_fields(&entry["fieldsV1"]),
            })
            .collect()
    }

    fn to_value(&self) -> Value {
        let mut value = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": to_fields(&self.fields),
        });
        if !self.subresource.is_empty() {
            value["subresource"] = self.subresource.as_str().into();
        }
        value
    }

    /// Whether this is the entry that a writer's fields go to.
    pub fn is_of(&self, writer: &Writer) -> bool {
        self.manager == writer.manager
            && self.operation == writer.operation()
            && self.subresource == writer.subresource
    }
}

/// Notes the fields in which `object` differs from `old` as the writer's. A write that changes nothing
/// leaves the managers as they were.
pub fn note(kind: Kind, old: Option<&Value>, object: &mut Value, writer: &Writer) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        match old.map(|old| &old["metadata"]["managedFields"]) {
            Some(managers) if !managers.is_null() => {
                metadata.insert("managedFields".to_owned(), managers.clone());
            }
            _ => {
                metadata.remove("managedFields");
            }
        }
    }
    if writer.applied.is_none() && old.is_some_and(|old| old == object) {
        return;
    }
    let mut entries = Entry::all(object);
    let empty = json!({});
    let before = index(kind, old.unwrap_or(&empty), true);
    let after = index(kind, object, true);
    let changed: FieldSet = after
        .iter()
        .filter(|(path, value)| before.get(*path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    let mine = match &writer.applied {
        Some(applied) => applied.clone(),
        None => {
            let earlier = entries.iter().find(|entry| entry.is_of(writer));
            let earlier = earlier
                .map(|entry| entry.fields.clone())
                .unwrap_or_default();
            earlier.union(&changed).cloned().collect()
        }
    };
    for entry in entries.iter_mut().filter(|entry| !entry.is_of(writer)) {
        entry.fields.retain(|path| {
            after.contains_key(path) && !(changed.contains(path) && before.contains_key(path))
        });
    }
    let mine: FieldSet = if writer.applied.is_some() {
        mine
    } else {
        mine.into_iter()
            .filter(|path| after.contains_key(path))
            .collect()
    };
    set_mine(kind, &mut entries, mine, writer);
    entries.retain(|entry| !entry.fields.is_empty());
    // Appliers first, then by time, as there.
    entries.sort_by(|a, b| {
        (&a.operation, &a.time, &a.manager).cmp(&(&b.operation, &b.time, &b.manager))
    });
    if entries.is_empty() {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        return;
    }
    let values: Vec<Value> = entries.iter().map(Entry::to_value).collect();
    object["metadata"]["managedFields"] = values.into();
}

/// Writes the writer's own entry; its time moves only when its fields do.
fn set_mine(kind: Kind, entries: &mut Vec<Entry>, mine: FieldSet, writer: &Writer) {
    let now = writer.now.seconds_text();
    match entries.iter_mut().find(|entry| entry.is_of(writer)) {
        Some(entry) => {
            if entry.fields != mine {
                entry.time = now;
                entry.fields = mine;
            }
        }
        None => entries.push(Entry {
            manager: writer.manager.clone(),
            operation: writer.operation().to_owned(),
            api_version: kind.api_version(),
            subresource: writer.subresource.to_owned(),
            time: now,
            fields: mine,
        }),
    }
}
