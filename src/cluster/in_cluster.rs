//! The cluster that this process runs in: its address and the pod's service account instead of a kubeconfig.

use crate::clock::Pace;
use crate::cluster::kubeconfig::Chosen;

/// What `--context` calls it.
pub const NAME: &str = "in-cluster";

/// A process that is not in a pod, or whose pod has no service account's token.
#[derive(Debug, thiserror::Error)]
#[error(
    "--context {NAME} needs a pod with a service account's token (KUBERNETES_SERVICE_HOST and the files below \
     /var/run/secrets/kubernetes.io/serviceaccount)"
)]
pub struct NotInCluster {
    #[source]
    source: Box<kube::config::InClusterError>,
}

/// The cluster around this process, as client libraries find it. The token is read again while it is used.
pub fn chosen() -> Result<Chosen, NotInCluster> {
    let config = kube::Config::incluster().map_err(|source| NotInCluster {
        source: Box::new(source),
    })?;
    Ok(Chosen {
        context: NAME.to_owned(),
        kubeconfig: None,
        config,
        pace: Pace::Real,
        served: false,
    })
}
