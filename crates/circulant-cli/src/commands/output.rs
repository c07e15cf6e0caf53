//! What commands print on stdout.

use std::io::{self, Write};

use anyhow::Context;

/// Prints text as it is.
pub fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads the output may stop early, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}
