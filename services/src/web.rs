//! A web server with one page.

use std::process::ExitCode;

use acme_services::{NOT_FOUND_BODY, STOPPING, web};
use hyper::StatusCode;

use crate::stop::Stop;
use crate::{http, line};

/// Serves until asked to stop.
pub async fn run() -> ExitCode {
    let (mut stop, (listener, port)) = match (Stop::install(), crate::listen(web::PORT).await) {
        (Ok(stop), Ok(listening)) => (stop, listening),
        (Err(error), _) | (_, Err(error)) => {
            line::json("error", "cannot listen", &[("err", &error.to_string())]);
            return ExitCode::FAILURE;
        }
    };
    line::json("info", web::LISTENING, &[("addr", &format!(":{port}"))]);
    let page = |request: hyper::Request<hyper::body::Incoming>| async move {
        match request.uri().path() {
            web::ROOT => http::answer(StatusCode::OK, "text/plain", web::BODY),
            _ => http::answer(StatusCode::NOT_FOUND, "text/plain", NOT_FOUND_BODY),
        }
    };
    http::serve(listener, &mut stop, page, || {
        line::json("info", STOPPING, &[]);
    })
    .await;
    ExitCode::SUCCESS
}
