//! Serving HTTP until the request to stop, shared by the services that do.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use acme_services::DRAIN_MS;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;

use crate::stop::Stop;

/// An answer with a body in memory.
pub type Answer = Response<Full<Bytes>>;

/// An answer of a status, a content type and a body.
pub fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        hyper::header::CONTENT_TYPE,
        hyper::header::HeaderValue::from_static(content_type),
    );
    answer
}

/// Answers every request with `handle` until asked to stop; `stopping` is called then, and requests under way get
/// some seconds more.
pub async fn serve<H, F>(listener: TcpListener, stop: &mut Stop, handle: H, stopping: impl FnOnce())
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.requested() => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, most likely: better later than in a busy loop.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let handle = handle.clone();
        let service = service_fn(move |request| {
            let answer = handle(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        // A client that goes away in the middle is its own business.
        tokio::spawn(async move {
            let _ = connection.await;
        });
    }
    drop(listener);
    stopping();
    let _ = tokio::time::timeout(Duration::from_millis(DRAIN_MS), graceful.shutdown()).await;
}
