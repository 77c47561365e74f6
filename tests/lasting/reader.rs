//! What a served cluster holds, read over plain HTTP and without any code of the program.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::held;
pub use crate::held::{Held, differences};

/// How long a rollout may take on the wall's clock until the machine itself is to blame.
const PATIENCE: Duration = Duration::from_secs(60);

/// One list.
fn list(url: &str, path: &str) -> Vec<Value> {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    // HTTP/1.0: the answer ends with the connection and comes in one piece.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{path}: {head}");
    let list: Value = serde_json::from_str(body).unwrap();
    list["items"].as_array().cloned().unwrap_or_default()
}

/// What the cluster holds now.
pub fn held(url: &str) -> Held {
    held::held(|path| list(url, path))
}

/// The workloads that are not as their specs ask, with what their status says.
pub fn unready(url: &str) -> Vec<String> {
    held::unready(|path| list(url, path))
}

/// Waits for what only takes its time; whatever does not come is a failure of the test that asked.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
