//! The `circulant` program.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage.

use std::process::ExitCode;

/// The system's allocator gives large blocks back after every step and asks for them again at the next.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    circulant_cli::program::run(std::env::args_os()).into()
}
