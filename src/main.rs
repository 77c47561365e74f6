//! The `breakage` command: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_breakage::cli::main()
}
