//! The HTTP skin: takes a request apart, calls the synchronous core, wraps its answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use crate::embedded::api::apply::{self, Applied};
use crate::embedded::api::delete::{self, DeleteOptions, Propagation};
use crate::embedded::api::discovery;
use crate::embedded::api::metrics;
use crate::embedded::api::openapi;
use crate::embedded::api::protobuf;
use crate::embedded::api::read::{self, ListOptions, Page};
use crate::embedded::api::request::{self, Query, Route, Target};
use crate::embedded::api::review;
use crate::embedded::api::selector::{Fields, Labels};
use crate::embedded::api::shape::{self, Form};
use crate::embedded::api::status::Status;
use crate::embedded::api::subresource;
use crate::embedded::api::typed::{self, FieldValidation};
use crate::embedded::api::watch;
use crate::embedded::api::write::{self, Part, Place, WriteOptions};
use crate::embedded::cluster::Shared;
use crate::embedded::kind::Kind;
use crate::embedded::patch::{Patch, PatchError};

/// Largest request body, in bytes: the real server's limit.
const BODY_MAX: usize = 3 * 1024 * 1024;
/// The content type of server-side apply. Bodies are JSON, which is YAML too.
const APPLY_TYPE: &str = "application/apply-patch+yaml";

/// A request about an object or a collection, with its body read.
pub struct Call {
    pub target: Target,
    pub method: Method,
    pub query: Query,
    pub headers: http::HeaderMap,
    pub body: Bytes,
    /// The form of the answer that the client wants.
    pub form: Form,
}

/// Answers any request. Never fails: every error is a Status.
pub async fn handle(shared: Arc<Shared>, request: Request) -> Response<Body> {
    answer(shared, request)
        .await
        .unwrap_or_else(|status| refusal(&status))
}

async fn answer(shared: Arc<Shared>, request: Request) -> Result<Response<Body>, Status> {
    let (parts, body) = request.into_parts();
    let target = match request::parse_path(parts.uri.path()) {
        Route::Target(target) => target,
        Route::Other(segments) if parts.method == Method::POST => {
            return review(&parts, &segments, body).await;
        }
        Route::Other(segments) => return other(&shared, &parts, &segments),
    };
    let body = whole_body(body).await?;
    let query = Query::parse(parts.uri.query());
    let form = Form::wanted(&parts.headers, &query)?;
    let call = Call {
        target,
        method: parts.method,
        query,
        headers: parts.headers,
        body,
        form,
    };
    dispatch(&shared, &call)
}

async fn whole_body(body: Body) -> Result<Bytes, Status> {
    let collected = Limited::new(body, BODY_MAX).collect().await;
    collected
        .map(|body| body.to_bytes())
        .map_err(|_| Status::too_large(format!("Request entity too large: limit is {BODY_MAX}")))
}

/// Types that are only ever posted.
async fn review(parts: &Parts, segments: &[String], body: Body) -> Result<Response<Body>, Status> {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let review = review::of_path(&segments).ok_or_else(|| unserved(&segments))?;
    let body = whole_body(body).await?;
    let posted = parsed(media_type(&parts.headers), &body)?;
    Ok(json_answer(StatusCode::CREATED, &review.answer(posted)))
}

/// The refusal of a method that a path does not take: of all of them, where there is no such path.
fn unserved(segments: &[&str]) -> Status {
    let known = review::of_path(segments).is_some() || discovery::answer(segments, false).is_some();
    if known {
        Status::method_not_allowed()
    } else {
        Status::no_such_path()
    }
}

/// Paths that name no object: health, version, discovery.
fn other(shared: &Shared, parts: &Parts, segments: &[String]) -> Result<Response<Body>, Status> {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if parts.method != Method::GET || review::of_path(&segments).is_some() {
        return Err(unserved(&segments));
    }
    if let ["healthz" | "livez" | "readyz", ..] = segments.as_slice() {
        return Ok(plain_text("ok".to_owned()));
    }
    if let ["apis", metrics::GROUP, metrics::VERSION, path @ ..] = segments.as_slice()
        && !path.is_empty()
    {
        let query = Query::parse(parts.uri.query());
        let answer = shared.with(|world| metrics::answer(world, path, &query))?;
        return Ok(json_answer(StatusCode::OK, &answer));
    }
    if let ["openapi", "v3", path @ ..] = segments.as_slice() {
        let answer = openapi::answer(path).ok_or_else(Status::no_such_path)?;
        return Ok(json_answer(StatusCode::OK, &answer));
    }
    let accept = parts
        .headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let aggregated = discovery::wants_aggregated(accept) && segments.len() == 1;
    let answer = discovery::answer(&segments, aggregated).ok_or_else(Status::no_such_path)?;
    let mut response = json_answer(StatusCode::OK, &answer);
    if aggregated && segments != ["version"] {
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            http::HeaderValue::from_static(discovery::AGGREGATED_TYPE),
        );
    }
    Ok(response)
}

