//! The metrics of predictions.

use circulant::metrics::{
    Bootstrap, Interval, KernelDensity, Logits, MetricError, Probabilities, ReliabilityDiagram,
    adaptive_reliability_diagram, energies as energies_of, entropies, max_probabilities,
    mean_probabilities as mean_of, mutual_information as information_of, ood_report as ood_of,
    reliability_diagram as diagram_of,
};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{array, input, integers, of_number_type, slice};
use crate::errors::value_error;
use crate::threads::run;

type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// `work` on the checked probabilities of a matrix.
macro_rules! with_probabilities {
    ($py:expr, $matrix:expr, $classes:expr, $checked:ident => $work:expr) => {
        of_number_type!($matrix, T => {
            let matrix = input::<T>("probabilities", $matrix)?;
            let values = slice(&matrix)?;
            let work = || {
                let $checked = Probabilities::new(values, $classes)?;
                $work
            };
            run($py, values.len(), work)?.map_err(value_error::<MetricError>)
        })
    };
}

/// Accuracy, NLL, Brier score and calibration errors.
#[pyfunction]
pub fn classification_report<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    labels: &Bound<'_, PyAny>,
    bins: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = integers("labels", labels)?;
    let labels = slice(&labels)?;
    let report = with_probabilities!(py, probabilities, classes, checked => {
        circulant::metrics::classification_report(&checked, labels, bins)
    })?;
    let dict = PyDict::new(py);
    for (name, value) in [
        ("accuracy", report.accuracy),
        ("nll", report.nll),
        ("brier", report.brier),
        ("ece", report.ece),
        ("mce", report.mce),
        ("adaptive_ece", report.adaptive_ece),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// The bars of a reliability diagram: lower and upper edges, counts, confidences and accuracies (NaN where empty).
#[pyfunction]
pub fn reliability_diagram<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    labels: &Bound<'_, PyAny>,
    bins: usize,
    adaptive: bool,
) -> PyResult<[Floats<'py>; 5]> {
    let labels = integers("labels", labels)?;
    let labels = slice(&labels)?;
    let ReliabilityDiagram { bins, .. } = with_probabilities!(py, probabilities, classes, checked => {
        if adaptive {
            adaptive_reliability_diagram(&checked, labels, bins)
        } else {
            diagram_of(&checked, labels, bins)
        }
    })?;
    let column = |value: &dyn Fn(&circulant::metrics::ReliabilityBin) -> f64| {
        array(py, bins.iter().map(value).collect())
    };
    Ok([
        column(&|bin| bin.lower),
        column(&|bin| bin.upper),
        column(&|bin| bin.count as f64),
        column(&|bin| bin.mean_confidence.unwrap_or(f64::NAN)),
        column(&|bin| bin.accuracy.unwrap_or(f64::NAN)),
    ])
}

/// A reliability diagram as SVG.
#[pyfunction]
pub fn reliability_figure(
    py: Python<'_>,
    probabilities: &Bound<'_, PyAny>,
    classes: usize,
    labels: &Bound<'_, PyAny>,
    title: &str,
) -> PyResult<String> {
    let labels = integers("labels", labels)?;
    let labels = slice(&labels)?;
    let diagram = with_probabilities!(py, probabilities, classes, checked => diagram_of(&checked, labels, BINS))?;
    Ok(circulant_cli::bindings::reliability(title, &diagram))
}

/// Of a reliability diagram.
const BINS: usize = 15;

/// One number per row: `entropy` or `confidence`.
#[pyfunction]
pub fn row_scores<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    score: &str,
) -> PyResult<Floats<'py>> {
    let scores = with_probabilities!(py, probabilities, classes, checked => Ok(match score {
        "entropy" => entropies(&checked),
        _ => max_probabilities(&checked),
    }))?;
    Ok(array(py, scores))
}

/// The free energy of every row of logits.
#[pyfunction]
pub fn energies<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    classes: usize,
    temperature: f64,
) -> PyResult<Floats<'py>> {
    let energies = of_number_type!(logits, T => {
        let logits = input::<T>("logits", logits)?;
        let values = slice(&logits)?;
        let work = || energies_of(&Logits::new(values, classes)?, temperature);
        run(py, values.len(), work)?.map_err(value_error)
    })?;
    Ok(array(py, energies))
}

/// The mutual information of every input, from the probabilities of several posterior samples.
#[pyfunction]
pub fn mutual_information<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    samples: usize,
) -> PyResult<Floats<'py>> {
    let information = with_probabilities!(py, probabilities, classes, checked => {
        information_of(&checked, samples)
    })?;
    Ok(array(py, information))
}

