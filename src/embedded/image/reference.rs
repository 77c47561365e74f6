//! Image references: `[host/]path[:tag][@digest]`, normalised as container runtimes do.

/// A parsed reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// `docker.io` when none is written.
    pub host: String,
    /// With `library/` for the plain names of Docker Hub.
    pub path: String,
    /// `latest` when neither tag nor digest is written.
    pub tag: String,
    pub digest: Option<String>,
}

impl Reference {
    /// Parses a reference; the error is the reason as runtimes word it.
    pub fn parse(text: &str) -> Result<Reference, String> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.to_owned())),
            None => (text, None),
        };
        let (host, rest) = match name.split_once('/') {
            Some((first, rest))
                if first.contains('.') || first.contains(':') || first == "localhost" =>
            {
                (first, rest)
            }
            _ => ("docker.io", name),
        };
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (rest, None),
        };
        let bad = || "invalid reference format".to_owned();
        if path.chars().any(|c| c.is_ascii_uppercase()) {
            let library = if host == "docker.io" && !path.contains('/') {
                "library/"
            } else {
                ""
            };
            return Err(format!(
                "invalid reference format: repository name ({library}{path}) must be lowercase"
            ));
        }
        let component_ok = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
        };
        let tag_ok = |tag: &str| {
            (1..=128).contains(&tag.len())
                && !tag.starts_with(['.', '-'])
                && tag
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        let digest_ok = |digest: &str| {
            digest
                .strip_prefix("sha256:")
                .is_some_and(|hex| hex.len() == 64 && hex.chars().all(|c| c.is_ascii_hexdigit()))
        };
        if !path.split('/').all(component_ok)
            || tag.is_some_and(|tag| !tag_ok(tag))
            || digest.as_deref().is_some_and(|digest| !digest_ok(digest))
        {
            return Err(bad());
        }
        let path = if host == "docker.io" && !path.contains('/') {
            format!("library/{path}")
        } else {
            path.to_owned()
        };
        Ok(Reference {
            host: host.to_owned(),
            path,
            tag: tag.unwrap_or("latest").to_owned(),
            digest,
        })
    }

    /// Host and path, as image ids begin.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.host, self.path)
    }

    /// The full spelling with host and tag (or digest), as it stands in a container's status.
    pub fn full(&self) -> String {
        match &self.digest {
            Some(digest) => format!("{}@{digest}", self.repository()),
            None => format!("{}:{}", self.repository(), self.tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_spelled_out() {
        let reference = Reference::parse("busybox:1.36").unwrap();
        assert_eq!(reference.full(), "docker.io/library/busybox:1.36");
        let reference = Reference::parse("registry.acme.example:5000/a/b").unwrap();
        assert_eq!(reference.full(), "registry.acme.example:5000/a/b:latest");
    }

    #[test]
    fn upper_case_is_refused_in_the_runtimes_words() {
        assert_eq!(
            Reference::parse("ghcr.io/acme/Advocate-API:2.4.1").unwrap_err(),
            "invalid reference format: repository name (acme/Advocate-API) must be lowercase"
        );
        assert!(Reference::parse("a//b").is_err());
        assert!(Reference::parse("a:").is_err());
    }
}
