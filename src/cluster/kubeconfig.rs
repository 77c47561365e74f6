//! Which cluster a context of a kubeconfig names, read as kubectl reads it.
//!
//! `KUBECONFIG` is a list: empty parts and missing files are passed over, a broken one is an error that names the file,
//! and the first file to set a value wins. Nothing here opens a connection.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::clock::{EXTENSION_NAME, Pace, PaceError};
use crate::cluster::in_cluster::{self, NotInCluster};

/// The variable with the list of files.
const VARIABLE: &str = "KUBECONFIG";
/// Where kubectl looks without one, below the user's home.
const DEFAULT_FILE: &str = ".kube/config";

/// Why a context names no cluster.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigProblem {
    #[error("kubeconfig {} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: Box<KubeconfigError>,
    },
    #[error("there is no kubeconfig: {looked} does not exist")]
    NoFile { looked: String },
    #[error("context {context} is not in {files}; {known}")]
    NoContext {
        context: String,
        files: String,
        known: String,
    },
    #[error("context {context} of {files} cannot be used")]
    Incomplete {
        context: String,
        files: String,
        #[source]
        source: Box<KubeconfigError>,
    },
    #[error("context {context} of {files} tells a pace that is none")]
    Pace {
        context: String,
        files: String,
        #[source]
        source: PaceError,
    },
    #[error("the credential plugin of context {context} ended with {status}: {told}")]
    Plugin {
        context: String,
        status: String,
        /// Its stderr.
        told: String,
    },
    #[error(transparent)]
    NotInCluster(#[from] NotInCluster),
    #[error("no client can be made for context {context}")]
    Client {
        context: String,
        #[source]
        source: Box<kube::Error>,
    },
}

/// A context that was found, with what it takes to connect.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub context: String,
    /// The file that was named by flag, for hints.
    pub kubeconfig: Option<PathBuf>,
    pub config: kube::Config,
    /// How fast the cluster's clock runs.
    pub pace: Pace,
    /// Whether the kubeconfig says that `breakage cluster serve` made the cluster: then nobody else has anything in it.
    pub served: bool,
}

impl Chosen {
    /// Finds a context in the file, else in those that kubectl would read. `in-cluster` is the cluster around this process.
    pub async fn find(context: &str, file: Option<&Path>) -> Result<Chosen, KubeconfigProblem> {
        if context == in_cluster::NAME {
            return Ok(in_cluster::chosen()?);
        }
        let paths = match file {
            Some(file) => vec![file.to_owned()],
            None => usual_files(std::env::var_os(VARIABLE), home()),
        };
        Chosen::among(context, file, &paths).await
    }

    async fn among(
        context: &str,
        file: Option<&Path>,
        paths: &[PathBuf],
    ) -> Result<Chosen, KubeconfigProblem> {
        let files = told(paths);
        let merged = read(paths, file.is_some())?;
        let known: Vec<&str> = merged.contexts.iter().map(|c| c.name.as_str()).collect();
        if !known.contains(&context) {
            return Err(KubeconfigProblem::NoContext {
                context: context.to_owned(),
                files,
                known: match known.as_slice() {
                    [] => "it names no context".to_owned(),
                    known => format!("there are {}", known.join(", ")),
                },
            });
        }
        let clock = clock_of(&merged, context).map_err(|source| KubeconfigProblem::Pace {
            context: context.to_owned(),
            files: files.clone(),
            source,
        })?;
        let proxied = cluster_of(&merged, context).is_some_and(|c| c.proxy_url.is_some());
        let options = KubeConfigOptions {
            context: Some(context.to_owned()),
            ..KubeConfigOptions::default()
        };
        let mut config = kube::Config::from_custom_kubeconfig(merged, &options)
            .await
            .map_err(|source| KubeconfigProblem::Incomplete {
                context: context.to_owned(),
                files,
                source: Box::new(source),
            })?;
        if !proxied && needs_no_proxy(&config.cluster_url) {
            config.proxy_url = None;
        }
        Ok(Chosen {
            context: context.to_owned(),
            kubeconfig: file.map(Path::to_owned),
            config,
            pace: clock.unwrap_or_default(),
            served: clock.is_some(),
        })
    }
}

/// The files that kubectl would read, in its order.
fn usual_files(variable: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let listed: Vec<PathBuf> = variable
        .iter()
        .flat_map(std::env::split_paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if listed.is_empty() {
        home.map(|home| home.join(DEFAULT_FILE))
            .into_iter()
            .collect()
    } else {
        listed
    }
}

fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

/// The union of the files that exist. A file that was named by flag must exist.
fn read(paths: &[PathBuf], must_exist: bool) -> Result<Kubeconfig, KubeconfigProblem> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| must_exist || path.exists()) {
        let broken = |source| KubeconfigProblem::Unreadable {
            path: path.clone(),
            source: Box::new(source),
        };
        let next = Kubeconfig::read_from(path).map_err(broken)?;
        merged = Some(match merged {
            Some(first) => first.merge(next).map_err(broken)?,
            None => next,
        });
    }
    merged.ok_or_else(|| KubeconfigProblem::NoFile {
        looked: told(paths),
    })
}

fn told(paths: &[PathBuf]) -> String {
    match paths {
        [] => format!("~/{DEFAULT_FILE}"),
        paths => paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn cluster_of<'a>(config: &'a Kubeconfig, context: &str) -> Option<&'a kube::config::Cluster> {
    let named = config.contexts.iter().find(|named| named.name == context)?;
    let name = &named.context.as_ref()?.cluster;
    let cluster = config.clusters.iter().find(|named| named.name == *name)?;
    cluster.cluster.as_ref()
}

