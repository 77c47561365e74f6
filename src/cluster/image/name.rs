//! Names of images: read strictly, since a registry's name that is left out means a public one to every engine.

use oci_spec::distribution::ParseError;
pub use oci_spec::distribution::Reference;

/// What to write, for messages.
const FORM: &str = "HOST[:PORT]/REPOSITORY[:TAG]";

#[derive(Debug, thiserror::Error)]
pub enum NameError {
    #[error("{name:?} is no image name")]
    Malformed {
        name: String,
        #[source]
        source: ParseError,
    },
    #[error("{name:?} begins with a scheme; a registry is named without one, as {FORM}")]
    Scheme { name: String },
    #[error("{name:?} names no registry; write {FORM}, such as 127.0.0.1:5000/acme/services:2.4.1")]
    NoRegistry { name: String },
    #[error("{name:?} ends in a digest; what is pushed gets a tag, as {FORM}")]
    Digest { name: String },
}

/// An image's name as manifests write it: with or without registry, tag and digest.
///
/// # Errors
/// What no engine would read as a name.
pub fn parse(name: &str) -> Result<Reference, NameError> {
    if name.contains("://") {
        return Err(NameError::Scheme {
            name: name.to_owned(),
        });
    }
    name.parse().map_err(|source| NameError::Malformed {
        name: name.to_owned(),
        source,
    })
}

/// Where to push: the registry must be named, the tag may be left out and is then that of our services.
///
/// # Errors
/// As [`parse`], and a name without registry or with a digest.
pub fn parse_destination(name: &str) -> Result<Reference, NameError> {
    let reference = parse(name)?;
    let owned = || name.to_owned();
    if reference.digest().is_some() {
        return Err(NameError::Digest { name: owned() });
    }
    // Engines read the first part as a registry only when it looks like a host.
    let host = name.split_once('/').map(|(host, _)| host);
    if !host.is_some_and(|host| host.contains(['.', ':']) || host == "localhost") {
        return Err(NameError::NoRegistry { name: owned() });
    }
    let tagged = name
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains(':'));
    if tagged {
        return Ok(reference);
    }
    Ok(Reference::with_tag(
        reference.registry().to_owned(),
        reference.repository().to_owned(),
        acme_services::VERSION.to_owned(),
    ))
}

/// Whether a registry is on this machine, where plain HTTP is the rule.
pub fn is_loopback(reference: &Reference) -> bool {
    let registry = reference.registry();
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_names_its_registry_and_gets_our_tag_where_it_has_none() {
        for (name, whole) in [
            (
                "127.0.0.1:5000/acme/services",
                "127.0.0.1:5000/acme/services:2.4.1",
            ),
            ("localhost/services:1", "localhost/services:1"),
            ("ghcr.io/acme/services:2.4.1", "ghcr.io/acme/services:2.4.1"),
            (
                "docker.io/someone/services",
                "docker.io/someone/services:2.4.1",
            ),
        ] {
            assert_eq!(parse_destination(name).unwrap().whole(), whole);
        }
    }

    #[test]
    fn a_bad_destination_is_refused_with_what_is_wrong_about_it() {
        let digest = format!("a.example/x@sha256:{}", "0".repeat(64));
        for (name, said) in [
            ("acme/services", "names no registry"),
            ("services:2.4.1", "names no registry"),
            ("localhost:5000", "names no registry"),
            ("https://a.example/x", "begins with a scheme"),
            ("a.example/Acme", "is no image name"),
            ("a.example/x:-1", "is no image name"),
            ("", "is no image name"),
            (digest.as_str(), "ends in a digest"),
        ] {
            let error = parse_destination(name).unwrap_err().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (name, expected) in [
            ("127.0.0.1:5000/x/y", true),
            ("127.8.0.1/x/y", true),
            ("localhost:5000/x/y", true),
            ("registry.localhost:5000/x/y", true),
            ("10.0.0.1:5000/x/y", false),
            ("localhost.example/x/y", false),
        ] {
            assert_eq!(is_loopback(&parse(name).unwrap()), expected, "{name}");
        }
    }
}
