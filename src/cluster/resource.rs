//! The resource types that fixtures, reset and the state hash deal with, and reading them as plain JSON.
//!
//! Plain JSON and not typed structs, so that a field that this build does not know is neither lost nor overlooked.

use http::{Method, Request};
use serde_json::Value;

use crate::cluster::ClusterError;

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
    fn path(&self, namespace: &str, name: &str) -> String {
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
        let answer = self.send(client, Method::GET, &path, None).await;
        let mut list = match answer {
            Err(ClusterError::Api { code: 404, .. }) => return Ok(Vec::new()),
            other => other?,
        };
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    pub async fn get(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        match self
            .send(client, Method::GET, &self.path(namespace, name), None)
            .await
        {
            Ok(object) => Ok(Some(object)),
            Err(ClusterError::Api { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn create(
        &self,
        client: &kube::Client,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, ClusterError> {
        let path = format!("{}?fieldManager={MANAGER}", self.path(namespace, ""));
        self.send(client, Method::POST, &path, Some(object)).await
    }

    pub async fn replace(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<Value, ClusterError> {
        let path = format!("{}?fieldManager={MANAGER}", self.path(namespace, name));
        self.send(client, Method::PUT, &path, Some(object)).await
    }

    /// Applies a JSON Patch in one request. With `dry_run` the server answers what would come of it.
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
        if patch.dry_run {
            path.push_str("&dryRun=All");
        }
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(&path)
            .header(http::header::CONTENT_TYPE, "application/json-patch+json");
        let bytes = Value::Array(patch.operations.to_vec()).to_string();
        self.answer(
            client,
            Method::PATCH,
            &path,
            request.body(bytes.into_bytes()),
        )
        .await
    }

    /// Deletes in the foreground: the object is gone when everything that it owns is. One that is gone already is
    /// fine.
    pub async fn delete(
        &self,
        client: &kube::Client,
        namespace: &str,
        name: &str,
    ) -> Result<(), ClusterError> {
        let options = serde_json::json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
        });
        match self
            .send(
                client,
                Method::DELETE,
                &self.path(namespace, name),
                Some(&options),
            )
            .await
        {
            Ok(_) | Err(ClusterError::Api { code: 404, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        client: &kube::Client,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClusterError> {
        let mut request = Request::builder().method(&method).uri(path);
        if body.is_some() {
            request = request.header(http::header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
        self.answer(client, method, path, request.body(bytes)).await
    }

    async fn answer(
        &self,
        client: &kube::Client,
        method: Method,
        path: &str,
        request: Result<Request<Vec<u8>>, http::Error>,
    ) -> Result<Value, ClusterError> {
        let request = request.map_err(|source| ClusterError::Request {
            path: path.to_owned(),
            source,
        })?;
        client
            .request(request)
            .await
            .map_err(|error| ClusterError::from_kube(format!("{method} {path}"), error))
    }
}

/// What people's own tooling writes as when it deploys an application.
const MANAGER: &str = "kubectl-create";
