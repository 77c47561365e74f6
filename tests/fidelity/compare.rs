//! One fault: sets the cluster up, plays the commands, compares sample by sample.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use agent_breakage::embedded::bootstrap;
use agent_breakage::embedded::cluster::{Cluster, ClusterConfig};
use agent_breakage::embedded::kind::Kind;
use agent_breakage::embedded::kubelet::policy::Denied;
use agent_breakage::embedded::time::Time;
use serde_json::Value;

use crate::names::Names;
use crate::play;
use crate::values::{NAMESPACE, Values, sample_of, values};

/// How far from a sample the same state may be seen.
const WINDOW_S: f64 = 3.0;

/// Distance of the looks inside the window.
const LOOK_S: f64 = 0.5;

/// Until the fixture is up and quiet.
const WARM_UP: Duration = Duration::from_secs(45);

/// What comparing one fault gave.
#[derive(Default)]
pub struct Comparison {
    pub matched: usize,
    pub total: usize,
    pub differences: Vec<Difference>,
}

/// A value that differs.
pub struct Difference {
    pub path: String,
    recorded: String,
    shown: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n        recorded {:?}", self.path, self.recorded)?;
        for shown in self.shown.iter().take(3) {
            write!(f, "\n        embedded {shown:?}")?;
        }
        Ok(())
    }
}

/// `SEED` of the environment tries another course of chance; the accepted differences are those of the default.
fn seed() -> u64 {
    let given = std::env::var("SEED").ok();
    given
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261_130)
}

/// Plays and compares a recording.
pub fn run(recording: &Value) -> Comparison {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O can always be made");
    runtime.block_on(async { Play::new().run(recording).await })
}

struct Play {
    cluster: Cluster,
    client: kube::Client,
    comparison: Comparison,
}

/// What was seen at one moment after the commands began.
struct Look {
    at_s: f64,
    sample: Value,
}

impl Play {
    fn new() -> Play {
        let config = ClusterConfig {
            seed: seed(),
            start: Time::parse("2026-11-30T21:00:00Z").expect("a valid time"),
            images: crate::recorded::registry(),
            denied: Denied::default(),
        };
        let cluster = Cluster::new(config);
        cluster.with(bootstrap::populate);
        let client = cluster.client(NAMESPACE);
        Play {
            cluster,
            client,
            comparison: Comparison::default(),
        }
    }

    async fn run(mut self, recording: &Value) -> Comparison {
        tokio::time::sleep(Duration::from_secs(20)).await;
        let fixture: Value = serde_json::from_str(include_str!("../recordings/fixture.json"))
            .expect("the fixture is JSON");
        for object in fixture["items"].as_array().into_iter().flatten() {
            // The database is ready before the service starts, as it was there.
            if object["kind"] == "Deployment" {
                tokio::time::sleep(Duration::from_secs(15)).await;
            }
            let mut object = object.clone();
            for change in setup(recording, true) {
                let path = change["path"].as_str().unwrap_or_default();
                if object["kind"] == "Deployment"
                    && let Some(place) = object.pointer_mut(path)
                {
                    *place = change["value"].clone();
                }
            }
            play::create(&self.client, &object)
                .await
                .expect("the fixture is accepted");
        }
        tokio::time::sleep(WARM_UP).await;
        for command in setup(recording, false) {
            play::play(&self.client, command)
                .await
                .expect("the setup is accepted");
            tokio::time::sleep(WARM_UP).await;
        }
        let began = self.cluster.now();
        let commands = recording["inject"].as_array().cloned().unwrap_or_default();
        let player = tokio::spawn(inject(self.client.clone(), commands));
        let samples = recording["samples"].as_array().cloned().unwrap_or_default();
        let looks = self.looks(&samples).await;
        if let Err(why) = player.await.expect("playing does not panic") {
            self.differ("command", "accepted", vec![why]);
        }
        self.compare_states(recording, &samples, &looks);
        self.compare_events(recording, &samples, began, &looks);
        self.comparison
    }

