//! The form in which a client wants its answer: whole objects, a table, or metadata alone.
//!
//! Taken from the `Accept` header before anything is done; a client that accepts nothing we can write is refused.

use axum::body::Body;
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::embedded::api::handle::{self, Call};
use crate::embedded::api::read::Page;
use crate::embedded::api::request::Query;
use crate::embedded::api::status::Status;
use crate::embedded::api::table::{self, IncludeObject, TableForm};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;

/// The versions of the group of tables and bare metadata.
const META_VERSIONS: [(&str, &str); 2] =
    [("v1", "meta.k8s.io/v1"), ("v1beta1", "meta.k8s.io/v1beta1")];

/// What an answer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Objects as they are.
    #[default]
    Whole,
    Table(TableForm),
    /// `PartialObjectMetadata` in this version, for single objects and for those of a watch.
    Metadata(&'static str),
    /// `PartialObjectMetadataList` in this version.
    MetadataList(&'static str),
}

impl Form {
    /// The first form of the `Accept` header, by the client's preference, that can be served.
    pub fn wanted(headers: &HeaderMap, query: &Query) -> Result<Form, Status> {
        let accept: Vec<&str> = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let accept = accept.join(",");
        if accept.trim().is_empty() {
            return Ok(Form::Whole);
        }
        let mut clauses: Vec<Clause> = accept.split(',').map(Clause::parse).collect();
        // Stable: among equals the first named wins.
        clauses.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let form = clauses
            .iter()
            .filter(|clause| clause.weight > 0.0)
            .find_map(Clause::form)
            .ok_or_else(Status::not_acceptable)?;
        match form {
            Form::Table(table) => Ok(Form::Table(TableForm {
                include: included(query)?,
                ..table
            })),
            other => Ok(other),
        }
    }
}

fn included(query: &Query) -> Result<IncludeObject, Status> {
    match query.get("includeObject") {
        None | Some("Metadata") => Ok(IncludeObject::Metadata),
        Some("None") => Ok(IncludeObject::None),
        Some("Object") => Ok(IncludeObject::Object),
        Some(other) => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: \"{other}\": must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// One media range of an `Accept` header.
struct Clause<'a> {
    media: &'a str,
    kind: &'a str,
    group: &'a str,
    version: &'a str,
    weight: f32,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Clause<'a> {
        let mut parts = text.split(';').map(str::trim);
        let mut clause = Clause {
            media: parts.next().unwrap_or_default(),
            kind: "",
            group: "",
            version: "",
            weight: 1.0,
        };
        for part in parts {
            match part.split_once('=') {
                Some(("as", value)) => clause.kind = value,
                Some(("g", value)) => clause.group = value,
                Some(("v", value)) => clause.version = value,
                Some(("q", value)) => clause.weight = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        clause
    }

    fn form(&self) -> Option<Form> {
        if !matches!(self.media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        if self.kind.is_empty() {
            return Some(Form::Whole);
        }
        let version = META_VERSIONS
            .iter()
            .find(|(version, _)| self.group == "meta.k8s.io" && *version == self.version)
            .map(|(_, api_version)| *api_version)?;
        match self.kind {
            "Table" => Some(Form::Table(TableForm {
                api_version: version,
                include: IncludeObject::default(),
            })),
            "PartialObjectMetadata" => Some(Form::Metadata(version)),
            "PartialObjectMetadataList" => Some(Form::MetadataList(version)),
            _ => None,
        }
    }
}

/// An answer with one object.
pub fn object(call: &Call, code: StatusCode, object: &Value, now: Time) -> Response<Body> {
    // What became of a delete may be told by a Status, which has one form only.
    if call.form == Form::Whole || object["kind"] == "Status" {
        return handle::json_answer(code, object);
    }
    match one(call.form, call.target.kind, object, now, true) {
        Ok(shaped) => handle::json_answer(code, &shaped),
        Err(status) => handle::refusal(&status),
    }
}

/// An object in the form of single objects; `headed` tables name their columns.
pub fn one(
    form: Form,
    kind: Kind,
    object: &Value,
    now: Time,
    headed: bool,
) -> Result<Value, Status> {
    match form {
        Form::Whole => Ok(object.clone()),
        Form::Table(table) => {
            let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
            let one = std::iter::once(object);
            Ok(table::table(kind, one, &metadata, now, table, headed))
        }
        Form::Metadata(version) => Ok(table::metadata_only(object, version)),
        Form::MetadataList(_) => Err(Status::not_in_form(
            "you requested PartialObjectMetadataList, but the requested object is not a list",
        )),
    }
}

/// An answer with a list. Without a continuation, and `selective`, what is left is not counted.
pub fn list(call: &Call, page: &Page, selective: bool, now: Time) -> Response<Body> {
    let kind = call.target.kind;
    let metadata = page.metadata(selective);
    let items = page.items.iter().map(|object| &**object);
    match call.form {
        Form::Whole => handle::list_answer(kind, &metadata, page),
        Form::Table(form) => {
            let table = table::table(kind, items, &metadata, now, form, true);
            handle::json_answer(StatusCode::OK, &table)
        }
        Form::MetadataList(version) => {
            let items: Vec<Value> = items
                .map(|object| table::metadata_only(object, version))
                .collect();
            let list = json!({
                "kind": "PartialObjectMetadataList", "apiVersion": version,
                "metadata": metadata, "items": items,
            });
            handle::json_answer(StatusCode::OK, &list)
        }
        Form::Metadata(_) => handle::refusal(&Status::not_in_form(
            "you requested PartialObjectMetadata, but the requested object is a list",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Result<Form, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        Form::wanted(&headers, &Query::default()).map_err(|status| status.code)
    }

    #[test]
    fn the_first_form_that_can_be_served_is_taken() {
        let table = Form::Table(TableForm {
            api_version: "meta.k8s.io/v1",
            include: IncludeObject::Metadata,
        });
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(wanted(kubectl), Ok(table));
        for (accept, form) in [
            ("*/*", Ok(Form::Whole)),
            ("application/vnd.kubernetes.protobuf, */*", Ok(Form::Whole)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Ok(Form::Whole),
            ),
            (
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Ok(Form::Metadata("meta.k8s.io/v1")),
            ),
            (
                "application/json;q=0.5,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
                Ok(Form::MetadataList("meta.k8s.io/v1beta1")),
            ),
            (
                "application/json;as=Chart;g=meta.k8s.io;v=v1,application/json",
                Ok(Form::Whole),
            ),
            ("application/vnd.kubernetes.protobuf", Err(406)),
            ("text/html", Err(406)),
            ("application/json;q=0", Err(406)),
        ] {
            assert_eq!(wanted(accept), form, "{accept}");
        }
    }
}
