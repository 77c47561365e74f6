//! The program of the fixtures' image as processes on this machine, and the same image in the embedded cluster: what
//! the one says, the other says.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "services/played.rs"]
mod played;
#[path = "services/process.rs"]
mod process;

use acme_services::{api, database};
use agent_breakage::cluster::image;
use played::Played;
use process::{Process, Program};
use serde_json::{Value, json};

/// Whether there is a program to start; where none can be built, the build has said so.
fn program() -> Option<Program> {
    image::program().map(Program::unpack)
}

const USER: [(&str, &str); 2] = [
    ("POSTGRES_USER", "advocate"),
    ("POSTGRES_PASSWORD", "k3sXp9vQ"),
];

fn started_database(program: &Program) -> (Process, u16) {
    let mut db = program.start(
        database::NAME,
        &[],
        &[&USER[..], &[("PGPORT", "0")]].concat(),
    );
    let line = db.line_with("listening on");
    let port = line.rsplit(' ').next().unwrap().parse().unwrap();
    db.line_with("ready to accept connections");
    (db, port)
}

/// The API's environment: a whole one, whose index is small, for a database at this place.
fn environment(place: &str, login: &str, name: &str) -> Vec<(&'static str, String)> {
    vec![
        (
            "DATABASE_URL",
            format!("postgres://{login}@{place}/{name}?sslmode=disable"),
        ),
        ("SESSION_SECRET", "4f7c2e9b1a6d8035".to_owned()),
        ("ANTHROPIC_API_KEY", "ak-7Jd2mVx0TtB4qLr9".to_owned()),
        ("INDEX_MB", "16".to_owned()),
        ("STARTUP_MS", "0".to_owned()),
        ("POD_NAMESPACE", "shop".to_owned()),
    ]
}

fn started_api(program: &Program, db_port: u16) -> (Process, u16) {
    let mut env = environment(
        &format!("127.0.0.1:{db_port}"),
        "advocate:k3sXp9vQ",
        "advocate",
    );
    env.push(("PORT", "0".to_owned()));
    let mut service = program.start(api::NAME, &[], &borrowed(&env));
    let line: Value = serde_json::from_str(&service.line_with(api::LISTENING)).unwrap();
    let port = line["addr"].as_str().unwrap()[1..].parse().unwrap();
    (service, port)
}

fn borrowed<'a>(env: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    env.iter().map(|(k, v)| (*k, v.as_str())).collect()
}

#[test]
fn the_service_serves_counts_and_ends_in_good_order() {
    let Some(program) = program() else { return };
    let (db, db_port) = started_database(&program);
    let (service, port) = started_api(&program, db_port);
    let healthy = process::get(port, api::HEALTH);
    assert_eq!(healthy, (200, api::HEALTH_BODY.to_owned()));
    let cases = process::get(port, api::CASES);
    assert_eq!(cases, (200, api::CASES_BODY.to_owned()));
    let unknown = process::get(port, "/livez");
    assert_eq!(unknown, (404, acme_services::NOT_FOUND_BODY.to_owned()));
    let (_, metrics) = process::get(port, api::METRICS);
    let counted = "http_server_request_duration_seconds_count{http_request_method=\"GET\",\
                   http_response_status_code=\"200\",http_route=\"/healthz\",k8s_namespace_name=\"shop\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    let (code, said) = service.terminate();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(acme_services::STOPPING), "{said}");
    let (code, said) = db.terminate();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(database::STOPPED), "{said}");
}

#[test]
fn a_service_whose_database_goes_and_comes_back_answers_again_without_a_restart() {
    let Some(program) = program() else { return };
    let (db, db_port) = started_database(&program);
    let (service, port) = started_api(&program, db_port);
    db.terminate();
    let away = process::get(port, api::CASES);
    assert_eq!(away, (500, api::NO_CASES_BODY.to_owned()));
    assert_eq!(process::get(port, api::HEALTH).0, 200);
    let again = db_port.to_string();
    let env = [&USER[..], &[("PGPORT", again.as_str())]].concat();
    let mut db = program.start(database::NAME, &[], &env);
    db.line_with("ready to accept connections");
    assert_eq!(process::get(port, api::CASES).0, 200);
    drop((service, db));
}

#[test]
fn an_unknown_command_is_refused_by_name() {
    let Some(program) = program() else { return };
    let (code, said) = program.start(api::NAME, &["server"], &[]).ended();
    assert_eq!(code, Some(acme_services::UNKNOWN_COMMAND_EXIT));
    assert_eq!(
        said,
        "advocate-api: unknown command \"server\", expected: serve\n"
    );
}

/// A failed start: how the login, the name of the database and the place differ from those that are right.
struct Failure {
    what: &'static str,
    login: &'static str,
    name: &'static str,
    /// Nobody listens there.
    nobody: bool,
    without: Option<&'static str>,
}

const FAILURES: [Failure; 5] = [
    Failure {
        what: "a variable that is missing",
        login: "advocate:k3sXp9vQ",
        name: "advocate",
        nobody: false,
        without: Some("SESSION_SECRET"),
    },
    Failure {
        what: "a wrong password",
        login: "advocate:k3sXp9vq",
        name: "advocate",
        nobody: false,
        without: None,
    },
    Failure {
        what: "a role that does not exist",
        login: "advocates:k3sXp9vQ",
        name: "advocate",
        nobody: false,
        without: None,
    },
    Failure {
        what: "a database that does not exist",
        login: "advocate:k3sXp9vQ",
        name: "advocates",
        nobody: false,
        without: None,
    },
    Failure {
        what: "a port where nobody listens",
        login: "advocate:k3sXp9vQ",
        name: "advocate",
        nobody: true,
        without: None,
    },
];

#[test]
fn the_embedded_cluster_says_of_every_failed_start_what_the_program_says() {
    let Some(program) = program() else { return };
    for failure in FAILURES {
        let (db, port) = started_database(&program);
        let (place, db) = match failure.nobody {
            true => {
                db.terminate();
                (format!("127.0.0.1:{port}"), None)
            }
            false => (format!("127.0.0.1:{port}"), Some(db)),
        };
        let mut env = environment(&place, failure.login, failure.name);
        env.retain(|(name, _)| Some(*name) != failure.without);
        let (code, said) = program.start(api::NAME, &[], &borrowed(&env)).ended();
        let db_said = db.map(|db| db.terminate().1).unwrap_or_default();

        let place = match failure.nobody {
            true => "advocate-db.shop:5433".to_owned(),
            false => "advocate-db.shop:5432".to_owned(),
        };
        let mut env = environment(&place, failure.login, failure.name);
        env.retain(|(name, _)| Some(*name) != failure.without);
        let played = Played::failed_start(&borrowed(&env));
        assert_eq!(code, Some(played.exit), "{}", failure.what);
        assert_eq!(
            timeless(&said),
            timeless(&played.service),
            "{}",
            failure.what
        );
        if !failure.nobody {
            let noted = |log: &str| {
                let texts = log.lines().filter_map(|line| line.split_once("] "));
                let texts = texts.map(|(_, text)| text.to_owned());
                texts
                    .filter(|text| text.starts_with("FATAL") || text.starts_with("DETAIL"))
                    .collect::<Vec<_>>()
            };
            assert_eq!(noted(&db_said), noted(&played.database), "{}", failure.what);
        }
    }
}

/// JSON lines without their times.
fn timeless(log: &str) -> Vec<Value> {
    log.lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap_or(json!(line));
            if let Some(fields) = line.as_object_mut() {
                assert!(fields.remove("time").is_some(), "{fields:?}");
            }
            line
        })
        .collect()
}
