//! The simulated network: names, Services, connections and HTTP requests.
//!
//! Everything is answered from the objects in the store and the sockets of running processes: a name from the
//! Services (as long as cluster DNS has an endpoint), a Service's address from its ready endpoints, a pod's
//! address from what listens there. Unserved connections are refused, as kube-proxy rejects them; denied ones as the
//! cluster's network has it.

use std::time::Duration;

use serde_json::Value;

use crate::embedded::image::program::Protocol;
use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::{Pod, Run, RunState, Socket};
use crate::embedded::kubelet::policy::{self, Denied};
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// Address of the cluster's DNS.
pub const DNS_ADDRESS: &str = "10.43.0.10";

/// How a connection attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Pod uid, run id and index of the socket.
    Open(String, String, usize),
    Refused,
    NoAnswer,
}

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    NoSuchHost,
    NoAnswer,
}

impl NameError {
    /// As Go's resolver words it.
    pub fn text(&self, name: &str) -> String {
        match self {
            NameError::NoSuchHost => format!("lookup {name} on {DNS_ADDRESS}:53: no such host"),
            NameError::NoAnswer => {
                format!("lookup {name} on {DNS_ADDRESS}:53: dial udp {DNS_ADDRESS}:53: i/o timeout")
            }
        }
    }
}

/// The address of a name as a pod sees it.
pub fn resolve(world: &World, from: &Pod, name: &str) -> Result<String, NameError> {
    if name.parse::<std::net::IpAddr>().is_ok() {
        return Ok(name.to_owned());
    }
    if name == "localhost" {
        return Ok("127.0.0.1".to_owned());
    }
    if name == from.name {
        return from
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.ip.clone())
            .ok_or(NameError::NoSuchHost);
    }
    if !dns_answers(world, from) {
        return Err(NameError::NoAnswer);
    }
    let name = name.trim_end_matches('.');
    let short = name
        .strip_suffix(".svc.cluster.local")
        .or_else(|| name.strip_suffix(".svc"))
        .unwrap_or(name);
    let parts: Vec<&str> = short.split('.').collect();
    let found = match parts.as_slice() {
        [service] => service_address(world, &from.namespace, service),
        [service, namespace] => service_address(world, namespace, service),
        [pod, service, namespace] => stateful_address(world, namespace, service, pod),
        _ => None,
    };
    found.ok_or(NameError::NoSuchHost)
}

/// Cluster DNS answers when its Service has a ready endpoint that may be reached. A cluster without the
/// Service has some other DNS.
fn dns_answers(world: &World, from: &Pod) -> bool {
    let Some(service) = world.store.get(Kind::Service, "kube-system", "kube-dns") else {
        return true;
    };
    let endpoints = ready_endpoints(world, service, "dns");
    endpoints
        .iter()
        .any(|(address, port)| policy::allows(world, from, address, *port))
}

fn service_address(world: &World, namespace: &str, name: &str) -> Option<String> {
    let service = world.store.get(Kind::Service, namespace, name)?;
    match service["spec"]["clusterIP"].as_str() {
        Some("None") => {
            let any = ready_endpoints(world, service, "");
            any.first().map(|(address, _)| address.clone())
        }
        Some(ip) if !ip.is_empty() => Some(ip.to_owned()),
        _ => None,
    }
}

fn stateful_address(world: &World, namespace: &str, service: &str, pod: &str) -> Option<String> {
    world.store.get(Kind::Service, namespace, service)?;
    let object = world.store.get(Kind::Pod, namespace, pod)?;
    object["status"]["podIP"].as_str().map(str::to_owned)
}

/// Ready addresses and target ports of a Service's port (any port for an empty name).
fn ready_endpoints(world: &World, service: &Value, port_name: &str) -> Vec<(String, u16)> {
    let namespace = service["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let name = &service["metadata"]["name"];
    let mut all = Vec::new();
    for slice in world.store.within(Kind::EndpointSlice, namespace) {
        if &slice["metadata"]["labels"]["kubernetes.io/service-name"] != name {
            continue;
        }
        let ports = slice["ports"].as_array().into_iter().flatten();
        let port = ports
            .filter(|port| {
                port_name.is_empty() || port["name"].as_str().unwrap_or_default() == port_name
            })
            .find_map(|port| u16::try_from(port["port"].as_u64()?).ok());
        let Some(port) = port else { continue };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            if endpoint["conditions"]["ready"] == false {
                continue;
            }
            for address in endpoint["addresses"].as_array().into_iter().flatten() {
                all.push((address.as_str().unwrap_or_default().to_owned(), port));
            }
        }
    }
    all
}

