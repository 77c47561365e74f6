//! The services of a measured cluster, one program of several names: it is the service that it is started as, or,
//! under any other name, the one that its first argument names.

mod api;
mod cache;
mod database;
mod http;
mod line;
mod stop;
mod web;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use acme_services::{NAMES, SERVE, Setting, UNKNOWN_COMMAND, UNKNOWN_COMMAND_EXIT};
use tokio::net::TcpListener;

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let started_as = arguments.next().unwrap_or_default();
    let Some(name) = known(&started_as).or_else(|| known(&arguments.next()?)) else {
        eprintln!("usage: {} [{SERVE}]", NAMES.join(" | "));
        return ExitCode::from(2);
    };
    if let Some(command) = arguments.next().filter(|command| command != SERVE) {
        let message = UNKNOWN_COMMAND
            .replace("{name}", name)
            .replace("{arg}", &command.to_string_lossy());
        eprintln!("{message}");
        return ExitCode::from(UNKNOWN_COMMAND_EXIT as u8);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(name));
            // A check of the index may still be under way on its thread; nothing waits for it.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(name: &str) -> ExitCode {
    match name {
        acme_services::database::NAME => database::run().await,
        acme_services::web::NAME => web::run().await,
        acme_services::cache::NAME => cache::run().await,
        _ => api::run().await,
    }
}

/// The service that a path or a word names.
fn known(word: &OsString) -> Option<&'static str> {
    let name = Path::new(word).file_name()?;
    NAMES.into_iter().find(|known| name == *known)
}

/// A setting as the environment has it.
fn setting(setting: Setting) -> u64 {
    setting.value(env::var(setting.env).ok().as_deref())
}

/// A variable of the environment, if it is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Listens on the port of a setting, on all addresses; the port is told, since 0 stands for any that is free.
async fn listen(on: Setting) -> io::Result<(TcpListener, u16)> {
    let port = u16::try_from(setting(on)).unwrap_or(on.default as u16);
    let listener = TcpListener::bind(("0.0.0.0", port)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}