fn dispatch(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let collection = call.target.name.is_empty();
    let everywhere = call.target.kind.info().namespaced && call.target.namespace.is_empty();
    if everywhere && call.method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    match (&call.method, call.target.subresource.as_str()) {
        (&Method::GET, "") if call.query.is_true("watch") => watch(shared, call),
        (&Method::GET, "" | "status") if !collection => get(shared, call),
        (&Method::GET, "") => list(shared, call),
        (&Method::PATCH, "") if !collection => patch(shared, call, Part::Main),
        (&Method::PATCH, "status") => patch(shared, call, Part::Status),
        (&Method::POST, "") if collection => create(shared, call),
        (&Method::PUT, "") if !collection => update(shared, call, Part::Main),
        (&Method::PUT, "status") => update(shared, call, Part::Status),
        (&Method::DELETE, "") if !collection => remove(shared, call),
        (&Method::DELETE, "") => remove_all(shared, call),
        (_, "" | "status") => Err(Status::method_not_allowed()),
        _ => subresource::dispatch(shared, call),
    }
}

fn get(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let Target {
        kind,
        namespace,
        name,
        ..
    } = &call.target;
    let object = shared.with(|world| read::get(world, *kind, namespace, name))?;
    Ok(warned(
        shape::object(call, StatusCode::OK, &object, shared.now()),
        &read_warnings(*kind),
    ))
}

/// The selectors and paging of a list, a watch or a collection delete.
pub fn list_options(call: &Call) -> Result<ListOptions, Status> {
    let query = &call.query;
    Ok(ListOptions {
        labels: Labels::parse(query.get("labelSelector").unwrap_or_default())?,
        fields: Fields::parse(
            call.target.kind,
            query.get("fieldSelector").unwrap_or_default(),
        )?,
        limit: query.number("limit").unwrap_or(0),
        continue_token: query.get("continue").map(str::to_owned),
    })
}

fn list(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let options = list_options(call)?;
    let Target {
        kind, namespace, ..
    } = &call.target;
    let page = shared.with(|world| read::list(world, *kind, namespace, &options))?;
    let selective = !options.labels.is_empty() || !options.fields.is_empty();
    let answer = shape::list(call, &page, selective, shared.now());
    Ok(warned(answer, &read_warnings(*kind)))
}

/// Reads of a type on its way out carry a warning.
fn read_warnings(kind: Kind) -> Vec<String> {
    match kind {
        Kind::Endpoints => vec![
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
                .to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// A list of whole objects.
pub fn list_answer(kind: Kind, metadata: &Value, page: &Page) -> Response<Body> {
    let mut text = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
        kind.info().name,
        kind.api_version(),
    );
    for (n, object) in page.items.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(&json_text(object));
    }
    text.push_str("]}");
    respond(StatusCode::OK, text)
}

fn create(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    check_dry_run(call, "CreateOptions")?;
    let (object, warnings) = body_object(call)?;
    let options = write_options(call);
    let Target {
        kind, namespace, ..
    } = &call.target;
    let stored = shared.with(|world| write::create(world, *kind, namespace, object, &options))?;
    let answer = shape::object(call, StatusCode::CREATED, &stored, shared.now());
    Ok(warned(answer, &warnings))
}

fn update(shared: &Shared, call: &Call, part: Part) -> Result<Response<Body>, Status> {
    check_dry_run(call, "UpdateOptions")?;
    let (object, warnings) = body_object(call)?;
    let options = write_options(call);
    let Target {
        kind,
        namespace,
        name,
        ..
    } = &call.target;
    let stored = shared
        .with(|world| write::update(world, *kind, namespace, name, part, object, &options))?;
    let answer = shape::object(call, StatusCode::OK, &stored, shared.now());
    Ok(warned(answer, &warnings))
}

fn watch(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let mut response = respond(StatusCode::OK, String::new());
    *response.body_mut() = watch::stream(shared, call)?;
    Ok(response)
}

/// The media type of a request's body.
fn content_type(call: &Call) -> &str {
    media_type(&call.headers)
}

fn media_type(headers: &http::HeaderMap) -> &str {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
}

/// Server-side apply.
fn apply(shared: &Shared, call: &Call, part: Part) -> Result<Response<Body>, Status> {
    if call.query.get("fieldManager").is_none() {
        return Err(Status::no_field_manager());
    }
    let (config, warnings) = body_object(call)?;
    let options = write_options(call);
    let force = call.query.is_true("force");
    let place = place(call, part);
    let applied = shared.with(|world| apply::apply(world, &place, config, &options, force))?;
    let (code, object) = match applied {
        Applied::Created(object) => (StatusCode::CREATED, object),
        Applied::Changed(object) => (StatusCode::OK, object),
    };
    let answer = shape::object(call, code, &object, shared.now());
    Ok(warned(answer, &warnings))
}

/// What a write request is about.
pub fn place(call: &Call, part: Part) -> Place<'_> {
    Place {
        kind: call.target.kind,
        namespace: &call.target.namespace,
        name: &call.target.name,
        part,
    }
}

