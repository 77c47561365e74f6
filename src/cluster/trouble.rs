//! Why a cluster cannot be connected to, told apart: nobody there, another cluster there, a certificate out of date, a
//! clock that is wrong, a credential that is not taken, a plugin that gives none. With dates, and what to do.
//!
//! Certificates are valid by the wall's clock, so this is one of the few places that compare with it.

use std::error::Error as StdError;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::client::AuthError;
use rustls::{AlertDescription, CertificateError};
use x509_cert::Certificate;

use crate::cluster::ClusterError;
use crate::cluster::kubeconfig::KubeconfigProblem;

/// Clocks that differ by less give no trouble: certificates and tokens have some slack.
pub const CLOCK_SLACK_S: i64 = 60;
/// How long the server may take to tell its time to a client that it does not know.
const DATE_LIMIT: Duration = Duration::from_secs(10);

/// What is wrong, in a sentence, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub what: String,
    pub todo: Vec<String>,
}

impl Trouble {
    fn new(what: impl Into<String>, todo: &[&str]) -> Trouble {
        Trouble {
            what: what.into(),
            todo: todo.iter().map(|&text| text.to_owned()).collect(),
        }
    }
}

/// What a failed connection comes from; nothing where the error says it best itself. `now` is this machine's time.
pub async fn told(error: &ClusterError, config: &kube::Config, now: Timestamp) -> Option<Trouble> {
    if let Some(trouble) = of_chain(error, config, now) {
        return Some(trouble);
    }
    match error {
        ClusterError::Api { code: 401, .. } => {
            Some(not_taken(config, now, servers_date(config).await))
        }
        ClusterError::Kubeconfig(KubeconfigProblem::Plugin { status, told, .. }) => {
            Some(Trouble::new(
                format!("the credential plugin of the kubeconfig failed ({status}): {told}"),
                &["log in again with it, then give the command again"],
            ))
        }
        _ => None,
    }
}

/// Looks through an error and its causes for one that tells what is wrong.
fn of_chain(error: &ClusterError, config: &kube::Config, now: Timestamp) -> Option<Trouble> {
    let server = server(config);
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(one) = cause {
        if let Some(error) = one.downcast_ref::<AuthError>() {
            return Some(of_plugin(error));
        }
        if let Some(error) = one.downcast_ref::<rustls::Error>() {
            return of_tls(error, config, now);
        }
        if let Some(error) = one.downcast_ref::<std::io::Error>() {
            if error.kind() == std::io::ErrorKind::ConnectionRefused {
                return Some(Trouble::new(
                    format!("nobody listens at {server}"),
                    &[
                        "start the cluster; a local one may have another port after a restart: write its kubeconfig again",
                    ],
                ));
            }
            // An io::Error hides what it was made of from `source`.
            if let Some(inner) = error.get_ref() {
                cause = Some(inner);
                continue;
            }
        }
        if one.to_string() == "dns error" {
            return Some(Trouble::new(
                format!("the name of {server} cannot be resolved"),
                &[
                    "look at the server's address in the kubeconfig, and at this machine's DNS or VPN",
                ],
            ));
        }
        cause = one.source();
    }
    None
}

fn server(config: &kube::Config) -> String {
    let url = config.cluster_url.to_string();
    url.trim_end_matches('/').to_owned()
}

fn of_tls(error: &rustls::Error, config: &kube::Config, now: Timestamp) -> Option<Trouble> {
    let server = server(config);
    let rustls::Error::InvalidCertificate(problem) = error else {
        return match error {
            rustls::Error::AlertReceived(
                AlertDescription::CertificateExpired
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired,
            ) => Some(not_taken(config, now, None)),
            rustls::Error::InvalidMessage(_) => Some(Trouble::new(
                format!("what listens at {server} does not speak TLS"),
                &["look at the server's address and port in the kubeconfig"],
            )),
            _ => None,
        };
    };
    let at = |time: &rustls::pki_types::UnixTime| shown(unix(time.as_secs()));
    Some(match problem {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Trouble::new(
            format!(
                "another cluster answers at {server}: its certificate is not of the authority that the kubeconfig names"
            ),
            &[
                "write the kubeconfig again from the cluster that is meant; the address may be another one's by now",
            ],
        ),
        CertificateError::ExpiredContext { time, not_after } => Trouble::new(
            format!(
                "the certificate of {server} expired on {}; this machine's clock says {}",
                at(not_after),
                at(time)
            ),
            &["renew the server's certificate, or set this machine's clock if it is wrong"],
        ),
        CertificateError::NotValidYetContext { time, not_before } => Trouble::new(
            format!(
                "the certificate of {server} is valid from {} only, and this machine's clock says {}",
                at(not_before),
                at(time)
            ),
            &["set the clock of this machine, or of the one that issued the certificate"],
        ),
        CertificateError::NotValidForNameContext { presented, .. } => Trouble::new(
            format!(
                "the certificate of {server} is for other names: {}",
                presented.join(", ")
            ),
            &[
                "use one of these names as the server's address, or set tls-server-name in the kubeconfig",
            ],
        ),
        _ => return None,
    })
}

