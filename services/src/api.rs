//! The API: checks its environment, connects to its database, builds its index, answers HTTP.

mod index;
mod metrics;
mod store;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acme_services::{NOT_FOUND_BODY, STOPPING, VERSION, api};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::net::TcpListener;

use crate::api::index::Index;
use crate::api::metrics::Metrics;
use crate::api::store::Store;
use crate::http::{Answer, answer};
use crate::stop::Stop;
use crate::{http, line};

/// Why it ends before it is asked to: the line that it leaves.
struct Failure {
    msg: &'static str,
    field: &'static str,
    value: String,
}

impl Failure {
    fn new(msg: &'static str, field: &'static str, value: impl ToString) -> Failure {
        Failure {
            msg,
            field,
            value: value.to_string(),
        }
    }
}

/// Serves until asked to stop.
pub async fn run() -> ExitCode {
    line::json("info", api::STARTING, &[("version", VERSION)]);
    let mut stop = match Stop::install() {
        Ok(stop) => stop,
        Err(error) => {
            return fail(&Failure::new(
                "cannot install signal handlers",
                "err",
                error,
            ));
        }
    };
    let prepared = tokio::select! {
        prepared = prepare() => prepared,
        () = stop.requested() => {
            line::json("info", STOPPING, &[]);
            return ExitCode::SUCCESS;
        }
    };
    let (listener, service) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return fail(&failure),
    };
    let handle = move |request| service.clone().answer(request);
    http::serve(listener, &mut stop, handle, || {
        line::json("info", STOPPING, &[]);
    })
    .await;
    ExitCode::SUCCESS
}

fn fail(failure: &Failure) -> ExitCode {
    line::json("error", failure.msg, &[(failure.field, &failure.value)]);
    ExitCode::FAILURE
}

/// Everything that comes before the first request.
async fn prepare() -> Result<(TcpListener, Service), Failure> {
    if let Some(name) = api::REQUIRED
        .iter()
        .find(|name| crate::variable(name).is_none())
    {
        return Err(Failure::new(api::NOT_SET, "name", name));
    }
    let url = crate::variable(api::DATABASE_URL).unwrap_or_default();
    let store = Store::connect(&url)
        .await
        .map_err(|error| Failure::new(api::NO_DATABASE, "err", error))?;
    line::json("info", api::CONNECTED, &[]);
    let size = crate::setting(api::INDEX_MB);
    let index = tokio::task::spawn_blocking(move || {
        Index::build(size, |loaded| {
            line::json("info", api::LOADING, &[("loaded_mb", &loaded.to_string())]);
        })
    })
    .await
    .map_err(|error| Failure::new("cannot load case index", "err", error))?;
    tokio::time::sleep(Duration::from_millis(crate::setting(api::STARTUP_MS))).await;
    let (listener, port) = crate::listen(api::PORT)
        .await
        .map_err(|error| Failure::new("cannot listen", "err", error))?;
    line::json("info", api::LISTENING, &[("addr", &format!(":{port}"))]);
    let check = Duration::from_millis(crate::setting(api::INDEX_CHECK_MS));
    let namespace = crate::variable(api::NAMESPACE).unwrap_or_default();
    let service = Service {
        store: Arc::new(store),
        index: Arc::new(index),
        metrics: Arc::new(Metrics::new(&namespace)),
        check,
    };
    Ok((listener, service))
}

/// What answers requests.
#[derive(Clone)]
struct Service {
    store: Arc<Store>,
    index: Arc<Index>,
    metrics: Arc<Metrics>,
    /// Processor time of a health check.
    check: Duration,
}

impl Service {
    async fn answer(self, request: Request<Incoming>) -> Answer {
        let began = Instant::now();
        let method = request.method().as_str().to_owned();
        let (route, answer) = match request.uri().path() {
            api::HEALTH => (api::HEALTH, self.health().await),
            api::CASES => (api::CASES, self.cases().await),
            api::METRICS => (
                api::METRICS,
                answer(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics.text()),
            ),
            _ => (
                "",
                answer(StatusCode::NOT_FOUND, "text/plain", NOT_FOUND_BODY),
            ),
        };
        let status = answer.status().as_u16();
        self.metrics.count(&method, route, status, began.elapsed());
        answer
    }

    /// Healthy when the index can be verified. A check whose asker has gone is given up.
    async fn health(&self) -> Answer {
        let (index, check) = (self.index.clone(), self.check);
        let asker = Arc::new(());
        let asked = Arc::downgrade(&asker);
        let verified =
            tokio::task::spawn_blocking(move || index.verify(check, || asked.strong_count() > 0))
                .await;
        drop(asker);
        match verified {
            Ok(true) => answer(StatusCode::OK, "text/plain", api::HEALTH_BODY),
            _ => answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                "text/plain",
                "index is damaged\n",
            ),
        }
    }

    async fn cases(&self) -> Answer {
        match self.store.cases().await {
            Ok(body) => answer(StatusCode::OK, "application/json", body),
            Err(error) => {
                line::json("error", "database query failed", &[("err", &error)]);
                answer(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "application/json",
                    api::NO_CASES_BODY,
                )
            }
        }
    }
}
