//! Lines of output in the three styles that the services write.

use std::error::Error;
use std::io::Write;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Writes a JSON line on standard output: the fields, `level`, `msg` and `time`, sorted by name.
pub fn json(level: &str, msg: &str, fields: &[(&str, &str)]) {
    let mut line = Map::new();
    for (name, value) in fields {
        line.insert((*name).to_owned(), Value::from(*value));
    }
    line.insert("level".to_owned(), Value::from(level));
    line.insert("msg".to_owned(), Value::from(msg));
    line.insert("time".to_owned(), Value::from(Timestamp::now().to_string()));
    write(&Value::Object(line).to_string());
}

/// Writes a line as Postgres does: the time, the process in brackets, the text.
pub fn postgres(process: u32, text: &str) {
    let time = Timestamp::now()
        .strftime("%Y-%m-%d %H:%M:%S%.3f")
        .to_string();
    write(&format!("{time} UTC [{process}] {text}"));
}

/// Writes a line as Redis does: process and role, the time, the text.
pub fn redis(text: &str) {
    let time = Timestamp::now()
        .strftime("%d %b %Y %H:%M:%S%.3f")
        .to_string();
    write(&format!("{}:M {time} {text}", std::process::id()));
}

/// An error and what caused it, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn write(line: &str) {
    // Nobody to tell when the log itself is gone.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
