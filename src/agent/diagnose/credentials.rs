//! Credentials that a server refuses, compared with those that the server itself was set up with.

use serde_json::json;

use crate::agent::diagnose::Look;
use crate::agent::diagnose::environment::store_field;
use crate::agent::diagnose::log_line::refuses_credentials;
use crate::agent::diagnose::url::Url;
use crate::agent::diagnose::variables::{From, Variable, stores_of, variables};
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::{Container, Evidence, Service, Store, Workload, matches_labels};
use crate::agent::finding::{Finding, Repair, category, from_history};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    look.workload
        .containers()
        .filter(|(_, container)| !container.ready)
        .find_map(|(pod, container)| {
            let line = container
                .log_lines()
                .rev()
                .find(|line| refuses_credentials(line))?;
            let quote = format!(
                "log of pod {}, container {}: {line}",
                pod.name, container.name
            );
            Some(explain(look, container).quote(quote))
        })
        .into_iter()
        .collect()
}

fn explain(look: &Look<'_>, container: &Container) -> Finding {
    let workload = look.workload;
    let all = variables(look.evidence, workload, look.spec(&container.name));
    let wrong: Vec<(Variable, String, String)> = all
        .iter()
        .filter_map(|variable| {
            let (value, server) = right_value(look.evidence, workload, variable)?;
            (value != variable.value).then(|| (variable.clone(), value, server))
        })
        .collect();
    let environment = |field: &Field| field.in_container(&container.name) && field.is_at(&["env"]);
    let mut repairs: Vec<Repair> = wrong
        .iter()
        .filter_map(|(variable, value, server)| {
            correction(look, container, variable, value, server)
        })
        .collect();
    if repairs.is_empty() {
        repairs = from_history(workload, environment);
    }
    let statement = match wrong.first() {
        Some((variable, _, server)) => format!(
            "{} cannot log in: the credentials in {} are not those that {server} was set up with",
            workload.subject, variable.name
        ),
        None => format!(
            "{} cannot log in: the server refuses its credentials",
            workload.subject
        ),
    };
    let confidence = if wrong.is_empty() { 76 } else { 95 };
    Finding::new(
        workload,
        format!("credentials/{}", container.name),
        category::SECRET_CONTENT,
        confidence,
        statement,
    )
    .secondary(&[category::CREDENTIAL_INVENTION])
    .quotes(
        repairs
            .iter()
            .map(|repair| format!("{} ({})", repair.words(), repair.why)),
    )
    .repairs(repairs)
}

/// What a variable would hold if it agreed with the server that it points at, and that server's name.
fn right_value(
    evidence: &Evidence,
    client: &Workload,
    variable: &Variable,
) -> Option<(String, String)> {
    if let Some(url) = Url::parse(&variable.value) {
        let server = server_of(evidence, client, &url.host)?;
        let (user, password) = set_up_with(evidence, server)?;
        let agrees = url.password == password && user.as_ref().is_none_or(|u| *u == url.user);
        let right = match agrees {
            true => variable.value.clone(),
            false => url.with_credentials(user.as_deref(), &password),
        };
        return Some((right, server.subject.to_string()));
    }
    // A password that stands alone belongs to the server that another variable of the client names.
    is_password(&variable.name).then_some(())?;
    let server = evidence.workloads.iter().find(|other| {
        other.subject != client.subject
            && other.subject.namespace == client.subject.namespace
            && set_up_with(evidence, other).is_some()
    })?;
    let (_, password) = set_up_with(evidence, server)?;
    Some((password, server.subject.to_string()))
}

fn correction(
    look: &Look<'_>,
    container: &Container,
    variable: &Variable,
    value: &str,
    server: &str,
) -> Option<Repair> {
    let why = format!("the credentials that {server} was set up with");
    match &variable.from {
        From::Store { kind, name, key } => {
            let store = look
                .evidence
                .store(kind, &look.workload.subject.namespace, name)?;
            Some(Repair {
                target: store.subject.clone(),
                fields: vec![store_field(store, key, value)],
                restart: Some(look.workload.subject.clone()),
                why,
            })
        }
        From::Template => {
            let mut path = look.container_path(container, &["env"]);
            path.push(Step::Named(variable.name.clone()));
            path.push(Step::Key("value".to_owned()));
            Some(Repair {
                target: look.workload.subject.clone(),
                fields: vec![Field {
                    path,
                    is: Some(json!(variable.value)),
                    wanted: Some(json!(value)),
                }],
                restart: None,
                why,
            })
        }
    }
}

/// The workload behind a host name, by way of a Service of that name.
pub fn server_of<'a>(
    evidence: &'a Evidence,
    client: &Workload,
    host: &str,
) -> Option<&'a Workload> {
    let service = service_of(evidence, client, host)?;
    evidence
        .workloads
        .iter()
        .find(|workload| {
            workload.subject.namespace == service.subject.namespace
                && !service.selector.is_empty()
                && matches_labels(
                    &workload.template()["metadata"]["labels"],
                    &service.selector,
                )
        })
        .filter(|workload| workload.subject != client.subject)
}

