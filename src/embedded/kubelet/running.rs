//! Programs of the declarative model under way: what each step of one does, and what it prints.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::embedded::image::program::{Driver, Line, Listen, Protocol, Step};
use crate::embedded::kubelet::database::{self, Noted};
use crate::embedded::kubelet::log::go_time_text;
use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::pod::Socket;
use crate::embedded::kubelet::process::{DatabaseLink, Frame, Next, OnTerm, Process, ProgramFrame};
use crate::embedded::time::Time;

impl Machine<'_> {
    /// Goes on with a program: its next step, or staying as a server.
    pub fn program(&mut self, mut frame: ProgramFrame) -> Next {
        if let Some((text, code)) = frame.failing.take() {
            self.print(&text);
            return Next::Exit(code);
        }
        let program = frame.program.clone();
        let Some(step) = program.steps.get(frame.step) else {
            return self.serve(frame);
        };
        let next = self.program_step(&mut frame, step);
        if !matches!(next, Next::Exit(_)) {
            self.process.stack.push(Frame::Program(frame));
        }
        next
    }

    fn program_step(&mut self, frame: &mut ProgramFrame, step: &Step) -> Next {
        frame.step += 1;
        match step {
            Step::Log(line) => self.say(line, &[]),
            Step::Require { names, line, exit } => self.require(names, line, *exit),
            Step::Cpu(micros) => self.spend(*micros),
            Step::Wait(amount) => {
                let wait = Duration::from_millis(amount.in_env(&self.process.vars));
                Next::Until(self.now() + wait)
            }
            Step::Connect {
                driver,
                url_env,
                timeout_ms,
                line,
                exit,
            } => {
                let url = self.process.vars.get(url_env).cloned().unwrap_or_default();
                let timeout = Duration::from_millis(*timeout_ms);
                self.connect(frame, (*driver, &url), timeout, line, *exit)
            }
            Step::Fill {
                mib,
                chunk_mib,
                cpu_us_per_mib,
                line,
            } => {
                let total = mib.in_env(&self.process.vars);
                self.fill(frame, total, *chunk_mib, *cpu_us_per_mib, line)
            }
            Step::Leak { kib_per_minute } => {
                let rate = kib_per_minute.in_env(&self.process.vars);
                let now = self.now();
                if let Some(run) = self.pod.run_mut(&self.run_id) {
                    run.leak = Some((rate, now));
                }
                Next::Again
            }
            Step::HandleTerm {
                line,
                exit,
                drain_ms,
            } => {
                self.process.on_term = OnTerm::Handler {
                    line: line.clone(),
                    exit: *exit,
                    drain: Duration::from_millis(*drain_ms),
                };
                Next::Again
            }
            Step::IgnoreTerm => {
                self.process.on_term = OnTerm::Ignore;
                Next::Again
            }
            Step::Listen(listen) => {
                self.listen(listen);
                Next::Again
            }
            Step::Exit(code) => Next::Exit(*code),
        }
    }

    /// Ends where one of the variables is missing or empty.
    fn require(&mut self, names: &[String], line: &Line, exit: i32) -> Next {
        let missing = names
            .iter()
            .find(|name| self.process.vars.get(*name).is_none_or(String::is_empty));
        match missing {
            Some(name) => {
                self.say(line, &[("name", name)]);
                Next::Exit(exit)
            }
            None => Next::Again,
        }
    }

    fn say(&mut self, line: &Line, values: &[(&str, &str)]) -> Next {
        let text = line_text(line, &self.process.vars, values, self.now());
        self.print(&text);
        Next::Again
    }

    fn spend(&mut self, micros: u64) -> Next {
        let now = self.now();
        match self.pod.run_mut(&self.run_id) {
            Some(run) => Next::Until(run.cpu.charge(now, micros)),
            None => Next::Again,
        }
    }

    fn connect(
        &mut self,
        frame: &mut ProgramFrame,
        (driver, url): (Driver, &str),
        timeout: Duration,
        line: &Line,
        exit: i32,
    ) -> Next {
        match database::connect(self.world, self.pod, (driver, url), timeout) {
            Ok((link, took)) => {
                frame.database = Some(link);
                Next::Until(self.now() + took)
            }
            Err(failed) => {
                if let Some(noted) = &failed.noted {
                    self.note(noted);
                }
                let then = self.now() + failed.took;
                let text = line_text(line, &self.process.vars, &[("err", &failed.text)], then);
                frame.failing = Some((text, exit));
                Next::Until(then)
            }
        }
    }

    /// Writes what a database notes about a session into its log.
    pub fn note(&mut self, noted: &Noted) {
        let now = self.now();
        let pod = match noted.pod == self.pod.uid {
            true => Some(&mut *self.pod),
            false => self.world.kubelet.pods.get_mut(&noted.pod),
        };
        if let Some(run) = pod.and_then(|pod| pod.run_mut(&noted.run)) {
            for text in &noted.lines {
                let line = Line::plain(&format!("{{pgtime}} [1] {text}"));
                let text = line_text(&line, &BTreeMap::new(), &[], now);
                run.log.write(now, &text);
            }
        }
    }

    fn fill(
        &mut self,
        frame: &mut ProgramFrame,
        total: u64,
        chunk: u64,
        cpu_us: u64,
        line: &Line,
    ) -> Next {
        if frame.filled_mib > 0 && frame.filled_mib.is_multiple_of(chunk) {
            let done = frame.filled_mib.to_string();
            self.say(line, &[("done", &done)]);
        }
        if frame.filled_mib >= total {
            frame.filled_mib = 0;
            return Next::Again;
        }
        // The step is not over: it comes again after the chunk.
        frame.step -= 1;
        let mib = chunk.min(total - frame.filled_mib);
        frame.filled_mib += mib;
        if !self.grow(mib * 1024) {
            return Next::OutOfMemory;
        }
        self.spend(mib * cpu_us)
    }

    fn listen(&mut self, listen: &Listen) {
        let vars = &self.process.vars;
        let value = |name: &str| vars.get(name).cloned().unwrap_or_default();
        let (user, password) = match &listen.speaks {
            Protocol::Postgres {
                user_env,
                password_env,
                ..
            } => {
                let user = value(user_env);
                let user = if user.is_empty() {
                    "postgres".to_owned()
                } else {
                    user
                };
                (user, value(password_env))
            }
            Protocol::Redis { password_env } => (String::new(), value(password_env)),
            _ => (String::new(), String::new()),
        };
        let socket = Socket {
            process: self.process.id,
            port: u16::try_from(listen.port.in_env(vars)).unwrap_or(0),
            loopback: listen.loopback,
            listen: std::sync::Arc::new(listen.clone()),
            user,
            password,
            closing: false,
        };
        if let Some(run) = self.pod.run_mut(&self.run_id) {
            run.sockets.push(socket);
        }
    }

    /// All steps are done: a server stays until it is stopped or leaks over its limit, anything else ends.
    fn serve(&mut self, frame: ProgramFrame) -> Next {
        let now = self.now();
        let id = self.process.id;
        let Some(run) = self.pod.run(&self.run_id) else {
            return Next::Exit(0);
        };
        if !run.sockets.iter().any(|socket| socket.process == id) {
            return Next::Exit(0);
        }
        let over = run
            .memory_limit_kib
            .zip(run.leak)
            .map(|(limit, (rate, _))| {
                let room = limit.saturating_sub(run.memory_at(now));
                (room, rate)
            });
        let next = match over {
            Some((0, rate)) if rate > 0 => Next::OutOfMemory,
            Some((room, rate)) if rate > 0 => {
                Next::Until(now + Duration::from_millis(room * 60_000 / rate + 1))
            }
            _ => Next::Park,
        };
        self.process.stack.push(Frame::Program(frame));
        next
    }

    /// The database a program in this process is connected to, for request handling.
    pub fn link_of(process: &Process) -> Option<&DatabaseLink> {
        process.program().and_then(|frame| frame.database.as_ref())
    }
}

