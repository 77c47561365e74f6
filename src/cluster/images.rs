//! The images of our fixtures: what the registries of an embedded cluster hold.
//!
//! The advocate service and its database behave as recorded on a Kubernetes v1.34.4 one-node cluster. Every
//! reference not listed here does not exist, and every registry host not listed does not resolve.

use std::sync::Arc;

use crate::embedded::image::program::{Amount, Line, Listen, Path, Program, Protocol, Step};
use crate::embedded::image::{DEFAULT_PATH, Image, Registry};

/// Tools of a static busybox.
const BUSYBOX: &[&str] = &[
    "sh", "ash", "sleep", "true", "false", "echo", "cat", "test", "[", "touch", "dd", "kill",
    "env", "ls", "printf", "pwd", "id", "hostname", "date", "wget", "nslookup", "rm", "mkdir",
    "head", "tail", "grep", "ps", "seq", "whoami", "uname", "nc", "stat", "httpd",
];

/// The registries that the fixtures need.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for host in ["docker.io", "ghcr.io", "registry.k8s.io", "quay.io"] {
        registry.add_host(host);
    }
    let all: [(&str, Image); 10] = [
        ("ghcr.io/acme/advocate-api:2.4.1", advocate_api()),
        ("docker.io/library/postgres:15", postgres()),
        ("docker.io/library/busybox:1.36", busybox()),
        ("docker.io/library/busybox:1.37", newer_busybox()),
        ("docker.io/library/nginx:1.27", nginx()),
        ("docker.io/library/redis:7", redis()),
        ("registry.k8s.io/coredns/coredns:v1.13.1", coredns()),
        (
            "registry.k8s.io/metrics-server/metrics-server:v0.8.0",
            metrics_server(),
        ),
        (
            "docker.io/rancher/local-path-provisioner:v0.0.32",
            local_path(),
        ),
        ("registry.k8s.io/pause:3.10", plain_server("pause", 400, 0)),
    ];
    for (reference, image) in all {
        let added = registry.add(reference, Arc::new(image), true);
        debug_assert!(added, "{reference} must parse");
    }
    registry
}

