//! Sessions with a simulated database: who gets in, and in which words a program says why it did not.

use std::time::Duration;

use crate::embedded::image::program::{Driver, Protocol};
use crate::embedded::kubelet::network::{self, Connection, NameError};
use crate::embedded::kubelet::pod::{Pod, Socket};
use crate::embedded::kubelet::process::DatabaseLink;
use crate::embedded::world::World;

/// A round trip inside the node, with what a program does around it.
const ROUND_TRIP: Duration = Duration::from_micros(2_500);

/// What password authentication adds on both sides.
const AUTHENTICATION: Duration = Duration::from_micros(4_500);

/// A connection that did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The client's text.
    pub text: String,
    /// The time until the client knows.
    pub took: Duration,
    /// What the database wrote into its own log.
    pub noted: Option<Noted>,
}

/// Lines of a database's log, without time and process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    pub pod: String,
    pub run: String,
    pub lines: Vec<String>,
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    /// The URL is none; the text is the URL.
    Url(String),
    Name(NameError),
    Refused,
    NoAnswer,
    NoPassword,
    Refusal(Refusal),
}

/// Why a database refuses a session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    NotADatabase,
    ShuttingDown,
    Password { user: String, known: bool },
    NoDatabase(String),
}

/// Connects to the database of a URL with a driver, for at most so long. The time it took is told, too.
pub fn connect(
    world: &World,
    from: &Pod,
    (driver, text): (Driver, &str),
    timeout: Duration,
) -> Result<(DatabaseLink, Duration), Failed> {
    let url = match driver {
        Driver::Pgx => parse_url(text.trim_end_matches('\n')),
        Driver::TokioPostgres => parse_url(text),
    };
    // What comes after the question mark is taken by the letter: a line end at the end of a Secret's value spoils it.
    let spoilt = |url: &Url| driver == Driver::TokioPostgres && url.query.ends_with('\n');
    let Some(url) = url.filter(|url| !spoilt(url)) else {
        return Err(Failed {
            text: driver_text(
                driver,
                &Cause::Url(text.to_owned()),
                &Place::default(),
                timeout,
            ),
            took: Duration::ZERO,
            noted: None,
        });
    };
    let database = match url.database.is_empty() {
        true => url.user.clone(),
        false => url.database.clone(),
    };
    let mut place = Place {
        user: url.user.clone(),
        database: database.clone(),
        host: url.host.clone(),
        port: url.port,
        address: String::new(),
    };
    let outcome = network::resolve(world, from, &url.host)
        .map_err(Cause::Name)
        .and_then(|address| {
            place.address = address;
            reach(world, from, &place.address, url.port)
        });
    let failed = |cause: &Cause, noted| Failed {
        text: driver_text(driver, cause, &place, timeout),
        took: match cause {
            Cause::Name(NameError::NoAnswer) | Cause::NoAnswer => timeout,
            Cause::Refusal(_) | Cause::NoPassword => ROUND_TRIP + AUTHENTICATION,
            _ => ROUND_TRIP,
        },
        noted,
    };
    let (link, socket) = outcome.map_err(|cause| failed(&cause, None))?;
    if url.password.is_none() && driver == Driver::TokioPostgres {
        return Err(failed(&Cause::NoPassword, None));
    }
    let password = url.password.unwrap_or_default();
    match session(socket, &url.user, &password, &database) {
        Ok(()) => Ok((link, ROUND_TRIP + AUTHENTICATION)),
        Err(refusal) => {
            let noted = refusal.noted(&link);
            Err(failed(&Cause::Refusal(refusal), noted))
        }
    }
}

/// The socket that answers at an address, and what a connection to it is.
fn reach<'a>(
    world: &'a World,
    from: &'a Pod,
    address: &str,
    port: u16,
) -> Result<(DatabaseLink, &'a Socket), Cause> {
    match network::connect(world, from, address, port) {
        Connection::Open(pod, run, index) => {
            let socket = network::socket(world, from, &pod, &run, index).ok_or(Cause::Refused)?;
            Ok((DatabaseLink { pod, run }, socket))
        }
        Connection::Refused => Err(Cause::Refused),
        Connection::NoAnswer => Err(Cause::NoAnswer),
    }
}