/// A line of output with placeholders and variables filled in.
pub fn line_text(
    line: &Line,
    vars: &BTreeMap<String, String>,
    values: &[(&str, &str)],
    now: Time,
) -> String {
    if line.fields.is_empty() {
        return format!("{}\n", fill_in(&line.text, vars, values, now));
    }
    let mut fields: BTreeMap<&str, String> = line
        .fields
        .iter()
        .map(|(name, value)| (name.as_str(), fill_in(value, vars, values, now)))
        .collect();
    fields.insert("time", go_time_text(now));
    let text = serde_json::to_string(&fields).unwrap_or_default();
    format!("{text}\n")
}

fn fill_in(
    text: &str,
    vars: &BTreeMap<String, String>,
    values: &[(&str, &str)],
    now: Time,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let name = &rest[start + 1..start + length];
        let variable = rest[..start].ends_with('$');
        out.push_str(if variable {
            &rest[..start - 1]
        } else {
            &rest[..start]
        });
        if variable {
            let (name, default) = name.split_once(":-").unwrap_or((name, ""));
            let value = vars.get(name).filter(|value| !value.is_empty());
            out.push_str(value.map_or(default, String::as_str));
        } else if let Some((_, value)) = values.iter().find(|(key, _)| *key == name) {
            out.push_str(value);
        } else {
            out.push_str(&stamp(name, now).unwrap_or_else(|| format!("{{{name}}}")));
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

/// Spellings of the present moment in programs' own logs.
fn stamp(name: &str, now: Time) -> Option<String> {
    match name {
        "pgtime" => {
            let text = now.micros_text().replace('T', " ");
            Some(format!("{} UTC", &text[..text.len().saturating_sub(4)]))
        }
        "redistime" | "rfc3339" => Some(now.seconds_text()),
        "unix" => Some((now.micros() / 1_000_000).to_string()),
        _ => None,
    }
}
