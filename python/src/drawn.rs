//! The networks of the last prediction, kept for the next one: drawing them takes longer than predicting a row.

use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use circulant::bayes::{BayesError, Drawn, PredictiveConfig};

/// More values than this, of all networks together, are drawn anew every time (16 MiB).
const MOST_VALUES: usize = 1 << 22;

/// How many networks, and their seed.
type Key = (usize, u64);

/// The networks that were drawn last.
pub struct LastDrawn<E> {
    last: Mutex<Option<(Key, Drawn<E>)>>,
    /// Values of one network.
    values: usize,
}

impl<E> LastDrawn<E> {
    /// Of networks of so many values.
    pub fn new(values: usize) -> Self {
        Self {
            last: Mutex::new(None),
            values,
        }
    }

    /// How many numbers predictions of so many rows multiply, about.
    pub fn products(&self, config: &PredictiveConfig, rows: usize) -> usize {
        let of_row = self.values.saturating_mul(config.samples);
        of_row.saturating_mul(rows)
    }

    /// Does `work` with the networks that `draw` makes, or made last time for the same settings. Another thread that predicts meanwhile
    /// draws its own.
    pub fn with<R>(
        &self,
        config: &PredictiveConfig,
        draw: impl FnOnce() -> Result<Drawn<E>, BayesError>,
        work: impl FnOnce(&Drawn<E>) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        let key = (config.samples, config.seed);
        let lock = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lock().take().filter(|(of, _)| *of == key);
        let drawn = match kept {
            Some((_, drawn)) => drawn,
            None => draw().context("the posterior's networks cannot be drawn")?,
        };
        let done = work(&drawn);
        if self.products(config, 1) <= MOST_VALUES {
            *lock() = Some((key, drawn));
        }
        done
    }
}
