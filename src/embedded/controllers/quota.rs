//! ResourceQuotas: their status says what a namespace uses of what it may use. Admission counts.

use serde_json::{Map, Value, json};

use crate::embedded::api::admission::quota;
use crate::embedded::controllers::Key;
use crate::embedded::controllers::object::set_status;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(object) = world
        .store
        .get(Kind::ResourceQuota, &key.namespace, &key.name)
        .cloned()
    else {
        return;
    };
    let used: Map<String, Value> = quota::used(world, &object)
        .into_iter()
        .map(|(resource, amount)| (resource, amount.to_string().into()))
        .collect();
    let status = json!({"hard": object["spec"]["hard"], "used": used});
    set_status(world, Kind::ResourceQuota, &object, status);
}

#[cfg(test)]
mod tests;
