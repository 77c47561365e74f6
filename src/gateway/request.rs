//! Reads from method, path and query what a Kubernetes request asks for. Never looks at the body.

use http::Method;

/// What a request asks for, in the API's own terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiRequest {
    /// get, list, watch, create, update, patch, delete, deletecollection, evict, log, connect; for paths outside
    /// the resource API the lower-case HTTP method.
    pub verb: &'static str,
    /// API group, empty for the core group and for paths outside the resource API.
    pub group: String,
    /// Plural resource, empty outside the resource API.
    pub resource: String,
    /// Empty when none is addressed.
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Decoded query pairs in order, empty pairs left out.
    pub query: Vec<(String, String)>,
    /// The raw path, for requests outside the resource API.
    pub path: String,
}

/// Subresources that open a connection into a container or to a port.
const CONNECT: &[&str] = &["exec", "attach", "portforward", "proxy"];

/// Subresources of namespaces themselves; any other third segment is a resource inside the namespace.
const OF_NAMESPACES: &[&str] = &["status", "finalize"];

impl ApiRequest {
    /// Reads method, path and query.
    pub fn parse(method: &Method, path: &str, query: Option<&str>) -> ApiRequest {
        let mut request = ApiRequest {
            query: query.map(pairs).unwrap_or_default(),
            path: path.to_owned(),
            ..ApiRequest::default()
        };
        let segments: Vec<String> = path
            .split('/')
            .filter(|s| !s.is_empty())
            .map(percent_decoded)
            .collect();
        let mut rest: &[String] = match segments.first().map(String::as_str) {
            Some("api") if segments.len() > 2 => &segments[2..],
            Some("apis") if segments.len() > 3 => {
                request.group = segments[1].clone();
                &segments[3..]
            }
            _ => {
                request.verb = plain_verb(method);
                return request;
            }
        };
        let old_watch = rest.len() > 1 && rest[0] == "watch";
        if old_watch {
            rest = &rest[1..];
        }
        request.read_resource(rest);
        let watching = old_watch || request.query_is("watch", &["true", "1"]);
        request.verb = request.api_verb(method, watching);
        request
    }

    fn read_resource(&mut self, segments: &[String]) {
        let in_namespace = segments.len() > 2
            && segments[0] == "namespaces"
            && !(segments.len() == 3 && OF_NAMESPACES.contains(&segments[2].as_str()));
        let rest = if in_namespace {
            self.namespace = segments[1].clone();
            &segments[2..]
        } else {
            segments
        };
        let at = |index: usize| rest.get(index).cloned().unwrap_or_default();
        self.resource = at(0);
        self.name = at(1);
        self.subresource = at(2);
        if self.resource == "namespaces" {
            self.namespace = self.name.clone();
        }
    }

    fn api_verb(&self, method: &Method, watching: bool) -> &'static str {
        if self.subresource == "log" && method == Method::GET {
            return "log";
        }
        if self.subresource == "eviction" && method == Method::POST {
            return "evict";
        }
        if CONNECT.contains(&self.subresource.as_str()) {
            return "connect";
        }
        match (method.as_str(), self.name.is_empty()) {
            ("GET" | "HEAD", _) if watching => "watch",
            ("GET" | "HEAD", true) => "list",
            ("GET" | "HEAD", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            _ => plain_verb(method),
        }
    }

    /// The value of a query parameter.
    pub fn query(&self, key: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    fn query_is(&self, key: &str, values: &[&str]) -> bool {
        self.query(key).is_some_and(|v| values.contains(&v))
    }

    /// Resource with subresource, such as `deployments/scale`; the path outside the resource API.
    pub fn full_resource(&self) -> String {
        match (self.resource.as_str(), self.subresource.as_str()) {
            ("", _) => self.path.clone(),
            (resource, "") => resource.to_owned(),
            (resource, sub) => format!("{resource}/{sub}"),
        }
    }

    /// Whether the request only reads, as far as the API is concerned.
    pub fn reads(&self) -> bool {
        matches!(self.verb, "get" | "list" | "watch" | "log" | "head")
    }

    /// Whether the server was asked to try the write and keep nothing.
    pub fn is_dry_run(&self) -> bool {
        self.query("dryRun").is_some_and(|v| !v.is_empty())
    }
}

fn plain_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "other",
    }
}

fn pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (form_decoded(key), form_decoded(value))
        })
        .collect()
}

fn form_decoded(text: &str) -> String {
    percent_decoded(&text.replace('+', " "))
}

/// Decodes `%41` and leaves what is no valid escape as it stands; bytes that are no UTF-8 become U+FFFD.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escape = (bytes[index] == b'%')
            .then(|| bytes.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escape {
            Some(byte) => {
                decoded.push(byte);
                index += 3;
            }
            None => {
                decoded.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: Method, uri: &str) -> ApiRequest {
        let (path, query) = match uri.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (uri, None),
        };
        ApiRequest::parse(&method, path, query)
    }

    #[test]
    fn verbs_follow_method_name_and_subresource() {
        let table = "
            GET    /api/v1/namespaces/a/pods                       list             pods
            GET    /api/v1/namespaces/a/pods/p                     get              pods
            GET    /api/v1/namespaces/a/pods?&watch=true           watch            pods
            GET    /api/v1/watch/namespaces/a/pods                 watch            pods
            GET    /api/v1/namespaces/a/pods/p/log                 log              pods/log
            GET    /api/v1/namespaces/a/pods/p/exec                connect          pods/exec
            POST   /api/v1/namespaces/a/pods/p/eviction            evict            pods/eviction
            POST   /api/v1/namespaces/a/secrets                    create           secrets
            PUT    /api/v1/namespaces/a                            update           namespaces
            PUT    /api/v1/namespaces/a/finalize                   update           namespaces/finalize
            PATCH  /apis/apps/v1/namespaces/a/deployments/d/scale  patch            deployments/scale
            DELETE /apis/apps/v1/namespaces/a/deployments          deletecollection deployments
            DELETE /api/v1/nodes/n                                 delete           nodes
            GET    /version                                        get              /version
            GET    /apis/apps/v1                                   get              /apis/apps/v1";
        for line in table.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let request = parse(words[0].parse().unwrap(), words[1]);
            assert_eq!(
                [request.verb, request.full_resource().as_str()],
                words[2..],
                "{line}"
            );
        }
    }

    #[test]
    fn namespace_and_name_are_read_and_decoded() {
        let request = parse(
            Method::GET,
            "/api/v1/namespaces/a%2Db/services/web%3A80/proxy/x",
        );
        assert_eq!(request.namespace, "a-b");
        assert_eq!(request.name, "web:80");
        let request = parse(Method::GET, "/api/v1/namespaces/shop");
        assert_eq!(
            (request.namespace.as_str(), request.name.as_str()),
            ("shop", "shop")
        );
    }

    #[test]
    fn broken_escapes_and_odd_paths_do_not_panic() {
        for uri in [
            "/",
            "",
            "//",
            "/api",
            "/api/v1",
            "/apis/x/%",
            "/api/v1/namespaces/%zz/%4",
            "/api/v1/é%ff?=&%",
        ] {
            let _ = parse(Method::GET, uri);
        }
    }

    #[test]
    fn dry_runs_are_seen() {
        assert!(parse(Method::PATCH, "/api/v1/namespaces/a/secrets/s?dryRun=All").is_dry_run());
        assert!(!parse(Method::PATCH, "/api/v1/namespaces/a/secrets/s?dryRun=").is_dry_run());
    }
}
