//! What probes and lifecycle hooks are aimed at: ports by number or name, HTTP, TCP and gRPC targets, commands.

use std::time::Duration;

use serde_json::Value;

use crate::embedded::image::program::Protocol;
use crate::embedded::kubelet::pod::{Pod, Run};
use crate::embedded::kubelet::probe::Outcome;
use crate::embedded::kubelet::{network, runtime};
use crate::embedded::world::World;

/// Why a port that is no number and no name of the container's cannot be used.
pub fn bad_port(port: &Value) -> String {
    format!("strconv.Atoi: parsing {port}: invalid syntax")
}

/// What running a command says when the container does not have it.
pub fn missing_executable(world: &mut World, run: &Run, name: &str) -> Option<String> {
    let path = run.env.get("PATH").cloned().unwrap_or_default();
    if run.image.find(name, &path).is_some() {
        return None;
    }
    Some(format!(
        "rpc error: code = Unknown desc = failed to exec in container: failed to start exec \"{}\": OCI runtime exec failed: exec failed: unable to start container process: exec: \"{name}\": {}: unknown",
        world.hex_id(64),
        runtime::not_found(name)
    ))
}

/// The path of an HTTP target, with its slash.
pub fn path_of(target: &Value) -> String {
    let path = target["path"].as_str().unwrap_or_default();
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

/// What a request to a port where nobody listens says.
pub fn http_refused(pod: &Pod, target: &Value, port: u16) -> String {
    let scheme = target["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
    let address = address_of(pod);
    let path = path_of(target);
    format!(
        "Get \"{scheme}://{address}:{port}{path}\": {}",
        refused(&address, port)
    )
}

/// The number of a probe's port, which may be a name.
pub fn port_of(pod: &Pod, container: &str, port: &Value) -> Option<u16> {
    if let Some(number) = port.as_u64() {
        return u16::try_from(number).ok();
    }
    let name = port.as_str()?;
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let (spec, _) = pod.container_spec(container)?;
    let ports = spec["ports"].as_array()?;
    let found = ports.iter().find(|entry| entry["name"] == name)?;
    u16::try_from(found["containerPort"].as_u64()?).ok()
}

fn address_of(pod: &Pod) -> String {
    pod.sandbox
        .as_ref()
        .map(|sandbox| sandbox.ip.clone())
        .unwrap_or_default()
}

fn refused(address: &str, port: u16) -> String {
    format!("dial tcp {address}:{port}: connect: connection refused")
}

pub(super) fn http(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    target: &Value,
    timeout: Duration,
) -> (Outcome, Duration) {
    let quick = Duration::from_millis(2);
    let Some(port) = port_of(pod, container, &target["port"]) else {
        return (Outcome::Unknown(bad_port(&target["port"])), quick);
    };
    let address = match target["host"].as_str().filter(|host| !host.is_empty()) {
        Some(host) => host.to_owned(),
        None => address_of(pod),
    };
    let scheme = target["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
    let path = path_of(target);
    let url = format!("Get \"{scheme}://{address}:{port}{path}\"");
    let found =
        network::socket_of(pod, port, false).map(|(run, index)| (run.facts.id.clone(), index));
    let Some((id, index)) = found.filter(|_| address == address_of(pod)) else {
        return (
            Outcome::Failure(format!("{url}: {}", refused(&address, port))),
            quick,
        );
    };
    if scheme == "https" {
        let why = format!("{url}: http: server gave HTTP response to HTTPS client");
        return (Outcome::Failure(why), quick);
    }
    let now = world.now();
    let at = pod.runs.iter().position(|run| run.facts.id == id);
    let answer = at.and_then(|at| network::serve(world, &mut pod.runs[at], index, &path, timeout));
    match answer {
        None => (Outcome::Failure(format!("{url}: EOF")), quick),
        Some(answer) if answer.at.since(now) > timeout => {
            let why = format!(
                "{url}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            );
            (Outcome::Failure(why), timeout)
        }
        Some(answer) if (200..400).contains(&answer.status) => {
            (Outcome::Success, answer.at.since(now))
        }
        Some(answer) => {
            let why = format!("HTTP probe failed with statuscode: {}", answer.status);
            (Outcome::Failure(why), answer.at.since(now))
        }
    }
}

pub(super) fn tcp(pod: &Pod, container: &str, target: &Value) -> (Outcome, Duration) {
    let quick = Duration::from_millis(1);
    let Some(port) = port_of(pod, container, &target["port"]) else {
        return (Outcome::Unknown(bad_port(&target["port"])), quick);
    };
    let address = address_of(pod);
    match network::socket_of(pod, port, false) {
        Some(_) => (Outcome::Success, quick),
        None => (Outcome::Failure(refused(&address, port)), quick),
    }
}

/// No program of the model speaks gRPC: the connection fails, or the answer is not understood.
pub(super) fn grpc(
    pod: &Pod,
    container: &str,
    target: &Value,
    timeout: Duration,
) -> (Outcome, Duration) {
    let port = port_of(pod, container, &target["port"]).unwrap_or(0);
    let address = address_of(pod);
    let speaks = network::socket_of(pod, port, false).is_some_and(|(run, index)| {
        matches!(run.sockets[index].listen.speaks, Protocol::Http { .. })
    });
    if speaks {
        let why = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)";
        return (Outcome::Failure(why.to_owned()), Duration::from_millis(3));
    }
    let why = format!(
        "timeout: failed to connect service \"{address}:{port}\" within {}s: context deadline exceeded",
        timeout.as_secs()
    );
    (Outcome::Failure(why), timeout)
}
