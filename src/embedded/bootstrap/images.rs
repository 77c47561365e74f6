//! The images of the system's own workloads, which the node has had since its first day.

use std::sync::Arc;

use crate::embedded::image::program::{Amount, Line, Listen, Path, Program, Protocol, Step};
use crate::embedded::image::reference::Reference;
use crate::embedded::image::{Image, Lookup};
use crate::embedded::world::World;

pub(super) const DNS: &str = "registry.k8s.io/coredns/coredns:v1.13.1";
pub(super) const METRICS: &str = "registry.k8s.io/metrics-server/metrics-server:v0.8.0";
pub(super) const PROVISIONER: &str = "docker.io/rancher/local-path-provisioner:v0.0.32";

/// Puts the system's images on the node; an image that the registries have already stays as it is.
pub(super) fn add(world: &mut World) {
    for (name, path, program, size) in [
        (DNS, "/coredns", dns(), 22_394_970),
        (METRICS, "/metrics-server", metrics(), 22_541_737),
        (
            PROVISIONER,
            "/usr/bin/local-path-provisioner",
            provisioner(),
            21_129_364,
        ),
    ] {
        let known = Reference::parse(name).is_ok_and(|reference| {
            matches!(world.kubelet.images.look_up(&reference), Lookup::Found(_))
        });
        if known {
            continue;
        }
        let image = Image {
            digest: format!("sha256:{}", world.hex_id(64)),
            size_bytes: size,
            entrypoint: vec![path.to_owned()],
            ..Image::default()
        };
        let image = Arc::new(image.with_program(path, program));
        world.kubelet.images.add(name, image, true);
    }
    let present: Vec<(String, Arc<Image>)> = world.kubelet.images.preloaded().collect();
    world.kubelet.present.extend(present);
}

/// A server written in Go: ends in good order on SIGTERM, and with 2 when that comes too early.
fn server(name: &str, base_kib: u64, lines: &[&str], farewell: Option<&str>) -> Program {
    let mut steps = vec![Step::Cpu(60_000)];
    steps.extend(lines.iter().map(|line| Step::Log(Line::plain(line))));
    steps.push(Step::HandleTerm {
        line: farewell.map(Line::plain),
        exit: 0,
        drain_ms: 0,
    });
    Program {
        name: name.to_owned(),
        unhandled_term_exit: Some(2),
        base_kib,
        steps,
        ..Program::default()
    }
}

fn listen(port: u64, speaks: Protocol) -> Step {
    Step::Listen(Listen {
        port: Amount::fixed(port),
        loopback: false,
        speaks,
    })
}

fn healthy(path: &str) -> Protocol {
    let path = Path {
        path: path.to_owned(),
        prefix: false,
        status: 200,
        cpu_us_each: 150,
        cpu_times: Amount::fixed(1),
        body: "OK".to_owned(),
        ..Path::default()
    };
    Protocol::Http {
        paths: vec![path],
        not_found: "404 page not found\n".to_owned(),
    }
}

fn dns() -> Program {
    let lines = [
        "maxprocs: Leaving GOMAXPROCS=2: CPU quota undefined",
        ".:53",
        "CoreDNS-1.13.1",
        "linux/amd64, go1.25.2, 1db4568",
    ];
    let farewell = "[INFO] SIGTERM: Shutting down servers then terminating";
    let mut program = server("coredns", 14_200, &lines, Some(farewell));
    program.steps.extend([
        listen(53, Protocol::Plain),
        listen(8080, healthy("/health")),
        listen(8181, healthy("/ready")),
        listen(9153, healthy("/metrics")),
    ]);
    program
}

fn metrics() -> Program {
    let mut program = server("metrics-server", 19_800, &[], None);
    program.steps.push(listen(10250, Protocol::Plain));
    program
}

fn provisioner() -> Program {
    let mut program = server("local-path-provisioner", 9_600, &[], None);
    // It serves nobody; the socket is that of its own debug page.
    program.steps.push(Step::Listen(Listen {
        port: Amount::fixed(6060),
        loopback: true,
        speaks: Protocol::Plain,
    }));
    program
}
