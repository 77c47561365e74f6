//! What a line of a program's log says, in whatever words programs say it: as JSON or as text.

use serde_json::Value;

/// Phrases with which programs say that they miss a variable.
const MISSING: &[&str] = &[
    "not set",
    "is missing",
    "missing environment",
    "missing required",
    "is required",
    "must be set",
    "must be provided",
    "required environment",
    "is undefined",
    "not defined",
    "not provided",
    "is empty",
    "keyerror",
    "unset",
];

/// Fields of structured logs that hold a variable's name.
const NAME_FIELDS: &[&str] = &[
    "name", "var", "variable", "key", "env", "missing", "setting",
];

/// Phrases with which servers refuse credentials.
const REFUSED_CREDENTIALS: &[&str] = &[
    "password authentication failed",
    "access denied for user",
    "wrongpass",
    "invalid username-password",
    "authentication failed",
    "auth failed",
    "invalid password",
    "login failed for user",
    "invalid credentials",
    "28p01",
];

/// Phrases of a peer that cannot be reached.
const UNREACHABLE: &[&str] = &[
    "connection refused",
    "no such host",
    "econnrefused",
    "enotfound",
    "name resolution",
    "name or service not known",
    "i/o timeout",
    "timed out",
    "no route to host",
    "could not connect",
    "cannot connect",
    "deadline exceeded",
];

const UNRESOLVED: &[&str] = &[
    "no such host",
    "enotfound",
    "name resolution",
    "name or service not known",
    "lookup ",
];

/// The environment variable whose absence a line complains of.
pub fn missing_variable(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    if !MISSING.iter().any(|phrase| lower.contains(phrase)) {
        return None;
    }
    if let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) {
        let named = NAME_FIELDS
            .iter()
            .filter_map(|field| fields.get(*field)?.as_str())
            .find(|name| is_variable(name));
        if let Some(name) = named {
            return Some(name.to_owned());
        }
        return fields
            .values()
            .filter_map(Value::as_str)
            .find_map(variable_in);
    }
    variable_in(line)
}

fn variable_in(text: &str) -> Option<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .find(|word| is_variable(word) && word.contains('_'))
        .map(str::to_owned)
}

/// Upper case, digits and underscores, as variables are spelled.
fn is_variable(word: &str) -> bool {
    word.len() > 2
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Whether a server refused the credentials.
pub fn refuses_credentials(line: &str) -> bool {
    says(line, REFUSED_CREDENTIALS)
}

/// Whether a peer could not be reached (and did not refuse credentials).
pub fn is_unreachable(line: &str) -> bool {
    says(line, UNREACHABLE) && !refuses_credentials(line)
}

/// Whether a name could not be resolved.
pub fn is_unresolved(line: &str) -> bool {
    says(line, UNRESOLVED)
}

fn says(line: &str, phrases: &[&str]) -> bool {
    let lower = line.to_lowercase();
    phrases.iter().any(|phrase| lower.contains(phrase))
}

/// Whether a line reports an error.
pub fn is_error(line: &str) -> bool {
    if let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) {
        let level = fields
            .get("level")
            .or(fields.get("severity"))
            .and_then(Value::as_str);
        return level.is_some_and(|level| {
            ["error", "fatal", "panic", "critical"].contains(&level.to_lowercase().as_str())
        });
    }
    says(
        line,
        &[
            "error",
            "fatal",
            "panic",
            "exception",
            "traceback",
            "failed",
            "cannot",
            "unknown command",
        ],
    )
}

/// The port on which a program says that it listens.
pub fn listening_port(line: &str) -> Option<u16> {
    let lower = line.to_lowercase();
    if ![
        "listening",
        "listen on",
        "serving on",
        "started on port",
        "running on",
    ]
    .iter()
    .any(|w| lower.contains(w))
    {
        return None;
    }
    if let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) {
        return ["addr", "address", "port", "listen"]
            .iter()
            .filter_map(|field| fields.get(*field))
            .find_map(|value| match value {
                Value::Number(number) => u16::try_from(number.as_u64()?).ok(),
                Value::String(text) => text.rsplit(':').next()?.parse().ok(),
                _ => None,
            });
    }
    lower
        .split(|c: char| !(c.is_ascii_digit() || c == ':'))
        .filter(|word| word.chars().any(|c| c.is_ascii_digit()))
        .filter_map(|word| word.rsplit(':').next()?.parse().ok())
        .next_back()
}

/// The last line worth quoting: an error if there is one.
pub fn telling_line<'a>(
    lines: impl DoubleEndedIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    lines
        .clone()
        .rev()
        .find(|line| is_error(line))
        .or_else(|| lines.rev().find(|line| !line.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_variables_are_found_in_many_wordings() {
        let table = [
            (
                r#"{"level":"error","msg":"required environment variable is not set","name":"SESSION_SECRET"}"#,
                Some("SESSION_SECRET"),
            ),
            ("KeyError: 'DATABASE_URL'", Some("DATABASE_URL")),
            ("fatal: API_KEY must be set", Some("API_KEY")),
            (
                "panic: missing required config SMTP_HOST",
                Some("SMTP_HOST"),
            ),
            ("the job is required to finish", None),
            (r#"{"level":"info","msg":"starting"}"#, None),
        ];
        for (line, expected) in table {
            assert_eq!(missing_variable(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn refused_credentials_and_unreachable_peers_are_told_apart() {
        let refused = r#"{"err":"failed SASL auth: FATAL: password authentication failed for user \"u\" (SQLSTATE 28P01)","msg":"cannot connect to database"}"#;
        let same_in_rust = r#"{"err":"db error: FATAL: password authentication failed for user \"u\"","msg":"cannot connect to database"}"#;
        assert!(refuses_credentials(same_in_rust) && !is_unreachable(same_in_rust));
        let silent = r#"{"err":"timed out after 10s","msg":"cannot connect to database"}"#;
        assert!(is_unreachable(silent) && !is_unresolved(silent));
        assert!(is_unresolved(
            "error connecting to server: failed to lookup address information: Name or service not known"
        ));
        let down = "dial tcp 10.43.76.154:5432: connect: connection refused";
        assert!(refuses_credentials(refused) && !is_unreachable(refused));
        assert!(!refuses_credentials(down) && is_unreachable(down) && !is_unresolved(down));
        assert!(is_unresolved("lookup web on 10.43.0.10:53: no such host"));
    }

    #[test]
    fn the_listening_port_is_read_from_json_and_text() {
        let table = [
            (
                r#"{"addr":":8080","level":"info","msg":"listening"}"#,
                Some(8080),
            ),
            ("Listening on 0.0.0.0:3000", Some(3000)),
            ("server listening on port 9000", Some(9000)),
            ("loading index 48", None),
        ];
        for (line, expected) in table {
            assert_eq!(listening_port(line), expected, "{line}");
        }
    }
}
