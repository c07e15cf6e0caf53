//! Ctrl-C: the first one asks to stop with a checkpoint, the second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::ranks::{ranks, say};

/// Whether the user asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to Ctrl-C from now on. Once per process.
    pub fn listen() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let asked = interrupt.0.clone();
        ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            say!("stopping after this step; Ctrl-C again ends at once");
        })
        .context("cannot listen to Ctrl-C")?;
        Ok(interrupt)
    }

    /// Whether a user asked any of the ranks to stop, which all of them ask together.
    pub fn is_asked_anywhere(&self) -> anyhow::Result<bool> {
        Ok(ranks().any(self.is_asked())?)
    }

    /// Whether to stop.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
