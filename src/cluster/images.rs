//! The images of our fixtures: what the registries of an embedded cluster hold.
//!
//! The services' image says and costs what the program beside it says and costs on a real node: both take it from
//! `acme_services`. Every reference not listed here does not exist, and every registry host not listed does not
//! resolve.

use std::sync::Arc;

use acme_services::{Setting, api, cache, database, web};

use crate::embedded::image::program::{
    Amount, Driver, Line, Listen, Path, Program, Protocol, Step,
};
use crate::embedded::image::{DEFAULT_PATH, Image, Registry};

/// Tools of a static busybox.
pub const BUSYBOX: &[&str] = &[
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
    let all: [(&str, Image); 9] = [
        (acme_services::IMAGE, services()),
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

/// The services of our fixtures: one program of four names in an otherwise empty image.
fn services() -> Image {
    let mut image = base(&digest_of(acme_services::IMAGE), acme_services::IMAGE_BYTES);
    for (name, program) in [
        (api::NAME, advocate_api()),
        (database::NAME, advocate_db()),
        (web::NAME, invoice_web()),
        (cache::NAME, invoice_cache()),
    ] {
        image = image.with_program(&format!("/bin/{name}"), program);
    }
    image.entrypoint = vec![format!("/bin/{}", api::NAME)];
    image.cmd = strings(&[acme_services::SERVE]);
    image.user = acme_services::USER.to_owned();
    image
}

/// A service before its own steps: it takes one command, and SIGTERM from the first moment on.
fn service(name: &str, stopping: Line, drain_ms: u64, steps: Vec<Step>) -> Program {
    let mut all = vec![Step::HandleTerm {
        line: Some(stopping),
        exit: 0,
        drain_ms,
    }];
    all.extend(steps);
    Program {
        name: name.to_owned(),
        commands: Some(strings(&[acme_services::SERVE])),
        refusal: acme_services::UNKNOWN_COMMAND.replace("{name}", name),
        refusal_exit: acme_services::UNKNOWN_COMMAND_EXIT,
        base_kib: acme_services::RESIDENT_KIB,
        steps: all,
        ..Program::default()
    }
}

/// The number that a service takes from its environment.
fn amount(setting: Setting) -> Amount {
    Amount::env(setting.env, setting.default)
}

/// The address that a service says it listens on.
fn address(setting: Setting) -> String {
    format!(":${{{}:-{}}}", setting.env, setting.default)
}

fn info(msg: &str) -> Line {
    Line::json(&[("level", "info"), ("msg", msg)])
}

fn advocate_api() -> Program {
    let error = |msg, field, value| Line::json(&[("level", "error"), ("msg", msg), (field, value)]);
    let steps = vec![
        Step::Cpu(api::START_CPU_US),
        Step::Log(Line::json(&[
            ("level", "info"),
            ("msg", api::STARTING),
            ("version", acme_services::VERSION),
        ])),
        Step::Require {
            names: strings(&api::REQUIRED),
            line: error(api::NOT_SET, "name", "{name}"),
            exit: 1,
        },
        Step::Cpu(api::CONNECT_CPU_US),
        Step::Connect {
            driver: Driver::TokioPostgres,
            url_env: api::DATABASE_URL.to_owned(),
            timeout_ms: api::CONNECT_LIMIT_MS,
            line: error(api::NO_DATABASE, "err", "{err}"),
            exit: 1,
        },
        Step::Log(info(api::CONNECTED)),
        Step::Fill {
            mib: amount(api::INDEX_MB),
            chunk_mib: api::INDEX_STEP_MB,
            cpu_us_per_mib: api::INDEX_CPU_US_PER_MB,
            line: Line::json(&[
                ("level", "info"),
                ("loaded_mb", "{done}"),
                ("msg", api::LOADING),
            ]),
        },
        Step::Wait(amount(api::STARTUP_MS)),
        Step::Log(Line::json(&[
            ("addr", &address(api::PORT)),
            ("level", "info"),
            ("msg", api::LISTENING),
        ])),
        Step::Listen(advocate_listen()),
    ];
    let stopping = info(acme_services::STOPPING);
    service(api::NAME, stopping, acme_services::DRAIN_MS, steps)
}

fn advocate_listen() -> Listen {
    let path = |path: &str, body: &str| Path {
        path: path.to_owned(),
        status: 200,
        cpu_us_each: api::REQUEST_CPU_US,
        cpu_times: Amount::fixed(1),
        body: body.to_owned(),
        ..Path::default()
    };
    let paths = vec![
        Path {
            cpu_us_each: 1_000,
            cpu_times: amount(api::INDEX_CHECK_MS),
            given_up: true,
            ..path(api::HEALTH, api::HEALTH_BODY)
        },
        Path {
            without_database: Some(api::NO_CASES_BODY.to_owned()),
            ..path(api::CASES, api::CASES_BODY)
        },
        path(api::METRICS, api::METRICS_BODY),
    ];
    Listen {
        port: amount(api::PORT),
        loopback: false,
        speaks: Protocol::Http {
            paths,
            not_found: acme_services::NOT_FOUND_BODY.to_owned(),
        },
    }
}

fn advocate_db() -> Program {
    // One process takes all sessions, so that its number is always that of the container's first one.
    let line = |text: &str| Line::plain(&format!("{{pgtime}} [1] {text}"));
    let port = format!("${{{}:-{}}}", database::PORT.env, database::PORT.default);
    let listening = database::LISTENING.replace("{port}", &port);
    let not_set = database::NOT_SET.replace("{name}", database::PASSWORD);
    let steps = vec![
        Step::Cpu(acme_services::START_CPU_US),
        Step::Log(line(database::STARTING)),
        Step::Require {
            names: strings(&[database::PASSWORD]),
            line: line(&not_set),
            exit: 1,
        },
        Step::Log(line(&listening)),
        Step::Cpu(database::START_CPU_US),
        Step::Log(line(database::READY)),
        Step::Listen(Listen {
            port: amount(database::PORT),
            loopback: false,
            speaks: Protocol::Postgres {
                user_env: database::USER.to_owned(),
                password_env: database::PASSWORD.to_owned(),
                shutdown_ms: 0,
            },
        }),
    ];
    let stopping = Line::plain(&format!(
        "{{pgtime}} [1] {}\n{{pgtime}} [1] {}",
        database::STOPPING,
        database::STOPPED
    ));
    service(database::NAME, stopping, 0, steps)
}

fn invoice_web() -> Program {
    let page = Path {
        path: web::ROOT.to_owned(),
        status: 200,
        cpu_us_each: api::REQUEST_CPU_US,
        cpu_times: Amount::fixed(1),
        body: web::BODY.to_owned(),
        ..Path::default()
    };
    let steps = vec![
        Step::Cpu(acme_services::START_CPU_US),
        Step::Log(Line::json(&[
            ("addr", &address(web::PORT)),
            ("level", "info"),
            ("msg", web::LISTENING),
        ])),
        Step::Listen(Listen {
            port: amount(web::PORT),
            loopback: false,
            speaks: Protocol::Http {
                paths: vec![page],
                not_found: acme_services::NOT_FOUND_BODY.to_owned(),
            },
        }),
    ];
    let stopping = info(acme_services::STOPPING);
    service(web::NAME, stopping, acme_services::DRAIN_MS, steps)
}

fn invoice_cache() -> Program {
    let line = |text: &str| Line::plain(&format!("1:M {{redistime}} {text}"));
    let steps = vec![
        Step::Cpu(acme_services::START_CPU_US),
        Step::Log(line(cache::READY)),
        Step::Listen(Listen {
            port: amount(cache::PORT),
            loopback: false,
            speaks: Protocol::Redis {
                // It knows no passwords.
                password_env: String::new(),
            },
        }),
    ];
    service(cache::NAME, line(cache::STOPPING), 0, steps)
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
            not_found: "404 page not found\n".to_owned(),
            paths: prefixes
                .iter()
                .map(|prefix| Path {
                    path: (*prefix).to_owned(),
                    prefix: true,
                    status: 200,
                    cpu_us_each: 150,
                    cpu_times: Amount::fixed(1),
                    body: "ok\n".to_owned(),
                    ..Path::default()
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
