//! Service accounts of pods: the default one, a missing one, the volume with the API's credentials.

use serde_json::{Value, json};

use crate::embedded::api::admission::shown_name;
use crate::embedded::api::status::Status;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and a bit, so that clients that refresh every hour never hold an expired token.
const TOKEN_SECONDS: u32 = 3607;
const VOLUME_PREFIX: &str = "kube-api-access-";
const VOLUME_LETTERS: usize = 5;

/// Fills in the account, refuses a missing one, mounts its credentials.
pub fn admit(world: &mut World, pod: &mut Value) -> Result<(), Status> {
    // Static pods of a kubelet have no account.
    if pod["metadata"]["annotations"]
        .get("kubernetes.io/config.mirror")
        .is_some()
    {
        return Ok(());
    }
    if text(&pod["spec"]["serviceAccountName"]).is_empty() {
        pod["spec"]["serviceAccountName"] = "default".into();
    }
    let name = text(&pod["spec"]["serviceAccountName"]).to_owned();
    pod["spec"]["serviceAccount"] = name.as_str().into();
    let namespace = text(&pod["metadata"]["namespace"]).to_owned();
    let Some(account) = world
        .store
        .get(Kind::ServiceAccount, &namespace, &name)
        .cloned()
    else {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        return Err(Status::forbidden(Kind::Pod, shown_name(pod), &why));
    };
    if let (None, Some(secrets)) = (
        pod["spec"].get("imagePullSecrets"),
        account.get("imagePullSecrets"),
    ) {
        pod["spec"]["imagePullSecrets"] = secrets.clone();
    }
    let wanted = pod["spec"]["automountServiceAccountToken"]
        .as_bool()
        .or_else(|| account["automountServiceAccountToken"].as_bool())
        .unwrap_or(true);
    if wanted {
        mount(world, pod);
    }
    Ok(())
}

fn mount(world: &mut World, pod: &mut Value) {
    let volume = format!("{VOLUME_PREFIX}{}", world.suffix(VOLUME_LETTERS));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let Some(containers) = pod["spec"].get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            if !container["volumeMounts"].is_array() {
                container["volumeMounts"] = json!([]);
            }
            let Some(mounts) = container["volumeMounts"].as_array_mut() else {
                continue;
            };
            if mounts.iter().any(|one| one["mountPath"] == MOUNT_PATH) {
                continue;
            }
            mounts.push(json!({ "mountPath": MOUNT_PATH, "name": volume, "readOnly": true }));
            mounted = true;
        }
    }
    if !mounted {
        return;
    }
    if !pod["spec"]["volumes"].is_array() {
        pod["spec"]["volumes"] = json!([]);
    }
    if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
        volumes.push(json!({
            "name": volume,
            "projected": {
                "defaultMode": 0o644,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                    {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                    {"downwardAPI": {"items": [{
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace",
                    }]}},
                ],
            },
        }));
    }
}
