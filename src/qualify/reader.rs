//! The agent that reads everything there is to read: every object of every served kind, every log, every header.
//!
//! It uses the desk of an ordinary agent, so that what it finds is what any agent can find. The description of the API
//! itself (OpenAPI) is left out: it is Kubernetes' own and the same for every scenario.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::LocalBoxFuture;
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{Agent, AgentError, Desk};
use crate::qualify::repairer::gave_up;

/// Events of the fault and logs of a second start are there by then.
const READ_AFTER: Duration = Duration::from_secs(60);
/// Paths that name no object.
const PLAIN_PATHS: &[&str] = &["/version", "/healthz", "/livez", "/readyz", "/api", "/apis"];

/// What was read. Kept are the numbers alone.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Reading {
    #[serde(skip)]
    pub items: Vec<Item>,
    pub objects: usize,
    pub events: usize,
    pub logs: usize,
}

/// One text and where it stands.
#[derive(Debug)]
pub struct Item {
    pub place: String,
    pub text: String,
}

/// See the module.
pub struct Reader {
    into: Arc<Mutex<Reading>>,
}

impl Reader {
    /// Puts what it reads into `into`.
    pub fn into(into: Arc<Mutex<Reading>>) -> Reader {
        Reader { into }
    }
}

impl Agent for Reader {
    fn name(&self) -> &str {
        "reader"
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let into = self.into.clone();
        Box::pin(async move {
            tokio::time::sleep(READ_AFTER).await;
            let mut reading = Reading::default();
            let task = serde_json::to_string(&desk.task).map_err(gave_up)?;
            reading.add("the task".to_owned(), task);
            read_everything(&desk.client, &mut reading).await?;
            *into.lock().unwrap_or_else(PoisonError::into_inner) = reading;
            Ok(())
        })
    }
}

impl Reading {
    fn add(&mut self, place: String, text: String) {
        self.items.push(Item { place, text });
    }
}

async fn read_everything(client: &kube::Client, reading: &mut Reading) -> Result<(), AgentError> {
    for path in PLAIN_PATHS {
        let text = get(client, path, reading).await?;
        reading.add((*path).to_owned(), text);
    }
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = get_json(client, "/apis", reading).await?;
    for group in list(&groups["groups"]) {
        for version in list(&group["versions"]) {
            let name = version["groupVersion"].as_str().unwrap_or_default();
            versions.push(format!("/apis/{name}"));
        }
    }
    for version in versions {
        let resources = get_json(client, &version, reading).await?;
        for resource in list(&resources["resources"]) {
            let name = resource["name"].as_str().unwrap_or_default();
            let can_list = list(&resource["verbs"]).any(|verb| verb == "list");
            if can_list && !name.contains('/') {
                read_list(client, &format!("{version}/{name}"), resource, reading).await?;
            }
        }
    }
    Ok(())
}

async fn read_list(
    client: &kube::Client,
    path: &str,
    resource: &Value,
    reading: &mut Reading,
) -> Result<(), AgentError> {
    let kind = resource["kind"].as_str().unwrap_or_default();
    let found = get_json(client, path, reading).await?;
    for object in list(&found["items"]) {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        let place = format!("{kind} {}/{}", text("namespace"), text("name"));
        reading.objects += 1;
        reading.events += usize::from(kind == "Event");
        reading.add(place, plain(kind, object));
        if kind == "Pod" && path.starts_with("/api/v1/") {
            read_logs(client, object, reading).await?;
        }
    }
    Ok(())
}

/// The object as text, with the data of Secrets as anyone can decode it.
fn plain(kind: &str, object: &Value) -> String {
    if kind != "Secret" {
        return object.to_string();
    }
    let mut object = object.clone();
    if let Some(data) = object["data"].as_object_mut() {
        for value in data.values_mut() {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            if let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                *value = text.into();
            }
        }
    }
    object.to_string()
}

async fn read_logs(
    client: &kube::Client,
    pod: &Value,
    reading: &mut Reading,
) -> Result<(), AgentError> {
    let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let spec = &pod["spec"];
    for container in list(&spec["initContainers"]).chain(list(&spec["containers"])) {
        let container = container["name"].as_str().unwrap_or_default();
        for previous in ["", "&previous=true"] {
            let path = format!(
                "/api/v1/namespaces/{namespace}/pods/{name}/log?container={container}{previous}"
            );
            let log = get(client, &path, reading).await?;
            reading.logs += 1;
            reading.add(format!("log of {namespace}/{name} {container}"), log);
        }
    }
    Ok(())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

async fn get_json(
    client: &kube::Client,
    path: &str,
    reading: &mut Reading,
) -> Result<Value, AgentError> {
    let text = get(client, path, reading).await?;
    serde_json::from_str(&text).map_err(gave_up)
}

/// The body of an answer, whatever its status; its headers are read, too.
async fn get(
    client: &kube::Client,
    path: &str,
    reading: &mut Reading,
) -> Result<String, AgentError> {
    let request = http::Request::get(path)
        .body(kube::client::Body::empty())
        .map_err(gave_up)?;
    let answer = client
        .send(request)
        .await
        .map_err(|error| AgentError::Cluster(Box::new(error)))?;
    let (parts, body) = answer.into_parts();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let known = |item: &Item| item.text.ends_with(value.as_ref());
        let place = format!("header {name}");
        // The same few headers come with every answer.
        if !reading
            .items
            .iter()
            .any(|item| item.place == place && known(item))
        {
            reading.add(place, format!("{name}: {value}"));
        }
    }
    let bytes = body.collect().await.map_err(gave_up)?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
