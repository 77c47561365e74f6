//! What the services of a measured cluster do, as facts: the program beside it does it on a real node, the embedded
//! cluster plays it. One source for both, so that they cannot drift apart.

/// How manifests name the image.
pub const IMAGE: &str = "ghcr.io/acme/services:2.4.1";
/// What the program says it is.
pub const VERSION: &str = "2.4.1";
/// The user that the image runs as; a number, so that `runAsNonRoot` can be checked.
pub const USER: &str = "1000";
/// What a service says when its first argument is no command; `{name}` and `{arg}` stand for the two.
pub const UNKNOWN_COMMAND: &str = "{name}: unknown command \"{arg}\", expected: serve";
/// The exit code that goes with it.
pub const UNKNOWN_COMMAND_EXIT: i32 = 2;
/// The only command, also where no argument is given.
pub const SERVE: &str = "serve";
/// How long requests under way may take after SIGTERM, in milliseconds.
pub const DRAIN_MS: u64 = 5_000;
/// What every service that logs JSON says on SIGTERM.
pub const STOPPING: &str = "received SIGTERM, shutting down";
/// What stands at a path that a service does not have.
pub const NOT_FOUND_BODY: &str = "not found\n";

// Measured on a real node, for the embedded cluster: the program does not read these.

/// Size of the image as a node's runtime tells it, in bytes. Its one layer is not compressed.
pub const IMAGE_BYTES: u64 = 2_474_169;
/// Memory of a service that holds nothing yet, in KiB: what its cgroup is charged, without the shared program text.
pub const RESIDENT_KIB: u64 = 900;
/// Processor time of a start, in microseconds.
pub const START_CPU_US: u64 = 1_500;

/// A number that a service takes from its environment.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The variable.
    pub env: &'static str,
    /// What holds where the variable is not set or is no number.
    pub default: u64,
}

impl Setting {
    /// The number that `text`, the variable's value, gives.
    pub fn value(&self, text: Option<&str>) -> u64 {
        text.and_then(|text| text.trim().parse().ok())
            .unwrap_or(self.default)
    }
}

/// The API: needs its secrets and its database, keeps an index in memory, answers HTTP.
pub mod api {
    use super::Setting;

    /// Its name and, below `/bin`, its file.
    pub const NAME: &str = "advocate-api";
    /// Variables that must be set and not empty.
    pub const REQUIRED: [&str; 3] = ["DATABASE_URL", "SESSION_SECRET", "ANTHROPIC_API_KEY"];
    /// The variable with the database's address.
    pub const DATABASE_URL: &str = "DATABASE_URL";
    /// How long connecting may take in all, in milliseconds.
    pub const CONNECT_LIMIT_MS: u64 = 10_000;
    /// Size of the index that is held in memory, in MiB.
    pub const INDEX_MB: Setting = Setting {
        env: "INDEX_MB",
        default: 48,
    };
    /// It says how far it is after so many MiB.
    pub const INDEX_STEP_MB: u64 = 16;
    /// What is waited for after the index is there, in milliseconds.
    pub const STARTUP_MS: Setting = Setting {
        env: "STARTUP_MS",
        default: 1_500,
    };
    /// Where it listens.
    pub const PORT: Setting = Setting {
        env: "PORT",
        default: 8080,
    };
    /// Processor time that a health check spends on verifying the index, in milliseconds.
    pub const INDEX_CHECK_MS: Setting = Setting {
        env: "INDEX_CHECK_MS",
        default: 10,
    };
    /// The variable with the namespace that it runs in, a label of its metrics.
    pub const NAMESPACE: &str = "POD_NAMESPACE";

