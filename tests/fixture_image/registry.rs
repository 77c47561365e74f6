//! A small registry in this process: as much of the distribution protocol as a push and a pull need.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

#[derive(Default)]
pub struct Held {
    pub blobs: BTreeMap<String, Bytes>,
    /// By repository and tag.
    pub manifests: BTreeMap<(String, String), (String, Bytes)>,
    pub requests: Vec<String>,
    /// The header that pushes must carry.
    pub wants: Option<String>,
    /// What the registry claims to hold instead of what it was given.
    pub claims: Option<String>,
}

pub struct Registry {
    pub address: SocketAddr,
    pub held: Arc<Mutex<Held>>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Registry {
    pub fn start(held: Held) -> Registry {
        let held = Arc::new(Mutex::new(held));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let router = Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(held.clone());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let serving = hyper_serve(listener, router);
                tokio::select! { () = serving => {}, _ = stopped => {} }
            });
        });
        Registry {
            address: told.recv().unwrap(),
            held,
            _stop: stop,
        }
    }
}

async fn hyper_serve(listener: tokio::net::TcpListener, router: Router) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(socket);
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(io, service)
                .await;
        });
    }
}

async fn answer(
    State(held): State<Arc<Mutex<Held>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut held = held.lock().unwrap();
    held.requests.push(format!("{method} {}", uri.path()));
    let given = headers
        .get(header::AUTHORIZATION)
        .map(|h| h.to_str().unwrap().to_owned());
    if held.wants.is_some() && held.wants != given {
        let body = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"registry\"")];
        return (StatusCode::UNAUTHORIZED, challenge, body).into_response();
    }
    let Some(path) = uri.path().strip_prefix("/v2/") else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if path.is_empty() {
        return StatusCode::OK.into_response();
    }
    if let Some((name, reference)) = path.split_once("/manifests/") {
        return manifest(&mut held, &method, name, reference, &headers, body);
    }
    match path.split_once("/blobs/") {
        Some((name, "uploads/")) => {
            let location = format!("/v2/{name}/blobs/uploads/1?state=secret-session");
            (StatusCode::ACCEPTED, [(header::LOCATION, location)]).into_response()
        }
        Some((name, upload)) if upload.starts_with("uploads/") => {
            let digest = digest_of(&body);
            let asked = uri.query().unwrap_or_default().replace("%3A", ":");
            if !asked.contains(&format!("digest={digest}")) || !asked.contains("secret-session") {
                return StatusCode::BAD_REQUEST.into_response();
            }
            let location = format!("/v2/{name}/blobs/{digest}");
            held.blobs.insert(digest, body);
            (StatusCode::CREATED, [(header::LOCATION, location)]).into_response()
        }
        Some((_, digest)) if held.blobs.contains_key(digest) => StatusCode::OK.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn manifest(
    held: &mut Held,
    method: &Method,
    name: &str,
    tag: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    let key = (name.to_owned(), tag.to_owned());
    if method == Method::PUT {
        let kind = headers[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let location = format!("/v2/{name}/manifests/{}", digest_of(&body));
        held.manifests.insert(key, (kind, body));
        return (StatusCode::CREATED, [(header::LOCATION, location)]).into_response();
    }
    let Some((kind, body)) = held.manifests.get(&key) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let digest = held.claims.clone().unwrap_or_else(|| digest_of(body));
    let headers = [
        ("content-type", kind.as_str()),
        ("docker-content-digest", &digest),
    ];
    (headers, body.clone()).into_response()
}

pub fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
