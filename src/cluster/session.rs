//! A client's stack whose credentials are renewed where the server no longer takes them.
//!
//! Tokens run out in the middle of a run: they are rotated, an exec plugin's word on their end was wrong, a token file
//! was rewritten. The first 401 therefore has the kubeconfig read again and the request sent once more, ours as well as
//! an agent's, whose world the credentials are no part of. A second 401 stands.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use kube::client::{AuthError, Body};
use tokio::sync::Mutex;
use tower::BoxError;

use crate::cluster::kubeconfig::{Chosen, KubeconfigProblem};

/// The stack in use and how to make the next one. Clones share it.
#[derive(Clone)]
pub struct Session {
    /// Where credentials come from; nothing for a stack that is given whole.
    chosen: Option<Arc<Chosen>>,
    current: Arc<Mutex<Stack>>,
}

#[derive(Clone)]
struct Stack {
    client: kube::Client,
    /// Counted up with every renewal, so that requests which were refused together renew once.
    generation: u64,
}

impl Session {
    /// Reads credentials, which may run an exec plugin; nothing is asked of the server. Must be called inside the runtime
    /// that will use it.
    pub fn open(chosen: Chosen) -> Result<Session, KubeconfigProblem> {
        let client = client(&chosen)?;
        Ok(Session {
            chosen: Some(Arc::new(chosen)),
            ..Session::over(client)
        })
    }

    /// Over a stack whose credentials are as they are.
    pub fn over(client: kube::Client) -> Session {
        Session {
            chosen: None,
            current: Arc::new(Mutex::new(Stack {
                client,
                generation: 0,
            })),
        }
    }

    /// Sends a request, a second time with new credentials where the server does not take those at hand.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let spare = copy(&request);
        let stack = self.current.lock().await.clone();
        let answer = sent(&stack.client, request).await?;
        let Some(spare) = spare.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(answer);
        };
        match self.renewed(stack.generation).await? {
            Some(client) => sent(&client, spare).await,
            None => Ok(answer),
        }
    }

    /// A stack with credentials that are read anew. Nothing where the context leads to another server by now: a run
    /// never goes on elsewhere.
    async fn renewed(&self, refused: u64) -> Result<Option<kube::Client>, KubeconfigProblem> {
        let Some(first) = &self.chosen else {
            return Ok(None);
        };
        let mut current = self.current.lock().await;
        if current.generation == refused {
            let chosen = Chosen::find(&first.context, first.kubeconfig.as_deref()).await?;
            if chosen.config.cluster_url != first.config.cluster_url {
                return Ok(None);
            }
            *current = Stack {
                client: client(&chosen)?,
                generation: refused + 1,
            };
        }
        Ok(Some(current.client.clone()))
    }
}

fn client(chosen: &Chosen) -> Result<kube::Client, KubeconfigProblem> {
    let mut config = chosen.config.clone();
    // One limit for a whole request, of whoever holds the session, instead of three for its parts.
    (config.connect_timeout, config.write_timeout) = (None, None);
    // Whoever asks must see what the server answered, and an agent's request is made once.
    config.default_retry = false;
    kube::Client::try_from(config).map_err(|source| match source {
        kube::Error::Auth(AuthError::AuthExecRun { out, .. }) => KubeconfigProblem::Plugin {
            context: chosen.context.clone(),
            status: out.status.to_string(),
            told: told(&out.stderr),
        },
        source => KubeconfigProblem::Client {
            context: chosen.context.clone(),
            source: Box::new(source),
        },
    })
}

/// What a plugin said on stderr. Its stdout is left out: it is where a token would stand.
fn told(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr).trim().to_owned();
    if text.is_empty() {
        "it said nothing that was caught".to_owned()
    } else {
        text
    }
}

async fn sent(client: &kube::Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    client.send(request).await.map_err(|error| match error {
        kube::Error::Service(inner) => match inner.downcast::<AuthError>() {
            Ok(auth) => without_output(*auth),
            Err(other) => other,
        },
        error => error.into(),
    })
}

/// The library's message for a failed plugin shows its stdout too.
fn without_output(error: AuthError) -> BoxError {
    match error {
        AuthError::AuthExecRun { out, .. } => BoxError::from(format!(
            "the credential plugin of the kubeconfig ended with {}: {}",
            out.status,
            told(&out.stderr)
        )),
        other => other.into(),
    }
}

/// A request that can be sent later; nothing where its body is a stream.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    // Extensions too: what a connection upgrade is asked with.
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