    /// Looks at the cluster around each sample's time.
    async fn looks(&self, samples: &[Value]) -> Vec<Look> {
        let start = tokio::time::Instant::now();
        let mut looks: Vec<Look> = Vec::new();
        for sample in samples {
            let at = sample["at_s"].as_f64().unwrap_or(0.0);
            let mut when = (at - WINDOW_S).max(0.2);
            while when <= at + WINDOW_S {
                if looks.last().is_none_or(|last| when > last.at_s) {
                    tokio::time::sleep_until(start + Duration::from_secs_f64(when)).await;
                    let sample = self.cluster.with(|world| sample_of(world));
                    looks.push(Look { at_s: when, sample });
                }
                when += LOOK_S;
            }
        }
        looks
    }

    fn compare_states(&mut self, recording: &Value, samples: &[Value], looks: &[Look]) {
        let recorded_names = names_of(&recording["baseline"], samples);
        let all: Vec<Value> = looks.iter().map(|look| look.sample.clone()).collect();
        let names = names_of(&Value::Null, &all);
        for sample in samples {
            let at = sample["at_s"].as_f64().unwrap_or(0.0);
            let wanted = values(sample, &recorded_names, false);
            let shown: Vec<Values> = looks
                .iter()
                .filter(|look| (look.at_s - at).abs() <= WINDOW_S + 0.01)
                .map(|look| values(&look.sample, &names, false))
                .collect();
            for (path, value) in &wanted {
                if path.starts_with("log advocate-db") {
                    continue;
                }
                let seen: Vec<String> = shown
                    .iter()
                    .map(|all| {
                        all.get(path)
                            .cloned()
                            .unwrap_or_else(|| "(absent)".to_owned())
                    })
                    .collect();
                self.judge(&format!("{at:.0}s {path}"), value, seen);
            }
            self.judge_extra(at, &wanted, &shown);
        }
    }

    /// Pods and ReplicaSets that the recording does not have, all through the window.
    fn judge_extra(&mut self, at: f64, wanted: &Values, shown: &[Values]) {
        let Some(first) = shown.first() else { return };
        for path in first.keys() {
            let object = path.starts_with("pods ") || path.ends_with(" condition ReplicaFailure");
            if object && !wanted.contains_key(path) {
                let everywhere = shown.iter().all(|all| all.contains_key(path));
                if everywhere {
                    self.differ(
                        &format!("{at:.0}s {path}"),
                        "(absent)",
                        vec!["(present)".to_owned()],
                    );
                }
            }
        }
    }

    fn compare_events(
        &mut self,
        recording: &Value,
        samples: &[Value],
        began: Time,
        looks: &[Look],
    ) {
        let recorded_names = names_of(&recording["baseline"], samples);
        let all: Vec<Value> = looks.iter().map(|look| look.sample.clone()).collect();
        let names = names_of(&Value::Null, &all);
        let zero = recording["began"].as_str().and_then(Time::parse);
        let mut wanted: BTreeMap<String, f64> = BTreeMap::new();
        let mut last = 0.0_f64;
        for sample in samples {
            let at = sample["at_s"].as_f64().unwrap_or(0.0);
            last = last.max(at);
            for event in sample["events"].as_array().into_iter().flatten() {
                let first = event["first"].as_str().and_then(Time::parse);
                let first = match (first, zero) {
                    (Some(first), Some(zero)) => (first.micros() - zero.micros()) as f64 / 1e6,
                    _ => at,
                };
                // Events that began before the fault are counted up only.
                if first >= -1.0 {
                    wanted
                        .entry(event_text(event, &recorded_names))
                        .or_insert(first);
                }
            }
        }
        let shown = self
            .cluster
            .with(|world| shown_events(world, began, &names));
        for (text, at) in &wanted {
            let tolerance = WINDOW_S.max(at * 0.1) + 1.0;
            let seen = match shown.get(text) {
                Some(time) if (time - at).abs() <= tolerance => format!("{at:.0}"),
                Some(time) => format!("{time:.1}"),
                None => "(absent)".to_owned(),
            };
            self.judge(&format!("event {text}"), &format!("{at:.0}"), vec![seen]);
        }
        for (text, at) in &shown {
            if !wanted.contains_key(text) && *at >= 0.0 && *at < last {
                self.differ(
                    &format!("event {text}"),
                    "(absent)",
                    vec![format!("{at:.1}")],
                );
            }
        }
    }

