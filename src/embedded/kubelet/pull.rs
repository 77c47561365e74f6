//! Making sure that an image is on the node: pull policies, pulls, their errors and back-off.

use crate::embedded::image::Lookup;
use crate::embedded::image::reference::Reference;
use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::{self, Pod, Stage};
use crate::embedded::kubelet::{self, runtime, sync};
use crate::embedded::world::World;

/// The full name of an image as it stands in a status; the error is the parser's reason.
pub fn full_name(image: &str) -> Result<String, String> {
    Reference::parse(image).map(|reference| reference.full())
}

fn image_of(pod: &Pod, container: &str) -> (String, String) {
    let spec = pod.container_spec(container).map(|(spec, _)| spec);
    let text = |field: &str| {
        spec.and_then(|spec| spec[field].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let image = text("image");
    let mut policy = text("imagePullPolicy");
    if policy.is_empty() {
        let latest = Reference::parse(&image)
            .is_ok_and(|reference| reference.tag == "latest" && reference.digest.is_none());
        policy = if latest { "Always" } else { "IfNotPresent" }.to_owned();
    }
    (image, policy)
}

/// Tells which of the pod's pull secrets are not there; pulls are tried without them.
pub fn look_for_secrets(world: &mut World, pod: &Pod) {
    let missing: Vec<&str> = pod.spec()["imagePullSecrets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|secret| secret["name"].as_str())
        .filter(|name| {
            world
                .store
                .get(Kind::Secret, &pod.namespace, name)
                .is_none()
        })
        .collect();
    if missing.is_empty() {
        return;
    }
    let message = format!(
        "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
        missing.join(", ")
    );
    kubelet::event(
        world,
        pod,
        None,
        true,
        "FailedToRetrieveImagePullSecret",
        message,
    );
}

/// Goes on to create a container once its image is there.
pub fn ensure(world: &mut World, pod: &mut Pod, container: &str) {
    let (image, policy) = image_of(pod, container);
    let reference = match Reference::parse(&image) {
        Ok(reference) => reference,
        Err(why) => {
            let message = format!(
                "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": {why}"
            );
            kubelet::event(
                world,
                pod,
                Some(container),
                true,
                "InspectFailed",
                message.clone(),
            );
            return give_up(world, pod, container, "InvalidImageName", &message);
        }
    };
    let present = world.kubelet.present.contains_key(&reference.full());
    if present && policy != "Always" {
        let message = format!("Container image \"{image}\" already present on machine");
        kubelet::event(world, pod, Some(container), false, "Pulled", message);
        return runtime::prepare(world, pod, container);
    }
    if policy == "Never" {
        let message =
            format!("Container image \"{image}\" is not present with pull policy of Never");
        kubelet::event(
            world,
            pod,
            Some(container),
            true,
            "ErrImageNeverPull",
            message.clone(),
        );
        return give_up(world, pod, container, "ErrImageNeverPull", &message);
    }
    pull(world, pod, container, &image, &reference, present);
}

/// Starts a pull, unless one failed a moment ago.
fn pull(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    image: &str,
    reference: &Reference,
    present: bool,
) {
    let key = format!("image {image}");
    let now = world.now();
    let waits = pod
        .backoffs
        .get(&key)
        .filter(|backoff| backoff.holds(backoff.updated, now));
    if let Some(error) = waits.map(|backoff| backoff.error.clone()) {
        let message = format!("Back-off pulling image \"{image}\"");
        kubelet::event(
            world,
            pod,
            Some(container),
            false,
            "BackOff",
            message.clone(),
        );
        let text = format!("{message}: ErrImagePull: {error}");
        return give_up(world, pod, container, "ImagePullBackOff", &text);
    }
    kubelet::event(
        world,
        pod,
        Some(container),
        false,
        "Pulling",
        format!("Pulling image \"{image}\""),
    );
    let size = match world.kubelet.images.look_up(reference) {
        Lookup::Found(image) if !present => image.size_bytes,
        _ => 0,
    };
    pod.worker.stage = Stage::Pulling {
        container: container.to_owned(),
    };
    // Registries answer within some 200 ms; layers come at about 25 MB a second.
    let wait = kubelet::delay(world, 120 + size / 25_000, 150);
    sync::next_step(world, pod, wait);
}

/// A pull is over.
pub fn finished(world: &mut World, pod: &mut Pod, container: &str) {
    let (image, _) = image_of(pod, container);
    let Ok(reference) = Reference::parse(&image) else {
        return sync::act(world, pod);
    };
    let full = reference.full();
    let error = match world.kubelet.images.look_up(&reference) {
        Lookup::Found(found) => {
            let took = 200 + found.size_bytes / 25_000;
            let (seconds, millis) = (took / 1000, took % 1000);
            let text = if seconds == 0 {
                format!("{millis}ms")
            } else {
                format!("{seconds}.{millis:03}s")
            };
            let message = format!(
                "Successfully pulled image \"{image}\" in {text} ({text} including waiting). Image size: {} bytes.",
                found.size_bytes
            );
            kubelet::event(world, pod, Some(container), false, "Pulled", message);
            world.kubelet.present.insert(full, found);
            pod.backoffs.remove(&format!("image {image}"));
            return runtime::prepare(world, pod, container);
        }
        Lookup::NoSuchTag => format!(
            "rpc error: code = NotFound desc = failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": {full}: not found"
        ),
        Lookup::Denied => format!(
            "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"
        ),
        Lookup::Unreachable => {
            let host = &reference.host;
            let name = host.split(':').next().unwrap_or_default();
            let what = reference.digest.as_ref().unwrap_or(&reference.tag);
            format!(
                "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": failed to do request: Head \"https://{host}/v2/{}/manifests/{what}\": dial tcp: lookup {name} on 10.255.255.53:53: dial udp 10.255.255.53:53: connect: network is unreachable",
                reference.path
            )
        }
    };
    let now = world.now();
    pod::raise(
        &mut pod.backoffs,
        &format!("image {image}"),
        now,
        now,
        &error,
    );
    kubelet::event(
        world,
        pod,
        Some(container),
        true,
        "Failed",
        format!("Failed to pull image \"{image}\": {error}"),
    );
    give_up(world, pod, container, "ErrImagePull", &error);
}

/// A container cannot be started now: the reason becomes its waiting state, and an event.
pub fn give_up(world: &mut World, pod: &mut Pod, container: &str, reason: &str, message: &str) {
    kubelet::event(
        world,
        pod,
        Some(container),
        true,
        "Failed",
        format!("Error: {reason}"),
    );
    sync::fail(pod, container, reason, message);
    sync::act(world, pod);
}
