//! The tower side of recording: a service around a service. Answers pass through untouched.

use std::error::Error;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full, Limited};
use kube::client::Body;
use serde_json::Value;
use tower::{Layer, Service};

use crate::gateway::record::Recorder;
use crate::gateway::request::ApiRequest;
use crate::gateway::{summary, tools};

/// An API server takes bodies up to 3 MiB and answers 413 above.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

type BoxError = Box<dyn Error + Send + Sync>;

/// Wraps `service` so that every request is entered in `recorder`.
pub fn layer<S>(service: S, recorder: Recorder) -> Recorded<S> {
    Recorded {
        inner: service,
        recorder,
    }
}

/// The same as a tower layer, for clients that are built from a stack.
#[derive(Clone)]
pub struct RecordLayer {
    recorder: Recorder,
}

impl RecordLayer {
    pub fn new(recorder: Recorder) -> RecordLayer {
        RecordLayer { recorder }
    }
}

impl<S> Layer<S> for RecordLayer {
    type Service = Recorded<S>;

    fn layer(&self, inner: S) -> Recorded<S> {
        layer(inner, self.recorder.clone())
    }
}

/// A service whose requests are recorded.
#[derive(Clone)]
pub struct Recorded<S> {
    inner: S,
    recorder: Recorder,
}

/// Either an answer of our own or the cluster's.
type Answer<B> = Response<Either<Full<Bytes>, B>>;

impl<S, B> Service<Request<Body>> for Recorded<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The service that was polled ready must be the one that is called; its clone waits for the next turn.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        Box::pin(record_and_pass(ready, self.recorder.clone(), request))
    }
}

async fn record_and_pass<S, B>(
    mut service: S,
    recorder: Recorder,
    request: Request<Body>,
) -> Result<Answer<B>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let asked = ApiRequest::parse(&head.method, head.uri.path(), head.uri.query());
    let Ok(collected) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
        return Ok(status(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            &format!("Request entity too large: limit is {MAX_BODY_BYTES}"),
        ));
    };
    let bytes = collected.to_bytes();
    let json: Option<Value> = serde_json::from_slice(&bytes).ok();
    let tool = tools::classify(&asked, &head.headers, json.as_ref());
    let words = summary::summarise(&asked, json.as_ref(), bytes.len());
    let Some(slot) = recorder.begin(&asked, tool, words) else {
        return Ok(status(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "Unauthorized",
        ));
    };
    let answer = match service
        .call(Request::from_parts(head, Body::from(bytes)))
        .await
    {
        Ok(answer) => answer,
        Err(error) => {
            let error: BoxError = error.into();
            recorder.fail(format!("{} {}: {error}", asked.verb, asked.full_resource()));
            return Err(error);
        }
    };
    recorder.finish(slot, answer.status().as_u16());
    let written = tool.tier > 1 && answer.status().is_success() && is_json(&answer);
    if !written {
        return Ok(answer.map(Either::Right));
    }
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes();
    if let Some(version) = version_of(&body) {
        recorder.saw(&asked.resource, version);
    }
    Ok(Response::from_parts(head, Either::Left(Full::from(body))))
}

fn is_json<B>(answer: &Response<B>) -> bool {
    let content_type = answer.headers().get(http::header::CONTENT_TYPE);
    content_type.is_some_and(|text| text.as_bytes().starts_with(b"application/json"))
}

/// The resource version of a written object, where it is a number.
fn version_of(body: &[u8]) -> Option<u64> {
    let object: Value = serde_json::from_slice(body).ok()?;
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// A refusal in the shape in which an API server refuses.
fn status<B>(code: StatusCode, reason: &str, message: &str) -> Answer<B> {
    let body = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    let mut response = Response::new(Either::Left(Full::from(body.to_string())));
    *response.status_mut() = code;
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}
