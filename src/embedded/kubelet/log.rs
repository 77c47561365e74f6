//! Container output and the log endpoint: what is kept, what a request gets, the API's exact refusals.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::LogRequest;
use crate::embedded::kubelet::pod::Run;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// Bytes kept per run of a container. Runtimes rotate at 10 MiB; what an agent reads is the tail, and a
/// cluster in memory must stay small.
const KEPT_BYTES: usize = 256 * 1024;

/// The output of one run.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: VecDeque<(Time, String)>,
    bytes: usize,
    /// Lines that were dropped to keep within [`KEPT_BYTES`].
    dropped: u64,
    /// Output of the last write that had no line end yet.
    open: bool,
}

impl Log {
    /// Appends text that may hold several lines, or part of one.
    pub fn write(&mut self, now: Time, text: &str) {
        for piece in text.split_inclusive('\n') {
            match self.lines.back_mut() {
                Some((_, last)) if self.open => last.push_str(piece),
                _ => self.lines.push_back((now, piece.to_owned())),
            }
            self.open = !piece.ends_with('\n');
            self.bytes += piece.len();
        }
        while self.bytes > KEPT_BYTES {
            match self.lines.pop_front() {
                Some((_, old)) => {
                    self.bytes -= old.len();
                    self.dropped += 1;
                }
                None => break,
            }
        }
    }

    /// What a request gets.
    pub fn read(&self, request: &LogRequest, now: Time) -> String {
        let since = request
            .since_seconds
            .map(|seconds| now - Duration::from_secs(seconds));
        let skip = request
            .tail_lines
            .map_or(0, |tail| self.lines.len().saturating_sub(tail));
        let mut text = String::new();
        for (at, line) in self.lines.iter().skip(skip) {
            if since.is_some_and(|since| *at < since) {
                continue;
            }
            push_line(&mut text, *at, line, request.timestamps);
        }
        if let Some(limit) = request.limit_bytes {
            let mut end = limit.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        text
    }

    /// The number of the line after the last whole one, counted from the first that was ever written.
    fn end(&self) -> u64 {
        self.dropped + (self.lines.len() - usize::from(self.open)) as u64
    }

    /// The lines from a number on; a last one without its end only if there will be no more.
    fn from(&self, next: u64, timestamps: bool, ended: bool) -> String {
        let skip = usize::try_from(next.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        let whole = self.lines.len() - usize::from(self.open && !ended);
        let mut text = String::new();
        for (at, line) in self.lines.iter().take(whole).skip(skip) {
            push_line(&mut text, *at, line, timestamps);
        }
        text
    }

    /// The last lines, at most `lines` and `bytes` of them, for termination messages.
    pub fn tail(&self, lines: usize, bytes: usize) -> String {
        let skip = self.lines.len().saturating_sub(lines);
        let text: String = self
            .lines
            .iter()
            .skip(skip)
            .map(|(_, line)| line.as_str())
            .collect();
        let mut start = text.len().saturating_sub(bytes);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text[start..].to_owned()
    }
}

fn push_line(text: &mut String, at: Time, line: &str, timestamps: bool) {
    if timestamps {
        text.push_str(&nanos_text(at));
        text.push(' ');
    }
    text.push_str(line);
}

/// RFC 3339 with nine digits. The digits below a microsecond derive from those above, so that texts look real
/// and stay the same for the same moment.
pub fn nanos_text(at: Time) -> String {
    let micros = at.micros_text();
    let below = at
        .micros()
        .unsigned_abs()
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        >> 40;
    format!("{}{:03}Z", micros.trim_end_matches('Z'), below % 1000)
}

/// Go's RFC3339Nano: as [`nanos_text`] without zeros at the end.
pub fn go_time_text(at: Time) -> String {
    let text = nanos_text(at);
    let trimmed = text.trim_end_matches('Z').trim_end_matches('0');
    format!("{}Z", trimmed.trim_end_matches('.'))
}

/// The text of a container's log, or the message of the API's 400 BadRequest.
pub fn logs(
    world: &World,
    namespace: &str,
    name: &str,
    request: &LogRequest,
) -> Result<String, String> {
    match run_to_read(world, namespace, name, request)? {
        Found::NotYet => Ok(String::new()),
        Found::Gone { id } => Ok(format!("unable to retrieve container logs for {id}")),
        Found::Run(run, _) => Ok(run.log.read(request, world.now())),
    }
}

/// How far a run's log has been read by somebody who goes on reading.
#[derive(Clone, Debug)]
pub struct Position {
    pod_uid: String,
    run_id: String,
    next: u64,
}

/// What a request gets at once, and where to go on; no position when nothing can follow.
pub fn start_following(
    world: &World,
    namespace: &str,
    name: &str,
    request: &LogRequest,
) -> Result<(String, Option<Position>), String> {
    let text = logs(world, namespace, name, request)?;
    let position = match run_to_read(world, namespace, name, request)? {
        Found::Run(run, pod_uid) if run.facts.finished_at.is_none() => Some(Position {
            pod_uid,
            run_id: run.facts.id.clone(),
            next: run.log.end(),
        }),
        _ => None,
    };
    Ok((text, position))
}

/// What was written since, and where to go on; no position once the run has ended.
pub fn follow(world: &World, position: &Position, timestamps: bool) -> (String, Option<Position>) {
    let run = world
        .kubelet
        .pods
        .get(&position.pod_uid)
        .and_then(|pod| pod.run(&position.run_id));
    let Some(run) = run else {
        return (String::new(), None);
    };
    let ended = run.facts.finished_at.is_some();
    let text = run.log.from(position.next, timestamps, ended);
    let next = (!ended).then(|| Position {
        next: run.log.end(),
        ..position.clone()
    });
    (text, next)
}

/// The run of a container that a request is about.
enum Found<'a> {
    /// The pod is on no node.
    NotYet,
    /// The node has it no more.
    Gone { id: String },
    /// The run, and its pod's uid.
    Run(&'a Run, String),
}

fn run_to_read<'a>(
    world: &'a World,
    namespace: &str,
    name: &str,
    request: &LogRequest,
) -> Result<Found<'a>, String> {
    let Some(object) = world.store.get(Kind::Pod, namespace, name) else {
        return Err(format!("pods \"{name}\" not found"));
    };
    let container = chosen_container(object, name, request)?;
    if object["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        return Ok(Found::NotYet);
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let pod = world.kubelet.pods.get(uid);
    let known = pod.map_or(&object["status"], |pod| &pod.status);
    let status = ["initContainerStatuses", "containerStatuses"]
        .iter()
        .flat_map(|list| known[list].as_array().into_iter().flatten())
        .find(|status| status["name"] == container.as_str());
    let Some(status) = status else {
        return Err(format!(
            "container \"{container}\" in pod \"{name}\" is not available"
        ));
    };
    let id = container_to_read(status, &container, name, request.previous)?;
    Ok(
        match pod.and_then(|pod| pod.run(id.trim_start_matches("containerd://"))) {
            Some(run) => Found::Run(run, uid.to_owned()),
            None => Found::Gone { id },
        },
    )
}

/// The container asked for, or the only one.
fn chosen_container(object: &Value, name: &str, request: &LogRequest) -> Result<String, String> {
    let names = |list: &str| -> Vec<&str> {
        object["spec"][list]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|container| container["name"].as_str())
            .collect()
    };
    let containers = names("containers");
    let init = names("initContainers");
    match request
        .container
        .as_deref()
        .filter(|container| !container.is_empty())
    {
        Some(wanted) if containers.contains(&wanted) || init.contains(&wanted) => {
            Ok(wanted.to_owned())
        }
        Some(wanted) => Err(format!("container {wanted} is not valid for pod {name}")),
        None => match (containers.as_slice(), init.is_empty()) {
            ([only], true) => Ok((*only).to_owned()),
            _ => {
                let mut text = format!(
                    "a container name must be specified for pod {name}, choose one of: [{}]",
                    containers.join(" ")
                );
                if !init.is_empty() {
                    text.push_str(&format!(
                        " or one of the init containers: [{}]",
                        init.join(" ")
                    ));
                }
                Err(text)
            }
        },
    }
}

