//! Which exception an error becomes: `ValueError` for bad values, `TypeError` for bad types, `OSError` for files.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};

/// A value that cannot be used.
pub fn value_error<E: Display>(error: E) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An object of the wrong type.
pub fn type_error<E: Display>(error: E) -> PyErr {
    PyTypeError::new_err(error.to_string())
}

/// An error of the program's library: a file that cannot be read or written, or else a bad value.
pub fn of_anyhow(error: anyhow::Error) -> PyErr {
    let is_file = error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some());
    let text = format!("{error:#}");
    if is_file {
        PyOSError::new_err(text)
    } else {
        PyValueError::new_err(text)
    }
}
