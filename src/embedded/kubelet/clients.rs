//! Network tools of containers: `curl`, `wget`, `nc`, `nslookup`, `psql`, `pg_isready`, `redis-cli`.

use std::time::Duration;

use crate::embedded::kubelet::database;
use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::network::{self, Answer, Connection, NameError};
use crate::embedded::kubelet::process::Next;

/// How long tools wait for an answer that does not come, when nothing else is said.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a request has no answer.
enum Failure {
    Name(NameError),
    Refused,
    NoAnswer,
}

impl Machine<'_> {
    /// Runs one of the network tools.
    pub fn network_tool(&mut self, tool: &str, args: &[String]) -> Next {
        match tool {
            "curl" => self.curl(args),
            "wget" => self.wget(args),
            "nc" => self.nc(args),
            "nslookup" => self.nslookup(args),
            "redis-cli" => self.redis_cli(args),
            _ => self.psql(tool, args),
        }
    }

    fn request(&mut self, url: &str) -> Result<(String, u16, Answer), (Failure, String, u16)> {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host.to_owned(), port.parse().unwrap_or(80)),
            None => (place.to_owned(), 80),
        };
        let address = match network::resolve(self.world, self.pod, &host) {
            Ok(address) => address,
            Err(error) => return Err((Failure::Name(error), host, port)),
        };
        match network::connect(self.world, self.pod, &address, port) {
            Connection::Refused => Err((Failure::Refused, host, port)),
            Connection::NoAnswer => Err((Failure::NoAnswer, host, port)),
            Connection::Open(uid, run, index) => {
                let path = format!("/{path}");
                match self.answer(&uid, &run, index, &path) {
                    Some(answer) => Ok((host, port, answer)),
                    None => Err((Failure::NoAnswer, host, port)),
                }
            }
        }
    }

    fn answer(&mut self, uid: &str, run_id: &str, index: usize, path: &str) -> Option<Answer> {
        if uid == self.pod.uid {
            // The pod at hand is not in the world meanwhile; its own run is taken out to serve.
            let at = self
                .pod
                .runs
                .iter()
                .position(|run| run.facts.id == run_id)?;
            let mut run = self.pod.runs.remove(at);
            let answer = network::serve(self.world, &mut run, index, path, PATIENCE);
            self.pod.runs.insert(at, run);
            return answer;
        }
        let mut other = self.world.kubelet.pods.remove(uid)?;
        let answer = other
            .run_mut(run_id)
            .and_then(|run| network::serve(self.world, run, index, path, PATIENCE));
        self.world.kubelet.pods.insert(uid.to_owned(), other);
        answer
    }

    fn curl(&mut self, args: &[String]) -> Next {
        let url = args
            .iter()
            .rfind(|arg| !arg.starts_with('-') && arg.contains(['.', ':', '/']));
        let Some(url) = url.cloned() else {
            return self.done(2);
        };
        let patience =
            seconds_after(args, &["-m", "--max-time", "--connect-timeout"]).unwrap_or(PATIENCE);
        let fail = args
            .iter()
            .any(|arg| arg == "--fail" || (is_short(arg) && arg.contains('f')));
        let silent = args
            .iter()
            .any(|arg| is_short(arg) && arg.contains('s') && !arg.contains('S'));
        let now = self.now();
        let (text, code, took) = match self.request(&url) {
            Ok((_, _, answer)) => {
                let took = answer.at.since(now);
                if took > patience {
                    let ms = patience.as_millis();
                    (
                        format!(
                            "curl: (28) Operation timed out after {ms} milliseconds with 0 bytes received\n"
                        ),
                        28,
                        patience,
                    )
                } else if fail && answer.status >= 400 {
                    (
                        format!(
                            "curl: (22) The requested URL returned error: {}\n",
                            answer.status
                        ),
                        22,
                        took,
                    )
                } else {
                    self.print(&answer.body);
                    return self.done_after(took, 0);
                }
            }
            Err(failure) => curl_failure(failure, patience),
        };
        if !silent {
            self.error(&text);
        }
        self.done_after(took, code)
    }

    fn wget(&mut self, args: &[String]) -> Next {
        let url = args.iter().rfind(|arg| {
            !arg.starts_with('-') && arg.contains(['.', ':', '/']) && *arg != "/dev/null"
        });
        let Some(url) = url.cloned() else {
            return self.done(1);
        };
        let patience = seconds_after(args, &["-T"]).unwrap_or(PATIENCE);
        let to_stdout = args
            .iter()
            .any(|arg| arg == "-qO-" || arg == "-O-" || arg == "-");
        let now = self.now();
        match self.request(&url) {
            Ok((_, _, answer)) if answer.at.since(now) > patience => {
                self.error("wget: download timed out\n");
                self.done_after(patience, 1)
            }
            Ok((_, _, answer)) if answer.status >= 400 => {
                self.error(&format!(
                    "wget: server returned error: HTTP/1.1 {}\n",
                    answer.status
                ));
                self.done_after(answer.at.since(now), 1)
            }
            Ok((_, _, answer)) => {
                if to_stdout {
                    self.print(&answer.body);
                }
                self.done_after(answer.at.since(now), 0)
            }
            Err((Failure::Name(error), host, _)) => {
                self.error(&format!("wget: bad address '{host}'\n"));
                let slow = error == NameError::NoAnswer;
                self.done_after(
                    if slow {
                        PATIENCE
                    } else {
                        Duration::from_millis(20)
                    },
                    1,
                )
            }
            Err((Failure::Refused, host, port)) => {
                self.error(&format!(
                    "wget: can't connect to remote host ({host}:{port}): Connection refused\n"
                ));
                self.done(1)
            }
            Err((Failure::NoAnswer, ..)) => {
                self.error("wget: download timed out\n");
                self.done_after(patience, 1)
            }
        }
    }

    fn nc(&mut self, args: &[String]) -> Next {
        let mut plain = args.iter().filter(|arg| !arg.starts_with('-'));
        let (Some(host), Some(port)) = (plain.next(), plain.next()) else {
            return self.done(1);
        };
        let port = port.parse().unwrap_or(0);
        let open = network::resolve(self.world, self.pod, host)
            .map(|address| network::connect(self.world, self.pod, &address, port));
        match open {
            Ok(Connection::Open(..)) => self.done(0),
            Ok(Connection::Refused) => self.done(1),
            Ok(Connection::NoAnswer) => {
                let patience = seconds_after(args, &["-w"]).unwrap_or(PATIENCE);
                self.done_after(patience, 1)
            }
            Err(_) => {
                self.error(&format!("nc: bad address '{host}'\n"));
                self.done(1)
            }
        }
    }

    fn nslookup(&mut self, args: &[String]) -> Next {
        let Some(name) = args.first().cloned() else {
            return self.done(1);
        };
        let server = network::DNS_ADDRESS;
        match network::resolve(self.world, self.pod, &name) {
            Ok(address) => {
                self.print(&format!("Server:\t\t{server}\nAddress:\t{server}:53\n\nName:\t{name}\nAddress: {address}\n\n"));
                self.done(0)
            }
            Err(NameError::NoSuchHost) => {
                self.print(&format!("Server:\t\t{server}\nAddress:\t{server}:53\n\n** server can't find {name}: NXDOMAIN\n\n"));
                self.done(1)
            }
            Err(NameError::NoAnswer) => {
                self.print(";; connection timed out; no servers could be reached\n\n");
                self.done_after(PATIENCE, 1)
            }
        }
    }

    fn redis_cli(&mut self, args: &[String]) -> Next {
        let host = value_after(args, "-h").unwrap_or("127.0.0.1").to_owned();
        let port = value_after(args, "-p")
            .and_then(|text| text.parse().ok())
            .unwrap_or(6379);
        let open = network::resolve(self.world, self.pod, &host)
            .map(|address| network::connect(self.world, self.pod, &address, port));
        if matches!(open, Ok(Connection::Open(..))) {
            self.print("PONG\n");
            return self.done(0);
        }
        self.error(&format!(
            "Could not connect to Redis at {host}:{port}: Connection refused\n"
        ));
        self.done(1)
    }

    fn psql(&mut self, tool: &str, args: &[String]) -> Next {
        let vars = &self.process.vars;
        let from_env = |name: &str, default: &str| {
            vars.get(name)
                .cloned()
                .unwrap_or_else(|| default.to_owned())
        };
        let option = |flag: &str, name: &str, default: &str| {
            value_after(args, flag).map_or_else(|| from_env(name, default), str::to_owned)
        };
        let host = option("-h", "PGHOST", "127.0.0.1");
        let port = option("-p", "PGPORT", "5432").parse().unwrap_or(5432);
        let user = option("-U", "PGUSER", "postgres");
        let named = option("-d", "PGDATABASE", &user);
        let password = from_env("PGPASSWORD", "");
        let place = (host.as_str(), port);
        let answer = database::try_session(self.world, self.pod, place, &user, &password, &named);
        let took = Duration::from_millis(25);
        if tool == "pg_isready" {
            let (word, code) = match &answer {
                Err(failed) if failed.text.contains("refused") => ("no response", 2),
                Err(failed) if failed.text.contains("shutting down") => {
                    ("rejecting connections", 1)
                }
                _ => ("accepting connections", 0),
            };
            self.print(&format!("{host}:{port} - {word}\n"));
            return self.done_after(took, code);
        }
        match answer {
            Ok(()) => {
                self.print(" ?column? \n----------\n        1\n(1 row)\n\n");
                self.done_after(took, 0)
            }
            Err(failed) => {
                if let Some(noted) = &failed.noted {
                    self.note(noted);
                }
                self.error(&format!("psql: error: {}\n", failed.text));
                self.done_after(took, 2)
            }
        }
    }
}

