//! The resource types that fixtures, reset and the state hash deal with, and reading them as plain JSON.
//!
//! Plain JSON and not typed structs, so that a field that this build does not know is neither lost nor overlooked.

use http::{Method, Request};
use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::retry::{self, Asked, Repeat};

/// A resource type: where it is served and what its objects are called.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    pub kind: &'static str,
    /// `api/v1` or `apis/<group>/<version>`.
    pub prefix: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

const fn row(
    kind: &'static str,
    prefix: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Resource {
    Resource {
        kind,
        prefix,
        plural,
        namespaced,
    }
}

/// A JSON Patch (RFC 6902) and who sends it.
#[derive(Clone, Copy, Debug)]
pub struct JsonPatch<'a> {
    pub operations: &'a [Value],
    /// The field manager that the server notes.
    pub manager: &'a str,
    pub dry_run: bool,
}

/// An object to be created and who sends it.
#[derive(Clone, Copy, Debug)]
pub struct NewObject<'a> {
    pub manifest: &'a Value,
    /// The field manager that the server notes.
    pub manager: &'a str,
    pub dry_run: bool,
}

/// Everything whose state a run may change and must leave as it was. Types that only components write (Endpoints,
/// Events, Leases, ControllerRevisions) follow from these and are left out.
pub const RESOURCES: &[Resource] = &[
    row("Namespace", "api/v1", "namespaces", false),
    row("Node", "api/v1", "nodes", false),
    row("ServiceAccount", "api/v1", "serviceaccounts", true),
    row("Secret", "api/v1", "secrets", true),
    row("ConfigMap", "api/v1", "configmaps", true),
    row("ResourceQuota", "api/v1", "resourcequotas", true),
    row("LimitRange", "api/v1", "limitranges", true),
    row(
        "PersistentVolumeClaim",
        "api/v1",
        "persistentvolumeclaims",
        true,
    ),
    row("Service", "api/v1", "services", true),
    row("Pod", "api/v1", "pods", true),
    row("StatefulSet", "apis/apps/v1", "statefulsets", true),
    row("DaemonSet", "apis/apps/v1", "daemonsets", true),
    row("Deployment", "apis/apps/v1", "deployments", true),
    row("ReplicaSet", "apis/apps/v1", "replicasets", true),
    row("Job", "apis/batch/v1", "jobs", true),
    row("CronJob", "apis/batch/v1", "cronjobs", true),
    row(
        "NetworkPolicy",
        "apis/networking.k8s.io/v1",
        "networkpolicies",
        true,
    ),
    row("Ingress", "apis/networking.k8s.io/v1", "ingresses", true),
    row(
        "PodDisruptionBudget",
        "apis/policy/v1",
        "poddisruptionbudgets",
        true,
    ),
    row(
        "HorizontalPodAutoscaler",
        "apis/autoscaling/v2",
        "horizontalpodautoscalers",
        true,
    ),
    row("Role", "apis/rbac.authorization.k8s.io/v1", "roles", true),
    row(
        "RoleBinding",
        "apis/rbac.authorization.k8s.io/v1",
        "rolebindings",
        true,
    ),
    row(
        "ValidatingWebhookConfiguration",
        "apis/admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        false,
    ),
    row(
        "MutatingWebhookConfiguration",
        "apis/admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        false,
    ),
];

/// The row of a kind as written in manifests.
pub fn of_kind(kind: &str) -> Result<&'static Resource, ClusterError> {
    RESOURCES
        .iter()
        .find(|resource| resource.kind == kind)
        .ok_or_else(|| ClusterError::UnknownKind {
            kind: kind.to_owned(),
        })
}

