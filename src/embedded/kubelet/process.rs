//! Processes in containers: programs of the declarative model and shell scripts, run step by step.
//!
//! A process does work until it has to wait; then its next step is queued. Every container has a process 1;
//! background jobs and exec probes are further ones. A process that ends frees its sockets; when process 1
//! ends, so does the container.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::embedded::image::program::Program;
use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::pod::Pod;
use crate::embedded::kubelet::probe::{self, ProbeKind};
use crate::embedded::kubelet::shell::{Node, Script, Word};
use crate::embedded::kubelet::{Work, hooks, runtime};
use crate::embedded::time::Time;
use crate::embedded::world::{self, World};

/// Steps that one turn may take before the process counts as spinning and is made to spend time.
const STEPS_PER_TURN: u32 = 2_000;

/// What a spinning process spends before it is looked at again.
const SPIN: Duration = Duration::from_secs(1);

/// One process.
#[derive(Debug)]
pub struct Process {
    /// 1 for the container's main process.
    pub id: u32,
    pub vars: BTreeMap<String, String>,
    pub args: Vec<String>,
    pub stack: Vec<Frame>,
    /// Exit status of the last command.
    pub last: i32,
    pub on_term: OnTerm,
    pub io: Io,
    pub captures: Vec<String>,
    pub owner: Owner,
    /// Numbers the waits; the end of an older wait is void.
    pub wake: u64,
    /// A trap to run before the next command.
    pub pending_trap: Option<Script>,
    pub last_job: u32,
}

/// Who wants to know when a process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Container,
    Nobody,
    /// An exec probe.
    Probe {
        container: String,
        kind: ProbeKind,
    },
    /// A preStop hook.
    PreStop,
    /// A postStart hook.
    PostStart,
}

/// What SIGTERM does.
#[derive(Clone, Debug, Default)]
pub enum OnTerm {
    #[default]
    Default,
    Ignore,
    Trap(Script),
    Handler {
        line: Option<crate::embedded::image::program::Line>,
        exit: i32,
        drain: Duration,
    },
}

/// Where output goes and input comes from.
#[derive(Clone, Debug, Default)]
pub struct Io {
    pub out: Sink,
    pub err: Sink,
    pub stdin: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sink {
    #[default]
    Log,
    Null,
    File(String),
    Capture(usize),
}

/// What a process still has to do, innermost last.
#[derive(Debug)]
pub enum Frame {
    Script {
        script: Script,
        next: usize,
    },
    Node(Node),
    AndThen(Node),
    OrElse(Node),
    Negate,
    Branch {
        then: Script,
        otherwise: Script,
    },
    LoopTest {
        until: bool,
        condition: Script,
        body: Script,
    },
    LoopAgain {
        until: bool,
        condition: Script,
        body: Script,
    },
    ForNext {
        name: String,
        values: Vec<String>,
        next: usize,
        body: Script,
    },
    /// The next stage of a pipe reads what this capture holds.
    PipeNext {
        rest: Vec<Node>,
        capture: usize,
        outer: Box<Io>,
    },
    RestoreIo(Box<Io>),
    RestoreVars(BTreeMap<String, String>),
    /// Sets the exit status when a wait is over.
    Status(i32),
    /// Waits until the other jobs of this process are done.
    WaitJobs,
    Program(ProgramFrame),
    /// Ends the process with this code.
    End(i32),
}

/// A program under way.
#[derive(Debug)]
pub struct ProgramFrame {
    pub program: Arc<Program>,
    pub step: usize,
    pub filled_mib: u64,
    /// A connection that failed: line already expanded, and exit code, said when the wait is over.
    pub failing: Option<(String, i32)>,
    /// The database it holds a connection to.
    pub database: Option<DatabaseLink>,
}

/// An open database connection.
#[derive(Clone, Debug)]
pub struct DatabaseLink {
    pub pod: String,
    pub run: String,
}

/// What a step leads to.
#[derive(Debug)]
pub enum Next {
    Again,
    Until(Time),
    Park,
    Exit(i32),
    /// The kernel kills the container for memory.
    OutOfMemory,
}

impl Process {
    pub fn new(id: u32, vars: BTreeMap<String, String>, frame: Frame, owner: Owner) -> Process {
        Process {
            id,
            vars,
            args: Vec::new(),
            stack: vec![frame],
            last: 0,
            on_term: OnTerm::Default,
            io: Io::default(),
            captures: Vec::new(),
            owner,
            wake: 0,
            pending_trap: None,
            last_job: 0,
        }
    }

