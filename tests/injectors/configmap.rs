//! configmap-patch: keys with dots, large objects, what others changed, what is refused.

use agent_breakage::inject::configmap_patch::MAX_DATA;
use agent_breakage::scenario::model::Injector;
use agent_breakage::scenario::mutation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage, object, paused};

fn patch(name: &str, text: &str) -> Injector {
    Injector::ConfigmapPatch {
        namespace: NAMESPACE.to_owned(),
        configmap: name.to_owned(),
        mutation: mutation::parse(text).unwrap(),
        restart_workloads: Vec::new(),
    }
}

/// What a person can set on the object.
fn contents(object: &Value) -> Value {
    json!([
        object["data"],
        object["binaryData"],
        object["metadata"]["labels"],
        object["metadata"]["annotations"],
    ])
}

#[test]
fn keys_with_dots_and_slashes_are_set_and_restored_and_neighbours_survive() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let full = object(
            "ConfigMap",
            "settings",
            json!({"data": {"app.properties": "a=1", "other": "b"}}),
        );
        let mut full = full;
        full["metadata"]["annotations"] = json!({"example.com/role": "web", "note": "x"});
        stage.put(&full).await;
        stage.put(&object("ConfigMap", "bare", json!({}))).await;
        for name in ["settings", "bare"] {
            let before = stage.get("ConfigMap", name).await.unwrap();
            for text in [
                "data[\"app.properties\"] = \"a=2\\nb=3\"",
                "data[\"-odd..key\"] = \"\"",
                "metadata.annotations[\"example.com/role\"] = api",
                "metadata.labels[\"app.kubernetes.io/part-of\"] = shop; data.x = y",
            ] {
                let plan = stage.inject(&patch(name, text)).await;
                let during = stage.get("ConfigMap", name).await.unwrap();
                assert_ne!(contents(&during), contents(&before), "{name}: {text}");
                if name == "settings" {
                    assert_eq!(during["data"]["other"], "b");
                    assert_eq!(during["metadata"]["annotations"]["note"], "x");
                }
                let undone = stage.undo(&plan).await;
                assert!(undone.kept.is_empty());
                let after = stage.get("ConfigMap", name).await.unwrap();
                assert_eq!(contents(&after), contents(&before), "{name}: {text}");
                // A second undo finds nothing to do, also where somebody already removed what was set.
                assert!(stage.undo(&plan).await.restored.is_empty());
            }
        }
    });
}

#[test]
fn a_large_object_is_changed_by_a_byte_and_restored_without_a_copy_in_its_annotations() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let text = "x".repeat(200 * 1024);
        let bytes = STANDARD.encode(vec![7u8; 100 * 1024]);
        let big = json!({"data": {"a": text, "b": "1"}, "binaryData": {"image.png": bytes}});
        stage.put(&object("ConfigMap", "big", big)).await;
        let before = stage.get("ConfigMap", "big").await.unwrap();
        for mutation in [
            "data.b = \"2\"".to_owned(),
            format!("data.a = \"y{}\"", &text[1..]),
            format!(
                "binaryData[\"image.png\"] = \"{}\"",
                STANDARD.encode([1, 2])
            ),
        ] {
            let plan = stage.inject(&patch("big", &mutation)).await;
            let during = stage.get("ConfigMap", "big").await.unwrap();
            assert_ne!(contents(&during), contents(&before));
            assert!(during["metadata"].get("annotations").is_none());
            stage.undo(&plan).await;
            let after = stage.get("ConfigMap", "big").await.unwrap();
            assert_eq!(contents(&after), contents(&before));
        }
    });
}

#[test]
fn an_object_that_would_grow_too_large_is_refused_with_both_sizes_and_left_as_it_is() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let text = "x".repeat(1_040_000);
        let full = json!({"data": {"a": text}});
        stage.put(&object("ConfigMap", "full", full)).await;
        let before = stage.get("ConfigMap", "full").await.unwrap();
        let more = "y".repeat(20_000);
        let refusal = stage
            .refusal(&patch("full", &format!("data.more = {more}")))
            .await;
        for number in ["1060000", "1040000", &MAX_DATA.to_string()] {
            assert!(refusal.contains(number), "{refusal}");
        }
        assert_eq!(before, stage.get("ConfigMap", "full").await.unwrap());
        // What just fits is written.
        let room = "z".repeat(MAX_DATA - 1_040_000);
        stage
            .inject(&patch("full", &format!("data.more = {room}")))
            .await;
    });
}

#[test]
fn what_the_server_refuses_is_told_before_anything_is_written() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let fixed = json!({"data": {"a": "1"}, "immutable": true});
        stage.put(&object("ConfigMap", "fixed", fixed)).await;
        let plain = json!({"data": {"a": "1"}});
        stage.put(&object("ConfigMap", "plain", plain)).await;
        for (name, text, reason) in [
            ("fixed", "data.a = \"2\"", "immutable"),
            ("plain", "data[\"a~b\"] = x", "a~b"),
            ("plain", "data[\"a~1b\"] = x", "a~1b"),
            ("plain", "data[\"a/b\"] = x", "a/b"),
            ("plain", "data.a.b = x", "holds a plain value"),
            ("plain", "data.a = \"1\"", "already is"),
            ("plain", "data.gone = null", "already is"),
            ("absent", "data.a = x", "does not exist"),
        ] {
            let before = stage.get("ConfigMap", name).await;
            let refusal = stage.refusal(&patch(name, text)).await;
            assert!(refusal.contains(reason), "{text}: {refusal}");
            assert_eq!(before, stage.get("ConfigMap", name).await, "{text}");
        }
    });
}

#[test]
fn what_others_changed_meanwhile_stays() {
    paused(async {
        let stage = Stage::of("advocate-config").await;
        let fault = patch(
            "advocate-config",
            "data.DB_NAME = advocates; data.INDEX_MB = \"480\"",
        );
        let plan = stage.inject(&fault).await;
        let edits = [
            json!({"op": "replace", "path": "/data/INDEX_MB", "value": "64"}),
            json!({"op": "add", "path": "/data/NEW", "value": "theirs"}),
        ];
        stage.edit("ConfigMap", "advocate-config", &edits).await;
        let undone = stage.undo(&plan).await;
        assert_eq!(undone.restored.len(), 1);
        assert!(undone.kept[0].ends_with("data.INDEX_MB: changed by someone else"));
        let after = stage.get("ConfigMap", "advocate-config").await.unwrap();
        assert_eq!(after["data"]["DB_NAME"], "advocate");
        assert_eq!(after["data"]["INDEX_MB"], "64");
        assert_eq!(after["data"]["NEW"], "theirs");
    });
}
