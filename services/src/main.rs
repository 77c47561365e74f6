//! The services of a measured cluster, one program of several names.

fn main() {}
