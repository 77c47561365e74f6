//! What of a cluster the state hash cannot look at: kinds that its server does not serve, and custom ones.

use std::collections::{BTreeMap, BTreeSet};

use http::Request;
use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::RESOURCES;
use crate::cluster::retry::{self, Asked, Repeat};

/// Names told of a kind of gap; more are counted.
const NAMED: usize = 5;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A line for each gap; none where everything is looked at.
pub async fn gaps(client: &kube::Client) -> Result<Vec<String>, ClusterError> {
    let mut served: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    for resource in RESOURCES {
        if !served.contains_key(resource.prefix) {
            let list = answer(client, &format!("/{}", resource.prefix)).await?;
            served.insert(resource.prefix, plurals(list.as_ref()));
        }
        if !served[resource.prefix].contains(resource.plural) {
            missing.push(format!("{} ({})", resource.kind, resource.prefix));
        }
    }
    let mut gaps = Vec::new();
    if !missing.is_empty() {
        gaps.push(format!(
            "not looked at, because the server does not serve it: {}",
            missing.join(", ")
        ));
    }
    let definitions = answer(client, DEFINITIONS).await?;
    let custom: Vec<&str> = definitions
        .as_ref()
        .and_then(|list| list["items"].as_array())
        .into_iter()
        .flatten()
        .filter_map(|definition| definition["metadata"]["name"].as_str())
        .collect();
    if !custom.is_empty() {
        let named = custom[..custom.len().min(NAMED)].join(", ");
        let more = match custom.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        gaps.push(format!(
            "not looked at: objects of the cluster's {} custom kinds ({named}{more})",
            custom.len()
        ));
    }
    Ok(gaps)
}

/// An answer as JSON; nothing where the path is not served or may not be read.
async fn answer(client: &kube::Client, path: &str) -> Result<Option<Value>, ClusterError> {
    let request = Request::get(path)
        .body(Vec::new())
        .map_err(|source| ClusterError::Request {
            path: path.to_owned(),
            source,
        })?;
    let asked = Asked {
        label: format!("GET {path}"),
        plural: "customresourcedefinitions",
        request,
    };
    match retry::send(client, &asked, Repeat::Harmless).await {
        Ok(answer) => Ok(Some(answer)),
        Err(ClusterError::Api {
            code: 403 | 404, ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn plurals(list: Option<&Value>) -> BTreeSet<String> {
    let resources = list.and_then(|list| list["resources"].as_array());
    let named = resources.into_iter().flatten();
    named
        .filter_map(|resource| resource["name"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::target::Target;
    use crate::ids::Seed;

    #[tokio::test(start_paused = true)]
    async fn the_embedded_cluster_serves_every_kind_that_is_looked_at() {
        let target = Target::embedded(Seed(1));
        assert_eq!(gaps(&target.client()).await.unwrap(), [""; 0]);
    }
}