/// Where a connection goes.
#[derive(Default)]
struct Place {
    user: String,
    database: String,
    host: String,
    port: u16,
    address: String,
}

fn driver_text(driver: Driver, cause: &Cause, place: &Place, timeout: Duration) -> String {
    match driver {
        Driver::Pgx => pgx_text(cause, place),
        Driver::TokioPostgres => tokio_postgres_text(cause, timeout),
    }
}

fn pgx_text(cause: &Cause, place: &Place) -> String {
    let Place {
        user,
        database,
        host,
        port,
        address,
    } = place;
    let head = format!("failed to connect to `user={user} database={database}`: ");
    let dial = |why: &str| {
        format!("{head}{address}:{port} ({host}): dial error: dial tcp {address}:{port}: {why}")
    };
    match cause {
        Cause::Url(url) => {
            let url = url.trim_end_matches('\n');
            format!(
                "cannot parse `{url}`: failed to parse as keyword/value (invalid keyword/value)"
            )
        }
        Cause::Name(error) => format!("{head}hostname resolving error: {}", error.text(host)),
        Cause::Refused => dial("connect: connection refused"),
        Cause::NoAnswer => dial("i/o timeout"),
        Cause::NoPassword => format!("{head}{address}:{port} ({host}): failed SASL auth"),
        Cause::Refusal(refusal) => {
            format!("{head}{address}:{port} ({host}): {}", refusal.pgx_text())
        }
    }
}

fn tokio_postgres_text(cause: &Cause, timeout: Duration) -> String {
    match cause {
        Cause::Url(url) if parse_url(url).is_some() => {
            "invalid connection string: invalid value for option `sslmode`".to_owned()
        }
        Cause::Url(url) => match url.split_once('=') {
            Some((option, _)) => {
                format!("invalid connection string: unknown option `{option}`")
            }
            None => "invalid connection string: unexpected EOF".to_owned(),
        },
        Cause::Name(NameError::NoSuchHost) => {
            "error connecting to server: failed to lookup address information: Name or service not known"
                .to_owned()
        }
        Cause::Name(NameError::NoAnswer) | Cause::NoAnswer => {
            format!("timed out after {}s", timeout.as_secs())
        }
        Cause::Refused => {
            "error connecting to server: Connection refused (os error 111)".to_owned()
        }
        Cause::NoPassword => "invalid configuration: password missing".to_owned(),
        Cause::Refusal(Refusal::NotADatabase) => {
            "error communicating with the server: bytes remaining on stream".to_owned()
        }
        Cause::Refusal(refusal) => format!("db error: FATAL: {}", refusal.message()),
    }
}

impl Refusal {
    fn message(&self) -> String {
        match self {
            Refusal::NotADatabase => "unexpected EOF".to_owned(),
            Refusal::ShuttingDown => "the database system is shutting down".to_owned(),
            Refusal::Password { user, .. } => {
                format!("password authentication failed for user \"{user}\"")
            }
            Refusal::NoDatabase(name) => format!("database \"{name}\" does not exist"),
        }
    }

    fn pgx_text(&self) -> String {
        let message = self.message();
        match self {
            Refusal::NotADatabase => format!("failed to receive message: {message}"),
            Refusal::ShuttingDown => format!("server error: FATAL: {message} (SQLSTATE 57P03)"),
            Refusal::Password { .. } => {
                format!("failed SASL auth: FATAL: {message} (SQLSTATE 28P01)")
            }
            Refusal::NoDatabase(_) => format!("server error: FATAL: {message} (SQLSTATE 3D000)"),
        }
    }

    /// What the database writes into its own log.
    fn noted(&self, link: &DatabaseLink) -> Option<Noted> {
        let mut lines = vec![format!("FATAL:  {}", self.message())];
        match self {
            Refusal::NotADatabase => return None,
            Refusal::Password { user, known: false } => {
                lines.push(format!("DETAIL:  Role \"{user}\" does not exist."));
            }
            _ => {}
        }
        Some(Noted {
            pod: link.pod.clone(),
            run: link.run.clone(),
            lines,
        })
    }
}

