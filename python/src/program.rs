//! The program, and the data sets that it knows by name.

use std::ffi::OsString;

use circulant_data::{Cache, Pixels, Split};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::array;
use crate::errors::{of_anyhow, value_error};

/// Runs the program with its arguments, the name first, and returns its exit code. Once per process.
#[pyfunction]
pub fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| circulant_cli::program::run(arguments))
}

/// The names of data sets.
#[pyfunction]
pub fn dataset_names() -> Vec<&'static str> {
    circulant_data::known::names().collect()
}

/// Values, shape, labels, names of the classes.
type Loaded<'py> = (
    Bound<'py, PyAny>,
    [usize; 4],
    Bound<'py, PyArray1<i64>>,
    Vec<String>,
);

/// Images and labels of a data set by name.
#[pyfunction]
pub fn load_dataset<'py>(
    py: Python<'py>,
    name: &str,
    test: bool,
    seed: u64,
) -> PyResult<Loaded<'py>> {
    let split = if test { Split::Test } else { Split::Train };
    let load = || -> anyhow::Result<_> {
        Ok(circulant_data::load_known(
            name,
            split,
            seed,
            &Cache::from_environment()?,
        )?)
    };
    let set = py.detach(load).map_err(of_anyhow)?;
    let labels = set.labels().required(set.source()).map_err(value_error)?;
    let values = match set.pixels() {
        Pixels::U8(bytes) => array(py, bytes.clone()).into_any(),
        Pixels::F32(values) => array(py, values.clone()).into_any(),
    };
    Ok((
        values,
        set.shape(),
        array(py, labels.to_vec()),
        set.labels().names.clone(),
    ))
}
