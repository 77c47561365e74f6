//! Programs that cannot reach a peer: is the peer gone, or its name?

use crate::agent::diagnose::Look;
use crate::agent::diagnose::credentials::{server_of, service_of};
use crate::agent::diagnose::log_line::{is_unreachable, is_unresolved};
use crate::agent::diagnose::rollout::{raised_to, wanted_before};
use crate::agent::diagnose::url::Url;
use crate::agent::diagnose::variables::variables;
use crate::agent::evidence::field::Field;
use crate::agent::evidence::{Container, Service, Workload};
use crate::agent::finding::{Finding, category, from_history};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (pod, container) in look.workload.containers().filter(|(_, c)| !c.ready) {
        let Some(line) = container
            .log_lines()
            .rev()
            .find(|line| is_unreachable(line))
        else {
            continue;
        };
        let quote = format!(
            "log of pod {}, container {}: {line}",
            pod.name, container.name
        );
        let hosts = hosts(look, container);
        let explained = hosts.iter().find_map(|host| gone(look, host)).or_else(|| {
            hosts
                .iter()
                .find_map(|host| unknown_name(look, container, host, line))
        });
        found.extend(explained.map(|finding| finding.quote(quote)));
    }
    found.truncate(1);
    found
}

/// Hosts that the container's variables point at.
pub fn hosts(look: &Look<'_>, container: &Container) -> Vec<String> {
    variables(look.evidence, look.workload, look.spec(&container.name))
        .iter()
        .filter_map(|variable| Url::parse(&variable.value))
        .map(|url| url.host)
        .collect()
}

/// Services that the container's variables point at, with the workloads behind them.
pub fn peers<'a>(look: &Look<'a>, container: &Container) -> Vec<(&'a Service, &'a Workload)> {
    hosts(look, container)
        .iter()
        .filter_map(|host| {
            let service = service_of(look.evidence, look.workload, host)?;
            Some((service, server_of(look.evidence, look.workload, host)?))
        })
        .collect()
}

/// The peer was scaled to nothing.
fn gone(look: &Look<'_>, host: &str) -> Option<Finding> {
    let server = server_of(look.evidence, look.workload, host)?;
    if server.desired > 0 {
        return None;
    }
    let statement = format!(
        "{} runs no replica, so {}, which depends on it, cannot start",
        server.subject, look.workload.subject
    );
    let replicas = wanted_before(server).map_or(1, |(count, _)| count);
    Some(
        Finding::new(server, "rollout/replicas", category::ROLLOUT, 94, statement)
            .secondary(&[category::DEPENDENCY])
            .repairs([raised_to(server, replicas, "its dependants need it")]),
    )
}

/// The name of the peer does not resolve.
fn unknown_name(look: &Look<'_>, container: &Container, host: &str, line: &str) -> Option<Finding> {
    if !is_unresolved(line) {
        return None;
    }
    let workload = look.workload;
    if service_of(look.evidence, workload, host).is_some() {
        let statement = format!(
            "{} cannot resolve {host}, though a Service of that name exists: name resolution fails",
            workload.subject
        );
        return Some(Finding::new(
            workload,
            "dependency/dns",
            category::DNS,
            84,
            statement,
        ));
    }
    let repairs = from_history(workload, |field: &Field| {
        field.in_container(&container.name) && field.is_at(&["env"])
    });
    let statement = format!(
        "{} depends on {host}, and there is no Service of that name",
        workload.subject
    );
    Some(
        Finding::new(
            workload,
            "dependency/name",
            category::DNS,
            if repairs.is_empty() { 70 } else { 86 },
            statement,
        )
        .secondary(&[category::DEPENDENCY])
        .repairs(repairs),
    )
}
