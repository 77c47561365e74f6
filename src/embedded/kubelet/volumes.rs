//! Volumes of pods: mounting with its failures and back-off, the files they hold, later updates.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine;
use serde_json::Value;

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::Pod;
use crate::embedded::kubelet::{self, Work, worker};
use crate::embedded::time::Time;
use crate::embedded::world::{self, World};

/// First and largest delay between two attempts to mount a volume.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(122);

/// Folders that every node has.
const HOST_FOLDERS: &[&str] = &[
    "",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/tmp",
    "/var/lib/kubelet",
    "/var/log/pods",
    "/var/log/containers",
    "/lib/modules",
];

/// The volumes of one pod.
#[derive(Debug, Default)]
pub struct Volumes {
    asked: bool,
    mounted: BTreeSet<String>,
    retry: BTreeMap<String, Duration>,
    /// Files by volume and path inside it.
    pub files: BTreeMap<String, BTreeMap<String, String>>,
    /// Bytes written into emptyDirs, by volume; the writable layers count under the empty name.
    pub written: BTreeMap<String, u64>,
    written_by: BTreeMap<String, BTreeMap<String, u64>>,
    /// `written` at the last measurement, and when the next is due.
    pub measured: BTreeMap<String, u64>,
    pub measure_due: Time,
}

