//! What training needs besides the program's library: settings from JSON, news of the steps, and one fit at a time.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use anyhow::Context;
use circulant::bayes::StepReport;
use circulant_cli::bindings::{RunConfig, VERSION};
use serde_json::Value;

use crate::threads::Stop;

/// Only one thread at a time may record on Burn's tape.
static TAPE: Mutex<()> = Mutex::new(());

/// What the training thread tells the one that waits.
#[derive(Default)]
pub struct Progress {
    /// Steps done, those of choosing a model included.
    pub step: AtomicU64,
    /// Steps in all.
    pub steps: AtomicU64,
    /// The bits of the loss.
    pub loss: AtomicU64,
}

impl Progress {
    /// Tells of every step of so many, and stops when asked to.
    pub fn watch<'a>(
        &'a self,
        steps: u64,
        stop: &'a Stop,
    ) -> impl FnMut(&StepReport) -> ControlFlow<()> + Send + 'a {
        self.steps.store(steps, Ordering::Relaxed);
        move |report| {
            self.loss.store(report.loss.to_bits(), Ordering::Relaxed);
            self.step.fetch_add(1, Ordering::Relaxed);
            match stop.is_asked() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
}

/// Settings in JSON over others.
pub fn settings_over(base: &RunConfig, text: &str) -> anyhow::Result<RunConfig> {
    let mut settings = serde_json::to_value(base)?;
    let given: Value = serde_json::from_str(text).context("the settings are no JSON")?;
    merge(&mut settings, given);
    let config: RunConfig =
        serde_json::from_value(settings).context("the settings are not understood")?;
    let config = RunConfig {
        version: VERSION,
        ..config
    };
    config.check()?;
    Ok(config)
}

fn merge(settings: &mut Value, given: Value) {
    match (settings, given) {
        (Value::Object(settings), Value::Object(given)) => {
            for (name, value) in given {
                merge(settings.entry(name).or_insert(Value::Null), value);
            }
        }
        (settings, given) => *settings = given,
    }
}

/// The right to record on Burn's tape, as soon as no other thread has it; none if somebody asks to stop before.
pub fn tape(stop: &Stop) -> Option<MutexGuard<'static, ()>> {
    while !stop.is_asked() {
        match TAPE.try_lock() {
            Ok(tape) => return Some(tape),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    None
}
