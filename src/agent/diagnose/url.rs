//! Connection URLs with credentials in them. Only as much of a URL as a repair needs: everything after the host
//! is kept as it stands.

use std::fmt;

/// `scheme://user:password@host` and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    pub user: String,
    pub password: String,
    pub host: String,
    /// Port, path and query, with their separators.
    pub rest: String,
}

impl Url {
    /// Reads a URL that has a user and a password; `None` for any other text.
    pub fn parse(text: &str) -> Option<Url> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (credentials, address) = authority.rsplit_once('@')?;
        let (user, password) = credentials.split_once(':')?;
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => (host, format!(":{port}")),
            None => (address, String::new()),
        };
        let plain = !scheme.is_empty()
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        (plain && !host.is_empty()).then(|| Url {
            scheme: scheme.to_owned(),
            user: decoded(user),
            password: decoded(password),
            host: host.to_owned(),
            rest: format!("{port}{tail}"),
        })
    }

    /// The same URL with other credentials; the user stays where none is given.
    pub fn with_credentials(&self, user: Option<&str>, password: &str) -> String {
        Url {
            user: user.unwrap_or(&self.user).to_owned(),
            password: password.to_owned(),
            ..self.clone()
        }
        .to_string()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}:{}@{}{}",
            self.scheme,
            encoded(&self.user),
            encoded(&self.password),
            self.host,
            self.rest
        )
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escape = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escape {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_everything_but_the_credentials() {
        let text = "postgres://app:old@db.shop.svc:5432/app?sslmode=disable";
        let url = Url::parse(text).unwrap();
        assert_eq!(
            (url.host.as_str(), url.user.as_str()),
            ("db.shop.svc", "app")
        );
        assert_eq!(url.to_string(), text);
        assert_eq!(
            url.with_credentials(None, "p@ss/word"),
            "postgres://app:p%40ss%2Fword@db.shop.svc:5432/app?sslmode=disable"
        );
    }

    #[test]
    fn texts_without_credentials_are_no_such_urls() {
        for text in [
            "",
            "http://host/path",
            "just text",
            "://u:p@h",
            "a b://u:p@h",
            "redis://h:6379",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
    }
}
