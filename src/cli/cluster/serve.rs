//! `breakage cluster serve`: an embedded cluster on a socket until the process is asked to end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::cli::Context;
use crate::cli::cluster::kubeconfig::{self, CONTEXT};
use crate::cli::failure::{Failure, INTERRUPTED};
use crate::cli::interrupt::Signals;
use crate::clock::{self, DEFAULT_FACTOR, Pace};
use crate::cluster::fixture::{Fixture, Fixtures};
use crate::cluster::reset::{self, Owned};
use crate::cluster::{ClusterError, images};
use crate::config::Workspace;
use crate::embedded::bootstrap;
use crate::embedded::cluster::{Cluster, ClusterConfig};
use crate::embedded::kubelet::policy::Denied;
use crate::embedded::serve::{self, Limits, ServeError};
use crate::embedded::time::Time;
use crate::ids::{FixtureId, Seed};

/// Seeds drawn lie below it, so that people can type them.
const SEEDS: u64 = 1_000_000_000_000;
/// How old a fixture looks when the server is ready.
const FIXTURE_AGE: Duration = Duration::from_secs(2 * 86_400);

/// Serve the embedded cluster over plain HTTP until Ctrl-C or SIGTERM
///
/// The cluster lives in this process and ends with it: nothing of it is kept. A kubeconfig for it is written to a file;
/// kubectl, client libraries and `breakage run --context` work with it. There is no authentication, so only loopback
/// addresses are served.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage cluster serve --fixture advocate --kubeconfig ./kubeconfig
  KUBECONFIG=./kubeconfig kubectl get pods -A
  breakage cluster serve --listen 127.0.0.1:6443 --fast

Exit codes: 0 ended by Ctrl-C or SIGTERM; 1 wrong usage, an address or a file that cannot be used;
            130 a second Ctrl-C while connections were being closed.")]
pub struct Args {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Let the cluster's time run FACTOR times as fast as the wall's, 1 to 1000
    /// [default without =FACTOR: 60]
    // `run` takes the pace from the kubeconfig; the ages that kubectl computes itself (describe) do not.
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, require_equals = true,
          default_missing_value = DEFAULT_FACTOR_TEXT, value_parser = factor)]
    fast: Option<Pace>,
    /// Everything random in the cluster derives from it, its identity too: `run` takes two servers of one seed for the
    /// same cluster [default: another one for each server]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Put a fixture into the cluster first; may be given several times
    /// (`breakage run --context` brings its scenario's own: leave it out for that)
    #[arg(long, value_name = "ID")]
    fixture: Vec<String>,
    /// Where to write the kubeconfig [default: kubeconfig in the workspace]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Listen also on an address that other machines reach: whoever reaches it may do anything with the cluster
    #[arg(long)]
    allow_remote: bool,
    /// Print the ready line as one JSON object: {url, kubeconfig, context, fast, seed}
    #[arg(long)]
    json: bool,
}

const DEFAULT_FACTOR_TEXT: &str = "60";
const _: () = assert!(
    DEFAULT_FACTOR.get() == 60,
    "the text says the default factor"
);

fn factor(text: &str) -> Result<Pace, String> {
    let number: u32 = text.parse().map_err(|_| "not a whole number".to_owned())?;
    Pace::of_factor(number).map_err(|error| error.to_string())
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let file = args
        .kubeconfig
        .clone()
        .unwrap_or_else(|| workspace.folder().join("kubeconfig"));
    kubeconfig::check(&file)?;
    let fixture = fixture(&workspace, &args.fixture)?;
    let pace = args.fast.unwrap_or_default();
    let wall = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let now = Time::from_micros(i64::try_from(wall.as_micros()).unwrap_or(i64::MAX));
    let seed = args.seed.unwrap_or_else(|| of_its_own(wall));
    clock::block_on_after_leap(pace, populated(Seed(seed), now, fixture), |cluster| async {
        let cluster = cluster.map_err(Failure::cluster)?;
        serve_until_asked_to_end(context, args, &file, (pace, seed), cluster).await
    })
    .map_err(|error| {
        Failure::input(anyhow::Error::new(error).context("no runtime can be started"))
    })?
}

