//! What the fits of all estimators are asked for, and how they end.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use crate::arrays::Number;
use crate::errors::of_anyhow;
use crate::fit::Task;
use crate::table::Rows;
use crate::training::Progress;

/// A dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct FitOptions<'py> {
    settings: String,
    table: bool,
    choose: bool,
    standardise: bool,
    names: Vec<String>,
    target_name: String,
    seen: usize,
    /// 0 for what was chosen for all.
    pub threads: usize,
    progress: Option<Bound<'py, PyAny>>,
}

impl FitOptions<'_> {
    /// With these rows.
    pub fn task<'a, T: Number>(
        &'a self,
        values: &'a [T],
        weights: Option<&'a [f64]>,
    ) -> Task<'a, T> {
        Task {
            settings: &self.settings,
            table: self.table,
            choose: self.choose,
            rows: Rows {
                values,
                columns: self.names.len(),
            },
            weights,
            standardise: self.standardise,
            names: &self.names,
            target_name: &self.target_name,
            seen: self.seen,
        }
    }

    /// Tells Python how far training is.
    pub fn tell(&self, told: &Progress) -> PyResult<()> {
        let Some(progress) = &self.progress else {
            return Ok(());
        };
        let loss = f64::from_bits(told.loss.load(Ordering::Relaxed));
        let [step, steps] = [&told.step, &told.steps].map(|count| count.load(Ordering::Relaxed));
        if step > 0 {
            progress.call1((step, steps, loss))?;
        }
        Ok(())
    }
}

/// What was trained, and why training was stopped if it was.
pub fn finish<'py, M>(
    py: Python<'py>,
    (trained, failed): (anyhow::Result<M>, Option<PyErr>),
) -> PyResult<(M, Option<Bound<'py, PyAny>>)> {
    match (trained, failed) {
        (Ok(trained), failed) => {
            let failed = failed.map(|error| error.into_value(py).into_bound(py).into_any());
            Ok((trained, failed))
        }
        // Asked to end before there was anything.
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(of_anyhow(error)),
    }
}