/// What curl says of a failure, its exit status, and the time it took.
fn curl_failure(failure: (Failure, String, u16), patience: Duration) -> (String, i32, Duration) {
    match failure {
        (Failure::Name(NameError::NoSuchHost), host, _) => (
            format!("curl: (6) Could not resolve host: {host}\n"),
            6,
            Duration::from_millis(20),
        ),
        (Failure::Name(NameError::NoAnswer), ..) => (
            format!(
                "curl: (28) Resolving timed out after {} milliseconds\n",
                patience.as_millis()
            ),
            28,
            patience,
        ),
        (Failure::Refused, host, port) => (
            format!(
                "curl: (7) Failed to connect to {host} port {port} after 2 ms: Couldn't connect to server\n"
            ),
            7,
            Duration::from_millis(2),
        ),
        (Failure::NoAnswer, ..) => (
            format!(
                "curl: (28) Connection timed out after {} milliseconds\n",
                patience.as_millis()
            ),
            28,
            patience,
        ),
    }
}

fn is_short(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--")
}

fn value_after<'a>(args: &'a [String], flag: &str) -> Option<&'a str> {
    let at = args.iter().position(|arg| arg == flag)?;
    args.get(at + 1).map(String::as_str)
}

fn seconds_after(args: &[String], flags: &[&str]) -> Option<Duration> {
    let seconds: f64 = flags
        .iter()
        .find_map(|flag| value_after(args, flag)?.parse().ok())?;
    Some(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)))
}
