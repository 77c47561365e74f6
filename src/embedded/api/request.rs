//! Request paths and queries, taken apart.

use std::collections::BTreeMap;

use crate::embedded::kind::Kind;

/// What a path below `/api/v1` or `/apis/G/V` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    /// Empty for cluster-scoped kinds and for lists over all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
}

/// A path, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// An object, a subresource or a collection.
    Target(Target),
    /// Anything else, as its non-empty segments, decoded.
    Other(Vec<String>),
}

/// Takes a path apart. Segments are percent-decoded after splitting, so an encoded slash stays in its segment.
pub fn parse_path(path: &str) -> Route {
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(decode)
        .collect();
    target(&parts).map_or(Route::Other(parts), Route::Target)
}

fn target(parts: &[String]) -> Option<Target> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let kind_of =
        |plural: &str| Kind::by_plural(group, plural).filter(|kind| kind.info().version == version);
    let build = |kind: Kind, namespace: &str, name: &str, subresource: &str| Target {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    };
    match rest {
        // `/namespaces/NAME/status` and `/finalize` are about the namespace, `/namespaces/NAME/PLURAL` in it.
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            Some(build(Kind::Namespace, "", name, sub))
        }
        ["namespaces", namespace, plural, tail @ ..] => {
            let kind = kind_of(plural).filter(|kind| kind.info().namespaced)?;
            match tail {
                [] => Some(build(kind, namespace, "", "")),
                [name] => Some(build(kind, namespace, name, "")),
                [name, sub] => Some(build(kind, namespace, name, sub)),
                _ => None,
            }
        }
        [plural] => kind_of(plural).map(|kind| build(kind, "", "", "")),
        [plural, name, tail @ ..] => {
            let kind = kind_of(plural).filter(|kind| !kind.info().namespaced)?;
            match tail {
                [] => Some(build(kind, "", name, "")),
                [sub] => Some(build(kind, "", name, sub)),
                _ => None,
            }
        }
        [] => None,
    }
}

/// The parameters of a query; a repeated one keeps its first value, as Go's does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    pub fn parse(text: Option<&str>) -> Query {
        let mut map = BTreeMap::new();
        for pair in text.unwrap_or_default().split('&') {
            if pair.is_empty() {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let spaced = |part: &str| decode(&part.replace('+', " "));
            map.entry(spaced(key)).or_insert_with(|| spaced(value));
        }
        Query(map)
    }

    /// The value of a parameter; `None` when absent or empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Whether a boolean parameter is set to true.
    pub fn is_true(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "1" | "True" | "TRUE" | "t"))
    }

    /// A parameter as a number; `None` when absent or not a number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }
}

/// Percent-decodes; bytes that do not form UTF-8 become replacement characters.
fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3);
        match (
            bytes[at],
            digits.and_then(|two| u8::from_str_radix(two, 16).ok()),
        ) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> Option<(Kind, String, String, String)> {
        match parse_path(path) {
            Route::Target(t) => Some((t.kind, t.namespace, t.name, t.subresource)),
            Route::Other(_) => None,
        }
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        let want = |kind, ns: &str, name: &str, sub: &str| {
            Some((kind, ns.to_owned(), name.to_owned(), sub.to_owned()))
        };
        assert_eq!(named("/api/v1/pods"), want(Kind::Pod, "", "", ""));
        assert_eq!(
            named("/api/v1/namespaces"),
            want(Kind::Namespace, "", "", "")
        );
        assert_eq!(
            named("/api/v1/namespaces/a"),
            want(Kind::Namespace, "", "a", "")
        );
        assert_eq!(
            named("/api/v1/namespaces/a/pods/"),
            want(Kind::Pod, "a", "", "")
        );
        assert_eq!(
            named("/api/v1/namespaces/a/pods/p/log"),
            want(Kind::Pod, "a", "p", "log")
        );
        assert_eq!(
            named("/api/v1/nodes/n/status"),
            want(Kind::Node, "", "n", "status")
        );
        assert_eq!(
            named("/apis/apps/v1/namespaces/a/deployments/d/scale"),
            want(Kind::Deployment, "a", "d", "scale")
        );
        for path in [
            "/api/v1",
            "/apis/apps/v2/deployments",
            "/api/v1/pods/p",
            "/apis/x/v1/namespaces/a/foos",
            "/",
        ] {
            assert_eq!(named(path), None, "{path}");
        }
    }

    #[test]
    fn queries_tolerate_empty_pairs_and_decode() {
        let query = Query::parse(Some("&a=x%2Cy+z&b&limit=5&watch=true&a=other"));
        assert_eq!(query.get("a"), Some("x,y z"));
        assert_eq!(query.get("b"), None);
        assert_eq!(query.number::<usize>("limit"), Some(5));
        assert!(query.is_true("watch"));
    }
}
