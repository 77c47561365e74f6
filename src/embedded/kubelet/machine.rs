//! One process's steps: what each frame of its stack does next.
//!
//! A machine holds a process taken out of its container together with the pod and the world, because a step
//! may read files, write logs, spend time, open connections and start other processes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::embedded::image::program::{Line, Protocol, Step};
use crate::embedded::kubelet::log::go_time_text;
use crate::embedded::kubelet::network;
use crate::embedded::kubelet::pod::{Pod, Socket};
use crate::embedded::kubelet::process::{
    DatabaseLink, Frame, Io, Next, OnTerm, Owner, Process, ProgramFrame, Sink,
};
use crate::embedded::kubelet::shell::{Node, Redirect, Script, Simple, Target};
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// See the module documentation.
pub struct Machine<'a> {
    pub world: &'a mut World,
    pub pod: &'a mut Pod,
    pub run_id: String,
    pub process: Process,
}

impl Machine<'_> {
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Does the topmost frame's next step.
    pub fn step(&mut self) -> Next {
        if let Some(trap) = self.process.pending_trap.take() {
            self.process.stack.push(Frame::Script { script: trap, next: 0 });
        }
        let Some(frame) = self.process.stack.pop() else {
            return Next::Exit(self.process.last);
        };
        match frame {
            Frame::Script { script, next } => {
                if let Some(node) = script.get(next).cloned() {
                    if next + 1 < script.len() {
                        self.process.stack.push(Frame::Script { script, next: next + 1 });
                    }
                    self.process.stack.push(Frame::Node(node));
                } else {
                    self.process.last = 0;
                }
                Next::Again
            }
            Frame::Node(node) => self.node(node),
            Frame::AndThen(node) => self.go_on_if(self.process.last == 0, node),
            Frame::OrElse(node) => self.go_on_if(self.process.last != 0, node),
            Frame::Negate => {
                self.process.last = i32::from(self.process.last == 0);
                Next::Again
            }
            Frame::Branch { then, otherwise } => {
                let chosen = if self.process.last == 0 { then } else { otherwise };
                self.process.last = 0;
                self.run_script(chosen)
            }
            Frame::LoopTest { until, condition, body } => {
                if (self.process.last == 0) == until {
                    self.process.last = 0;
                    return Next::Again;
                }
                self.process.stack.push(Frame::LoopAgain { until, condition, body: body.clone() });
                self.run_script(body)
            }
            Frame::LoopAgain { until, condition, body } => {
                self.process.stack.push(Frame::LoopTest { until, condition: condition.clone(), body });
                self.run_script(condition)
            }
            Frame::ForNext { name, values, next, body } => {
                let Some(value) = values.get(next).cloned() else {
                    return Next::Again;
                };
                self.process.vars.insert(name.clone(), value);
                self.process.stack.push(Frame::ForNext { name, values, next: next + 1, body: body.clone() });
                self.run_script(body)
            }
            other => self.other_frame(other),
        }
    }

    fn other_frame(&mut self, frame: Frame) -> Next {
        match frame {
            Frame::PipeNext { rest, capture, outer } => self.pipe(rest, Some(capture), *outer),
            Frame::RestoreIo(io) => {
                self.process.io = *io;
                Next::Again
            }
            Frame::RestoreVars(vars) => {
                self.process.vars = vars;
                Next::Again
            }
            Frame::Status(code) => {
                self.process.last = code;
                Next::Again
            }
            Frame::WaitJobs => {
                let busy = self.pod.run(&self.run_id).is_some_and(|run| {
                    run.processes.iter().any(|process| process.owner == Owner::Nobody)
                });
                if busy {
                    self.process.stack.push(Frame::WaitJobs);
                    return Next::Park;
                }
                Next::Again
            }
            Frame::Program(frame) => self.program(frame),
            Frame::End(code) => Next::Exit(code),
            _ => Next::Again,
        }
    }

    fn go_on_if(&mut self, go_on: bool, node: Node) -> Next {
        if go_on {
            self.process.stack.push(Frame::Node(node));
        }
        Next::Again
    }

    fn run_script(&mut self, script: Script) -> Next {
        self.process.stack.push(Frame::Script { script, next: 0 });
        Next::Again
    }

    fn node(&mut self, node: Node) -> Next {
        match node {
            Node::Simple(simple) => self.simple(simple),
            Node::And(left, right) => self.two(Frame::AndThen(*right), *left),
            Node::Or(left, right) => self.two(Frame::OrElse(*right), *left),
            Node::Not(inner) => self.two(Frame::Negate, *inner),
            Node::Pipe(parts) => {
                let outer = self.process.io.clone();
                self.pipe(parts, None, outer)
            }
            Node::Background(inner) => {
                let mut job = Process::new(0, self.process.vars.clone(), Frame::Node(*inner), Owner::Nobody);
                job.io = self.process.io.clone();
                job.captures = self.process.captures.clone();
                let id = crate::embedded::kubelet::process::spawn(self.world, self.pod, &self.run_id, job);
                self.process.last_job = id + 6;
                self.process.last = 0;
                Next::Again
            }
            Node::Subshell(script, redirects) => {
                self.process.stack.push(Frame::RestoreVars(self.process.vars.clone()));
                self.redirected(&redirects);
                self.run_script(script)
            }
            Node::Group(script, redirects) => {
                self.redirected(&redirects);
                self.run_script(script)
            }
            Node::If { condition, then, otherwise } => {
                self.process.stack.push(Frame::Branch { then, otherwise });
                self.run_script(condition)
            }
            Node::Loop { until, condition, body } => {
                self.process.stack.push(Frame::LoopAgain { until, condition, body });
                Next::Again
            }
            Node::For { name, words, body } => {
                let values = self.expand_all(&words);
                self.process.stack.push(Frame::ForNext { name, values, next: 0, body });
                Next::Again
            }
        }
    }

    fn two(&mut self, after: Frame, first: Node) -> Next {
        self.process.stack.push(after);
        self.process.stack.push(Frame::Node(first));
        Next::Again
    }

    /// Runs the stages of a pipe one after another, each reading what the one before wrote.
    fn pipe(&mut self, mut rest: Vec<Node>, read: Option<usize>, outer: Io) -> Next {
        if let Some(capture) = read {
            self.process.io.stdin = std::mem::take(&mut self.process.captures[capture]);
        }
        if rest.is_empty() {
            self.process.io = outer;
            return Next::Again;
        }
        let node = rest.remove(0);
        if rest.is_empty() {
            self.process.io.out = outer.out.clone();
            self.process.stack.push(Frame::RestoreIo(Box::new(outer)));
        } else {
            self.process.captures.push(String::new());
            let capture = self.process.captures.len() - 1;
            self.process.io.out = Sink::Capture(capture);
            let outer = Box::new(outer);
            self.process.stack.push(Frame::PipeNext { rest, capture, outer });
        }
        self.process.stack.push(Frame::Node(node));
        Next::Again
    }

    /// Applies redirections until the frame below is done. False when one of them is impossible.
    fn redirected(&mut self, redirects: &[Redirect]) -> bool {
        if redirects.is_empty() {
            return true;
        }
        self.process.stack.push(Frame::RestoreIo(Box::new(self.process.io.clone())));
        for redirect in redirects {
            let (word, append) = match &redirect.to {
                Target::Duplicate(from) => {
                    let sink = if *from == 2 { &self.process.io.err } else { &self.process.io.out };
                    let sink = sink.clone();
                    self.set_sink(redirect.fd, sink);
                    continue;
                }
                Target::Read(word) => {
                    let path = self.expand_one(word);
                    match self.read_file(&path) {
                        Some(text) => self.process.io.stdin = text,
                        None => {
                            self.error(&format!("sh: can't open {path}: no such file\n"));
                            return false;
                        }
                    }
                    continue;
                }
                Target::Write(word) => (word, false),
                Target::Append(word) => (word, true),
            };
            let path = self.expand_one(word);
            if path == "/dev/null" {
                self.set_sink(redirect.fd, Sink::Null);
                continue;
            }
            if path == "/dev/stdout" || path == "/dev/stderr" || path == "/proc/1/fd/1" {
                self.set_sink(redirect.fd, Sink::Log);
                continue;
            }
            let old = if append { self.read_file(&path).unwrap_or_default() } else { String::new() };
            if let Err(why) = self.write_file(&path, old) {
                self.error(&format!("sh: can't create {path}: {why}\n"));
                return false;
            }
            self.set_sink(redirect.fd, Sink::File(path));
        }
        true
    }

    fn set_sink(&mut self, fd: u32, sink: Sink) {
        if fd == 2 {
            self.process.io.err = sink;
        } else {
            self.process.io.out = sink;
        }
    }

    fn simple(&mut self, simple: Simple) -> Next {
        let words = self.expand_all(&simple.words);
        if words.is_empty() {
            for (name, word) in &simple.assignments {
                let value = self.expand_one(word);
                self.process.vars.insert(name.clone(), value);
            }
            self.process.last = 0;
            self.redirected(&simple.redirects);
            return Next::Again;
        }
        if !simple.assignments.is_empty() {
            self.process.stack.push(Frame::RestoreVars(self.process.vars.clone()));
            for (name, word) in &simple.assignments {
                let value = self.expand_one(word);
                self.process.vars.insert(name.clone(), value);
            }
        }
        if !self.redirected(&simple.redirects) {
            self.process.last = 1;
            return Next::Again;
        }
        self.command(&words)
    }

    /// Writes to standard output.
    pub fn print(&mut self, text: &str) {
        let sink = self.process.io.out.clone();
        self.write(&sink, text);
    }

    /// Writes to standard error.
    pub fn error(&mut self, text: &str) {
        let sink = self.process.io.err.clone();
        self.write(&sink, text);
    }

    fn write(&mut self, sink: &Sink, text: &str) {
        let now = self.now();
        match sink {
            Sink::Null => {}
            Sink::Log => {
                if let Some(run) = self.pod.run_mut(&self.run_id) {
                    run.log.write(now, text);
                }
            }
            Sink::Capture(index) => {
                if let Some(capture) = self.process.captures.get_mut(*index) {
                    capture.push_str(text);
                }
            }
            Sink::File(path) => {
                let mut all = self.read_file(path).unwrap_or_default();
                all.push_str(text);
                // A full or read-only volume was already refused when the file was opened.
                let _ = self.write_file(path, all);
            }
        }
    }

    /// Grows the container's memory; false when that exceeds its limit.
    pub fn grow(&mut self, kib: u64) -> bool {
        let now = self.now();
        let Some(run) = self.pod.run_mut(&self.run_id) else { return true };
        run.memory_kib += kib;
        run.memory_limit_kib.is_none_or(|limit| run.memory_at(now) <= limit)
    }

    fn program(&mut self, mut frame: ProgramFrame) -> Next {
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
            Step::Require { names, line, exit } => {
                let missing = names
                    .iter()
                    .find(|name| self.process.vars.get(*name).is_none_or(String::is_empty))
                    .cloned();
                if let Some(name) = missing {
                    self.say(line, &[("name", &name)]);
                    return Next::Exit(*exit);
                }
                Next::Again
            }
            Step::Cpu(micros) => self.spend(*micros),
            Step::Wait(amount) => {
                let wait = Duration::from_millis(amount.in_env(&self.process.vars));
                Next::Until(self.now() + wait)
            }
            Step::Connect { url_env, timeout_ms, line, exit } => {
                let url = self.process.vars.get(url_env).cloned().unwrap_or_default();
                let timeout = Duration::from_millis(*timeout_ms);
                self.connect(frame, &url, timeout, line, *exit)
            }
            Step::Fill { mib, chunk_mib, cpu_us_per_mib, line } => {
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
            Step::HandleTerm { line, exit, drain_ms } => {
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
        url: &str,
        timeout: Duration,
        line: &Line,
        exit: i32,
    ) -> Next {
        match network::connect_database(self.world, self.pod, url, timeout) {
            Ok((link, took)) => {
                frame.database = Some(link);
                Next::Until(self.now() + took)
            }
            Err((why, took)) => {
                let then = self.now() + took;
                let text = line_text(line, &self.process.vars, &[("err", &why)], then);
                frame.failing = Some((text, exit));
                Next::Until(then)
            }
        }
    }

    fn fill(&mut self, frame: &mut ProgramFrame, total: u64, chunk: u64, cpu_us: u64, line: &Line) -> Next {
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

    fn listen(&mut self, listen: &crate::embedded::image::program::Listen) {
        let vars = &self.process.vars;
        let value = |name: &str| vars.get(name).cloned().unwrap_or_default();
        let (user, password) = match &listen.speaks {
            Protocol::Postgres { user_env, password_env, .. } => {
                let user = value(user_env);
                let user = if user.is_empty() { "postgres".to_owned() } else { user };
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
        let Some(run) = self.pod.run(&self.run_id) else { return Next::Exit(0) };
        if !run.sockets.iter().any(|socket| socket.process == id) {
            return Next::Exit(0);
        }
        let over = run.memory_limit_kib.zip(run.leak).map(|(limit, (rate, _))| {
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
pub fn line_text(line: &Line, vars: &BTreeMap<String, String>, values: &[(&str, &str)], now: Time) -> String {
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

fn fill_in(text: &str, vars: &BTreeMap<String, String>, values: &[(&str, &str)], now: Time) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 1..start + length];
        let variable = rest[..start].ends_with('$');
        out.push_str(if variable { &rest[..start - 1] } else { &rest[..start] });
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