/// The mean over posterior samples.
#[pyfunction]
pub fn mean_probabilities<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    samples: usize,
) -> PyResult<Floats<'py>> {
    let mean =
        with_probabilities!(py, probabilities, classes, checked => mean_of(&checked, samples))?;
    Ok(array(py, mean))
}

/// AUROC, AUPR and FPR at 95 % TPR of scores; familiar inputs should have the higher ones.
#[pyfunction]
pub fn ood_report(
    py: Python<'_>,
    id: &Bound<'_, PyAny>,
    ood: &Bound<'_, PyAny>,
) -> PyResult<(f64, f64, f64)> {
    let (id, ood) = (
        input::<f64>("id_scores", id)?,
        input::<f64>("ood_scores", ood)?,
    );
    let (id, ood) = (slice(&id)?, slice(&ood)?);
    let report = run(py, id.len() + ood.len(), || ood_of(id, ood))?.map_err(value_error)?;
    Ok((report.auroc, report.aupr, report.fpr95))
}

/// A Gaussian kernel density on an interval: points, values, and the bandwidth.
#[pyfunction]
#[pyo3(signature = (values, lower, upper, points, bandwidth=None))]
pub fn density<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    lower: f64,
    upper: f64,
    points: usize,
    bandwidth: Option<f64>,
) -> PyResult<(Floats<'py>, Floats<'py>, f64)> {
    let values = input::<f64>("values", values)?;
    let values = slice(&values)?;
    let work = || {
        let density = match bandwidth {
            Some(bandwidth) => KernelDensity::with_bandwidth(values, [lower, upper], bandwidth),
            None => KernelDensity::new(values, [lower, upper]),
        }?;
        Ok((density.curve(points)?, density.bandwidth()))
    };
    let (curve, bandwidth) = run(py, values.len(), work)?.map_err(value_error::<MetricError>)?;
    Ok((
        array(py, curve.points),
        array(py, curve.densities),
        bandwidth,
    ))
}

type Triple = (f64, f64, f64);

fn triple(interval: Interval) -> Triple {
    (interval.estimate, interval.lower, interval.upper)
}

fn bootstrap(seed: u64, resamples: usize, confidence: f64) -> Bootstrap {
    Bootstrap::new(seed)
        .with_resamples(resamples)
        .with_confidence(confidence)
}

/// The mean of values with its interval.
#[pyfunction]
pub fn bootstrap_mean(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    seed: u64,
    resamples: usize,
    confidence: f64,
) -> PyResult<Triple> {
    let values = input::<f64>("values", values)?;
    let values = slice(&values)?;
    let bootstrap = bootstrap(seed, resamples, confidence);
    let work = || bootstrap.mean(values);
    run(py, values.len().saturating_mul(resamples), work)?
        .map(triple)
        .map_err(value_error)
}

/// The metrics of probabilities with their intervals.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
pub fn bootstrap_classification<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    classes: usize,
    labels: &Bound<'_, PyAny>,
    bins: usize,
    seed: u64,
    resamples: usize,
    confidence: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = integers("labels", labels)?;
    let labels = slice(&labels)?;
    let bootstrap = bootstrap(seed, resamples, confidence);
    let intervals = with_probabilities!(py, probabilities, classes, checked => {
        bootstrap.classification(&checked, labels, bins)
    })?;
    let dict = PyDict::new(py);
    for (name, interval) in [
        ("accuracy", intervals.accuracy),
        ("nll", intervals.nll),
        ("brier", intervals.brier),
        ("ece", intervals.ece),
        ("mce", intervals.mce),
        ("adaptive_ece", intervals.adaptive_ece),
    ] {
        dict.set_item(name, triple(interval))?;
    }
    Ok(dict)
}

/// AUROC, AUPR and FPR at 95 % TPR with their intervals.
#[pyfunction]
pub fn bootstrap_ood(
    py: Python<'_>,
    id: &Bound<'_, PyAny>,
    ood: &Bound<'_, PyAny>,
    seed: u64,
    resamples: usize,
    confidence: f64,
) -> PyResult<[Triple; 3]> {
    let (id, ood) = (
        input::<f64>("id_scores", id)?,
        input::<f64>("ood_scores", ood)?,
    );
    let (id, ood) = (slice(&id)?, slice(&ood)?);
    let bootstrap = bootstrap(seed, resamples, confidence);
    let work = || bootstrap.ood(id, ood);
    let values = (id.len() + ood.len()).saturating_mul(resamples);
    let intervals = run(py, values, work)?.map_err(value_error)?;
    Ok([intervals.auroc, intervals.aupr, intervals.fpr95].map(triple))
}
