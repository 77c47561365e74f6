//! One process's steps: what each frame of its stack does next.
//!
//! A machine holds a process taken out of its container together with the pod and the world, because a step
//! may read files, write logs, spend time, open connections and start other processes.

use crate::embedded::kubelet::pod::Pod;
use crate::embedded::kubelet::process::{Frame, Io, Next, Owner, Process, Sink};
use crate::embedded::kubelet::shell::{Node, Redirect, Script, Simple, Target};
use crate::embedded::kubelet::words::cut;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// Processes in one container; as with a node's pid limit, forking fails beyond it.
const PROCESSES_MAX: usize = 256;

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
            self.process.stack.push(Frame::Script {
                script: trap,
                next: 0,
            });
        }
        let Some(frame) = self.process.stack.pop() else {
            return Next::Exit(self.process.last);
        };
        match frame {
            Frame::Script { script, next } => {
                if let Some(node) = script.get(next).cloned() {
                    if next + 1 < script.len() {
                        self.process.stack.push(Frame::Script {
                            script,
                            next: next + 1,
                        });
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
                let chosen = if self.process.last == 0 {
                    then
                } else {
                    otherwise
                };
                self.process.last = 0;
                self.run_script(chosen)
            }
            other => self.loop_frame(other),
        }
    }

    fn loop_frame(&mut self, frame: Frame) -> Next {
        match frame {
            Frame::LoopTest {
                until,
                condition,
                body,
            } => {
                if (self.process.last == 0) == until {
                    self.process.last = 0;
                    return Next::Again;
                }
                self.process.stack.push(Frame::LoopAgain {
                    until,
                    condition,
                    body: body.clone(),
                });
                self.run_script(body)
            }
            Frame::LoopAgain {
                until,
                condition,
                body,
            } => {
                self.process.stack.push(Frame::LoopTest {
                    until,
                    condition: condition.clone(),
                    body,
                });
                self.run_script(condition)
            }
            Frame::ForNext {
                name,
                values,
                next,
                body,
            } => {
                let Some(value) = values.get(next).cloned() else {
                    return Next::Again;
                };
                self.process.vars.insert(name.clone(), value);
                self.process.stack.push(Frame::ForNext {
                    name,
                    values,
                    next: next + 1,
                    body: body.clone(),
                });
                self.run_script(body)
            }
            other => self.other_frame(other),
        }
    }

    fn other_frame(&mut self, frame: Frame) -> Next {
        match frame {
            Frame::PipeNext {
                rest,
                capture,
                outer,
            } => self.pipe(rest, Some(capture), *outer),
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
                    run.processes
                        .iter()
                        .any(|process| process.owner == Owner::Nobody)
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
            Node::Background(inner) => self.background(*inner),
            Node::Subshell(script, redirects) => {
                self.process
                    .stack
                    .push(Frame::RestoreVars(self.process.vars.clone()));
                self.redirected(&redirects);
                self.run_script(script)
            }
            Node::Group(script, redirects) => {
                self.redirected(&redirects);
                self.run_script(script)
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                self.process.stack.push(Frame::Branch { then, otherwise });
                self.run_script(condition)
            }
            Node::Loop {
                until,
                condition,
                body,
            } => {
                self.process.stack.push(Frame::LoopAgain {
                    until,
                    condition,
                    body,
                });
                Next::Again
            }
            Node::For { name, words, body } => {
                let values = self.expand_all(&words);
                self.process.stack.push(Frame::ForNext {
                    name,
                    values,
                    next: 0,
                    body,
                });
                Next::Again
            }
        }
    }

    /// Starts a background job.
    fn background(&mut self, node: Node) -> Next {
        let jobs = self
            .pod
            .run(&self.run_id)
            .map_or(0, |run| run.processes.len());
        // The process that forks is not counted while it runs.
        if jobs + 1 >= PROCESSES_MAX {
            self.error("sh: can't fork: Resource temporarily unavailable\n");
            self.process.last = 2;
            return Next::Again;
        }
        let mut job = Process::new(
            0,
            self.process.vars.clone(),
            Frame::Node(node),
            Owner::Nobody,
        );
        job.io = self.process.io.clone();
        job.captures = self.process.captures.clone();
        let id = crate::embedded::kubelet::process::spawn(self.world, self.pod, &self.run_id, job);
        self.process.last_job = id + 6;
        self.process.last = 0;
        Next::Again
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
            self.process.stack.push(Frame::PipeNext {
                rest,
                capture,
                outer,
            });
        }
        self.process.stack.push(Frame::Node(node));
        Next::Again
    }

    /// Applies redirections until the frame below is done. False when one of them is impossible.
    fn redirected(&mut self, redirects: &[Redirect]) -> bool {
        if redirects.is_empty() {
            return true;
        }
        self.process
            .stack
            .push(Frame::RestoreIo(Box::new(self.process.io.clone())));
        for redirect in redirects {
            let (word, append) = match &redirect.to {
                Target::Duplicate(from) => {
                    let sink = if *from == 2 {
                        &self.process.io.err
                    } else {
                        &self.process.io.out
                    };
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
            let old = if append {
                self.read_file(&path).unwrap_or_default()
            } else {
                String::new()
            };
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
            self.process
                .stack
                .push(Frame::RestoreVars(self.process.vars.clone()));
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
                    cut(capture);
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
        let Some(run) = self.pod.run_mut(&self.run_id) else {
            return true;
        };
        run.memory_kib += kib;
        run.memory_limit_kib
            .is_none_or(|limit| run.memory_at(now) <= limit)
    }
}
