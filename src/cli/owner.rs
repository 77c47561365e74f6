//! Commands that only read, answered by the process that has the store open: one process owns the file, and an experiment
//! may hold it for hours.
//!
//! The owner listens on a socket in the workspace that only its user may use. The other process sends its arguments; the
//! owner runs the command on its open store and sends back what it would have printed. Nobody who writes is answered: that
//! command opens the store itself and is told who holds it. Where there are no such sockets the status file remains.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cli::{Cli, Command, Global};
use crate::store::Store;

/// The socket's name in the workspace's folder of experiments.
const SOCKET: &str = "owner.sock";

/// Arguments longer than this are nobody's command line.
const MAX_REQUEST_BYTES: u64 = 256 << 10;

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    /// Another version may mean something else by the same arguments, and is not answered.
    version: String,
    /// Without the program's name.
    args: Vec<String>,
}

/// What the command printed, and its exit code.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    stdout: String,
    stderr: String,
    code: u8,
}

/// Whether a command only reads the store, or adds no more than a look to a ledger.
fn only_reads(command: &Command) -> bool {
    match command {
        Command::Corpus(args) => args.only_reads(),
        Command::Runs(args) => args.only_reads(),
        Command::Experiment(args) => args.only_reads(),
        Command::Scorecard(_) | Command::Pitfalls(_) | Command::Health(_) => true,
        _ => false,
    }
}

/// The answer of the process that has the store open; nothing where there is none, or where it does not answer.
pub(super) fn answered(cli: &Cli) -> Option<ExitCode> {
    if !only_reads(&cli.command) {
        return None;
    }
    let workspace = crate::config::Workspace::locate(cli.global.workspace.as_deref()).ok()?;
    let args: Option<Vec<String>> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.into_string().ok())
        .collect();
    let question = Question {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        args: args?,
    };
    let answer = socket::ask(workspace.folder(), &question)?;
    // What cannot be printed any more is nobody's to read.
    use std::io::Write;
    let _ = anstream::stdout().write_all(answer.stdout.as_bytes());
    let _ = anstream::stderr().write_all(answer.stderr.as_bytes());
    Some(ExitCode::from(answer.code))
}

/// Answers until it is dropped.
pub(super) struct Owner {
    #[cfg(unix)]
    _listening: socket::Listening,
}

/// Begins to answer. A workspace in which that is not possible is no reason to fail: the reason is answered instead.
pub(super) fn serve(workspace: &Path, store: &Arc<Store>) -> Result<Owner, std::io::Error> {
    socket::serve(workspace, store)
}

/// Runs a command of another process and catches what it prints.
fn answer(question: &Question, workspace: &Path, store: &Arc<Store>) -> Answer {
    use clap::Parser;
    let refused = |why: String| Answer {
        stdout: String::new(),
        stderr: format!("error: {why}\n"),
        code: super::failure::USAGE,
    };
    let version = env!("CARGO_PKG_VERSION");
    if question.version != version {
        return refused(format!(
            "the store is held by breakage {version}, this is breakage {}",
            question.version
        ));
    }
    let args = std::iter::once("breakage".to_owned()).chain(question.args.iter().cloned());
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) if only_reads(&cli.command) => cli,
        Ok(_) => return refused("this command writes".to_owned()),
        Err(error) => return refused(error.to_string()),
    };
    let (output, caught) = super::Output::catching();
    let context = super::Context {
        global: Global {
            workspace: Some(workspace.to_owned()),
        },
        output,
        held: Some(store.clone()),
    };
    let code = match super::dispatch(&context, cli.command) {
        Ok(code) => code,
        Err(failure) => {
            context.output.note(&failure.text());
            failure.code()
        }
    };
    let (stdout, stderr) = caught.take();
    // A command's code is one of a byte; the type does not tell it otherwise.
    let code = (0..=u8::MAX).find(|byte| ExitCode::from(*byte) == code);
    Answer {
        stdout,
        stderr,
        code: code.unwrap_or(super::failure::INTERNAL),
    }
}

#[cfg(unix)]
mod socket {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::{Answer, MAX_REQUEST_BYTES, Owner, Question, SOCKET, answer};
    use crate::cli::experiment::FOLDER;
    use crate::store::Store;

    /// Longer than any command that reads takes on a large store.
    const PATIENCE: Duration = Duration::from_secs(60);

    pub(super) struct Listening {
        path: PathBuf,
        ended: Arc<AtomicBool>,
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            self.ended.store(true, Ordering::Relaxed);
            // Wakes the thread that waits for the next question, so that it sees the end.
            drop(UnixStream::connect(&self.path));
            let _ = std::fs::remove_file(&self.path);
        }
    }

    pub(super) fn ask(workspace: &Path, question: &Question) -> Option<Answer> {
        let mut stream = UnixStream::connect(workspace.join(FOLDER).join(SOCKET)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let line = serde_json::to_string(question).ok()?;
        stream.write_all(format!("{line}\n").as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(super) fn serve(workspace: &Path, store: &Arc<Store>) -> Result<Owner, std::io::Error> {
        let workspace = std::path::absolute(workspace)?;
        let folder = workspace.join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(SOCKET);
        // We hold the store, so that a socket of this name is left from a process that was killed.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let ended = Arc::new(AtomicBool::new(false));
        let listening = Listening {
            path,
            ended: ended.clone(),
        };
        // The store must be free to be opened by others once its owner is done with it, whoever still asks.
        let store = Arc::downgrade(store);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), Some(store)) = (stream, store.upgrade()) else {
                    return;
                };
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let workspace = workspace.clone();
                std::thread::spawn(move || reply(stream, &workspace, &store));
            }
        });
        Ok(Owner {
            _listening: listening,
        })
    }

    /// A question that is none is not answered; whoever asked opens the store itself then.
    fn reply(mut stream: UnixStream, workspace: &Path, store: &Arc<Store>) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let mut line = String::new();
        let mut reader = BufReader::new((&stream).take(MAX_REQUEST_BYTES));
        if reader.read_line(&mut line).is_err() {
            return;
        }
        let Ok(question) = serde_json::from_str::<Question>(&line) else {
            return;
        };
        let answer = answer(&question, workspace, store);
        if let Ok(text) = serde_json::to_string(&answer) {
            let _ = stream.write_all(text.as_bytes());
        }
    }
}

#[cfg(not(unix))]
mod socket {
    use std::path::Path;
    use std::sync::Arc;

    use super::{Answer, Owner, Question};
    use crate::store::Store;

    pub(super) fn ask(_workspace: &Path, _question: &Question) -> Option<Answer> {
        None
    }

    pub(super) fn serve(_workspace: &Path, _store: &Arc<Store>) -> Result<Owner, std::io::Error> {
        Ok(Owner {})
    }
}