fn base(digest: &str, size_bytes: u64) -> Image {
    Image {
        digest: format!("sha256:{digest}"),
        size_bytes,
        env: vec![("PATH".to_owned(), DEFAULT_PATH.to_owned())],
        workdir: "/".to_owned(),
        ..Image::default()
    }
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn busybox() -> Image {
    let mut image = base(
        "e052d98515d537a5bd687ef609cea975d9cd5f50ca24be9d8ba5d97bd4fbe4df",
        2_158_024,
    )
    .with_tools(BUSYBOX);
    image.cmd = strings(&["sh"]);
    image
}

fn newer_busybox() -> Image {
    let mut image = busybox();
    image.digest = format!("sha256:{}", digest_of("busybox:1.37"));
    image.size_bytes = 2_161_436;
    image
}

fn advocate_api() -> Image {
    let mut image = base(
        "c94b5e4e95b22c5038e55197eb6700c47e17877cfe450a95390990e653f8612c",
        10_488_431,
    )
    .with_tools(BUSYBOX)
    .with_tools(&["curl"])
    .with_program("/bin/advocate-api", advocate_program());
    image.entrypoint = strings(&["/bin/advocate-api"]);
    image.cmd = strings(&["serve"]);
    image.user = "1000".to_owned();
    image
}

fn advocate_program() -> Program {
    let info = |msg: &str| Line::json(&[("level", "info"), ("msg", msg)]);
    Program {
        name: "advocate-api".to_owned(),
        commands: Some(strings(&["serve"])),
        refusal: "advocate-api: unknown command \"{arg}\", expected: serve".to_owned(),
        refusal_exit: 2,
        unhandled_term_exit: Some(2),
        // A 4Mi limit lets it log and connect and ends it in the index; 32Mi lets 16 MiB of index in.
        base_kib: 3_400,
        steps: vec![
            Step::Cpu(2_500),
            Step::Log(Line::json(&[
                ("level", "info"),
                ("msg", "starting advocate-api"),
                ("version", "2.4.1"),
            ])),
            Step::Require {
                names: strings(&["DATABASE_URL", "SESSION_SECRET", "ANTHROPIC_API_KEY"]),
                line: Line::json(&[
                    ("level", "error"),
                    ("msg", "required environment variable is not set"),
                    ("name", "{name}"),
                ]),
                exit: 1,
            },
            Step::Cpu(4_000),
            Step::Connect {
                url_env: "DATABASE_URL".to_owned(),
                timeout_ms: 10_000,
                line: Line::json(&[
                    ("err", "{err}"),
                    ("level", "error"),
                    ("msg", "cannot connect to database"),
                ]),
                exit: 1,
            },
            Step::Log(info("database connection established")),
            Step::Fill {
                mib: Amount::env("INDEX_MB", 48),
                chunk_mib: 16,
                // 11 to 13 ms for each 16 MiB where nothing throttles.
                cpu_us_per_mib: 830,
                line: Line::json(&[
                    ("level", "info"),
                    ("loaded_mb", "{done}"),
                    ("msg", "loading case index"),
                ]),
            },
            Step::Wait(Amount::env("STARTUP_MS", 1_500)),
            Step::HandleTerm {
                line: Some(info("received SIGTERM, shutting down")),
                exit: 0,
                drain_ms: 5_000,
            },
            Step::Log(Line::json(&[
                ("addr", ":${PORT:-8080}"),
                ("level", "info"),
                ("msg", "listening"),
            ])),
            Step::Listen(advocate_listen()),
        ],
    }
}

fn advocate_listen() -> Listen {
    let path = |path: &str, cpu_us_each, cpu_times, asks_database, body: &str| Path {
        path: path.to_owned(),
        prefix: false,
        status: 200,
        cpu_us_each,
        cpu_times,
        asks_database,
        body: body.to_owned(),
    };
    Listen {
        port: Amount::env("PORT", 8080),
        loopback: false,
        speaks: Protocol::Http {
            paths: vec![
                // Hashing a MiB costs about a millisecond.
                path(
                    "/healthz",
                    1_000,
                    Amount::env("HEALTH_WORK", 10),
                    false,
                    "ok\n",
                ),
                path(
                    "/api/cases",
                    900,
                    Amount::fixed(1),
                    true,
                    "{\"cases\":[]}\n",
                ),
            ],
        },
    }
}

fn postgres() -> Image {
    let program = Program {
        name: "postgres".to_owned(),
        base_kib: 24_000,
        steps: vec![
            Step::HandleTerm {
                line: Some(Line::plain(
                    "{pgtime} [1] LOG:  received smart shutdown request",
                )),
                exit: 0,
                drain_ms: 5_000,
            },
            Step::Cpu(30_000),
            Step::Log(Line::plain(
                "{pgtime} [1] LOG:  starting PostgreSQL 15.14 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",
            )),
            Step::Log(Line::plain(
                "{pgtime} [1] LOG:  listening on IPv4 address \"0.0.0.0\", port 5432",
            )),
            Step::Wait(Amount::fixed(1_400)),
            Step::Log(Line::plain(
                "{pgtime} [1] LOG:  database system is ready to accept connections",
            )),
            Step::Listen(Listen {
                port: Amount::env("PGPORT", 5432),
                loopback: false,
                speaks: Protocol::Postgres {
                    user_env: "POSTGRES_USER".to_owned(),
                    password_env: "POSTGRES_PASSWORD".to_owned(),
                    shutdown_ms: 300,
                },
            }),
        ],
        ..Program::default()
    };
    let mut image = base(
        "390e9fbcfa39a5810d56707f5ebcf5a5dcbc06d26e781965d3ad29f16b875163",
        153_902_741,
    )
    .with_tools(BUSYBOX)
    .with_tools(&["psql", "pg_isready", "curl", "bash"])
    .with_program("/bin/postgres", program);
    image.entrypoint = strings(&["postgres"]);
    image
        .env
        .push(("PGDATA".to_owned(), "/var/lib/postgresql/data".to_owned()));
    image
}

/// A server that listens on one port, answers 200 on every path, and ends on SIGTERM.
fn plain_server(name: &str, base_kib: u64, port: u64) -> Image {
    let mut steps = vec![Step::HandleTerm {
        line: None,
        exit: 0,
        drain_ms: 5_000,
    }];
    if port != 0 {
        steps.push(Step::Cpu(20_000));
        steps.push(Step::Listen(http(port, &["/"])));
    } else {
        steps.push(Step::Wait(Amount::fixed(u64::from(u32::MAX))));
    }
    let program = Program {
        name: name.to_owned(),
        base_kib,
        steps,
        ..Program::default()
    };
    let digest = digest_of(name);
    let mut image = base(&digest, 31_457_280).with_program(&format!("/{name}"), program);
    image.entrypoint = vec![format!("/{name}")];
    image
}

fn http(port: u64, prefixes: &[&str]) -> Listen {
    Listen {
        port: Amount::fixed(port),
        loopback: false,
        speaks: Protocol::Http {
            paths: prefixes
                .iter()
                .map(|prefix| Path {
                    path: (*prefix).to_owned(),
                    prefix: true,
                    status: 200,
                    cpu_us_each: 150,
                    cpu_times: Amount::fixed(1),
                    asks_database: false,
                    body: "ok\n".to_owned(),
                })
                .collect(),
        },
    }
}

/// A digest for images whose real one no recording shows: SHA-256 of the name.
fn digest_of(name: &str) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(name.as_bytes()))
}