/// Whether a database accepts a session.
fn session(socket: &Socket, user: &str, password: &str, database: &str) -> Result<(), Refusal> {
    if !matches!(socket.listen.speaks, Protocol::Postgres { .. }) {
        return Err(Refusal::NotADatabase);
    }
    if socket.closing {
        return Err(Refusal::ShuttingDown);
    }
    if user != socket.user || password != socket.password {
        return Err(Refusal::Password {
            user: user.to_owned(),
            known: user == socket.user,
        });
    }
    if database != "postgres" && database != socket.user {
        return Err(Refusal::NoDatabase(database.to_owned()));
    }
    Ok(())
}

/// The session of a command-line client inside a pod, by address and port.
pub fn try_session(
    world: &World,
    from: &Pod,
    place: (&str, u16),
    user: &str,
    password: &str,
    database: &str,
) -> Result<(), Failed> {
    let (host, port) = place;
    let failed = |text: String, noted| Failed {
        text,
        took: ROUND_TRIP,
        noted,
    };
    let address = network::resolve(world, from, host).map_err(|_| {
        failed(
            format!(
                "could not translate host name \"{host}\" to address: Name or service not known"
            ),
            None,
        )
    })?;
    let head = format!("connection to server at \"{address}\", port {port} failed: ");
    let (link, socket) = reach(world, from, &address, port).map_err(|cause| {
        let why = match cause {
            Cause::NoAnswer => "timeout expired",
            _ => "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
        };
        failed(format!("{head}{why}"), None)
    })?;
    session(socket, user, password, database).map_err(|refusal| {
        let why = match &refusal {
            Refusal::NotADatabase => "server closed the connection unexpectedly".to_owned(),
            other => format!("FATAL:  {}", other.message()),
        };
        failed(format!("{head}{why}"), refusal.noted(&link))
    })
}

/// A database URL taken apart.
struct Url {
    user: String,
    /// `None` where the URL has no place for one.
    password: Option<String>,
    host: String,
    port: u16,
    database: String,
    query: String,
}

fn parse_url(text: &str) -> Option<Url> {
    let rest = text
        .strip_prefix("postgres://")
        .or_else(|| text.strip_prefix("postgresql://"))
        .or_else(|| text.strip_prefix("redis://"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (account, place) = place.rsplit_once('@').unwrap_or(("", place));
    let (user, password) = match account.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (account, None),
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (place, 5432),
    };
    Some(Url {
        user: percent_decoded(user),
        password: password.map(percent_decoded),
        host: host.to_owned(),
        port,
        database: database.to_owned(),
        query: query.to_owned(),
    })
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_with_and_without_its_optional_parts() {
        let whole = parse_url("postgres://a:p%40ss@db.x.svc:6543/shop?sslmode=disable").unwrap();
        assert_eq!(
            (whole.user.as_str(), whole.password.as_deref(), whole.port),
            ("a", Some("p@ss"), 6543)
        );
        let short = parse_url("postgresql://a@db").unwrap();
        assert_eq!((short.password, short.port), (None, 5432));
        assert!(parse_url("mysql://a@db").is_none());
    }

    #[test]
    fn each_driver_has_its_own_words() {
        let place = Place {
            user: "a".to_owned(),
            database: "b".to_owned(),
            host: "db".to_owned(),
            port: 5432,
            address: "10.43.0.7".to_owned(),
        };
        let refusal = Cause::Refusal(Refusal::Password {
            user: "a".to_owned(),
            known: true,
        });
        let limit = Duration::from_secs(10);
        assert_eq!(
            driver_text(Driver::TokioPostgres, &refusal, &place, limit),
            "db error: FATAL: password authentication failed for user \"a\""
        );
        assert_eq!(
            driver_text(Driver::Pgx, &refusal, &place, limit),
            "failed to connect to `user=a database=b`: 10.43.0.7:5432 (db): failed SASL auth: FATAL: password \
             authentication failed for user \"a\" (SQLSTATE 28P01)"
        );
        assert_eq!(
            driver_text(Driver::TokioPostgres, &Cause::NoAnswer, &place, limit),
            "timed out after 10s"
        );
    }
}
