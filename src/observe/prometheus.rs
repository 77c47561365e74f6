//! Prometheus over HTTP: one query, one answer, whatever stands between us and the server.
//!
//! Nothing that is no plain number becomes one. Redirects are refused, so that neither a query's body nor a password
//! gets lost or goes astray on the way. No message holds a password.

mod reply;

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};

use crate::cluster::tls;
use crate::detect::promql::MAX_SAMPLE_AGE_S;
use crate::observe::prometheus::reply::{Sample, first_words};
use crate::record::observation::Answer;

/// A query hangs no longer than until the second reading after it.
const LIMIT: Duration = Duration::from_secs(4);
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// One number is some hundred bytes; a page of a login is some thousand.
const MAX_REPLY_BYTES: usize = 1 << 20;
/// Servers and what stands before them cut addresses off from 4 KB on; longer queries go in the body.
const MAX_ADDRESS_BYTES: usize = 2_000;

/// Where to ask, and as whom.
#[derive(Clone)]
pub struct Prometheus {
    client: Client,
    /// Ends in `api/v1/query`; holds no user and no password.
    query: Url,
    /// The same for messages: as given, without secrets.
    shown: String,
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prometheus({})", self.shown)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    // Not the text itself: it may hold a password.
    #[error("the address of Prometheus is no URL: {0}")]
    NotAUrl(String),
    #[error("the address of Prometheus begins with {0}: and not with http: or https:")]
    Scheme(String),
    #[error("the token for Prometheus holds characters that no header takes")]
    Token,
    #[error("there is both a password in the address of Prometheus and a token; give one of them")]
    TwoLogins,
    #[error("the certificates given for Prometheus cannot be used")]
    Certificates(#[source] reqwest::Error),
}

impl Prometheus {
    /// `address` may have a base path, and a user with a password; `token` is a bearer token; `authority` is the PEM text
    /// of authorities to trust beside the system's.
    ///
    /// # Errors
    /// An address, a token or certificates that cannot be used. Nothing is asked yet.
    pub fn new(
        address: &str,
        token: Option<&str>,
        authority: Option<&[u8]>,
    ) -> Result<Prometheus, PrometheusError> {
        tls::use_ring();
        let mut url = Url::parse(address.trim())
            .map_err(|error| PrometheusError::NotAUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(PrometheusError::Scheme(url.scheme().to_owned()));
        }
        let login = login(&url, token.filter(|token| !token.is_empty()))?;
        // They cannot fail for addresses with a host, which http demands.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        let shown = url.as_str().trim_end_matches('/').to_owned();
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{path}/api/v1/query"));
        Ok(Prometheus {
            client: client(login, authority)?,
            query: url,
            shown,
        })
    }

    /// The address without secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What Prometheus answers to `query` now.
    pub async fn ask(&self, query: &str) -> Answer {
        let sample = match self.one(query).await {
            Ok(sample) => sample,
            Err(answer) => return answer,
        };
        if sample.of_a_series {
            // Some servers know nothing of the limit that was asked for. The time in an answer is that of its
            // computing; only this tells a plain selector's own.
            let taken = self.one(&format!("timestamp({query})")).await;
            if let Ok(taken) = taken {
                let age_s = taken.at_s - taken.value;
                if age_s > MAX_SAMPLE_AGE_S as f64 {
                    return Answer::NoData(format!("the newest sample is {age_s:.0} s old"));
                }
            }
        }
        if sample.value.is_nan() {
            return Answer::NoData("the value is NaN".to_owned());
        }
        Answer::Number(sample.text)
    }

    async fn one(&self, query: &str) -> Result<Sample, Answer> {
        let failed =
            |reason: String| Answer::Failed(format!("Prometheus at {}: {reason}", self.shown));
        let lookback = format!("{MAX_SAMPLE_AGE_S}s");
        let parameters = [("query", query), ("lookback_delta", lookback.as_str())];
        let request = if query.len() > MAX_ADDRESS_BYTES {
            self.client.post(self.query.clone()).form(&parameters)
        } else {
            self.client.get(self.query.clone()).query(&parameters)
        };
        let response = request.send().await.map_err(|error| failed(told(error)))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(failed(redirected(&response)));
        }
        let kind = header(&response, &CONTENT_TYPE);
        let body = body(response).await.map_err(failed)?;
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(failed(format!(
                "it answered {status}: {}; put USER:PASSWORD@ before the host of its address, or set \
                 BREAKAGE_PROMETHEUS_TOKEN",
                first_words(&body)
            )));
        }
        reply::read(status.as_u16(), kind.as_deref(), &body).map_err(|answer| match answer {
            Answer::Failed(reason) => failed(reason),
            other => other,
        })
    }
}