fn nginx() -> Image {
    let mut image = plain_server("nginx", 9_200, 80)
        .with_tools(BUSYBOX)
        .with_tools(&["curl", "bash"]);
    image.size_bytes = 72_195_292;
    image
}

fn redis() -> Image {
    let program = Program {
        name: "redis-server".to_owned(),
        base_kib: 7_800,
        steps: vec![
            Step::HandleTerm {
                line: Some(Line::plain(
                    "1:signal-handler ({unix}) Received SIGTERM scheduling shutdown...",
                )),
                exit: 0,
                drain_ms: 5_000,
            },
            Step::Cpu(8_000),
            Step::Log(Line::plain(
                "1:M {redistime} * Ready to accept connections tcp",
            )),
            Step::Listen(Listen {
                port: Amount::fixed(6379),
                loopback: false,
                speaks: Protocol::Redis {
                    password_env: "REDIS_PASSWORD".to_owned(),
                },
            }),
        ],
        ..Program::default()
    };
    let mut image = base(&digest_of("redis"), 48_244_191)
        .with_tools(BUSYBOX)
        .with_tools(&["redis-cli", "bash"])
        .with_program("/usr/local/bin/redis-server", program);
    image.cmd = strings(&["redis-server"]);
    image
}

fn coredns() -> Image {
    let program = Program {
        name: "coredns".to_owned(),
        base_kib: 14_000,
        steps: vec![
            Step::HandleTerm {
                line: Some(Line::plain(
                    "[INFO] SIGTERM: Shutting down servers then terminating",
                )),
                exit: 0,
                drain_ms: 5_000,
            },
            Step::Cpu(60_000),
            Step::Log(Line::plain(".:53")),
            Step::Log(Line::plain("CoreDNS-1.13.1")),
            Step::Listen(http(8080, &["/health"])),
            Step::Listen(http(8181, &["/ready"])),
            Step::Listen(Listen {
                port: Amount::fixed(53),
                loopback: false,
                speaks: Protocol::Plain,
            }),
        ],
        ..Program::default()
    };
    let mut image = base(&digest_of("coredns"), 23_553_139).with_program("/coredns", program);
    image.entrypoint = strings(&["/coredns"]);
    image
}

fn metrics_server() -> Image {
    let mut image = plain_server("metrics-server", 22_000, 10_250);
    image.user = "1000".to_owned();
    image
}

fn local_path() -> Image {
    let mut image = plain_server("local-path-provisioner", 12_000, 0);
    // Deployments start it by its bare name and with arguments.
    if let Some(program) = image.executables.get("/local-path-provisioner").cloned() {
        image
            .executables
            .insert("/usr/bin/local-path-provisioner".to_owned(), program);
    }
    image
}
