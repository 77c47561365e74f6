//! One TLS implementation for every client of this process.

/// Makes ring the one that libraries find which bring none of their own. Repeating it changes nothing.
pub fn use_ring() {
    // An error means that one is set already, and only ring is compiled in.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
