//! The program's services as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The program under its names, in a folder of its own.
pub struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    pub fn unpack(bytes: &[u8]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        // Written by another process: a test that starts one beside this would hand it the open file for a moment, and
        // a file that is open for writing cannot be executed.
        let bytes_file = folder.path().join("bytes");
        std::fs::write(&bytes_file, bytes).unwrap();
        let copied = Command::new("cp").args([&bytes_file, &file]).status();
        assert!(copied.unwrap().success());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in acme_services::NAMES {
            symlink(&file, folder.path().join(name)).unwrap();
        }
        Program { folder }
    }

    /// Starts a service with nothing in its environment but this.
    pub fn start(&self, name: &str, args: &[&str], env: &[(&str, &str)]) -> Process {
        let mut child = Command::new(self.folder.path().join(name))
            .args(args)
            .env_clear()
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process {
            child,
            output,
            said: String::new(),
        }
    }
}

/// A running service; ended when it is dropped.
pub struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    said: String,
}

impl Process {
    /// Reads on until a line holds a text, and answers that line.
    pub fn line_with(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            self.said.push_str(&line);
            assert!(read > 0, "it ended before it said {text:?}: {}", self.said);
            if line.contains(text) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(self) -> (Option<i32>, String) {
        let sent = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        self.ended()
    }

    /// Waits for the end: exit code, and all that it said from the start.
    pub fn ended(mut self) -> (Option<i32>, String) {
        self.output.read_to_string(&mut self.said).unwrap();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut self.said).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), std::mem::take(&mut self.said))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body of a path.
pub fn get(port: u16, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}
