//! `cluster up` without a context: programs called `docker` and `k3d` note what they were asked, and a served cluster
//! stands in for what they made. No real one of either was ever run here.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use crate::served::{CONTEXT, Served, json_of, text_of};

/// A machine with scripted programs.
struct Machine {
    served: Served,
}

/// Notes its arguments, one call a line; `down` is a file whose presence makes it fail.
const DOCKER: &str = r#"#!/bin/sh
echo "docker $*" >> "$LAB/calls"
if [ -e "$LAB/no-engine" ]; then echo "Cannot connect to the Docker daemon" >&2; exit 1; fi
echo 28.5.1
"#;

/// As the real one as far as it is used: a cluster is there from `create` to `delete`.
const K3D: &str = r#"#!/bin/sh
echo "k3d $*" >> "$LAB/calls"
case "$1 $2" in
  "version ") echo "k3d version v5.8.3" ;;
  "cluster list") if [ -e "$LAB/cluster" ]; then echo '[{"name":"lab"}]'; else echo '[]'; fi ;;
  "cluster create")
    if [ -e "$LAB/no-create" ]; then echo "Failed Cluster Creation: no space left on device" >&2; exit 1; fi
    touch "$LAB/cluster" ;;
  "cluster delete") rm "$LAB/cluster" ;;
  "kubeconfig get") cat "$LAB/made-kubeconfig" ;;
  "image import") head -c 1 "$3" > /dev/null || exit 1 ;;
  *) echo "not a command of k3d: $*" >&2; exit 1 ;;
esac
"#;

impl Machine {
    fn new() -> Machine {
        let served = Served::start();
        let programs = served.path("programs");
        std::fs::create_dir_all(&programs).unwrap();
        for (name, text) in [("docker", DOCKER), ("k3d", K3D)] {
            let file = programs.join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let config = std::fs::read_to_string(served.kubeconfig()).unwrap();
        let config = config.replace(CONTEXT, "k3d-lab");
        std::fs::write(served.path("made-kubeconfig"), config).unwrap();
        Machine { served }
    }

    fn breakage(&self, workspace: &str, args: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        let programs = self.served.path("programs");
        self.served
            .breakage(workspace, args)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("LAB", self.served.path(""))
            .env("HOME", self.served.path("home"))
            .output()
            .unwrap()
    }

    fn set(&self, name: &str) {
        std::fs::write(self.served.path(name), "").unwrap();
    }

    /// The calls so far, which are forgotten.
    fn calls(&self) -> Vec<String> {
        let file = self.served.path("calls");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_cluster_is_made_given_the_image_prepared_and_deleted_by_its_workspace_alone() {
    let machine = Machine::new();
    let up = json_of(&machine.breakage("w", &["cluster", "up", "--json"]), 0);
    assert_eq!(up["context"], "k3d-lab");
    let calls = machine.calls();
    let create = calls
        .iter()
        .find(|call| call.starts_with("k3d cluster create lab"))
        .unwrap();
    for part in [
        "--servers 1",
        "--agents 0",
        "--api-port 127.0.0.1:",
        "--disable=traefik@server:*",
        "--disable=servicelb@server:*",
        "--kubeconfig-update-default=false",
        "--kubeconfig-switch-context=false",
        "--wait",
    ] {
        assert!(create.contains(part), "{part} in {create}");
    }
    let at = |start: &str| {
        calls
            .iter()
            .position(|call| call.starts_with(start))
            .unwrap()
    };
    assert!(at("k3d cluster create") < at("k3d image import"));
    let import = &calls[at("k3d image import")];
    assert!(import.ends_with(".tar -c lab"), "{import}");
    // The kubeconfig is the workspace's, for its owner alone, and the user's own is not there.
    let kubeconfig: PathBuf = machine.served.path("w/k3d-lab.kubeconfig");
    let mode = std::fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!machine.served.path("home/.kube").exists());

    // Again: nothing is made twice.
    let again = machine.breakage("w", &["cluster", "up"]);
    assert_eq!(again.status.code(), Some(0), "{}", text_of(&again));
    assert!(!machine.calls().iter().any(|call| call.contains("create")));

    // Another workspace did not make it.
    let other = machine.breakage("other", &["cluster", "up"]);
    assert_eq!(other.status.code(), Some(3), "{}", text_of(&other));
    assert!(text_of(&other).contains("this workspace did not make"));
    assert!(text_of(&other).contains("--name"));
    machine.calls();

    let down = json_of(&machine.breakage("w", &["cluster", "down", "--json"]), 0);
    assert_eq!(down["k3d"], "lab");
    assert!(
        machine
            .calls()
            .contains(&"k3d cluster delete lab".to_owned())
    );
    assert!(!kubeconfig.exists());
    let status = machine.breakage("w", &["cluster", "status"]);
    assert!(
        text_of(&status).contains("knows no cluster"),
        "{}",
        text_of(&status)
    );
}

#[test]
fn down_of_a_cluster_that_was_only_named_never_deletes_it() {
    let machine = Machine::new();
    machine.set("cluster");
    let file = machine.served.path("made-kubeconfig");
    let named = [
        "--context",
        "k3d-lab",
        "--kubeconfig",
        file.to_str().unwrap(),
    ];
    for command in ["up", "down"] {
        let args = [&["cluster", command][..], &named].concat();
        let output = machine.breakage("w", &args);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    }
    let calls = machine.calls();
    assert!(
        !calls.iter().any(|call| call.contains("delete")),
        "{calls:?}"
    );
    assert!(machine.served.path("cluster").exists());
}

#[test]
fn what_is_missing_is_told_with_what_to_do_instead() {
    let machine = Machine::new();
    machine.set("no-engine");
    let output = machine.breakage("w", &["cluster", "up"]);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    for words in [
        "no Docker engine answers",
        "Cannot connect",
        "--context NAME",
        "embedded",
    ] {
        assert!(told.contains(words), "{words} in {told}");
    }
    std::fs::remove_file(machine.served.path("no-engine")).unwrap();
    std::fs::remove_file(machine.served.path("programs/k3d")).unwrap();
    let empty = machine.served.path("programs");
    let output = machine
        .served
        .breakage("w", &["cluster", "up"])
        .env("PATH", format!("{}:/usr/bin:/bin", empty.display()))
        .env("LAB", machine.served.path(""))
        .output()
        .unwrap();
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("no program k3d on PATH"), "{told}");
}

#[test]
fn a_cluster_whose_making_failed_is_known_as_ours_and_can_be_removed() {
    let machine = Machine::new();
    machine.set("no-create");
    let output = machine.breakage("w", &["cluster", "up"]);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("no space left on device"), "{told}");
    // It came to stand half made.
    machine.set("cluster");
    let status = machine.breakage("w", &["cluster", "status"]);
    assert!(
        text_of(&status).contains("begun and not finished"),
        "{}",
        text_of(&status)
    );
    let down = machine.breakage("w", &["cluster", "down"]);
    assert_eq!(down.status.code(), Some(0), "{}", text_of(&down));
    assert!(!machine.served.path("cluster").exists());
}
