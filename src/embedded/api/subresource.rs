//! Requests to subresources: scale, log, eviction, and the streams that are refused.

use std::sync::Arc;

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use crate::embedded::api::eviction;
use crate::embedded::api::handle::{self, Call};
use crate::embedded::api::log;
use crate::embedded::api::read;
use crate::embedded::api::scale;
use crate::embedded::api::status::{self, Status};
use crate::embedded::api::write::{Part, text};
use crate::embedded::cluster::Shared;
use crate::embedded::kind::Kind;

pub fn dispatch(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let kind = call.target.kind;
    match call.target.subresource.as_str() {
        "scale" if kind.has_scale() => scale(shared, call),
        "log" if kind == Kind::Pod && call.method == Method::GET => log::answer(shared, call),
        "eviction" if kind == Kind::Pod && call.method == Method::POST => evict(shared, call),
        "log" | "eviction" if kind == Kind::Pod => Err(Status::method_not_allowed()),
        stream if kind == Kind::Pod && STREAMS.contains(&stream) => Err(no_stream(shared, call)),
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

/// What the kubelet's streams would be asked for.
const STREAMS: [&str; 3] = ["exec", "attach", "portforward"];

/// Streams into a pod are not served: a plain refusal, once the pod is known to be there.
fn no_stream(shared: &Shared, call: &Call) -> Status {
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let known = shared.with(|world| read::get(world, Kind::Pod, namespace, name).map(drop));
    known.err().unwrap_or_else(|| {
        let what = &call.target.subresource;
        Status::forbidden(
            Kind::Pod,
            name,
            &format!("{what} is turned off on this cluster"),
        )
    })
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
