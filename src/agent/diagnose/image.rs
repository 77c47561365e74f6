//! Images that cannot be had.

use crate::agent::diagnose::Look;
use crate::agent::evidence::Container;
use crate::agent::evidence::field::{Field, Step};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};
use serde_json::json;

/// Reasons with which a container waits for its image.
const REASONS: &[&str] = &[
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let workload = look.workload;
    let mut found = Vec::new();
    for (pod, container) in workload.containers() {
        let Some((reason, message)) = container.waiting().filter(|(r, _)| REASONS.contains(r))
        else {
            continue;
        };
        let image = look.spec(&container.name)["image"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let history = from_history(workload, |field| concerns_image(field, container));
        let repairs: Vec<Repair> = history
            .into_iter()
            .chain(sibling(look, container, &image))
            .collect();
        let statement = format!(
            "{} was rolled out with an image that cannot be pulled for container {}: {image}",
            workload.subject, container.name
        );
        found.push(
            Finding::new(
                workload,
                format!("image/{}", container.name),
                category::ROLLOUT,
                96,
                statement,
            )
            .quote(format!(
                "pod {}: container {} waits, {reason}: {message}",
                pod.name, container.name
            ))
            .quotes(repairs.iter().map(Repair::words))
            .repairs(repairs),
        );
        break;
    }
    found
}

fn concerns_image(field: &Field, container: &Container) -> bool {
    let last = field.path.last();
    let key = |name: &str| last == Some(&Step::Key(name.to_owned()));
    field.in_container(&container.name) && (key("image") || key("imagePullPolicy"))
        || field.is_at(&["imagePullSecrets"])
}

/// The tag with which another healthy workload runs the same repository.
fn sibling(look: &Look<'_>, container: &Container, image: &str) -> Option<Repair> {
    let repository = |image: &str| {
        image
            .rsplit_once(':')
            .map_or(image.to_owned(), |(r, _)| r.to_owned())
    };
    let tag = look
        .evidence
        .workloads
        .iter()
        .filter(|other| {
            other.subject != look.workload.subject && other.is_settled() && other.ready > 0
        })
        .filter_map(|other| other.template()["spec"]["containers"].as_array())
        .flatten()
        .filter_map(|spec| spec["image"].as_str())
        .find(|other| *other != image && repository(other) == repository(image))?;
    let field = Field {
        path: look.container_path(container, &["image"]),
        is: Some(json!(image)),
        wanted: Some(json!(tag)),
    };
    Some(setting(
        &look.workload.subject,
        field,
        "the tag that another workload runs",
    ))
}
