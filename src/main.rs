//! The `breakage` command: parse, dispatch, exit code.

use std::process::ExitCode;

/// Runs spend their time on small JSON values; see the measurement beside the dependency.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    agent_breakage::cli::main()
}