    /// The program that this process is, unless it is a shell.
    pub fn program(&self) -> Option<&ProgramFrame> {
        match self.stack.first() {
            Some(Frame::Program(frame)) => Some(frame),
            _ => None,
        }
    }
}

/// Lets a process run until it has to wait. Called with the pod taken out of the world.
pub fn advance(world: &mut World, pod: &mut Pod, run_id: &str, process_id: u32) {
    let Some(run) = pod.run_mut(run_id) else {
        return;
    };
    let Some(index) = run
        .processes
        .iter()
        .position(|process| process.id == process_id)
    else {
        return;
    };
    let process = run.processes.remove(index);
    let mut machine = Machine {
        world,
        pod,
        run_id: run_id.to_owned(),
        process,
    };
    let mut steps = 0;
    let next = loop {
        match machine.step() {
            Next::Again if steps < STEPS_PER_TURN => steps += 1,
            Next::Again => {
                let now = machine.world.now();
                if let Some(run) = machine.pod.run_mut(run_id) {
                    run.cpu
                        .charge(now, u64::try_from(SPIN.as_micros()).unwrap_or(0));
                }
                break Next::Until(now + SPIN);
            }
            other => break other,
        }
    };
    let process = machine.process;
    settle(world, pod, run_id, process, next);
}

/// Puts a process back to wait, or ends it.
fn settle(world: &mut World, pod: &mut Pod, run_id: &str, mut process: Process, next: Next) {
    match next {
        Next::Until(when) => {
            process.wake += 1;
            let work = Work::Process {
                pod: pod.uid.clone(),
                run: run_id.to_owned(),
                process: process.id,
                wake: process.wake,
            };
            world.at(when, world::Work::Kubelet(work));
            keep(pod, run_id, process);
        }
        Next::Again | Next::Park => keep(pod, run_id, process),
        Next::Exit(code) => ended(world, pod, run_id, process, code),
        Next::OutOfMemory => {
            keep(pod, run_id, process);
            runtime::exit_container(world, pod, run_id, 137, "OOMKilled");
        }
    }
}

fn keep(pod: &mut Pod, run_id: &str, process: Process) {
    if let Some(run) = pod.run_mut(run_id) {
        run.processes.push(process);
        run.processes.sort_by_key(|process| process.id);
    }
}

fn ended(world: &mut World, pod: &mut Pod, run_id: &str, process: Process, code: i32) {
    if let Some(run) = pod.run_mut(run_id) {
        run.sockets.retain(|socket| socket.process != process.id);
    }
    match &process.owner {
        Owner::Container => {
            let reason = if code == 0 { "Completed" } else { "Error" };
            runtime::exit_container(world, pod, run_id, code, reason);
        }
        Owner::Probe { container, kind } => {
            let output = process.captures.first().cloned().unwrap_or_default();
            probe::exec_done(world, pod, container, *kind, code, &output);
        }
        Owner::PreStop => hooks::pre_stop_ended(world, pod, run_id, code),
        Owner::PostStart => {
            let output = process.captures.first().cloned().unwrap_or_default();
            hooks::post_start_done(world, pod, run_id, code, &output);
        }
        Owner::Nobody => wake_waiters(world, pod, run_id),
    }
}

/// Processes that wait for jobs look again.
fn wake_waiters(world: &mut World, pod: &mut Pod, run_id: &str) {
    let Some(run) = pod.run(run_id) else { return };
    let waiting: Vec<u32> = run
        .processes
        .iter()
        .filter(|process| matches!(process.stack.last(), Some(Frame::WaitJobs)))
        .map(|process| process.id)
        .collect();
    for id in waiting {
        advance(world, pod, run_id, id);
    }
}

/// A wait is over.
pub fn woken(world: &mut World, pod: &mut Pod, run_id: &str, process_id: u32, wake: u64) {
    let current = pod
        .run(run_id)
        .and_then(|run| {
            run.processes
                .iter()
                .find(|process| process.id == process_id)
        })
        .is_some_and(|process| process.wake == wake);
    if current {
        advance(world, pod, run_id, process_id);
    }
}

/// Starts a further process in a running container.
pub fn spawn(world: &mut World, pod: &mut Pod, run_id: &str, mut process: Process) -> u32 {
    let Some(run) = pod.run_mut(run_id) else {
        return 0;
    };
    run.next_process += 1;
    let id = run.next_process;
    process.id = id;
    run.processes.push(process);
    advance(world, pod, run_id, id);
    id
}

/// Delivers SIGTERM to process 1.
pub fn terminate(world: &mut World, pod: &mut Pod, run_id: &str) {
    let now = world.now();
    let Some(run) = pod.run_mut(run_id) else {
        return;
    };
    let Some(main) = run.processes.iter_mut().find(|process| process.id == 1) else {
        return;
    };
    match main.on_term.clone() {
        OnTerm::Ignore => {}
        OnTerm::Trap(script) => main.pending_trap = Some(script),
        OnTerm::Default => {
            if let Some(code) = main
                .program()
                .and_then(|frame| frame.program.unhandled_term_exit)
            {
                end_at(world, pod, run_id, code, now + Duration::from_millis(5));
            }
        }
        OnTerm::Handler { line, exit, drain } => {
            if matches!(main.stack.last(), Some(Frame::End(_))) {
                return;
            }
            let vars = main.vars.clone();
            let heard = heard_at(run, now);
            if let Some(line) = line {
                let text = crate::embedded::kubelet::running::line_text(&line, &vars, &[], heard);
                run.log.write(heard, &text);
            }
            let shutdown = run
                .sockets
                .iter()
                .map(|socket| shutdown_time(&socket.listen))
                .max();
            for socket in &mut run.sockets {
                socket.closing = true;
            }
            let idle = run.cpu.busy_until().max(heard).min(heard + drain);
            let last = idle + shutdown.unwrap_or(Duration::ZERO);
            let end = last + run.cpu.alone(1_500);
            end_at(world, pod, run_id, exit, end);
        }
    }
}

/// When a handler gets to run: at once, or after some scheduling rounds when the container's time is used up
/// by requests being answered.
fn heard_at(run: &crate::embedded::kubelet::pod::Run, now: Time) -> Time {
    let share = if run.cpu.is_busy(now) { 14_000 } else { 300 };
    now + run.cpu.alone(share)
}

fn shutdown_time(listen: &crate::embedded::image::program::Listen) -> Duration {
    match &listen.speaks {
        crate::embedded::image::program::Protocol::Postgres { shutdown_ms, .. } => {
            Duration::from_millis(*shutdown_ms)
        }
        _ => Duration::ZERO,
    }
}

/// Process 1 ends with a code at a moment.
fn end_at(world: &mut World, pod: &mut Pod, run_id: &str, code: i32, when: Time) {
    let uid = pod.uid.clone();
    let Some(run) = pod.run_mut(run_id) else {
        return;
    };
    let Some(main) = run.processes.iter_mut().find(|process| process.id == 1) else {
        return;
    };
    // The program frame stays below, so that requests are still answered by what it was.
    main.stack.push(Frame::End(code));
    main.wake += 1;
    let work = Work::Process {
        pod: uid,
        run: run_id.to_owned(),
        process: 1,
        wake: main.wake,
    };
    world.at(when, world::Work::Kubelet(work));
}

/// A word list that stands for `sh -c TEXT`-like starts: parsed, or the shell's own complaint.
pub fn shell_frame(text: &str, shell: &str) -> Result<Frame, String> {
    match crate::embedded::kubelet::shell::parse(text) {
        Ok(script) => Ok(Frame::Script { script, next: 0 }),
        Err(what) => Err(format!("{shell}: syntax error: {what}\n")),
    }
}

/// Whether a word is a single piece of plain text, and which.
pub fn plain_word(word: &Word) -> Option<&str> {
    match word.0.as_slice() {
        [crate::embedded::kubelet::shell::Part::Text { text, .. }] => Some(text),
        _ => None,
    }
}
