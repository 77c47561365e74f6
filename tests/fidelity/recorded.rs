//! The images that the recordings were made with: a Go program and a real PostgreSQL, each beside a static busybox.

use std::sync::Arc;

use agent_breakage::cluster::images;
use agent_breakage::embedded::image::program::{
    Amount, Driver, Line, Listen, Path, Program, Protocol, Step,
};
use agent_breakage::embedded::image::{DEFAULT_PATH, Image, Registry};

/// Our own registry with the recordings' images added.
pub fn registry() -> Registry {
    let mut registry = images::registry();
    for (reference, image) in [
        ("ghcr.io/acme/advocate-api:2.4.1", advocate_api()),
        ("docker.io/library/postgres:15", postgres()),
    ] {
        assert!(
            registry.add(reference, Arc::new(image), true),
            "{reference}"
        );
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

fn advocate_api() -> Image {
    let mut image = base(
        "c94b5e4e95b22c5038e55197eb6700c47e17877cfe450a95390990e653f8612c",
        10_488_431,
    )
    .with_tools(images::BUSYBOX)
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
                driver: Driver::Pgx,
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
    let path =
        |path: &str, cpu_us_each, cpu_times, without_database: Option<&str>, body: &str| Path {
            path: path.to_owned(),
            status: 200,
            cpu_us_each,
            cpu_times,
            body: body.to_owned(),
            without_database: without_database.map(str::to_owned),
            ..Path::default()
        };
    Listen {
        port: Amount::env("PORT", 8080),
        loopback: false,
        speaks: Protocol::Http {
            not_found: "404 page not found\n".to_owned(),
            paths: vec![
                // Hashing a MiB costs about a millisecond.
                path(
                    "/healthz",
                    1_000,
                    Amount::env("HEALTH_WORK", 10),
                    None,
                    "ok\n",
                ),
                path(
                    "/api/cases",
                    900,
                    Amount::fixed(1),
                    Some("{\"error\":\"database unavailable\"}\n"),
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
    .with_tools(images::BUSYBOX)
    .with_tools(&["psql", "pg_isready", "curl", "bash"])
    .with_program("/bin/postgres", program);
    image.entrypoint = strings(&["postgres"]);
    image
        .env
        .push(("PGDATA".to_owned(), "/var/lib/postgresql/data".to_owned()));
    image
}