fn list(pod: &Pod) -> Vec<Value> {
    pod.spec()["volumes"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn name_of(volume: &Value) -> &str {
    volume["name"].as_str().unwrap_or_default()
}

/// Whether every volume is there.
pub fn all_mounted(pod: &Pod) -> bool {
    pod.volumes.asked
        && list(pod)
            .iter()
            .all(|volume| pod.volumes.mounted.contains(name_of(volume)))
}

/// Asks for all volumes; the first call makes the first attempts.
pub fn ask(world: &mut World, pod: &mut Pod) {
    if std::mem::replace(&mut pod.volumes.asked, true) {
        return;
    }
    for volume in list(pod) {
        attempt(world, pod, name_of(&volume));
    }
}

/// Tries to mount one volume.
pub fn attempt(world: &mut World, pod: &mut Pod, name: &str) {
    let Some(volume) = list(pod).into_iter().find(|volume| name_of(volume) == name) else {
        return;
    };
    match content(world, pod, &volume) {
        Ok(files) => {
            if let Some(files) = files {
                pod.volumes.files.insert(name.to_owned(), files);
            }
            pod.volumes.mounted.insert(name.to_owned());
            pod.volumes.retry.remove(name);
            if all_mounted(pod) {
                worker::mounted(world, pod);
            }
        }
        Err(why) => {
            let delay = pod
                .volumes
                .retry
                .get(name)
                .map_or(RETRY_FIRST, |last| (*last * 2).min(RETRY_MOST));
            pod.volumes.retry.insert(name.to_owned(), delay);
            let message = format!("MountVolume.SetUp failed for volume \"{name}\" : {why}");
            kubelet::event(world, pod, None, true, "FailedMount", message);
            let work = Work::Mount {
                pod: pod.uid.clone(),
                volume: name.to_owned(),
            };
            world.after(delay, world::Work::Kubelet(work));
        }
    }
}

/// Reads changed sources again; what has become unreadable keeps its old files.
pub fn refresh(world: &mut World, pod: &mut Pod) {
    for volume in list(pod) {
        let name = name_of(&volume).to_owned();
        if pod.volumes.mounted.contains(&name)
            && let Ok(Some(files)) = content(world, pod, &volume)
        {
            pod.volumes.files.insert(name, files);
        }
    }
}

/// Whether a pod's volumes come from this ConfigMap or Secret.
pub fn uses(pod: &Pod, kind: Kind, name: &str) -> bool {
    let field = |source: &Value| match kind {
        Kind::Secret => source["secret"]["secretName"] == name || source["secret"]["name"] == name,
        _ => source["configMap"]["name"] == name,
    };
    list(pod).iter().any(|volume| {
        field(volume)
            || volume["projected"]["sources"]
                .as_array()
                .is_some_and(|sources| sources.iter().any(field))
    })
}

/// The files of a volume from an API object; `None` for volumes that start empty.
fn content(
    world: &World,
    pod: &Pod,
    volume: &Value,
) -> Result<Option<BTreeMap<String, String>>, String> {
    if let Some(source) = volume.get("secret") {
        let name = source["secretName"].as_str().unwrap_or_default();
        return from_object(world, pod, Kind::Secret, name, source).map(Some);
    }
    if let Some(source) = volume.get("configMap") {
        let name = source["name"].as_str().unwrap_or_default();
        return from_object(world, pod, Kind::ConfigMap, name, source).map(Some);
    }
    if let Some(claim) = volume.get("persistentVolumeClaim") {
        let name = claim["claimName"].as_str().unwrap_or_default();
        let found = world
            .store
            .get(Kind::PersistentVolumeClaim, &pod.namespace, name);
        return match found {
            Some(_) => Ok(None),
            None => Err(format!("persistentvolumeclaim \"{name}\" not found")),
        };
    }
    if let Some(host) = volume.get("hostPath") {
        return on_host(host).map(|()| None);
    }
    let Some(sources) = volume["projected"]["sources"].as_array() else {
        return Ok(None);
    };
    let mut files = BTreeMap::new();
    for source in sources {
        if let Some(secret) = source.get("secret") {
            let name = secret["name"].as_str().unwrap_or_default();
            files.extend(from_object(world, pod, Kind::Secret, name, secret)?);
        }
        if let Some(map) = source.get("configMap") {
            let name = map["name"].as_str().unwrap_or_default();
            // Each namespace gets the cluster's CA a moment after it is made; pods do not outrun it here.
            let optional = name == "kube-root-ca.crt";
            match from_object(world, pod, Kind::ConfigMap, name, map) {
                Err(_) if optional => {}
                other => files.extend(other?),
            }
        }
        if let Some(token) = source.get("serviceAccountToken") {
            let path = token["path"].as_str().unwrap_or("token");
            files.insert(
                path.to_owned(),
                "eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl".to_owned(),
            );
        }
        for item in source["downwardAPI"]["items"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let path = item["path"].as_str().unwrap_or_default();
            let field = item["fieldRef"]["fieldPath"].as_str().unwrap_or_default();
            let text = kubelet::environment::field(pod, field).unwrap_or_default();
            files.insert(path.to_owned(), text);
        }
    }
    Ok(Some(files))
}

/// Whether a path of the node is what a volume wants it to be; without a type, and with one that creates
/// what is missing, anything will do.
fn on_host(source: &Value) -> Result<(), String> {
    let path = source["path"].as_str().unwrap_or_default();
    let folder = HOST_FOLDERS.contains(&path.trim_end_matches('/'));
    let wanted = match source["type"].as_str().unwrap_or_default() {
        "Directory" if !folder => "a directory",
        "File" => "a file",
        "Socket" => "a socket file",
        "CharDevice" => "a character device",
        "BlockDevice" => "a block device",
        _ => return Ok(()),
    };
    Err(format!(
        "hostPath type check failed: {path} is not {wanted}"
    ))
}

fn from_object(
    world: &World,
    pod: &Pod,
    kind: Kind,
    name: &str,
    source: &Value,
) -> Result<BTreeMap<String, String>, String> {
    let optional = source["optional"] == true;
    let word = if kind == Kind::Secret {
        "secret"
    } else {
        "configmap"
    };
    let Some(object) = world.store.get(kind, &pod.namespace, name) else {
        return if optional {
            Ok(BTreeMap::new())
        } else {
            Err(format!("{word} \"{name}\" not found"))
        };
    };
    let data = data_of(kind, object);
    let Some(items) = source["items"].as_array() else {
        return Ok(data);
    };
    let mut files = BTreeMap::new();
    for item in items {
        let key = item["key"].as_str().unwrap_or_default();
        let path = item["path"].as_str().unwrap_or(key);
        match data.get(key) {
            Some(text) => {
                files.insert(path.to_owned(), text.clone());
            }
            None if optional => {}
            None => {
                return Err(match kind {
                    Kind::Secret => format!("references non-existent secret key: {key}"),
                    _ => format!("configmap references non-existent config key: {key}"),
                });
            }
        }
    }
    Ok(files)
}

/// The data of a ConfigMap or Secret as text.
pub fn data_of(kind: Kind, object: &Value) -> BTreeMap<String, String> {
    let decode = |text: &str| -> String {
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let entries = object["data"].as_object().into_iter().flatten();
    entries
        .map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            let text = if kind == Kind::Secret {
                decode(text)
            } else {
                text.to_owned()
            };
            (key.clone(), text)
        })
        .collect()
}

/// The mount of a container that holds a path: volume, path inside it, and whether it may be written.
fn mount_for(pod: &Pod, container: &str, path: &str) -> Option<(String, String, bool)> {
    let (spec, _) = pod.container_spec(container)?;
    let mounts = spec["volumeMounts"].as_array()?;
    let (mount, rest) = mounts
        .iter()
        .filter_map(|mount| {
            let at = mount["mountPath"].as_str()?.trim_end_matches('/');
            let rest = path.strip_prefix(at)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((mount, rest))
        })
        .max_by_key(|(_, rest)| std::cmp::Reverse(rest.len()))?;
    let name = mount["name"].as_str()?;
    let sub = mount["subPath"]
        .as_str()
        .unwrap_or_default()
        .trim_matches('/');
    let rest = rest.trim_start_matches('/');
    let inside = match (sub.is_empty(), rest.is_empty()) {
        (true, _) => rest.to_owned(),
        (false, true) => sub.to_owned(),
        (false, false) => format!("{sub}/{rest}"),
    };
    let volume = list(pod)
        .into_iter()
        .find(|volume| name_of(volume) == name)?;
    let fixed = ["secret", "configMap", "projected", "downwardAPI"]
        .iter()
        .any(|kind| volume.get(*kind).is_some());
    let writable = !fixed && mount["readOnly"] != true;
    Some((name.to_owned(), inside, writable))
}

/// Reads a file of a volume as a container sees it.
pub fn read(_world: &World, pod: &Pod, container: &str, path: &str) -> Option<String> {
    let (volume, inside, _) = mount_for(pod, container, path)?;
    pod.volumes.files.get(&volume)?.get(&inside).cloned()
}

/// Writes a file of a volume; `None` when the path is not in one.
pub fn write(
    pod: &mut Pod,
    container: &str,
    path: &str,
    text: &str,
) -> Option<Result<(), &'static str>> {
    let (volume, inside, writable) = mount_for(pod, container, path)?;
    if !writable {
        return Some(Err("Read-only file system"));
    }
    pod.volumes
        .files
        .entry(volume)
        .or_default()
        .insert(inside, text.to_owned());
    Some(Ok(()))
}

