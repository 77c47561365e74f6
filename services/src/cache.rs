//! A cache in memory that speaks RESP: enough of it for a client that checks, writes and reads.

use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use acme_services::cache;
use redis_protocol::bytes::{Bytes, BytesMut};
use redis_protocol::resp2::decode::decode_bytes_mut;
use redis_protocol::resp2::encode::extend_encode;
use redis_protocol::resp2::types::BytesFrame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::line;
use crate::stop::Stop;

/// A client that sends more than this without finishing a command is dropped, in bytes.
const MAX_COMMAND: usize = 1 << 20;

type Entries = Arc<Mutex<HashMap<Bytes, Bytes>>>;

/// Serves until asked to stop.
pub async fn run() -> ExitCode {
    let (mut stop, (listener, _)) = match (Stop::install(), crate::listen(cache::PORT).await) {
        (Ok(stop), Ok(listening)) => (stop, listening),
        (Err(error), _) | (_, Err(error)) => {
            line::redis(&format!("# Failed listening (tcp): {error}"));
            return ExitCode::FAILURE;
        }
    };
    line::redis(cache::READY);
    let entries = Entries::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let entries = entries.clone();
                    // A client that goes away in the middle is its own business.
                    tokio::spawn(async move {
                        let _ = session(stream, &entries).await;
                    });
                }
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            },
            () = stop.requested() => {
                line::redis(cache::STOPPING);
                return ExitCode::SUCCESS;
            }
        }
    }
}

async fn session(mut stream: TcpStream, entries: &Entries) -> io::Result<()> {
    let mut received = BytesMut::new();
    loop {
        let mut reply = BytesMut::new();
        let mut leave = false;
        while !leave && !received.is_empty() {
            let frame = match decode_bytes_mut(&mut received) {
                Ok(Some((frame, _, _))) => answer(frame, entries, &mut leave),
                Ok(None) => break,
                Err(_) => {
                    leave = true;
                    BytesFrame::Error("ERR Protocol error".into())
                }
            };
            extend_encode(&mut reply, &frame, false).map_err(io::Error::other)?;
        }
        stream.write_all(&reply).await?;
        if leave || received.len() > MAX_COMMAND || stream.read_buf(&mut received).await? == 0 {
            return Ok(());
        }
    }
}

fn answer(frame: BytesFrame, entries: &Entries, leave: &mut bool) -> BytesFrame {
    let BytesFrame::Array(words) = frame else {
        return BytesFrame::Error("ERR Protocol error: expected an array".into());
    };
    let words: Vec<Bytes> = words
        .into_iter()
        .filter_map(|word| match word {
            BytesFrame::BulkString(bytes) | BytesFrame::SimpleString(bytes) => Some(bytes),
            _ => None,
        })
        .collect();
    let Some((command, rest)) = words.split_first() else {
        return BytesFrame::Error("ERR Protocol error: empty command".into());
    };
    let command = String::from_utf8_lossy(command).to_ascii_uppercase();
    let ok = || BytesFrame::SimpleString(Bytes::from_static(b"OK"));
    let found = |value: Option<Bytes>| value.map_or(BytesFrame::Null, BytesFrame::BulkString);
    let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
    match (command.as_str(), rest) {
        ("PING", []) => BytesFrame::SimpleString(Bytes::from_static(b"PONG")),
        ("PING" | "ECHO", [text]) => BytesFrame::BulkString(text.clone()),
        ("GET", [key]) => found(entries.get(key).cloned()),
        ("SET", [key, value]) => {
            entries.insert(key.clone(), value.clone());
            ok()
        }
        ("DEL", keys) => BytesFrame::Integer(
            keys.iter()
                .filter(|key| entries.remove(*key).is_some())
                .count() as i64,
        ),
        ("DBSIZE", []) => BytesFrame::Integer(entries.len() as i64),
        ("QUIT", []) => {
            *leave = true;
            ok()
        }
        ("PING" | "ECHO" | "GET" | "SET" | "DBSIZE" | "QUIT", _) => BytesFrame::Error(
            format!(
                "ERR wrong number of arguments for '{}' command",
                command.to_ascii_lowercase()
            )
            .into(),
        ),
        _ => BytesFrame::Error(format!("ERR unknown command '{command}'").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(entries: &Entries, words: &[&str]) -> BytesFrame {
        let words = words
            .iter()
            .map(|word| BytesFrame::BulkString(Bytes::copy_from_slice(word.as_bytes())))
            .collect();
        answer(BytesFrame::Array(words), entries, &mut false)
    }

    #[test]
    fn what_was_set_is_got_until_it_is_deleted() {
        let entries = Entries::default();
        assert_eq!(ask(&entries, &["GET", "a"]), BytesFrame::Null);
        ask(&entries, &["set", "a", "7"]);
        assert_eq!(
            ask(&entries, &["GET", "a"]),
            BytesFrame::BulkString(Bytes::from_static(b"7"))
        );
        assert_eq!(ask(&entries, &["DEL", "a", "b"]), BytesFrame::Integer(1));
        assert_eq!(ask(&entries, &["GET", "a"]), BytesFrame::Null);
    }

    #[test]
    fn an_unknown_command_and_a_wrong_count_are_refused_in_redis_words() {
        let entries = Entries::default();
        assert_eq!(
            ask(&entries, &["FLY"]),
            BytesFrame::Error("ERR unknown command 'FLY'".into())
        );
        assert_eq!(
            ask(&entries, &["get"]),
            BytesFrame::Error("ERR wrong number of arguments for 'get' command".into())
        );
    }
}