/// Which run's output a request means, going by the status as an API reader sees it.
fn container_to_read(
    status: &Value,
    container: &str,
    pod: &str,
    previous: bool,
) -> Result<String, String> {
    let id_of = |value: &Value| value["containerID"].as_str().unwrap_or_default().to_owned();
    let state = &status["state"];
    let last = &status["lastState"]["terminated"];
    let last_id = id_of(last);
    if previous {
        if last_id.is_empty() {
            return Err(format!(
                "previous terminated container \"{container}\" in pod \"{pod}\" not found"
            ));
        }
        return Ok(last_id);
    }
    if !state["running"].is_null() {
        return Ok(id_of(status));
    }
    if !state["terminated"].is_null() {
        let id = id_of(&state["terminated"]);
        let id = if id.is_empty() { last_id } else { id };
        return if id.is_empty() {
            Err(format!(
                "container \"{container}\" in pod \"{pod}\" is terminated"
            ))
        } else {
            Ok(id)
        };
    }
    if !last_id.is_empty() {
        return Ok(last_id);
    }
    let Some(reason) = state["waiting"]["reason"].as_str() else {
        return Err(format!(
            "container \"{container}\" in pod \"{pod}\" is waiting to start - no logs yet"
        ));
    };
    let why = match reason {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        other => other,
    };
    Err(format!(
        "container \"{container}\" in pod \"{pod}\" is waiting to start: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_the_tail_and_forgets_the_oldest() {
        let mut log = Log::default();
        let now = Time::from_micros(1_772_444_467_123_456);
        for i in 0..10_000 {
            log.write(
                now,
                &format!("line {i} of a text that is long enough to matter\n"),
            );
        }
        let request = LogRequest {
            tail_lines: Some(1),
            ..LogRequest::default()
        };
        assert_eq!(
            log.read(&request, now),
            "line 9999 of a text that is long enough to matter\n"
        );
        assert!(log.bytes <= KEPT_BYTES);
    }

    #[test]
    fn whoever_follows_a_log_gets_every_line_once_and_whole() {
        let mut log = Log::default();
        let now = Time::from_micros(1_772_444_467_123_456);
        log.write(now, "one\ntwo\nthr");
        let end = log.end();
        assert_eq!(end, 2);
        assert_eq!(log.from(end, false, false), "");
        log.write(now, "ee\nfou");
        assert_eq!(log.from(end, false, false), "three\n");
        assert_eq!(log.from(log.end(), false, true), "fou");
        log.write(now, &"r\nfive\n".repeat(KEPT_BYTES / 4));
        assert!(log.dropped > 0);
        assert_eq!(log.from(log.end() - 1, false, false), "five\n");
    }

    #[test]
    fn go_times_have_no_zeros_at_the_end() {
        let text = go_time_text(Time::from_micros(1_772_444_467_000_000));
        assert!(text.starts_with("2026-03-02T09:41:07") && text.ends_with('Z'));
        assert!(!text.contains("0Z"));
    }
}
