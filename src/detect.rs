//! Detectors: the expression language of conditions and its three-valued evaluation over observations. Pure.
//!
//! `expression` parses, `evaluate` judges one observation, `watch` follows a stream of them. Nothing here waits,
//! reads a clock or knows what was broken.

pub mod condition;
pub mod evaluate;
pub mod expression;
pub mod promql;
pub mod syntax;
pub mod watch;
