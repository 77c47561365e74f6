//! The kubeconfig of a served cluster: written for its owner alone, and never over a file that is someone else's.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::clock::{EXTENSION_NAME, Pace};

/// The name of context, cluster and user.
pub(super) const CONTEXT: &str = "breakage-embedded";
/// How long a server on this machine may take to take a connection, to be counted as running.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// Refuses a file that [`write`] would not write over.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    check_for(file, None)
}

/// As [`check`], for a server that already holds the address `ours`: whoever served there before is gone.
fn check_for(file: &Path, ours: Option<&str>) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(
            Failure::input(anyhow!("{} {why}; it stays as it is", file.display()))
                .hint("--kubeconfig FILE names another file to write"),
        )
    };
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Failure::input(
                anyhow::Error::new(error).context(format!("{} cannot be read", file.display())),
            ));
        }
        Ok(data) if !data.is_file() => return refuse("is not a plain file"),
        Ok(_) => {}
    }
    let Some(server) = server_of_ours(file) else {
        return refuse("is not a kubeconfig that `breakage cluster serve` wrote");
    };
    if ours != Some(server.as_str()) && answers(&server) {
        return refuse(&format!("belongs to the server at {server}, which is up"));
    }
    Ok(())
}

/// The server of a kubeconfig that names our context and no other.
fn server_of_ours(file: &Path) -> Option<String> {
    let config = Kubeconfig::read_from(file).ok()?;
    let ours = config.contexts.iter().all(|one| one.name == CONTEXT)
        && config.clusters.iter().all(|one| one.name == CONTEXT)
        && config.auth_infos.iter().all(|one| one.name == CONTEXT);
    let cluster = config.clusters.first()?.cluster.as_ref()?;
    cluster.server.clone().filter(|_| ours)
}

fn answers(server: &str) -> bool {
    server
        .strip_prefix("http://")
        .and_then(|address| address.parse::<SocketAddr>().ok())
        .is_some_and(|address| TcpStream::connect_timeout(&address, ANSWER_TIME).is_ok())
}

/// Writes the kubeconfig with mode 0600, whole or not at all; answers its absolute path.
pub(super) fn write(file: &Path, server: &str, pace: Pace) -> Result<PathBuf, Failure> {
    check_for(file, Some(server))?;
    let failed = |error: std::io::Error| {
        Failure::input(
            anyhow::Error::new(error).context(format!("{} cannot be written", file.display())),
        )
        .hint("--kubeconfig FILE names another file to write")
    };
    let path = std::path::absolute(file).map_err(failed)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(failed)?;
    // A temporary file is made with mode 0600, and keeps it when it gets its name.
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    writeln!(draft, "{:#}", content(server, pace)).map_err(failed)?;
    draft.persist(&path).map_err(|error| failed(error.error))?;
    Ok(path)
}

/// JSON, which is YAML too. The server asks for no credentials, so the user has none.
fn content(server: &str, pace: Pace) -> Value {
    // At real pace too: it also tells that nobody else has anything in the cluster.
    let extension = json!({ "name": EXTENSION_NAME, "extension": pace.to_extension() });
    let cluster = json!({ "server": server, "extensions": [extension] });
    json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast() -> Pace {
        Pace::of_factor(60).unwrap()
    }

    #[test]
    fn a_kubeconfig_is_for_its_owner_alone_and_tells_the_pace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("below/kubeconfig");
        let path = write(&file, "http://127.0.0.1:1", fast()).unwrap();
        let config = Kubeconfig::read_from(&path).unwrap();
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("http://127.0.0.1:1"));
        let extension = &cluster.extensions.as_ref().unwrap()[0];
        assert_eq!(extension.name, EXTENSION_NAME);
        assert_eq!(Pace::from_extension(&extension.extension), Ok(fast()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_kubeconfig_of_ours_is_written_over_even_after_kubectl_rewrote_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        write(&file, "http://127.0.0.1:1", fast()).unwrap();
        let yaml = "apiVersion: v1\nkind: Config\ncurrent-context: breakage-embedded\nclusters:\n- name: breakage-embedded\n  cluster:\n    server: http://127.0.0.1:1\ncontexts:\n- name: breakage-embedded\n  context:\n    cluster: breakage-embedded\n    namespace: shop\n    user: breakage-embedded\nusers: []\n";
        std::fs::write(&file, yaml).unwrap();
        write(&file, "http://127.0.0.1:2", Pace::Real).unwrap();
        assert_eq!(server_of_ours(&file).as_deref(), Some("http://127.0.0.1:2"));
    }

    #[test]
    fn a_file_that_is_not_ours_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        for text in [
            "my notes",
            "",
            "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"clusters\":[{\"name\":\"production\",\"cluster\":{\"server\":\"https://10.0.0.1\"}}],\"contexts\":[],\"users\":[]}",
        ] {
            std::fs::write(&file, text).unwrap();
            let failure = write(&file, "http://127.0.0.1:1", Pace::Real).unwrap_err();
            assert!(failure.source.to_string().contains("stays as it is"));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn the_kubeconfig_of_a_server_that_is_up_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        write(&file, &server, Pace::Real).unwrap();
        let failure = check(&file).unwrap_err();
        assert!(failure.source.to_string().contains(&server));
        // Whoever holds the address now is its server: the one before is gone.
        write(&file, &server, fast()).unwrap();
    }
}
