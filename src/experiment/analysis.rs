//! What an experiment says: a pure function of registration and ledger. The same ledger gives the same bytes.
//!
//! [`model::Analysis`] is everything that any report shows; reports format it and compute nothing.

pub mod model;
