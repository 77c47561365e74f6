//! Reads: one object, or a list narrowed by selectors and cut into pages.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::embedded::api::selector::{Fields, Labels};
use crate::embedded::api::status::Status;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// What a list asks for.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub labels: Labels,
    pub fields: Fields,
    /// Page size; 0 means everything at once.
    pub limit: usize,
    /// The token of the page before.
    pub continue_token: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    pub items: Vec<Arc<Value>>,
    pub resource_version: u64,
    /// Token for the next page, and how many objects it and the following pages hold.
    pub more: Option<(String, usize)>,
}

/// One object. `namespace` is empty for cluster-scoped kinds.
pub fn get(world: &World, kind: Kind, namespace: &str, name: &str) -> Result<Arc<Value>, Status> {
    world
        .store
        .get(kind, namespace, name)
        .cloned()
        .ok_or_else(|| Status::not_found(kind, name))
}

/// The objects of a kind, in one namespace or (with an empty `namespace`) in all.
pub fn list(
    world: &World,
    kind: Kind,
    namespace: &str,
    options: &ListOptions,
) -> Result<Page, Status> {
    let start = options
        .continue_token
        .as_deref()
        .map(|token| Cursor::parse(world, token))
        .transpose()?;
    let resource_version = start
        .as_ref()
        .map_or(world.store.resource_version(), |cursor| {
            cursor.resource_version
        });
    let mut items: Vec<Arc<Value>> = Vec::new();
    let mut left = 0;
    let all = matching(world, kind, namespace, options);
    for object in all {
        let beyond = start
            .as_ref()
            .is_none_or(|cursor| position(object) > cursor.after);
        if !beyond {
            continue;
        }
        if options.limit > 0 && items.len() == options.limit {
            left += 1;
        } else {
            items.push(object.clone());
        }
    }
    let more = match items.last() {
        Some(last) if left > 0 => {
            let cursor = Cursor {
                resource_version,
                after: position(last),
            };
            Some((cursor.token(), left))
        }
        _ => None,
    };
    Ok(Page {
        items,
        resource_version,
        more,
    })
}

fn matching<'a>(
    world: &'a World,
    kind: Kind,
    namespace: &'a str,
    options: &'a ListOptions,
) -> Box<dyn Iterator<Item = &'a Arc<Value>> + 'a> {
    let all: Box<dyn Iterator<Item = &Arc<Value>>> = if namespace.is_empty() {
        Box::new(world.store.all(kind))
    } else {
        Box::new(world.store.within(kind, namespace))
    };
    Box::new(all.filter(|object| options.labels.matches(object) && options.fields.matches(object)))
}

impl Page {
    /// The list's `metadata`.
    pub fn metadata(&self, selective: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": self.resource_version.to_string() });
        if let Some((token, left)) = &self.more {
            metadata["continue"] = token.as_str().into();
            // Not counted for selective lists, as there: the server would have to read on.
            if !selective {
                metadata["remainingItemCount"] = (*left).into();
            }
        }
        metadata
    }
}

/// Where the next page of a list starts.
struct Cursor {
    resource_version: u64,
    after: (String, String),
}

impl Cursor {
    fn token(&self) -> String {
        let plain = json!({
            "v": "meta.k8s.io/v1", "rv": self.resource_version,
            "start": format!("{}/{}", self.after.0, self.after.1),
        });
        URL_SAFE_NO_PAD.encode(plain.to_string())
    }

    fn parse(world: &World, token: &str) -> Result<Cursor, Status> {
        let bad = || Status::bad_request("continue key is not valid");
        let plain = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
        let plain: Value = serde_json::from_slice(&plain).map_err(|_| bad())?;
        let resource_version = plain["rv"].as_u64().ok_or_else(bad)?;
        let start = plain["start"].as_str().ok_or_else(bad)?;
        let (namespace, name) = start.split_once('/').ok_or_else(bad)?;
        if world.store.changes_since(resource_version).is_none() {
            return Err(Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
            ));
        }
        Ok(Cursor {
            resource_version,
            after: (namespace.to_owned(), name.to_owned()),
        })
    }
}

fn position(object: &Value) -> (String, String) {
    crate::embedded::store::key_of(object)
}