impl Resource {
    /// The path of one object, or of the collection when the name is empty.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let mut path = format!("/{}", self.prefix);
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(self.plural);
        if !name.is_empty() {
            path.push('/');
            path.push_str(name);
        }
        path
    }

    /// Every object of the type in a namespace, or everywhere when it is empty. A type that the server does not
    /// know has none.
    pub async fn list(
        &self,
        client: &kube::Client,
        namespace: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let path = self.path(namespace, "");
        self.items(client, &path, Repeat::Harmless).await
    }

    /// As [`Resource::list`], asked once: for readings, which come again by themselves.
    pub async fn look_at_all(
        &self,
        client: &kube::Client,
        namespace: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let path = self.path(namespace, "");
        self.items(client, &path, Repeat::Never).await
    }

    /// One object, asked for once. It is asked for as a list of one, since a list says of which moment it is: an object
    /// of the past is an error and no evidence.
    pub async fn look(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let path = format!(
            "{}?fieldSelector=metadata.name%3D{name}",
            self.path(namespace, "")
        );
        let items = self.items(client, &path, Repeat::Never).await?;
        Ok(items
            .into_iter()
            .find(|object| object["metadata"]["name"] == *name))
    }

    async fn items(
        &self,
        client: &kube::Client,
        path: &str,
        repeat: Repeat,
    ) -> Result<Vec<Value>, ClusterError> {
        let asked = self.asked(Method::GET, path, None)?;
        let mut list = match retry::send(client, &asked, repeat).await {
            Err(ClusterError::Api { code: 404, .. }) => return Ok(Vec::new()),
            other => other?,
        };
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            Some(Value::Null) => Ok(Vec::new()),
            _ => Err(retry::garbled(&asked, &"it is no list")),
        }
    }

    /// Every object of the type in a namespace whose labels a selector (`app=web,tier!=cache`) matches.
    pub async fn list_matching(
        &self,
        client: &kube::Client,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let params = kube::api::ListParams::default().labels(selector);
        let request = kube::core::Request::new(self.path(namespace, "")).list(&params);
        let request = request.map_err(|error| ClusterError::Selector {
            selector: selector.to_owned(),
            source: Box::new(error),
        })?;
        self.items(client, &request.uri().to_string(), Repeat::Harmless)
            .await
    }

    /// One object, or nothing where there is none of that name.
    pub async fn get(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let asked = self.asked(Method::GET, &self.path(namespace, name), None)?;
        match retry::send(client, &asked, Repeat::Harmless).await {
            Ok(object) if object["metadata"]["name"] == *name => Ok(Some(object)),
            Ok(_) => Err(retry::garbled(&asked, &"it is another object")),
            Err(ClusterError::Api { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object that has a name. Where the answer is lost, the object itself tells whether it was created:
    /// there and as it was sent, it is the one; there and different, it is somebody else's (409). It is never created
    /// blindly twice.
    pub async fn create(
        &self,
        client: &kube::Client,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, ClusterError> {
        let new = NewObject {
            manifest: object,
            manager: MANAGER,
            dry_run: false,
        };
        self.create_as(client, namespace, &new).await
    }

    /// As [`Resource::create`], under a manager. With `dry_run` the server answers what would come of it.
    pub async fn create_as(
        &self,
        client: &kube::Client,
        namespace: &str,
        new: &NewObject<'_>,
    ) -> Result<Value, ClusterError> {
        let object = new.manifest;
        let mut path = format!("{}?fieldManager={}", self.path(namespace, ""), new.manager);
        if new.dry_run {
            path.push_str("&dryRun=All");
            let asked = self.asked(Method::POST, &path, Some(object))?;
            return retry::send(client, &asked, Repeat::Harmless).await;
        }
        let asked = self.asked(Method::POST, &path, Some(object))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut failed = 0;
        loop {
            failed += 1;
            let error = match retry::send(client, &asked, Repeat::WhenRefused).await {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            if !error.is_unclear() || name.is_empty() || failed >= retry::ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(retry::back_off(failed)).await;
            match self.get(client, namespace, name).await? {
                None => {}
                Some(live) if contains(&live, object) => return Ok(live),
                Some(_) => {
                    return Err(ClusterError::Api {
                        request: asked.label,
                        code: 409,
                        message: format!("{} {name} already exists", self.kind),
                    });
                }
            }
        }
    }

    /// Replaces an object by one that carries the version which was read, so that a repetition cannot overwrite anybody.
    pub async fn replace(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<Value, ClusterError> {
        let path = format!("{}?fieldManager={MANAGER}", self.path(namespace, name));
        let asked = self.asked(Method::PUT, &path, Some(object))?;
        let mut failed = 0;
        loop {
            failed += 1;
            let error = match retry::send(client, &asked, Repeat::WhenRefused).await {
                Ok(replaced) => return Ok(replaced),
                Err(error) => error,
            };
            if !error.is_unclear() || failed >= retry::ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(retry::back_off(failed)).await;
            let live = self.get(client, namespace, name).await?;
            let sent = &object["metadata"]["resourceVersion"];
            match live {
                // Not done: the object still is the one that was read.
                Some(live) if live["metadata"]["resourceVersion"] == *sent => {}
                Some(live) if contains(&live, &unversioned(object)) => return Ok(live),
                _ => return Err(error),
            }
        }
    }

    /// Applies a JSON Patch in one request. With `dry_run` the server answers what would come of it. Where the answer
    /// is lost, the caller reads again: only the patch's maker can tell whether it was applied.
    pub async fn patch(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
        patch: &JsonPatch<'_>,
    ) -> Result<Value, ClusterError> {
        let mut path = format!(
            "{}?fieldManager={}",
            self.path(namespace, name),
            patch.manager
        );
        let mut repeat = Repeat::WhenRefused;
        if patch.dry_run {
            path.push_str("&dryRun=All");
            repeat = Repeat::Harmless;
        }
        let body = Value::Array(patch.operations.to_vec());
        let asked = self.asked(Method::PATCH, &path, Some(&body))?;
        retry::send(client, &asked, repeat).await
    }

    /// Whether an object still is as it was read, asked of the server's own store: a read may come from the past, a
    /// guard is checked against the present. False when it has changed or is gone.
    pub async fn is_current(
        &self,
        client: &kube::Client,
        read: &Value,
    ) -> Result<bool, ClusterError> {
        let meta = &read["metadata"];
        let part = |field: &str| meta[field].as_str().unwrap_or_default();
        let operations = [serde_json::json!({
            "op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"],
        })];
        let patch = JsonPatch {
            operations: &operations,
            manager: MANAGER,
            dry_run: true,
        };
        match self
            .patch(client, part("namespace"), part("name"), &patch)
            .await
        {
            Ok(_) => Ok(true),
            Err(ClusterError::Api {
                code: 404 | 409 | 422,
                ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes in the foreground: the object is gone when everything that it owns is. One that is gone already is
    /// fine, and so is one whose deletion has begun although the answer was lost.
    pub async fn delete(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
    ) -> Result<(), ClusterError> {
        let options = serde_json::json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
        });
        self.delete_with(client, namespace, name, &options).await
    }

    /// As [`Resource::delete`], in the background, for the object of this uid and never a later one of its name, which is
    /// answered with 409.
    pub async fn delete_exactly(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), ClusterError> {
        let options = exactly(uid, "Background");
        self.delete_with(client, namespace, name, &options).await
    }

    /// As [`Resource::delete`], for the object of this uid. One of its name that somebody made since is left alone, and
    /// that is fine: the one that was meant is gone.
    pub async fn delete_this(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), ClusterError> {
        let options = exactly(uid, "Foreground");
        match self.delete_with(client, namespace, name, &options).await {
            Err(error) if error.is_conflict() => {
                let live = self.get(client, namespace, name).await?;
                match live.is_some_and(|live| live["metadata"]["uid"] == *uid) {
                    true => Err(error),
                    false => Ok(()),
                }
            }
            other => other,
        }
    }

    async fn delete_with(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<(), ClusterError> {
        let path = self.path(namespace, name);
        let asked = self.asked(Method::DELETE, &path, Some(options))?;
        let mut failed = 0;
        loop {
            failed += 1;
            let error = match retry::send(client, &asked, Repeat::WhenRefused).await {
                Ok(_) | Err(ClusterError::Api { code: 404, .. }) => return Ok(()),
                Err(error) => error,
            };
            let open = error.is_unclear() || error.is_conflict();
            if !open || failed >= retry::ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(retry::back_off(failed)).await;
            let live = self.get(client, namespace, name).await?;
            if live.is_none_or(|live| live["metadata"].get("deletionTimestamp").is_some()) {
                return Ok(());
            }
        }
    }

    fn asked(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Asked, ClusterError> {
        let mut request = Request::builder().method(&method).uri(path);
        if body.is_some() {
            let content_type = match method {
                Method::PATCH => "application/json-patch+json",
                _ => "application/json",
            };
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = request
            .body(bytes)
            .map_err(|source| ClusterError::Request {
                path: path.to_owned(),
                source,
            })?;
        Ok(Asked {
            label: format!("{method} {path}"),
            plural: self.plural,
            request,
        })
    }
}

/// Options of a deletion that names the object's uid.
fn exactly(uid: &str, propagation: &str) -> Value {
    serde_json::json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation,
        "preconditions": {"uid": uid},
    })
}

/// Whether everything that was sent stands in what is there, apart from what the server fills in.
fn contains(live: &Value, sent: &Value) -> bool {
    match (live, sent) {
        (Value::Object(live), Value::Object(sent)) => sent.iter().all(|(key, sent)| {
            // Write-only: it comes back as data.
            let write_only = key == "stringData";
            write_only || live.get(key).is_some_and(|live| contains(live, sent))
        }),
        (Value::Array(live), Value::Array(sent)) => {
            live.len() == sent.len() && live.iter().zip(sent).all(|(l, s)| contains(l, s))
        }
        _ => live == sent,
    }
}

/// An object without the version that it was read as.
fn unversioned(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["resourceVersion", "generation", "managedFields"] {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove(field);
        }
    }
    object
}

/// What people's own tooling writes as when it deploys an application.
const MANAGER: &str = "kubectl-create";
