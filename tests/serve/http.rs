//! One raw HTTP/1.1 exchange, for what client libraries cannot send.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back until the server closed.
pub struct Answer {
    pub code: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends bytes and reads until the server closes; a request should say `connection: close`.
pub async fn exchange(address: &str, request: &[u8]) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    // The server may answer and close before it has read everything.
    let sent = async {
        let _ = to.write_all(request).await;
    };
    let mut bytes = Vec::new();
    let (_, read) = tokio::join!(sent, from.read_to_end(&mut bytes));
    if bytes.is_empty() {
        panic!("no answer: {read:?}");
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let head = head.to_lowercase();
    let body = if head.contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    Answer {
        code: head[9..12].parse().expect("a status line"),
        head,
        body,
    }
}

/// The chunks of a body, joined; it must end with the empty one.
fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").expect("a chunk's size");
        let size = usize::from_str_radix(size, 16).expect("a number");
        if size == 0 {
            return whole;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").expect("a chunk's end");
    }
}
