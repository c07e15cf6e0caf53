//! Sets of classes and intervals with a promised coverage.

use circulant::conformal::{ConformalConfig, ConformalIntervals, SetMethod};
use circulant::metrics::Probabilities;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{array, input, integers, slice};
use crate::errors::value_error;

/// Calibrates on probabilities `[n, classes]` and labels, and says which classes are in the sets of others, `[m, classes]`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
pub fn conformal_sets<'py>(
    py: Python<'py>,
    calibration: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    coverage: f64,
    method: &str,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let method = match method {
        "threshold" => SetMethod::Threshold,
        "aps" => SetMethod::Aps,
        "raps" => SetMethod::RAPS,
        _ => {
            return Err(value_error(format!(
                "method: expected 'threshold', 'aps' or 'raps', got {method:?}"
            )));
        }
    };
    let (calibration, probabilities) = (
        input::<f64>("calibration", calibration)?,
        input::<f64>("probabilities", probabilities)?,
    );
    let labels = integers("labels", labels)?;
    let (calibration, probabilities) = (slice(&calibration)?, slice(&probabilities)?);
    let labels = slice(&labels)?;
    let members = py.detach(|| -> anyhow::Result<Vec<bool>> {
        let config = ConformalConfig::new()
            .with_coverage(coverage)
            .with_method(method);
        let sets = config.calibrate(&Probabilities::new(calibration, classes)?, labels)?;
        let sets = sets.sets(&Probabilities::new(probabilities, classes)?)?;
        Ok((0..sets.rows())
            .flat_map(|row| sets.members(row))
            .copied()
            .collect())
    });
    Ok(array(py, members.map_err(value_error)?))
}

/// Calibrates on means, deviations and targets; the lower and the upper ends of the intervals of others.
#[pyfunction]
pub fn conformal_intervals<'py>(
    py: Python<'py>,
    calibration: [Bound<'py, PyAny>; 3],
    means: &Bound<'py, PyAny>,
    deviations: &Bound<'py, PyAny>,
    coverage: f64,
) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
    let double = |what: &str, array: &Bound<'py, PyAny>| -> PyResult<Vec<f64>> {
        Ok(slice(&input::<f64>(what, array)?)?.to_vec())
    };
    let known = [
        double("means", &calibration[0])?,
        double("deviations", &calibration[1])?,
        double("targets", &calibration[2])?,
    ];
    let (means, deviations) = (double("means", means)?, double("deviations", deviations)?);
    let intervals = ConformalIntervals::calibrate(coverage, &known[0], &known[1], &known[2])
        .and_then(|calibrated| calibrated.intervals(&means, &deviations))
        .map_err(value_error)?;
    let end = |which: usize| intervals.iter().map(|interval| interval[which]).collect();
    Ok([0, 1].map(|which| array(py, end(which))))
}
