//! Which cluster a command of this group is for: the one that is named, or those that the workspace knows.

use std::path::{Path, PathBuf};

use crate::cli::context::{EMBEDDED, find};
use crate::cli::failure::Failure;
use crate::cluster::known::KnownCluster;
use crate::cluster::kubeconfig::Chosen;
use crate::inject::journal::Place;
use crate::run::standing;
use crate::store::Store;

/// A cluster that may be named.
#[derive(clap::Args, Debug)]
pub(super) struct PlaceArgs {
    /// A kubeconfig's context, or `in-cluster` from within a pod
    #[arg(long, value_name = "NAME", value_parser = lasting)]
    pub(super) context: Option<String>,
    /// The kubeconfig that has the context [default: as kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "BREAKAGE_KUBECONFIG")]
    pub(super) kubeconfig: Option<PathBuf>,
}

fn lasting(name: &str) -> Result<String, String> {
    if name == EMBEDDED {
        return Err(
            "the embedded cluster is made anew for every run and needs none of this".to_owned(),
        );
    }
    Ok(name.to_owned())
}

impl PlaceArgs {
    /// The cluster that is named, if one is.
    pub(super) fn named(&self) -> Result<Option<Chosen>, Failure> {
        let Some(context) = &self.context else {
            return Ok(None);
        };
        // Kept in the workspace, so that a later command finds it from any folder.
        let file = self.kubeconfig.as_deref().map(std::path::absolute);
        let file = file.transpose().map_err(Failure::input)?;
        find(context, file.as_deref()).map(Some)
    }
}

/// Every cluster that the workspace agreed to, prepared or ran in, each once, by uid.
pub(super) fn known(store: &Store) -> Result<Vec<Place>, Failure> {
    let mut places: Vec<Place> = KnownCluster::all(store)
        .map_err(Failure::input)?
        .into_iter()
        .map(|(uid, known)| Place {
            cluster_uid: uid,
            ends_with_process: false,
            context: Some(known.context),
            kubeconfig: known.kubeconfig,
        })
        .collect();
    for place in standing::places(store).map_err(Failure::input)? {
        if places
            .iter()
            .all(|one| one.cluster_uid != place.cluster_uid)
        {
            places.push(place);
        }
    }
    Ok(places)
}

/// The context of a place, to connect to.
pub(super) fn chosen(place: &Place) -> Result<Chosen, Failure> {
    let context = place.context.as_deref().unwrap_or_default();
    find(context, place.kubeconfig.as_deref().map(Path::new))
}
