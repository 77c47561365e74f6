//! Tables: what `kubectl get` prints is made by the server, one row of cells per object.
//!
//! Columns and cells are those of Kubernetes v1.34.4; the descriptions of columns, which no client prints, are left
//! empty. Ages are told at the cluster's own time.

mod age;
mod cells;
mod columns;
mod labels;
mod network;
mod pod;
mod policy;
mod storage;
mod workload;

use serde_json::{Value, json};

use crate::embedded::kind::Kind;
use crate::embedded::time::Time;

/// What a row carries beside its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

/// How a table is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// `meta.k8s.io/v1` or its beta, which differ in nothing else.
    pub api_version: &'static str,
    pub include: IncludeObject,
}

/// A table over objects of one kind. `metadata` is the list's own. Without `headed` the columns are left out, as in
/// all events of a watch but the first.
pub fn table<'a>(
    kind: Kind,
    objects: impl Iterator<Item = &'a Value>,
    metadata: &Value,
    now: Time,
    form: TableForm,
    headed: bool,
) -> Value {
    let rows: Vec<Value> = objects.map(|object| row(kind, object, now, form)).collect();
    let columns = if headed {
        columns::of(kind)
            .iter()
            .map(columns::Column::to_value)
            .collect()
    } else {
        Value::Null
    };
    json!({
        "kind": "Table", "apiVersion": form.api_version, "metadata": metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}

fn row(kind: Kind, object: &Value, now: Time, form: TableForm) -> Value {
    let carried = match form.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => metadata_only(object, form.api_version),
        IncludeObject::Object => object.clone(),
    };
    let mut row = json!({ "cells": cells::of(kind, object, now), "object": carried });
    if kind == Kind::Pod
        && let Some(condition) = pod::completion(object)
    {
        row["conditions"] = json!([condition]);
    }
    row
}

/// An object without all but its metadata.
pub fn metadata_only(object: &Value, api_version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": object["metadata"],
    })
}
