//! The cluster's router over plain HTTP/1.1 on a socket, for clients of other processes.
//!
//! It accepts, bounds and ends connections, and never looks into what goes over them. There is no authentication, so
//! an address that other machines can reach is refused unless the caller says that it is meant.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use futures::StreamExt;
use http::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

/// Connections at a time; more wait to be accepted. A client keeps some dozens at most, and every one costs memory.
const MAX_CONNECTIONS: usize = 512;
/// Bytes of a request's line and headers: the limit of the real server.
const MAX_HEADER_BYTES: usize = 1024 * 1024;
/// Pause after a connection that could not be accepted, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address that is not served.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error(
        "{address} can be reached from other machines, and this server lets everybody do everything: it has no authentication"
    )]
    Remote { address: SocketAddr },
    #[error("{address} cannot be listened on")]
    Bind {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
}

/// Times on tokio's clock. Whoever runs that clock faster than the wall's gives longer ones: what they bound are the
/// clients' delays in real time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a client may take to send the head of its next request; an idle connection is closed after it too.
    pub head: Duration,
    /// How long answers under way may take to be read once the server is to end.
    pub farewell: Duration,
}

impl Limits {
    /// As an API server has them, at the pace of the wall's clock.
    pub const REAL: Limits = Limits {
        head: Duration::from_secs(60),
        farewell: Duration::from_secs(2),
    };

    /// The same in wall time where tokio's clock runs `factor` times as fast.
    pub fn at_factor(factor: u32) -> Limits {
        Limits {
            head: Limits::REAL.head * factor,
            farewell: Limits::REAL.farewell * factor,
        }
    }
}

/// Listens on an address: a loopback one, unless `allow_remote`. Port 0 takes a free one.
pub async fn bind(address: SocketAddr, allow_remote: bool) -> Result<TcpListener, ServeError> {
    if !address.ip().is_loopback() && !allow_remote {
        return Err(ServeError::Remote { address });
    }
    TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Bind { address, source })
}

/// Serves until `stop` is done; then watches end, answers under way are finished, and whoever does not read them in
/// time is cut off.
pub async fn serve(
    router: Router,
    listener: TcpListener,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (closing, closed) = watch::channel(false);
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accept(&listener, &slots) => match accepted {
                Some((stream, slot)) => {
                    let one = connection(router.clone(), stream, limits, closed.clone(), slot);
                    connections.spawn(one);
                }
                None => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    closing.send_replace(true);
    let rest = async { while connections.join_next().await.is_some() {} };
    // Past the time, what is left is dropped with the set.
    let _ = timeout(limits.farewell, rest).await;
}

/// The next connection once there is room for one; nothing when the system gave none.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    let (stream, _) = listener.accept().await.ok()?;
    Some((stream, slot))
}

/// One connection to its end. What goes wrong on it concerns its client alone.
async fn connection(
    router: Router,
    stream: TcpStream,
    limits: Limits,
    mut closed: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
) {
    // Events of a watch are small and must not wait for more.
    let _ = stream.set_nodelay(true);
    let end = closed.clone();
    let service = router
        .map_request(|request: Request<hyper::body::Incoming>| request.map(Body::new))
        .map_response(move |response| ending(response, end));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closed.wait_for(|closed| *closed) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// An answer of unknown length ends when the server does, as if it had come to its own end.
fn ending(response: Response<Body>, mut closed: watch::Receiver<bool>) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let end = async move {
        let _ = closed.wait_for(|closed| *closed).await;
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
}
