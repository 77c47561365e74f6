//! `breakage fixture image`: the image shown, written and pushed by the program that people install.
//!
//! A build without the feature `fixture-image` carries none; it is then only proven to say so.

#![expect(
    clippy::unwrap_used,
    reason = "what these tests set up must stand, or they mean nothing"
)]

#[path = "fixture_image/registry.rs"]
mod registry;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Output;

use agent_breakage::cluster::image::{REFERENCE, program};
use assert_cmd::Command;
use serde_json::Value;

use crate::registry::{Held, Registry, digest_of};

fn image() -> Command {
    let mut command = Command::cargo_bin("breakage").unwrap();
    command.args(["fixture", "image"]);
    // Logins of whoever runs the tests stay out.
    let nowhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture_image");
    command.env("DOCKER_CONFIG", &nowhere);
    command.env("REGISTRY_AUTH_FILE", nowhere.join("none.json"));
    command.env_remove("BREAKAGE_REGISTRY_PASSWORD");
    command
}

fn run(arguments: &[&str]) -> Output {
    image().args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The failed command's words; its exit code must be `code`.
fn refused(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    let said = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Whether this build carries the image; where not, it must say what to do.
fn carried() -> bool {
    if program().is_some() {
        return true;
    }
    let said = refused(&[], 1);
    assert!(said.contains("carries no image"), "{said}");
    assert!(said.contains("BREAKAGE_FIXTURE_PROGRAM"), "{said}");
    false
}

/// The files of an archive by path.
fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        assert!(files.insert(path, bytes).is_none(), "each file once");
    }
    files
}

/// Every part of a layout that a descriptor names has the digest and size that it says.
fn part<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
    let digest = descriptor["digest"].as_str().unwrap();
    let bytes = &files[&format!("blobs/sha256/{}", &digest["sha256:".len()..])];
    assert_eq!(digest_of(bytes), digest);
    assert_eq!(descriptor["size"], bytes.len());
    bytes
}

#[test]
fn one_archive_is_an_oci_layout_and_a_docker_archive() {
    if !carried() {
        return;
    }
    let output = run(&["--output", "-"]);
    assert!(output.status.success());
    let files = files(&output.stdout);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let entry = &index["manifests"][0];
    assert_eq!(entry["annotations"]["io.containerd.image.name"], REFERENCE);
    assert_eq!(
        entry["annotations"]["org.opencontainers.image.ref.name"],
        "2.4.1"
    );
    assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
    let manifest: Value = serde_json::from_slice(part(&files, entry)).unwrap();
    let config: Value = serde_json::from_slice(part(&files, &manifest["config"])).unwrap();
    let layer = part(&files, &manifest["layers"][0]);
    assert_eq!(config["rootfs"]["diff_ids"][0], digest_of(layer).as_str());
    let inside = self::files(layer);
    assert_eq!(inside["bin/advocate-api"], program().unwrap());

    let saved: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(saved[0]["RepoTags"][0], REFERENCE);
    let named = |name: &Value| &files[name.as_str().unwrap()];
    assert_eq!(
        digest_of(named(&saved[0]["Config"])),
        manifest["config"]["digest"]
    );
    assert_eq!(named(&saved[0]["Layers"][0]), layer);
    assert_eq!(files.len(), 6, "and nothing else");

    let shown = json(&run(&["--json"]));
    assert_eq!(shown["digest"], entry["digest"]);
    assert_eq!(shown["id"], manifest["config"]["digest"]);
    assert_eq!(shown["reference"], REFERENCE);
}

#[test]
fn two_processes_write_the_same_bytes() {
    if !carried() {
        return;
    }
    let first = run(&["--output", "-"]).stdout;
    for _ in 0..5 {
        assert!(run(&["--output", "-"]).stdout == first);
    }
}

#[test]
fn nothing_in_the_image_tells_what_it_is_for() {
    if !carried() {
        return;
    }
    let archive = run(&["--output", "-"]).stdout;
    for (path, bytes) in files(&archive) {
        let content = String::from_utf8_lossy(&bytes).to_lowercase();
        for word in ["breakage", "chaos", "inject", "fixture"] {
            assert!(!content.contains(word), "{word} in {path}");
        }
        // Where it was built is nobody's business either.
        assert!(
            !content.contains(&env!("CARGO_MANIFEST_DIR").to_lowercase()),
            "{path}"
        );
    }
}