fn of_plugin(error: &AuthError) -> Trouble {
    match error {
        AuthError::AuthExecStart(error) => Trouble::new(
            format!("the credential plugin of the kubeconfig cannot be started: {error}"),
            &["install the program that the user's exec entry names, or put it on PATH"],
        ),
        AuthError::AuthExecRun { out, .. } => {
            // Its stdout may hold a token, and so may its arguments: neither is shown.
            let said = String::from_utf8_lossy(&out.stderr);
            let said = match said.trim() {
                "" => "it said nothing",
                said => said,
            };
            Trouble::new(
                format!(
                    "the credential plugin of the kubeconfig failed ({}): {said}",
                    out.status
                ),
                &["log in again with it, then give the command again"],
            )
        }
        AuthError::ReadTokenFile(error, path) => Trouble::new(
            format!("the token file {} cannot be read: {error}", path.display()),
            &["look at tokenFile in the kubeconfig"],
        ),
        _ => Trouble::new(
            "the kubeconfig's user gives no credential",
            &["look at the user's entry in the kubeconfig"],
        ),
    }
}

/// A credential that the server does not take: out of date by one of the two clocks, or not known there.
fn not_taken(config: &kube::Config, now: Timestamp, servers: Option<Timestamp>) -> Trouble {
    let server = server(config);
    let skew = servers.and_then(|servers| skew(now, servers));
    let then = servers.unwrap_or(now);
    if let Some((from, until)) = client_certificate(config) {
        let dates = format!("valid from {} to {}", shown(from), shown(until));
        if then > until && now > until {
            return Trouble::new(
                format!("the client certificate of the kubeconfig has expired: it was {dates}"),
                &[
                    "get a new kubeconfig from the cluster (k3d kubeconfig get, kubeadm certs renew, or its operator)",
                ],
            );
        }
        if then < from && now < from {
            return Trouble::new(
                format!("the client certificate of the kubeconfig is not valid yet: it is {dates}"),
                &["set the clock of this machine and of the server, or get a new kubeconfig"],
            );
        }
        if then > until || then < from {
            return Trouble::new(
                format!(
                    "by the server's clock ({}) the client certificate is out of date: it is {dates}; this machine's clock says {}",
                    shown(then),
                    shown(now)
                ),
                &["set the clock that is wrong"],
            );
        }
    }
    if let Some(skew) = skew {
        return Trouble::new(
            format!("{server} does not take the credential, and {skew}"),
            &["set the clock that is wrong: tokens and certificates are only valid for a time"],
        );
    }
    let user = &config.auth_info;
    let todo = if user.exec.is_some() {
        "the token of the credential plugin has expired or is not known there: log in again with the plugin"
    } else if user.token.is_some() || user.token_file.is_some() {
        "the token has expired or is not known there: get a new one (kubectl create token)"
    } else if client_certificate(config).is_some() {
        "the client certificate is of another cluster: get the kubeconfig of this one"
    } else {
        "the kubeconfig's user has no credential: give it one"
    };
    Trouble::new(
        format!("{server} does not take the credential of the kubeconfig"),
        &[todo],
    )
}

/// How far two clocks are apart, where it matters.
pub fn skew(now: Timestamp, servers: Timestamp) -> Option<String> {
    let apart = servers.as_second() - now.as_second();
    let how = match apart {
        ahead if ahead > CLOCK_SLACK_S => "ahead of",
        behind if behind < -CLOCK_SLACK_S => "behind",
        _ => return None,
    };
    Some(format!(
        "the server's clock ({}) is {} s {how} this machine's ({})",
        shown(servers),
        apart.abs(),
        shown(now)
    ))
}

/// From when to when the client certificate is valid.
fn client_certificate(config: &kube::Config) -> Option<(Timestamp, Timestamp)> {
    let user = &config.auth_info;
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => STANDARD.decode(data).ok()?,
        (None, Some(path)) => std::fs::read(path).ok()?,
        (None, None) => return None,
    };
    let chain = Certificate::load_pem_chain(&pem).ok()?;
    let validity = chain.first()?.tbs_certificate().validity();
    let time = |time: x509_cert::time::Time| unix(time.to_unix_duration().as_secs());
    Some((time(validity.not_before), time(validity.not_after)))
}

/// What the server's clock says, asked without a credential; any answer carries it.
async fn servers_date(config: &kube::Config) -> Option<Timestamp> {
    let mut config = config.clone();
    config.auth_info = kube::config::AuthInfo::default();
    let client = kube::Client::try_from(config).ok()?;
    let request = http::Request::get("/version")
        .body(kube::client::Body::empty())
        .ok()?;
    let answer = tokio::time::timeout(DATE_LIMIT, client.send(request)).await;
    let answer = answer.ok()?.ok()?;
    let date = answer.headers().get(http::header::DATE)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(date)
        .ok()
        .map(|date| date.timestamp())
}

fn unix(seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// To the second.
fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