/// The header that logs in, from the address or the token.
fn login(url: &Url, token: Option<&str>) -> Result<Option<HeaderValue>, PrometheusError> {
    let in_address = !url.username().is_empty() || url.password().is_some();
    let text = match (in_address, token) {
        (true, Some(_)) => return Err(PrometheusError::TwoLogins),
        (false, None) => return Ok(None),
        (false, Some(token)) => format!("Bearer {}", token.trim()),
        (true, None) => {
            let plain = |text: &str| percent_decoded(text);
            let user = plain(url.username());
            let password = plain(url.password().unwrap_or_default());
            let encoded = BASE64_STANDARD.encode([&user[..], b":", &password[..]].concat());
            format!("Basic {encoded}")
        }
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| PrometheusError::Token)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let coded = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| hex::decode(digits).ok());
        match coded {
            Some(byte) => {
                bytes.extend(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

fn client(login: Option<HeaderValue>, authority: Option<&[u8]>) -> Result<Client, PrometheusError> {
    let mut headers = HeaderMap::new();
    headers.extend(login.map(|login| (AUTHORIZATION, login)));
    let authorities = match authority {
        Some(pem) => {
            reqwest::Certificate::from_pem_bundle(pem).map_err(PrometheusError::Certificates)?
        }
        None => Vec::new(),
    };
    Client::builder()
        .default_headers(headers)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .timeout(LIMIT)
        .tls_certs_merge(authorities)
        .build()
        .map_err(PrometheusError::Certificates)
}

/// What became of a request, with its causes and without its address.
fn told(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", LIMIT.as_secs());
    }
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    if text.contains("certificate") {
        text.push_str("; --prometheus-ca-file FILE.pem names the authority to trust");
    }
    text
}

fn redirected(response: &Response) -> String {
    let to = header(response, &LOCATION)
        .and_then(|to| response.url().join(&to).ok())
        .map(|mut to| {
            let _ = to.set_username("");
            let _ = to.set_password(None);
            to.set_query(None);
            to.to_string()
        });
    format!(
        "it answered {} and sends to {}; give the address that it lives at",
        response.status(),
        to.as_deref().unwrap_or("nowhere")
    )
}

fn header(response: &Response, name: &reqwest::header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(told)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_REPLY_BYTES {
            return Err(format!("the answer is longer than {MAX_REPLY_BYTES} bytes"));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets_and_keeps_its_base_path() {
        for (address, shown, query) in [
            (
                "http://p:9090",
                "http://p:9090",
                "http://p:9090/api/v1/query",
            ),
            (
                "http://u:s3cret@p/prom/?t=s3cret",
                "http://p/prom",
                "http://p/prom/api/v1/query",
            ),
            (
                "https://p/a/b",
                "https://p/a/b",
                "https://p/a/b/api/v1/query",
            ),
        ] {
            let made = Prometheus::new(address, None, None).unwrap();
            assert_eq!((made.shown(), made.query.as_str()), (shown, query));
            assert!(!format!("{made:?}").contains("s3cret"));
        }
    }

    #[test]
    fn an_unusable_address_is_refused_without_being_repeated() {
        for address in ["p:s3cret", "ftp://u:s3cret@p", "http://u:s3cret@", "s3cret"] {
            let error = Prometheus::new(address, None, None).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let two = Prometheus::new("http://u:p@h", Some("t"), None).unwrap_err();
        assert!(matches!(two, PrometheusError::TwoLogins));
    }

    #[test]
    fn a_coded_password_is_sent_as_it_was_meant() {
        assert_eq!(percent_decoded("a%40b%2"), b"a@b%2");
    }
}
