//! flagd-flag on a ConfigMap: one value of a text, and the text as it was.

use agent_breakage::scenario::model::Injector;
use serde_json::json;

use crate::stage::{NAMESPACE, Stage, object, paused};

/// Two-space and tab indentation, keys in no order.
const TEXT: &str = "{\n  \"flags\": {\n\t\"cartFailure\": { \"variants\": {\"on\": true, \"off\": false},\n\t\
    \"defaultVariant\":\"off\", \"state\": \"ENABLED\" },\n\t\"paymentFailure\": {\"state\": \"ENABLED\", \
    \"variants\": {\"100%\": 1, \"off\": 0}, \"defaultVariant\": \"off\"}\n  }\n}";

fn flag(config_key: &str, flag: &str, variant: &str) -> Injector {
    Injector::FlagdFlag {
        namespace: NAMESPACE.to_owned(),
        configmap: "flagd-config".to_owned(),
        flag: flag.to_owned(),
        variant: variant.to_owned(),
        config_key: config_key.to_owned(),
        restart_workloads: Vec::new(),
    }
}

#[test]
fn a_flag_is_switched_in_its_text_and_restored_byte_for_byte() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let data = json!({"data": {"own.flagd.json": TEXT, "beside.json": "{\"flags\": {}}"}});
        stage.put(&object("ConfigMap", "flagd-config", data)).await;
        for (name, variant) in [("cartFailure", "on"), ("paymentFailure", "100%")] {
            let plan = stage.inject(&flag("own.flagd.json", name, variant)).await;
            let during = stage.get("ConfigMap", "flagd-config").await.unwrap();
            let text = during["data"]["own.flagd.json"].as_str().unwrap();
            assert_eq!(text.len(), TEXT.len() + variant.len() - "off".len());
            assert_eq!(during["data"]["beside.json"], "{\"flags\": {}}");
            let undone = stage.undo(&plan).await;
            assert_eq!(undone.restored.len(), 1);
            let after = stage.get("ConfigMap", "flagd-config").await.unwrap();
            assert_eq!(after["data"]["own.flagd.json"], TEXT);
        }
    });
}

#[test]
fn what_cannot_be_switched_is_refused_with_the_names_that_exist_and_left_untouched() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let data = json!({"data": {"demo.flagd.json": TEXT, "broken.json": "{\"flags\": "}});
        stage.put(&object("ConfigMap", "flagd-config", data)).await;
        let before = stage.get("ConfigMap", "flagd-config").await;
        for (key, name, variant, reason) in [
            (
                "demo.flagd.json",
                "cartFailure",
                "true",
                "its variants are off, on",
            ),
            (
                "demo.flagd.json",
                "cart",
                "on",
                "its flags are cartFailure, paymentFailure",
            ),
            ("demo.flagd.json", "cartFailure", "off", "already is"),
            ("broken.json", "cartFailure", "on", "no valid definition"),
            (
                "other.json",
                "cartFailure",
                "on",
                "its keys are broken.json, demo.flagd.json",
            ),
        ] {
            let refusal = stage.refusal(&flag(key, name, variant)).await;
            assert!(refusal.contains(reason), "{refusal}");
        }
        assert_eq!(before, stage.get("ConfigMap", "flagd-config").await);
    });
}