/// A seed that no other server of this machine has: clusters are told apart by uids, and those derive from it.
fn of_its_own(wall: Duration) -> u64 {
    let nanos = u64::try_from(wall.as_nanos() % u128::from(u64::MAX)).unwrap_or_default();
    Seed(nanos).child("server", u64::from(std::process::id())).0 % SEEDS
}

fn fixture(workspace: &Workspace, ids: &[String]) -> Result<Option<Fixture>, Failure> {
    if ids.is_empty() {
        return Ok(None);
    }
    let ids: Vec<FixtureId> = ids.iter().map(FixtureId::new).collect();
    Fixtures::open(workspace.folder())
        .and_then(|fixtures| fixtures.load(&ids))
        .map(Some)
        .map_err(Failure::input)
}

/// A cluster whose time is `now` when it is ready, with the fixture standing for some days.
async fn populated(
    seed: Seed,
    now: Time,
    fixture: Option<Fixture>,
) -> Result<Cluster, ClusterError> {
    let start = match fixture {
        Some(_) => now - FIXTURE_AGE,
        None => now,
    };
    let cluster = Cluster::new(ClusterConfig {
        seed: seed.child("cluster", 0).0,
        start,
        images: images::registry(),
        denied: Denied::default(),
    });
    cluster.with(bootstrap::populate);
    if let Some(fixture) = fixture {
        let client = cluster.client("default");
        reset::apply(&client, &fixture, &mut Owned::default()).await?;
        reset::at_rest(&client, reset::REST_DEADLINE, &fixture.namespaces).await?;
        cluster.grow_older(now.since(cluster.now()));
    }
    Ok(cluster)
}

async fn serve_until_asked_to_end(
    context: &Context,
    args: &Args,
    file: &std::path::Path,
    (pace, seed): (Pace, u64),
    cluster: Cluster,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::new().map_err(|error| {
        Failure::input(anyhow::Error::new(error).context("signals cannot be listened for"))
    })?;
    let listener = serve::bind(args.listen, args.allow_remote)
        .await
        .map_err(not_served)?;
    let address = listener.local_addr().map_err(Failure::input)?;
    let url = format!("http://{address}");
    let path = kubeconfig::write(file, &url, pace)?;
    ready(context, args, &url, &path, (pace, seed))?;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = serve::serve(
        cluster.router(),
        listener,
        Limits::at_factor(pace.factor()),
        async {
            let _ = ended.await;
        },
    );
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = signals.next() => {}
    }
    drop(end);
    Ok(tokio::select! {
        biased;
        () = &mut serving => ExitCode::SUCCESS,
        () = signals.next() => ExitCode::from(INTERRUPTED),
    })
}

fn not_served(error: ServeError) -> Failure {
    let hint = match &error {
        ServeError::Remote { .. } => {
            "--listen 127.0.0.1:0 serves this machine alone; --allow-remote if everybody who reaches the address may do anything with the cluster"
        }
        ServeError::Bind { .. } => "--listen 127.0.0.1:0 takes a free port",
    };
    Failure::input(error).hint(hint)
}

fn ready(
    context: &Context,
    args: &Args,
    url: &str,
    path: &std::path::Path,
    (pace, seed): (Pace, u64),
) -> Result<(), Failure> {
    let fast = match pace {
        Pace::Real => None,
        Pace::Fast(factor) => Some(factor.get()),
    };
    if args.json {
        return context.output.json_line(&json!({
            "url": url, "kubeconfig": path, "context": CONTEXT, "fast": fast, "seed": seed,
        }));
    }
    let faster = fast.map_or(String::new(), |factor| {
        format!(", {factor} times as fast as real time")
    });
    context.output.print(&format!(
        "serving a cluster at {url}{faster}; seed {seed}; kubeconfig {}",
        path.display()
    ))?;
    context
        .output
        .note("Ctrl-C or SIGTERM ends the cluster; nothing of it is kept");
    Ok(())
}