/// Removes a file of a volume, when it is in one.
pub fn remove(pod: &mut Pod, run_id: &str, path: &str) {
    let Some(container) = pod.run(run_id).map(|run| run.facts.name.clone()) else {
        return;
    };
    if let Some((volume, inside, true)) = mount_for(pod, &container, path) {
        if let Some(files) = pod.volumes.files.get_mut(&volume) {
            files.remove(&inside);
        }
        if let Some(by) = pod.volumes.written_by.get_mut(&volume) {
            by.remove(&inside);
            let total = by.values().sum();
            pod.volumes.written.insert(volume, total);
        }
    }
}

/// Whether a volume is mounted at a path or below it.
pub fn mounted_at(pod: &Pod, container: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    pod.container_spec(container).is_some_and(|(spec, _)| {
        spec["volumeMounts"].as_array().is_some_and(|mounts| {
            mounts.iter().any(|mount| {
                mount["mountPath"]
                    .as_str()
                    .is_some_and(|at| at.trim_end_matches('/').starts_with(path))
            })
        })
    })
}

/// Names directly below a path, from the volume mounted there.
pub fn names(_world: &World, pod: &Pod, container: &str, path: &str) -> Vec<String> {
    let Some((volume, inside, _)) = mount_for(pod, container, path) else {
        return Vec::new();
    };
    let below = if inside.is_empty() {
        String::new()
    } else {
        format!("{inside}/")
    };
    pod.volumes
        .files
        .get(&volume)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .filter_map(|file| {
            file.strip_prefix(&below)?
                .split('/')
                .next()
                .map(str::to_owned)
        })
        .collect()
}

/// Counts bytes written to a file: into its volume, or into the container's own layer.
pub fn note_written(pod: &mut Pod, run_id: &str, path: &str, bytes: u64) {
    let Some(container) = pod.run(run_id).map(|run| run.facts.name.clone()) else {
        return;
    };
    match mount_for(pod, &container, path) {
        Some((volume, inside, _)) => {
            let by = pod.volumes.written_by.entry(volume.clone()).or_default();
            by.insert(inside, bytes);
            let total = by.values().sum();
            pod.volumes.written.insert(volume, total);
        }
        None => {
            if let Some(run) = pod.run_mut(run_id) {
                run.written.insert(path.to_owned(), bytes);
            }
        }
    }
}
