//! Ctrl-C: the first asks to undo and stop, the second ends at once.

use tokio::sync::watch;

use crate::cli::failure::INTERRUPTED;

/// Listens on a thread of its own for as long as the process lives; `stop` turns true at the first signal.
pub fn listen(stop: watch::Sender<bool>) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
        else {
            return;
        };
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_err() {
                // Without a handler the system's own way of ending applies; nothing else can be done here.
                std::future::pending::<()>().await;
            }
            anstream::eprintln!("interrupted: undoing the fault; once more to end at once");
            stop.send_replace(true);
            if tokio::signal::ctrl_c().await.is_ok() {
                anstream::eprintln!("ended; what was left of the embedded cluster ended with it");
                std::process::exit(i32::from(INTERRUPTED));
            }
        });
    });
}