    /// Paths that it knows; every other one is 404.
    pub const HEALTH: &str = "/healthz";
    pub const CASES: &str = "/api/cases";
    pub const METRICS: &str = "/metrics";
    /// What a healthy check and an empty list of cases look like.
    pub const HEALTH_BODY: &str = "ok\n";
    pub const CASES_BODY: &str = "{\"cases\":[]}\n";
    /// What stands there while the database is away.
    pub const NO_CASES_BODY: &str = "{\"error\":\"database is not available\"}\n";
    /// The query behind the list of cases.
    pub const CASES_QUERY: &str = "SELECT id, title, opened_at FROM cases ORDER BY id LIMIT 50";
    /// The histogram among its metrics, without its unit; the published detectors read it.
    pub const REQUEST_DURATION: &str = "http_server_request_duration";

    /// Its metrics before the first request: a histogram without a sample is left out.
    pub const METRICS_BODY: &str = "# EOF\n";

    /// Processor time until the first line and for the connection, then for each MiB of the index and for a request
    /// that verifies nothing, in microseconds; measured.
    pub const START_CPU_US: u64 = super::START_CPU_US;
    pub const CONNECT_CPU_US: u64 = 3_000;
    pub const INDEX_CPU_US_PER_MB: u64 = 1_000;
    pub const REQUEST_CPU_US: u64 = 150;

    /// Log messages, in the order in which they come.
    pub const STARTING: &str = "starting advocate-api";
    pub const NOT_SET: &str = "required environment variable is not set";
    pub const NO_DATABASE: &str = "cannot connect to database";
    pub const CONNECTED: &str = "database connection established";
    pub const LOADING: &str = "loading case index";
    pub const LISTENING: &str = "listening";
}

/// The database: speaks the Postgres protocol, knows one user.
pub mod database {
    use super::Setting;

    /// Its name and, below `/bin`, its file.
    pub const NAME: &str = "advocate-db";
    /// Variables with the user, the password and the database; the last is called like the user where it is not set.
    pub const USER: &str = "POSTGRES_USER";
    pub const PASSWORD: &str = "POSTGRES_PASSWORD";
    pub const DATABASE: &str = "POSTGRES_DB";
    /// The user where none is named.
    pub const DEFAULT_USER: &str = "postgres";
    /// Where it listens.
    pub const PORT: Setting = Setting {
        env: "PGPORT",
        default: 5432,
    };

    /// Processor time of deriving the verifiers at the start, in microseconds; measured.
    pub const START_CPU_US: u64 = 6_000;

    /// Log messages after the time and the process, in the order in which they come.
    pub const STARTING: &str = "LOG:  starting advocate-db 2.4.1";
    pub const NOT_SET: &str = "FATAL:  {name} is not set";
    pub const LISTENING: &str = "LOG:  listening on IPv4 address \"0.0.0.0\", port {port}";
    pub const READY: &str = "LOG:  database system is ready to accept connections";
    pub const STOPPING: &str = "LOG:  received fast shutdown request";
    pub const STOPPED: &str = "LOG:  database system is shut down";
}

/// A neighbour in another namespace: a web server.
pub mod web {
    use super::Setting;

    /// Its name and, below `/bin`, its file.
    pub const NAME: &str = "invoice-web";
    /// Where it listens: above 1023, since it does not run as root.
    pub const PORT: Setting = Setting {
        env: "PORT",
        default: 8080,
    };
    /// Its only path and what stands there.
    pub const ROOT: &str = "/";
    pub const BODY: &str = "ok\n";
    /// Log messages.
    pub const LISTENING: &str = "listening";
}

/// A neighbour in another namespace: a cache that speaks RESP.
pub mod cache {
    use super::Setting;

    /// Its name and, below `/bin`, its file.
    pub const NAME: &str = "invoice-cache";
    /// Where it listens.
    pub const PORT: Setting = Setting {
        env: "PORT",
        default: 6379,
    };
    /// Log messages after process and time.
    pub const READY: &str = "* Ready to accept connections tcp";
    pub const STOPPING: &str = "# Received SIGTERM scheduling shutdown...";
}

/// All services by name, the image's own first.
pub const NAMES: [&str; 4] = [api::NAME, database::NAME, web::NAME, cache::NAME];