fn patch(shared: &Shared, call: &Call, part: Part) -> Result<Response<Body>, Status> {
    if content_type(call) == APPLY_TYPE {
        return apply(shared, call, part);
    }
    check_dry_run(call, "PatchOptions")?;
    let patch = body_patch(call)?;
    let options = write_options(call);
    let place = place(call, part);
    let validation = FieldValidation::parse(call.query.get("fieldValidation"))?;
    let mut warnings = Vec::new();
    let stored = shared.with(|world| {
        write::patch(world, &place, &patch, &options, |object| {
            warnings = typed::decode_patched(place.kind, object, &patch, validation)?;
            Ok(())
        })
    })?;
    let answer = shape::object(call, StatusCode::OK, &stored, shared.now());
    Ok(warned(answer, &warnings))
}

/// The patch of a body, in the form that its content type names.
pub fn body_patch(call: &Call) -> Result<Patch, Status> {
    let bad = |error: serde_json::Error| {
        // A body that breaks off is told as there; other mistakes in the writing have words of their own.
        let why = if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        match content_type(call) {
            "application/strategic-merge-patch+json" => Status::bad_request(why),
            _ => Status::bad_request(format!("error decoding patch: {why}")),
        }
    };
    let undecodable = |found: &str, wanted: &str| {
        Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
        ))
    };
    let object = || -> Result<Value, Status> {
        let value: Value = serde_json::from_slice(&call.body).map_err(bad)?;
        if value.is_object() {
            Ok(value)
        } else {
            Err(undecodable("array", "map[string]interface {}"))
        }
    };
    let operations = || -> Result<Patch, Status> {
        let value: Value = serde_json::from_slice(&call.body).map_err(bad)?;
        if value.is_object() {
            return Err(undecodable("object", "[]handlers.jsonPatchOp"));
        }
        // What makes no sense as an operation is refused like one that does not fit the object.
        serde_json::from_value(value)
            .map(Patch::Json)
            .map_err(|_| Status::bad_patch(PatchError::Rejected.to_string()))
    };
    match content_type(call) {
        "application/json-patch+json" => operations(),
        "application/merge-patch+json" => object().map(Patch::Merge),
        "application/strategic-merge-patch+json" => object().map(Patch::Strategic),
        _ => Err(Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
        )),
    }
}

fn remove(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let options = delete_options(call)?;
    let Target {
        kind,
        namespace,
        name,
        ..
    } = &call.target;
    let deleted = shared.with(|world| delete::delete(world, *kind, namespace, name, &options))?;
    let answer = deleted.to_value(*kind);
    Ok(shape::object(call, StatusCode::OK, &answer, shared.now()))
}

fn remove_all(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let options = delete_options(call)?;
    let chosen = list_options(call)?;
    let Target {
        kind, namespace, ..
    } = &call.target;
    let page = shared.with(|world| {
        let items = delete::delete_collection(world, *kind, namespace, &chosen, &options)?;
        Ok::<_, Status>(Page {
            items,
            resource_version: world.store.resource_version(),
            more: None,
        })
    })?;
    Ok(shape::list(call, &page, true, shared.now()))
}

