//! Requests to subresources: scale, log, eviction.

use std::sync::Arc;

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use crate::embedded::api::eviction;
use crate::embedded::api::handle::{self, Call};
use crate::embedded::api::read;
use crate::embedded::api::scale;
use crate::embedded::api::status::{self, Status};
use crate::embedded::api::write::{Part, text};
use crate::embedded::cluster::Shared;
use crate::embedded::kind::Kind;
use crate::embedded::kubelet::{self, LogRequest};
use crate::embedded::time::Time;

pub fn dispatch(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let kind = call.target.kind;
    match call.target.subresource.as_str() {
        "scale" if kind.has_scale() => scale(shared, call),
        "log" if kind == Kind::Pod && call.method == Method::GET => log(shared, call),
        "eviction" if kind == Kind::Pod && call.method == Method::POST => evict(shared, call),
        "log" | "eviction" if kind == Kind::Pod => Err(Status::method_not_allowed()),
        _ => Err(Status::no_such_path()),
    }
}

fn scale(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let place = handle::place(call, Part::Main);
    let options = handle::write_options(call);
    let answer = match call.method {
        Method::GET => shared.with(|world| scale::get(world, &place))?,
        Method::PUT => {
            let body = handle::body_json(call)?;
            shared.with(|world| scale::update(world, &place, &body, &options))?
        }
        Method::PATCH => {
            let patch = handle::body_patch(call)?;
            shared.with(|world| scale::patch(world, &place, &patch, &options))?
        }
        _ => return Err(Status::method_not_allowed()),
    };
    Ok(handle::json_answer(StatusCode::OK, &answer))
}

fn log(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let query = &call.query;
    let now = shared.now();
    let since_time = query
        .get("sinceTime")
        .and_then(Time::parse)
        .map(|since| now.since(since).as_secs());
    let request = LogRequest {
        container: query.get("container").map(str::to_owned),
        previous: query.is_true("previous"),
        tail_lines: query.number("tailLines"),
        since_seconds: query.number("sinceSeconds").or(since_time),
        timestamps: query.is_true("timestamps"),
        limit_bytes: query.number("limitBytes"),
    };
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let text = shared.with(|world| {
        read::get(world, Kind::Pod, namespace, name)?;
        kubelet::logs(world, namespace, name, &request).map_err(Status::bad_request)
    })?;
    Ok(handle::plain_text(text))
}

fn evict(shared: &Shared, call: &Call) -> Result<Response<Body>, Status> {
    let body: Value = handle::body_json(call)?;
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let given = text(&body["metadata"]["name"]);
    if !given.is_empty() && given != name {
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let options = handle::delete_options_of(call, &body["deleteOptions"]);
    shared.with(|world| eviction::evict(world, namespace, name, &options))?;
    let mut answer = status::success(None);
    answer["code"] = 201.into();
    Ok(handle::json_answer(StatusCode::CREATED, &answer))
}