/// Opens a connection from a pod.
pub fn connect(world: &World, from: &Pod, address: &str, port: u16) -> Connection {
    if address == "127.0.0.1" || address == "::1" {
        return socket_of(from, port, true).map_or(Connection::Refused, |(run, index)| {
            Connection::Open(from.uid.clone(), run.facts.id.clone(), index)
        });
    }
    let service = world
        .store
        .all(Kind::Service)
        .find(|service| service["spec"]["clusterIP"] == address);
    if let Some(service) = service {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let mut ports = ports.filter(|entry| entry["port"].as_u64() == Some(u64::from(port)));
        let Some(entry) = ports.next() else {
            return Connection::NoAnswer;
        };
        let name = entry["name"].as_str().unwrap_or_default();
        let endpoints = named_endpoints(world, service, name);
        return match endpoints.first() {
            Some((address, port)) => connect_pod(world, from, address, *port),
            None => Connection::Refused,
        };
    }
    connect_pod(world, from, address, port)
}

/// As [`ready_endpoints`] where an unnamed port matches unnamed slices only.
fn named_endpoints(world: &World, service: &Value, name: &str) -> Vec<(String, u16)> {
    ready_endpoints(world, service, name)
}

fn connect_pod(world: &World, from: &Pod, address: &str, port: u16) -> Connection {
    let has_address = |pod: &Pod| {
        pod.sandbox
            .as_ref()
            .is_some_and(|sandbox| sandbox.ip == address)
    };
    let target = if has_address(from) {
        Some(from)
    } else {
        world.kubelet.pods.values().find(|pod| has_address(pod))
    };
    let Some(target) = target else {
        return Connection::NoAnswer;
    };
    if !policy::allows(world, from, address, port) {
        return match world.kubelet.denied {
            Denied::Rejected => Connection::Refused,
            Denied::Dropped => Connection::NoAnswer,
        };
    }
    socket_of(target, port, false).map_or(Connection::Refused, |(run, index)| {
        Connection::Open(target.uid.clone(), run.facts.id.clone(), index)
    })
}

/// What listens on a port of a pod.
pub fn socket_of(pod: &Pod, port: u16, loopback: bool) -> Option<(&Run, usize)> {
    pod.runs
        .iter()
        .filter(|run| run.facts.state == RunState::Running)
        .find_map(|run| {
            let index = run
                .sockets
                .iter()
                .position(|socket| socket.port == port && (loopback || !socket.loopback))?;
            Some((run, index))
        })
}

/// The socket behind an open connection, looked up in the pod at hand or in the world.
pub fn socket<'a>(
    world: &'a World,
    from: &'a Pod,
    uid: &str,
    run: &str,
    index: usize,
) -> Option<&'a Socket> {
    let pod = if uid == from.uid {
        from
    } else {
        world.kubelet.pods.get(uid)?
    };
    pod.run(run)?.sockets.get(index)
}

/// An HTTP answer: status, body, and when it is there.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    pub at: Time,
}

/// Lets a run answer an HTTP request of a client that waits so long; `None` when the socket does not speak HTTP.
pub fn serve(
    world: &World,
    run: &mut Run,
    index: usize,
    path: &str,
    patience: Duration,
) -> Option<Answer> {
    let now = world.now();
    let socket = run.sockets.get(index)?;
    let Protocol::Http { paths, not_found } = &socket.listen.speaks else {
        return None;
    };
    let path = path.split('?').next().unwrap_or_default();
    let process = run
        .processes
        .iter()
        .find(|process| process.id == socket.process);
    let known = paths.iter().find(|known| {
        known.path == path || (known.prefix && path.starts_with(known.path.trim_end_matches('/')))
    });
    let Some(known) = known else {
        let at = run.cpu.charge(now, 100) + Duration::from_micros(400);
        return Some(Answer {
            status: 404,
            body: not_found.clone(),
            at,
        });
    };
    let times = process.map_or(known.cpu_times.default, |process| {
        known.cpu_times.in_env(&process.vars)
    });
    let linked = process.and_then(crate::embedded::kubelet::machine::Machine::link_of);
    let database_there = linked.is_some_and(|link| {
        world
            .kubelet
            .pods
            .get(&link.pod)
            .and_then(|pod| pod.run(&link.run))
            .is_some_and(|run| run.facts.state == RunState::Running)
    });
    let (status, body) = match &known.without_database {
        Some(body) if !database_there => (500, body.clone()),
        _ => (known.status, known.body.clone()),
    };
    let cost = varied(known.cpu_us_each * times, now);
    let done = match known.given_up {
        true => run.cpu.charge_until(now, cost, now + patience),
        false => run.cpu.charge(now, cost),
    };
    let at = done + Duration::from_micros(400);
    Some(Answer { status, body, at })
}

/// No two requests cost the same: collections, caches and other work make up to an eighth more or less. Drawn
/// from the moment, so that the same history costs the same.
fn varied(micros: u64, now: Time) -> u64 {
    let draw = now
        .micros()
        .unsigned_abs()
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        >> 40;
    micros * (875 + draw % 251) / 1000
}
