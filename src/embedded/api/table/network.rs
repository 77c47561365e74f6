//! The cells of what traffic goes through: Services, endpoints, Ingresses, NetworkPolicies.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::embedded::api::table::cells::Subject;
use crate::embedded::api::table::labels::{
    NONE, UNSET, first_of, labels, list, number, or_none, selector_or_none, text, text_or,
};

/// Hosts, ports and endpoints that are shown; more are counted.
const SHOWN: usize = 3;

pub(super) fn service(subject: &Subject) -> Vec<Value> {
    let spec = &subject.object["spec"];
    let ports: Vec<String> = list(&spec["ports"])
        .iter()
        .map(|port| {
            let (number, protocol) = (number(&port["port"]), text(&port["protocol"]));
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        subject.name(),
        json!(text(&spec["type"])),
        json!(text_or(&spec["clusterIPs"][0], NONE)),
        json!(external_address(subject.object)),
        json!(or_none(ports.join(","))),
        subject.age(),
        json!(labels(&spec["selector"])),
    ]
}

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let own: Vec<&str> = list(&spec["externalIPs"]).iter().map(text).collect();
    match text(&spec["type"]) {
        "ClusterIP" | "NodePort" => or_none(own.join(",")),
        "LoadBalancer" => {
            let balancer = balancer_addresses(service);
            let all: Vec<&str> = balancer.iter().map(String::as_str).chain(own).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => text(&spec["externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Addresses or host names that a load balancer gave.
fn balancer_addresses(object: &Value) -> BTreeSet<String> {
    list(&object["status"]["loadBalancer"]["ingress"])
        .iter()
        .map(|entry| text_or(&entry["ip"], text(&entry["hostname"])).to_owned())
        .filter(|address| !address.is_empty())
        .collect()
}

pub(super) fn endpoints(subject: &Subject) -> Vec<Value> {
    let subsets = list(&subject.object["subsets"]);
    let mut all: Vec<String> = Vec::new();
    for subset in subsets {
        let addresses = || {
            list(&subset["addresses"])
                .iter()
                .map(|one| text(&one["ip"]))
        };
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = number(&port["port"]);
            all.extend(addresses().map(|ip| format!("{ip}:{port}")));
        }
    }
    let shown = if subsets.is_empty() {
        NONE.to_owned()
    } else {
        first_of(&all, SHOWN, ",")
    };
    vec![subject.name(), json!(shown), subject.age()]
}

pub(super) fn endpoint_slice(subject: &Subject) -> Vec<Value> {
    let slice = subject.object;
    let ports: Vec<String> = list(&slice["ports"])
        .iter()
        .map(|port| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => port["name"].as_str().unwrap_or("*").to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(&slice["endpoints"])
        .iter()
        .flat_map(|endpoint| list(&endpoint["addresses"]))
        .map(|address| text(address).to_owned())
        .collect();
    let shown = |parts: &[String]| -> Value {
        if parts.is_empty() {
            json!(UNSET)
        } else {
            json!(first_of(parts, SHOWN, ","))
        }
    };
    vec![
        subject.name(),
        json!(text(&slice["addressType"])),
        shown(&ports),
        shown(&addresses),
        subject.age(),
    ]
}

pub(super) fn ingress(subject: &Subject) -> Vec<Value> {
    let spec = &subject.object["spec"];
    let addresses: Vec<String> = balancer_addresses(subject.object).into_iter().collect();
    let ports = if list(&spec["tls"]).is_empty() {
        "80"
    } else {
        "80, 443"
    };
    vec![
        subject.name(),
        json!(spec["ingressClassName"].as_str().unwrap_or(NONE)),
        json!(hosts(list(&spec["rules"]))),
        json!(addresses.join(",")),
        json!(ports),
        subject.age(),
    ]
}

fn hosts(rules: &[Value]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more = shown.len() == SHOWN;
        if more {
            break;
        }
        shown.extend(rule["host"].as_str().filter(|host| !host.is_empty()));
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        // Rules are counted, not hosts, as there.
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
    }
}

pub(super) fn ingress_class(subject: &Subject) -> Vec<Value> {
    let spec = &subject.object["spec"];
    let parameters = match &spec["parameters"] {
        Value::Null => NONE.to_owned(),
        given => {
            let group = given["apiGroup"]
                .as_str()
                .map_or(String::new(), |group| format!(".{group}"));
            format!("{}{group}/{}", text(&given["kind"]), text(&given["name"]))
        }
    };
    vec![
        subject.name(),
        json!(text(&spec["controller"])),
        json!(parameters),
        subject.age(),
    ]
}

pub(super) fn network_policy(subject: &Subject) -> Vec<Value> {
    vec![
        subject.name(),
        json!(selector_or_none(&subject.object["spec"]["podSelector"])),
        subject.age(),
    ]
}