/// The Service that a host name means, seen from a client's namespace.
pub fn service_of<'a>(
    evidence: &'a Evidence,
    client: &Workload,
    host: &str,
) -> Option<&'a Service> {
    let mut labels = host.split('.');
    let name = labels.next()?;
    let namespace = labels.next().unwrap_or(&client.subject.namespace);
    evidence
        .services
        .iter()
        .find(|service| service.subject.name == name && service.subject.namespace == namespace)
        .or_else(|| {
            // An address in place of a name.
            evidence
                .services
                .iter()
                .find(|service| service.object["spec"]["clusterIP"] == host)
        })
}

/// User and password that a server's own Secrets and ConfigMaps give it.
fn set_up_with(evidence: &Evidence, server: &Workload) -> Option<(Option<String>, String)> {
    let stores = stores_of(evidence, server);
    let spec = &server.template()["spec"]["containers"];
    let literals = spec.as_array().into_iter().flatten().flat_map(|container| {
        variables(evidence, server, container)
            .into_iter()
            .map(|variable| (variable.name, variable.value))
    });
    let all: Vec<(String, String)> = stores
        .iter()
        .flat_map(|store: &&Store| store.values.clone())
        .chain(literals)
        .collect();
    // A replication or exporter account may stand beside the main one; the shortest name is the main one.
    let pick = |wanted: fn(&str) -> bool| {
        all.iter()
            .filter(|(name, value)| wanted(name) && !value.is_empty())
            .min_by_key(|(name, _)| name.len())
            .map(|(_, value)| value.clone())
    };
    Some((pick(is_user), pick(is_password)?))
}

fn is_user(name: &str) -> bool {
    let upper = name.to_uppercase();
    upper.ends_with("USER") || upper.ends_with("USERNAME")
}

fn is_password(name: &str) -> bool {
    let upper = name.to_uppercase();
    ["PASSWORD", "PASSWD", "_PWD", "PASS"]
        .iter()
        .any(|word| upper.ends_with(word))
}

/// A connection URL for a key that is gone, from the server's own credentials and what a sibling URL tells; only
/// when exactly one server in the namespace could be meant.
pub fn rebuilt_url(look: &Look<'_>, store: &Store, key: &str) -> Option<(String, String)> {
    let upper = key.to_uppercase();
    if !(upper.ends_with("URL") || upper.ends_with("URI") || upper.ends_with("DSN")) {
        return None;
    }
    let mut servers = look.evidence.workloads.iter().filter(|workload| {
        workload.subject.namespace == store.subject.namespace
            && workload.subject != look.workload.subject
            && set_up_with(look.evidence, workload).is_some()
    });
    let server = servers.next().filter(|_| servers.next().is_none())?;
    let (user, password) = set_up_with(look.evidence, server)?;
    let user = user?;
    let scheme = scheme_of(look.evidence, server)?;
    let service = look.evidence.services.iter().find(|service| {
        service.subject.namespace == server.subject.namespace
            && !service.selector.is_empty()
            && matches_labels(&server.template()["metadata"]["labels"], &service.selector)
    })?;
    let port = service.object["spec"]["ports"][0]["port"].as_i64()?;
    let database = variables(
        look.evidence,
        server,
        &server.template()["spec"]["containers"][0],
    )
    .into_iter()
    .find(|variable| {
        ["_DB", "_DATABASE"]
            .iter()
            .any(|end| variable.name.to_uppercase().ends_with(end))
    })
    .map_or(user.clone(), |variable| variable.value);
    let url = Url {
        scheme: scheme.to_owned(),
        user,
        password,
        host: format!(
            "{}.{}.svc.cluster.local",
            service.subject.name, service.subject.namespace
        ),
        rest: format!(":{port}/{database}"),
    };
    Some((
        url.to_string(),
        format!(
            "built from the credentials that {} was set up with",
            server.subject
        ),
    ))
}

/// The scheme of a database server's URLs, told by its image, by the names of what it is set up with, or by its port.
fn scheme_of(evidence: &Evidence, server: &Workload) -> Option<&'static str> {
    let container = &server.template()["spec"]["containers"][0];
    let image = container["image"].as_str().unwrap_or_default();
    let ports = container["ports"].as_array().into_iter().flatten();
    let ports: Vec<i64> = ports
        .filter_map(|port| port["containerPort"].as_i64())
        .collect();
    let names: Vec<String> = variables(evidence, server, container)
        .into_iter()
        .map(|variable| variable.name)
        .collect();
    let kinds: [(&str, &[&str], i64); 2] = [
        ("postgres", &["postgres"], 5432),
        ("mysql", &["mysql", "mariadb"], 3306),
    ];
    let told = kinds.iter().find(|(_, words, _)| {
        words.iter().any(|word| {
            let start = format!("{}_", word.to_uppercase());
            image.contains(word) || names.iter().any(|name| name.starts_with(&start))
        })
    });
    told.or_else(|| kinds.iter().find(|(_, _, port)| ports.contains(port)))
        .map(|(scheme, _, _)| *scheme)
}
