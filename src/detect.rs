//! Detectors: the expression language of conditions and its three-valued evaluation over observations. Pure.

pub mod expression;