    fn judge(&mut self, path: &str, recorded: &str, mut seen: Vec<String>) {
        self.comparison.total += 1;
        if seen.iter().any(|value| value == recorded) {
            self.comparison.matched += 1;
            return;
        }
        seen.dedup();
        self.comparison.total -= 1;
        self.differ(path, recorded, seen);
    }

    fn differ(&mut self, path: &str, recorded: &str, shown: Vec<String>) {
        self.comparison.total += 1;
        let difference = Difference {
            path: path.to_owned(),
            recorded: recorded.to_owned(),
            shown,
        };
        self.comparison.differences.push(difference);
    }
}

/// What a fault's fixture has beyond the common one: made so before its creation, or changed afterwards.
fn setup(recording: &Value, before: bool) -> impl Iterator<Item = &Value> {
    recording["setup"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(move |change| (change["op"] == "before-creation") == before)
}

/// Plays the commands; each is accepted or refused as it was.
async fn inject(client: kube::Client, commands: Vec<Value>) -> Result<(), String> {
    for command in commands {
        let answer = play::play(&client, &command).await;
        let refused = command["rc"] != 0;
        match (answer, refused) {
            (Ok(()), false) => {}
            (Err(why), true) => {
                let recorded = command["stderr"].as_str().unwrap_or_default();
                let plain = why
                    .rsplit("is invalid: ")
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                if !recorded.is_empty() && !recorded.contains(&plain) {
                    return Err(why);
                }
            }
            (Err(why), false) => return Err(why),
            (Ok(()), true) => return Err("accepted what was refused".to_owned()),
        }
    }
    Ok(())
}

/// ReplicaSets by age: those there before, then new ones as they appear.
fn names_of(baseline: &Value, samples: &[Value]) -> Names {
    let mut names = Names::default();
    let mut sets: Vec<(i64, String)> = Vec::new();
    for sample in std::iter::once(baseline).chain(samples) {
        for set in sample["replicasets"].as_array().into_iter().flatten() {
            let name = set["name"].as_str().unwrap_or_default().to_owned();
            let revision = set["revision"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or(i64::MAX);
            if !sets.iter().any(|(_, known)| known == &name) {
                sets.push((revision, name));
            }
        }
    }
    sets.sort();
    for (_, name) in sets {
        names.note(&name);
    }
    for sample in samples {
        for pod in sample["pods"].as_array().into_iter().flatten() {
            let (name, owner) = (pod["name"].as_str(), pod["owner"][0].as_str());
            if let (Some(name), Some(owner)) = (name, owner)
                && name
                    .strip_prefix(owner)
                    .is_some_and(|suffix| suffix.len() == 6)
            {
                names.note_owner(owner);
            }
        }
    }
    names
}

fn event_text(event: &Value, names: &Names) -> String {
    let text = |field: &str| names.plain(event[field].as_str().unwrap_or_default());
    format!(
        "{} {} {} {} | {}",
        text("type"),
        text("reason"),
        text("component"),
        text("object"),
        text("message")
    )
}

/// Events of the namespace: text, and seconds after `began` of their first time.
fn shown_events(
    world: &agent_breakage::embedded::world::World,
    began: Time,
    names: &Names,
) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for event in world.store.within(Kind::Event, NAMESPACE) {
        let time = ["firstTimestamp", "eventTime"]
            .iter()
            .find_map(|field| Time::parse(event[*field].as_str()?));
        let Some(time) = time else { continue };
        let component = ["source", "reportingComponent"].iter().find_map(|field| {
            let value = &event[*field];
            value
                .as_str()
                .or_else(|| value["component"].as_str())
                .filter(|text| !text.is_empty())
        });
        let about = &event["involvedObject"];
        let object = format!(
            "{}/{}",
            about["kind"].as_str().unwrap_or_default(),
            about["name"].as_str().unwrap_or_default()
        );
        let flat = serde_json::json!({
            "type": event["type"],
            "reason": event["reason"],
            "message": event["message"],
            "component": component,
            "object": object,
        });
        let at = (time.micros() - began.micros()) as f64 / 1e6;
        let entry = all.entry(event_text(&flat, names)).or_insert(at);
        // Event times are whole seconds. Of several that read alike the first after the commands counts.
        let later = *entry < -1.0 && at >= -1.0;
        let earlier = at >= -1.0 && at < *entry;
        if later || earlier {
            *entry = at;
        }
    }
    all
}