#[test]
fn a_file_is_replaced_only_when_asked_to() {
    if !carried() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("services.tar");
    let name = file.to_str().unwrap();
    std::fs::write(&file, "mine").unwrap();
    let said = refused(&["--output", name], 1);
    assert!(said.contains("--force"), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let told = json(&run(&["--output", name, "--force", "--json"]));
    assert_eq!(told["file"], name);
    assert_eq!(
        std::fs::read(&file).unwrap(),
        run(&["--output", "-"]).stdout
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_push_brings_the_same_image_and_a_second_one_only_what_is_missing() {
    if !carried() {
        return;
    }
    let registry = Registry::start(Held::default());
    let name = format!("{}/lab/services", registry.address);
    let told = json(&run(&["--push", &name, "--json"]));
    assert_eq!(told["pushed"], format!("{name}:2.4.1"));
    {
        let mut held = registry.held.lock().unwrap();
        let (kind, manifest) = &held.manifests[&("lab/services".to_owned(), "2.4.1".to_owned())];
        assert_eq!(kind, "application/vnd.oci.image.manifest.v1+json");
        assert_eq!(digest_of(manifest), told["digest"].as_str().unwrap());
        let manifest: Value = serde_json::from_slice(manifest).unwrap();
        let layer = &held.blobs[manifest["layers"][0]["digest"].as_str().unwrap()];
        assert_eq!(files(layer)["bin/advocate-api"], program().unwrap());
        assert!(
            held.blobs
                .contains_key(manifest["config"]["digest"].as_str().unwrap())
        );
        held.requests.clear();
    }
    json(&run(&["--push", &format!("{name}:other"), "--json"]));
    let held = registry.held.lock().unwrap();
    assert!(
        !held.requests.iter().any(|r| r.starts_with("POST")),
        "{:?}",
        held.requests
    );
}

#[test]
fn a_registry_that_wants_a_login_gets_it_and_the_password_is_never_told() {
    if !carried() {
        return;
    }
    // ci:hunter2
    let wants = "Basic Y2k6aHVudGVyMg==".to_owned();
    let registry = Registry::start(Held {
        wants: Some(wants),
        ..Held::default()
    });
    let name = format!("{}/lab/services:1", registry.address);
    let said = refused(&["--push", &name], 1);
    assert!(
        said.contains("wants a login") && said.contains("docker login"),
        "{said}"
    );

    let wrong = image()
        .args(["--push", &name, "--username", "ci"])
        .env("BREAKAGE_REGISTRY_PASSWORD", "hunter3")
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        !text(&wrong.stderr).contains("hunter3"),
        "{}",
        text(&wrong.stderr)
    );

    let piped = image()
        .args([
            "--push",
            &name,
            "--username",
            "ci",
            "--password-stdin",
            "--json",
        ])
        .write_stdin("hunter2\n")
        .output()
        .unwrap();
    assert_eq!(json(&piped)["pushed"], name);

    let folder = tempfile::tempdir().unwrap();
    let logins = format!(
        r#"{{"auths":{{"{}":{{"auth":"Y2k6aHVudGVyMg=="}}}}}}"#,
        registry.address
    );
    std::fs::write(folder.path().join("config.json"), logins).unwrap();
    let stored = image()
        .args(["--push", &name, "--json"])
        .env("DOCKER_CONFIG", folder.path())
        .output()
        .unwrap();
    assert_eq!(json(&stored)["pushed"], name);
}

#[test]
fn what_stands_under_the_name_afterwards_is_read_back() {
    if !carried() {
        return;
    }
    let claims = Some(digest_of(b"somebody else's"));
    let registry = Registry::start(Held {
        claims,
        ..Held::default()
    });
    let said = refused(
        &["--push", &format!("{}/lab/services", registry.address)],
        1,
    );
    assert!(said.contains("after the push and not"), "{said}");
}

#[test]
fn a_registry_that_cannot_be_used_is_named_with_what_to_type() {
    if !carried() {
        return;
    }
    let registry = Registry::start(Held::default());
    let name = format!("{}/lab/services", registry.address);
    let said = refused(&["--push", &name, "--plain-http=false"], 1);
    assert!(
        said.contains("over TLS") && said.contains("--plain-http"),
        "{said}"
    );
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let said = refused(&["--push", &format!("{free}/lab/services")], 1);
    assert!(
        said.contains(&free.to_string()) && said.contains("is it running"),
        "{said}"
    );
    assert!(!said.contains("secret-session"), "{said}");
}

#[test]
fn a_bad_name_is_refused_before_anything_is_packed() {
    for name in ["acme/services", "https://a.example/x", "a.example/UP"] {
        let said = refused(&["--push", name], 1);
        assert!(said.contains(name), "{said}");
    }
}