/// The delete options of body and query; the query wins where both speak, as there.
fn delete_options(call: &Call) -> Result<DeleteOptions, Status> {
    let body: Value = if call.body.is_empty() {
        json!({})
    } else {
        body_json(call)?
    };
    let policy = call
        .query
        .get("propagationPolicy")
        .or_else(|| body["propagationPolicy"].as_str());
    if let Some(policy) = policy
        && !matches!(policy, "Foreground" | "Background" | "Orphan")
    {
        return Err(Status::bad_options(
            "DeleteOptions",
            &format!(
                "propagationPolicy: Unsupported value: \"{policy}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            ),
        ));
    }
    check_dry_run(call, "DeleteOptions")?;
    Ok(delete_options_of(call, &body))
}

/// Refuses a value of `dryRun` that nobody knows.
fn check_dry_run(call: &Call, options: &str) -> Result<(), Status> {
    match call.query.get("dryRun") {
        None | Some("" | "All") => Ok(()),
        Some(other) => Err(Status::bad_options(
            options,
            &format!("dryRun: Unsupported value: [\"{other}\"]: supported values: \"All\""),
        )),
    }
}

/// The JSON of a body, whatever it is.
pub fn body_json(call: &Call) -> Result<Value, Status> {
    parsed(content_type(call), &call.body)
}

/// The JSON of a body in one of the formats that are read; one without a media type is taken for JSON, as there.
fn parsed(media_type: &str, body: &[u8]) -> Result<Value, Status> {
    match media_type {
        protobuf::MEDIA_TYPE => protobuf::decode(body),
        "" | "application/json" | "*/*" | APPLY_TYPE => {
            serde_json::from_slice(body).map_err(|error| {
                Status::bad_request(format!(
                    "couldn't get version/kind; json parse error: {error}"
                ))
            })
        }
        _ => Err(Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// Delete options as `body` and the query give them.
pub fn delete_options_of(call: &Call, body: &Value) -> DeleteOptions {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let policy = call
        .query
        .get("propagationPolicy")
        .or_else(|| body["propagationPolicy"].as_str());
    let orphan = body["orphanDependents"].as_bool();
    let propagation = match (policy, orphan) {
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        _ => None,
    };
    DeleteOptions {
        grace_period_seconds: call
            .query
            .number("gracePeriodSeconds")
            .or_else(|| body["gracePeriodSeconds"].as_i64()),
        propagation,
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        dry_run: is_dry_run(call) || !body["dryRun"].as_array().is_none_or(Vec::is_empty),
    }
}

fn is_dry_run(call: &Call) -> bool {
    call.query.get("dryRun") == Some("All")
}

/// Field manager and dry run of a write.
pub fn write_options(call: &Call) -> WriteOptions {
    let agent = call
        .headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    // Without a field manager the first part of the user agent names it, as there.
    let from_agent = agent.split('/').next().unwrap_or_default();
    let manager = match call.query.get("fieldManager") {
        Some(manager) => manager,
        None if from_agent.is_empty() => "unknown",
        None => from_agent,
    };
    WriteOptions {
        manager: manager.to_owned(),
        dry_run: is_dry_run(call),
    }
}

/// The object of a body, decoded, and the warnings that its sender is to get.
fn body_object(call: &Call) -> Result<(Value, Vec<String>), Status> {
    let mut value = body_json(call)?;
    if !value.is_object() {
        return Err(Status::bad_request(
            "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct",
        ));
    }
    let validation = FieldValidation::parse(call.query.get("fieldValidation"))?;
    let warnings = typed::decode_body(call.target.kind, &mut value, validation)?;
    Ok((value, warnings))
}

/// Adds a warning header for each text.
fn warned(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    for text in warnings {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// A value as JSON text. Not through `Display`, which formats piece by piece and takes twice the time; answers are the
/// most frequent work of a run.
pub fn json_text(value: &Value) -> String {
    serde_json::to_string(value).expect("a JSON value has text keys only, so it can be written")
}

pub fn json_answer(code: StatusCode, body: &Value) -> Response<Body> {
    respond(code, json_text(body))
}

pub fn refusal(refused: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(refused.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_answer(code, &refused.to_value());
    if let Some(seconds) = refused.details.as_ref().and_then(|d| d.retry_after_seconds) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, http::HeaderValue::from(seconds));
    }
    response
}

/// An answer in plain text.
pub fn plain_text(text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/plain"),
    );
    response
}

fn respond(code: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}
