//! What image registries hold: images as data, given to the cluster when it is made.
//!
//! An image is its configuration (entrypoint, user, environment), its files, and its executables; an executable
//! is either one of the usual command-line tools or a program described by a declarative model ([`program`]).
//! Nothing of this can be read through the Kubernetes API, as with a real registry's layers.

use std::collections::BTreeMap;
use std::sync::Arc;

pub mod program;
pub mod reference;

use crate::embedded::image::program::Program;
use crate::embedded::image::reference::Reference;

/// The registries that a cluster's node can reach, and what the node already has.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    hosts: BTreeMap<String, BTreeMap<String, Repository>>,
}

/// A repository: its tags. A repository that is absent answers like one that needs authorisation.
#[derive(Clone, Debug, Default)]
struct Repository {
    tags: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    image: Arc<Image>,
    on_node: bool,
}

/// What a look-up in a registry says.
#[derive(Clone, Debug)]
pub enum Lookup {
    Found(Arc<Image>),
    /// The host's name does not resolve, or nothing is reachable there.
    Unreachable,
    /// The repository does not exist or needs credentials: registries do not tell which.
    Denied,
    /// The repository exists, the tag or digest does not.
    NoSuchTag,
}

impl Registry {
    /// Makes a registry host reachable without adding an image.
    pub fn add_host(&mut self, host: &str) {
        self.hosts.entry(host.to_owned()).or_default();
    }

    /// Adds an image under a full reference such as `docker.io/library/busybox:1.36`. `on_node` says whether
    /// the node has it before anything runs. A reference that does not parse is ignored with `false`.
    pub fn add(&mut self, reference: &str, image: Arc<Image>, on_node: bool) -> bool {
        let Ok(reference) = Reference::parse(reference) else {
            return false;
        };
        self.hosts
            .entry(reference.host)
            .or_default()
            .entry(reference.path)
            .or_default()
            .tags
            .insert(reference.tag, Entry { image, on_node });
        true
    }

    /// What pulling a reference would find.
    pub fn look_up(&self, reference: &Reference) -> Lookup {
        let Some(repositories) = self.hosts.get(&reference.host) else {
            return Lookup::Unreachable;
        };
        let Some(repository) = repositories.get(&reference.path) else {
            return match reference.host.as_str() {
                "docker.io" => Lookup::Denied,
                _ => Lookup::NoSuchTag,
            };
        };
        let entry = match &reference.digest {
            Some(digest) => repository
                .tags
                .values()
                .find(|entry| &entry.image.digest == digest),
            None => repository.tags.get(&reference.tag),
        };
        entry.map_or(Lookup::NoSuchTag, |entry| {
            Lookup::Found(entry.image.clone())
        })
    }

    /// The images that the node has from the start: full name and image.
    pub fn preloaded(&self) -> impl Iterator<Item = (String, Arc<Image>)> {
        self.hosts.iter().flat_map(|(host, repositories)| {
            repositories.iter().flat_map(move |(path, repository)| {
                repository
                    .tags
                    .iter()
                    .filter(|(_, entry)| entry.on_node)
                    .map(move |(tag, entry)| (format!("{host}/{path}:{tag}"), entry.image.clone()))
            })
        })
    }
}

/// One image.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// `sha256:` and 64 hex digits.
    pub digest: String,
    /// Compressed size, as the `Pulled` event tells it.
    pub size_bytes: u64,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    /// User id or name; empty is root.
    pub user: String,
    /// `PATH` and whatever else the image sets.
    pub env: Vec<(String, String)>,
    pub workdir: String,
    /// Executables by absolute path.
    pub executables: BTreeMap<String, Executable>,
    /// Plain files by absolute path.
    pub files: BTreeMap<String, String>,
}

/// What an executable file is.
#[derive(Clone, Debug)]
pub enum Executable {
    /// One of the usual tools, by name: `sh`, `sleep`, `cat`, `psql`, `curl` and so on.
    Tool(String),
    Program(Arc<Program>),
}

/// Where programs are looked for when neither image nor pod sets `PATH`.
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Image {
    /// Finds an executable by path, or by name along `path`. The answer is its absolute path.
    pub fn find(&self, name: &str, path: &str) -> Option<(String, &Executable)> {
        if name.contains('/') {
            return self
                .executables
                .get(name)
                .map(|executable| (name.to_owned(), executable));
        }
        path.split(':').find_map(|folder| {
            let full = format!("{}/{name}", folder.trim_end_matches('/'));
            self.executables
                .get(&full)
                .map(|executable| (full, executable))
        })
    }

    /// Adds tools under `/bin`.
    pub fn with_tools(mut self, names: &[&str]) -> Image {
        for name in names {
            self.executables
                .insert(format!("/bin/{name}"), Executable::Tool((*name).to_owned()));
        }
        self
    }

    /// Adds a program under an absolute path.
    pub fn with_program(mut self, path: &str, program: Program) -> Image {
        self.executables
            .insert(path.to_owned(), Executable::Program(Arc::new(program)));
        self
    }
}
