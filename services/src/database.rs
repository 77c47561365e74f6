//! The database: the Postgres protocol with one user, one password and one empty table.

mod scram;
mod session;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use acme_services::database;

use crate::database::session::{Handlers, Server};
use crate::line;
use crate::stop::Stop;

/// Serves until asked to stop.
pub async fn run() -> ExitCode {
    let process = std::process::id();
    line::postgres(process, database::STARTING);
    let Some(password) = crate::variable(database::PASSWORD) else {
        let not_set = database::NOT_SET.replace("{name}", database::PASSWORD);
        line::postgres(process, &not_set);
        return ExitCode::FAILURE;
    };
    let user = crate::variable(database::USER).unwrap_or(database::DEFAULT_USER.to_owned());
    let name = crate::variable(database::DATABASE).unwrap_or(user.clone());
    let (mut stop, (listener, port)) = match (Stop::install(), crate::listen(database::PORT).await)
    {
        (Ok(stop), Ok(listening)) => (stop, listening),
        (Err(error), _) | (_, Err(error)) => {
            let text = format!("FATAL:  could not create any TCP/IP sockets: {error}");
            line::postgres(process, &text);
            return ExitCode::FAILURE;
        }
    };
    let listening = database::LISTENING.replace("{port}", &port.to_string());
    line::postgres(process, &listening);
    let handlers = Arc::new(Handlers::new(Server::new(&user, &password, &name)));
    line::postgres(process, database::READY);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // A client that goes away in the middle is its own business.
                    tokio::spawn(pgwire::tokio::process_socket(stream, None, handlers.clone()));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            () = stop.requested() => break,
        }
    }
    line::postgres(process, database::STOPPING);
    line::postgres(process, database::STOPPED);
    ExitCode::SUCCESS
}
