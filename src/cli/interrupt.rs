//! Ctrl-C and SIGTERM: the first asks to undo and stop, the second ends at once.

use tokio::sync::watch;

use crate::cli::failure::INTERRUPTED;

/// For runs on embedded clusters, of which a process leaves nothing; otherwise as [`listen_leaving`].
pub fn listen(stop: watch::Sender<bool>) {
    let left = "what was left of the embedded cluster ended with it";
    listen_leaving(stop, left.to_owned());
}

/// Listens on a thread of its own for as long as the process lives; `stop` turns true at the first signal. `left` is what
/// to say at the second: what is left and how to undo it.
pub fn listen_leaving(stop: watch::Sender<bool>, left: String) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
        else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new() else {
                // Without a handler the system's own way of ending applies; nothing else can be done here.
                return;
            };
            signals.next().await;
            anstream::eprintln!("interrupted: undoing the fault; once more to end at once");
            stop.send_replace(true);
            signals.next().await;
            anstream::eprintln!("ended; {left}");
            std::process::exit(i32::from(INTERRUPTED));
        });
    });
}

/// What asks a process to end: Ctrl-C everywhere, on Unix also SIGTERM, which a job's time limit sends.
pub(super) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {})
    }

    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
