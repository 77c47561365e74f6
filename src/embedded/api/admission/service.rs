//! Services: whether the addresses and node ports that they ask for can be had.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::embedded::api::defaults::service::{NODE_PORTS, in_service_range};
use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::status::Status;
use crate::embedded::api::validate::elements;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// Refuses a Service whose address is of another network, or whose node ports are taken or out of range.
pub fn check_allocations(world: &World, service: &Value) -> Result<(), Status> {
    let name = text(&service["metadata"]["name"]);
    let spec = Path::new("spec");
    let address = text(&service["spec"]["clusterIP"]);
    if address
        .parse::<Ipv4Addr>()
        .is_ok_and(|ip| !in_service_range(ip))
    {
        let why = format!(
            "failed to allocate IP {address}: the provided network does not match the current range"
        );
        let shown = Value::Array(vec![address.into()]);
        let error = FieldError::invalid(&spec.child("clusterIPs"), &shown, why);
        return Err(Status::invalid(Kind::Service, name, &[error]));
    }
    let list = spec.child("ports");
    for (at, port) in elements(&list, &service["spec"]["ports"]) {
        let Some(number) = port["nodePort"].as_u64().filter(|number| *number > 0) else {
            continue;
        };
        let why = if !NODE_PORTS.contains(&number) {
            format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                NODE_PORTS.start,
                NODE_PORTS.end - 1
            )
        } else if taken(world, service, port) {
            "provided port is already allocated".to_owned()
        } else {
            continue;
        };
        let error = FieldError::invalid(&at.child("nodePort"), &port["nodePort"], why);
        return Err(Status::invalid(Kind::Service, name, &[error]));
    }
    Ok(())
}

fn taken(world: &World, service: &Value, port: &Value) -> bool {
    world
        .store
        .all(Kind::Service)
        .filter(|other| other["metadata"]["uid"] != service["metadata"]["uid"])
        .filter_map(|other| other["spec"]["ports"].as_array())
        .flatten()
        .any(|other| other["nodePort"] == port["nodePort"] && other["protocol"] == port["protocol"])
}