/// What the cluster's entry says of its clock, which only our own server tells.
fn clock_of(config: &Kubeconfig, context: &str) -> Result<Option<Pace>, PaceError> {
    let extension = cluster_of(config, context)
        .and_then(|cluster| cluster.extensions.as_ref())
        .and_then(|all| all.iter().find(|named| named.name == EXTENSION_NAME));
    extension
        .map(|named| Pace::from_extension(&named.extension))
        .transpose()
}

/// A proxy that only the environment names is for the world outside and for TLS, as curl and kubectl take it.
fn needs_no_proxy(server: &http::Uri) -> bool {
    let loopback = server.host().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    });
    loopback || server.scheme_str() == Some("http")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn config(cluster: &str, server: &str, context: &str, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: {cluster}\n  cluster: {{server: '{server}'}}\n\
             users:\n- name: me\n  user: {{token: {token}}}\n\
             contexts:\n- name: '{context}'\n  context: {{cluster: {cluster}, user: me}}\n"
        )
    }

    fn find(context: &str, paths: &[PathBuf]) -> Result<Chosen, KubeconfigProblem> {
        let found = Chosen::among(context, None, paths);
        futures::FutureExt::now_or_never(found).expect("nothing is waited for")
    }

    fn chain(problem: &dyn std::error::Error) -> String {
        let mut text = problem.to_string();
        let mut cause = problem.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }

    #[test]
    fn a_list_is_read_as_kubectl_reads_it() {
        let home = Some(PathBuf::from("/home/me"));
        let usual = |list: &str| usual_files(Some(list.into()), home.clone());
        assert_eq!(usual("a:b"), [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(usual("a::b"), usual("a:b"));
        assert_eq!(usual(":a"), [PathBuf::from("a")]);
        for none in [Some(OsString::new()), Some(":".into()), None] {
            assert_eq!(
                usual_files(none, home.clone()),
                [PathBuf::from("/home/me/.kube/config")]
            );
        }
    }

    #[test]
    fn missing_and_empty_files_are_passed_over_and_the_first_to_set_a_value_wins() {
        let folder = tempfile::tempdir().unwrap();
        let one = config("c1", "http://127.0.0.1:1", "one", "first");
        let two = config("c2", "http://127.0.0.1:2", "team/a@b:c", "second");
        let paths = [
            folder.path().join("missing"),
            file(folder.path(), "empty", ""),
            file(folder.path(), "one", &one),
            file(folder.path(), "two", &two),
        ];
        let chosen = find("team/a@b:c", &paths).unwrap();
        assert_eq!(chosen.config.cluster_url.to_string(), "http://127.0.0.1:2/");
        assert_eq!(chosen.pace, Pace::Real);
        // Both call their user `me`: the first file's stays.
        let token = format!("{:?}", chosen.config.auth_info.token.is_some());
        assert_eq!(token, "true");
    }

    #[test]
    fn a_context_that_is_not_there_is_answered_with_those_that_are() {
        let folder = tempfile::tempdir().unwrap();
        let text = config("c1", "http://127.0.0.1:1", "one", "t");
        let path = file(folder.path(), "config", &text);
        let told = find("won", std::slice::from_ref(&path)).unwrap_err();
        let told = told.to_string();
        assert!(
            told.contains("won") && told.contains("there are one"),
            "{told}"
        );
        assert!(told.contains(path.to_str().unwrap()), "{told}");
        let none = find("one", &[folder.path().join("missing")]).unwrap_err();
        assert!(
            none.to_string().contains("missing does not exist"),
            "{none}"
        );
    }

    #[test]
    fn a_broken_file_is_named_and_a_context_without_its_cluster_too() {
        let folder = tempfile::tempdir().unwrap();
        let broken = file(folder.path(), "broken", "clusters: [\n");
        let told = chain(&find("one", std::slice::from_ref(&broken)).unwrap_err());
        assert!(told.contains(broken.to_str().unwrap()), "{told}");
        let lost = file(
            folder.path(),
            "lost",
            "contexts:\n- name: one\n  context: {cluster: nowhere, user: nobody}\n",
        );
        let told = chain(&find("one", &[lost]).unwrap_err());
        assert!(told.contains("nowhere"), "{told}");
    }

    #[test]
    fn the_pace_of_a_fast_server_is_read_and_a_wrong_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let with = |factor: &str| {
            let text = config("c1", "http://127.0.0.1:1", "one", "t").replace(
                "cluster: {server: 'http://127.0.0.1:1'}",
                &format!(
                    "cluster: {{server: 'http://127.0.0.1:1', extensions: [{{name: {EXTENSION_NAME}, \
                     extension: {{factor: {factor}}}}}]}}"
                ),
            );
            find("one", &[file(folder.path(), "config", &text)])
        };
        assert_eq!(with("60").unwrap().pace, Pace::of_factor(60).unwrap());
        assert!(with("0").is_err());
    }

    #[test]
    fn a_proxy_of_the_environment_is_not_asked_for_what_is_near() {
        for (server, near) in [
            ("http://cluster.example:80", true),
            ("https://127.0.0.1:6443", true),
            ("https://[::1]:6443", true),
            ("https://localhost:6443", true),
            ("https://cluster.example:6443", false),
        ] {
            assert_eq!(needs_no_proxy(&server.parse().unwrap()), near, "{server}");
        }
    }
}
