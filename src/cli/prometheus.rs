//! Which Prometheus conditions may ask, as commands that run take it.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::failure::Failure;
use crate::observe::prometheus::Prometheus;

/// A bearer token; not a flag, since other users of a machine see flags.
const TOKEN: &str = "BREAKAGE_PROMETHEUS_TOKEN";

/// Names the Prometheus without the flag.
const ADDRESS: &str = "BREAKAGE_PROMETHEUS_URL";

/// The Prometheus to ask.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Metrics (with --context)")]
pub struct PrometheusArgs {
    /// The Prometheus that scrapes the cluster, such as http://127.0.0.1:9090 or https://USER:PASSWORD@HOST/BASE; a token
    /// goes in BREAKAGE_PROMETHEUS_TOKEN. Without it conditions that need metrics are unknown
    #[arg(
        long,
        value_name = "URL",
        env = ADDRESS,
        hide_env_values = true
    )]
    pub prometheus: Option<String>,
    /// Trust the authorities in this PEM file beside the system's
    #[arg(long, value_name = "FILE", env = "BREAKAGE_PROMETHEUS_CA_FILE")]
    pub prometheus_ca_file: Option<PathBuf>,
}

impl PrometheusArgs {
    /// The Prometheus that is meant, if any. Only lasting clusters have one: the variable may be set for other commands, a
    /// flag is meant for this one.
    pub fn chosen(&self, lasting: bool) -> Result<Option<Prometheus>, Failure> {
        if !lasting && self.prometheus.is_some() && self.prometheus != std::env::var(ADDRESS).ok() {
            let wrong = anyhow::anyhow!(
                "--prometheus is given without --context: the embedded cluster has no Prometheus"
            );
            return Err(
                Failure::usage(wrong).hint("--context NAME names the cluster that it scrapes")
            );
        }
        // An empty variable counts as unset.
        let Some(address) = self
            .prometheus
            .as_deref()
            .filter(|url| lasting && !url.is_empty())
        else {
            return Ok(None);
        };
        let authority = match &self.prometheus_ca_file {
            Some(file) => Some(
                std::fs::read(file)
                    .with_context(|| format!("{} cannot be read", file.display()))
                    .map_err(Failure::input)?,
            ),
            None => None,
        };
        let token = std::env::var(TOKEN).ok();
        Prometheus::new(address, token.as_deref(), authority.as_deref())
            .map(Some)
            .map_err(|error| {
                Failure::usage(error).hint("write it as --prometheus http://HOST:9090")
            })
    }
}
