//! The request to stop: SIGTERM, or SIGINT at a terminal.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for the request; installed from the first moment on, so that no stop is missed.
pub struct Stop {
    term: Signal,
    int: Signal,
}

impl Stop {
    /// Installs the handlers.
    pub fn install() -> io::Result<Stop> {
        Ok(Stop {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    /// Ends when the request has come.
    pub async fn requested(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
