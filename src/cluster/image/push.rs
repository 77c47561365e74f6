//! The image into a registry, without an engine: plain HTTP or TLS, one layer, read back at the end.

use std::error::Error;
use std::time::Duration;

use http::HeaderValue;
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::{Client, RegistryOperation};

use crate::cluster::image::login::Login;
use crate::cluster::image::name::Reference;
use crate::cluster::image::pack::{Blob, Packed};
use crate::cluster::tls;

/// A registry on a lab's network answers in milliseconds; a name that leads nowhere should not hold anybody up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two pieces of an answer; registries that store in a bucket take some seconds to say yes.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Characters of a server's own words in a message.
const MAX_WORDS: usize = 300;

/// How to reach a registry.
#[derive(Clone, Debug)]
pub struct Way {
    /// Without TLS.
    pub plain_http: bool,
    /// PEM text of an authority to trust beside the system's.
    pub authority: Option<Vec<u8>>,
    pub login: Login,
}

#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("the registry {registry} cannot be reached over {}", if *plain_http { "plain HTTP" } else { "TLS" })]
    Unreachable {
        registry: String,
        plain_http: bool,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("the registry {registry} wants a login that may push {repository}{said}")]
    Login {
        registry: String,
        repository: String,
        /// The registry's own words after a colon, or nothing.
        said: String,
    },
    #[error("the registry {registry} did not take {repository}: {said}")]
    Refused {
        registry: String,
        repository: String,
        said: String,
    },
    #[error("{name} is {found} after the push and not {expected}")]
    Differs {
        name: String,
        found: String,
        expected: String,
    },
    #[error("the certificates given for the registry cannot be used")]
    Certificates(#[source] Box<dyn Error + Send + Sync>),
}

impl PushError {
    /// What to type next, where that can be told.
    pub fn next_step(&self) -> Option<String> {
        match self {
            PushError::Unreachable {
                plain_http, source, ..
            } => {
                let said = chain(source.as_ref());
                if said.contains("InvalidContentType") {
                    Some("it does not answer in TLS: add --plain-http".to_owned())
                } else if said.contains("certificate") {
                    Some("--ca-file FILE.pem names the authority of its certificate".to_owned())
                } else {
                    plain_http.then(|| {
                        "is it running, and without TLS? --plain-http=false uses TLS".to_owned()
                    })
                }
            }
            PushError::Login { registry, .. } => Some(format!(
                "`docker login {registry}`, or --username NAME with the password in BREAKAGE_REGISTRY_PASSWORD or by \
                 --password-stdin"
            )),
            PushError::Refused { said, .. } if said.contains("HTTPS server") => {
                Some("it speaks TLS: add --plain-http=false".to_owned())
            }
            PushError::Differs { .. } => {
                Some("somebody else pushes to this name: use another tag".to_owned())
            }
            _ => None,
        }
    }
}

/// Pushes `packed` under `name` and reads back what the name then stands for. `done` is told the bytes of every part
/// that is there.
///
/// # Errors
/// A registry that cannot be reached, refuses, or holds something else under the name afterwards.
pub async fn push(
    packed: &Packed,
    name: &Reference,
    way: &Way,
    done: &mut (dyn FnMut(u64) + Send),
) -> Result<(), PushError> {
    let to = Push {
        client: client(way)?,
        name,
        plain_http: way.plain_http,
    };
    let login = way.login.for_client();
    // Asks for a token where the registry uses them; a wrong password shows here.
    to.client
        .auth(name, &login, RegistryOperation::Push)
        .await
        .map_err(|error| to.failed(error))?;
    for blob in [&packed.layer, &packed.config] {
        to.blob(blob).await?;
        done(blob.size_bytes());
    }
    let manifest = &packed.manifest;
    let kind = HeaderValue::from_str(manifest.media_type.as_ref())
        .expect("a media type is printable ASCII");
    to.client
        .push_manifest_raw(name, manifest.bytes.clone(), kind)
        .await
        .map_err(|error| to.failed(error))?;
    done(manifest.size_bytes());
    let found = to
        .client
        .fetch_manifest_digest(name, &login)
        .await
        .map_err(|error| to.failed(error))?;
    if found != packed.digest() {
        return Err(PushError::Differs {
            name: name.whole(),
            found,
            expected: packed.digest().to_owned(),
        });
    }
    Ok(())
}

struct Push<'a> {
    client: Client,
    name: &'a Reference,
    plain_http: bool,
}

impl Push<'_> {
    /// Leaves alone what is there already.
    async fn blob(&self, blob: &Blob) -> Result<(), PushError> {
        // Some registries refuse this question to those who may only push; the push itself then decides.
        if matches!(
            self.client.blob_exists(self.name, &blob.digest).await,
            Ok(true)
        ) {
            return Ok(());
        }
        self.client
            .push_blob(self.name, blob.bytes.clone(), &blob.digest)
            .await
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: OciDistributionError) -> PushError {
        let registry = self.name.registry().to_owned();
        let repository = self.name.repository().to_owned();
        let said = match error {
            OciDistributionError::RequestError(source) => {
                return PushError::Unreachable {
                    registry,
                    plain_http: self.plain_http,
                    // Without the address: that of an upload carries the session's key.
                    source: Box::new(source.without_url()),
                };
            }
            // An answer to a part of a push comes with its number only.
            OciDistributionError::ServerError {
                code: 401 | 403, ..
            }
            | OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_) => {
                let said = String::new();
                return PushError::Login {
                    registry,
                    repository,
                    said,
                };
            }
            OciDistributionError::RegistryError { envelope, .. } => {
                let words: Vec<&str> = envelope.errors.iter().map(|e| e.message.as_str()).collect();
                let words = short(&words.join("; "));
                let denied = |code: &OciErrorCode| {
                    matches!(code, OciErrorCode::Unauthorized | OciErrorCode::Denied)
                };
                if envelope.errors.iter().any(|error| denied(&error.code)) {
                    let said = format!(": {words}");
                    return PushError::Login {
                        registry,
                        repository,
                        said,
                    };
                }
                words
            }
            OciDistributionError::ServerError { code, message, .. } => {
                format!("it answered {code}: {}", short(&message))
            }
            other => short(&other.to_string()),
        };
        PushError::Refused {
            registry,
            repository,
            said,
        }
    }
}

fn client(way: &Way) -> Result<Client, PushError> {
    tls::use_ring();
    let authority = way.authority.iter().map(|pem| Certificate {
        encoding: CertificateEncoding::Pem,
        data: pem.clone(),
    });
    let config = ClientConfig {
        protocol: if way.plain_http {
            ClientProtocol::Http
        } else {
            ClientProtocol::Https
        },
        extra_root_certificates: authority.collect(),
        connect_timeout: Some(CONNECT_TIMEOUT),
        read_timeout: Some(READ_TIMEOUT),
        // Two requests for a part, which every registry knows; pieces of an upload not all of them do.
        use_monolithic_push: true,
        user_agent: concat!("breakage/", env!("CARGO_PKG_VERSION")),
        ..ClientConfig::default()
    };
    Client::try_from(config).map_err(|error| PushError::Certificates(Box::new(error)))
}

/// An error and its causes in one line, as told and as written for debugging: causes in TLS are told by their type.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut said = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        said.push_str(&format!("{error} {error:?} "));
        next = error.source();
    }
    said
}

/// A server's words as one short line that moves no cursor.
fn short(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars()
        .filter(|c| !c.is_control())
        .take(MAX_WORDS)
        .collect()
}
