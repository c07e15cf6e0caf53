//! NumPy arrays as slices. The Python side makes arrays contiguous and of one number type; what comes otherwise is an error.

use circulant_kernels::{Complex, Real};
use numpy::{
    Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors::{type_error, value_error};

/// `f32` or `f64`.
pub trait Number: Real + Element + circulant::metrics::Real {
    /// As NumPy calls it.
    const NAME: &'static str;
    /// Nothing.
    const ZERO: Self;
    /// Its complex numbers.
    type ComplexElement: Element;

    /// Complex numbers as NumPy knows them.
    fn complex(values: Vec<Complex<Self>>) -> Vec<Self::ComplexElement>;

    /// In double precision.
    fn double(self) -> f64;
}

impl Number for f32 {
    const NAME: &'static str = "float32";
    const ZERO: Self = 0.0;
    type ComplexElement = Complex<f32>;

    fn complex(values: Vec<Complex<f32>>) -> Vec<Complex<f32>> {
        values
    }

    fn double(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    const NAME: &'static str = "float64";
    const ZERO: Self = 0.0;
    type ComplexElement = Complex<f64>;

    fn complex(values: Vec<Complex<f64>>) -> Vec<Complex<f64>> {
        values
    }

    fn double(self) -> f64 {
        self
    }
}

/// An array for reading.
pub type Input<'py, T> = PyReadonlyArrayDyn<'py, T>;
/// An array for writing.
pub type Output<'py, T> = PyReadwriteArrayDyn<'py, T>;

/// Borrows an array for reading.
pub fn input<'py, T: Number>(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Input<'py, T>> {
    let array = cast::<T>(what, array)?;
    array.try_readonly().map_err(value_error)
}

/// [`input`] of what may be missing.
pub fn optional<'py, T: Number>(
    what: &str,
    array: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Input<'py, T>>> {
    array.map(|array| input(what, array)).transpose()
}

/// Borrows an array of 64-bit integers for reading.
pub fn integers<'py>(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Input<'py, i64>> {
    let array = cast_to::<i64>(what, "int64", array)?;
    array.try_readonly().map_err(value_error)
}

/// Borrows an array for writing.
pub fn output<'py, T: Number>(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Output<'py, T>> {
    let array = cast::<T>(what, array)?;
    array.try_readwrite().map_err(|error| {
        value_error(format!(
            "{what}: the array must be writable, and none of the others: {error}"
        ))
    })
}

/// [`output`] of what may be missing.
pub fn optional_output<'py, T: Number>(
    what: &str,
    array: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Output<'py, T>>> {
    array.map(|array| output(what, array)).transpose()
}

fn cast<'a, 'py, T: Number>(
    what: &str,
    array: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    cast_to(what, T::NAME, array)
}

fn cast_to<'a, 'py, T: Element>(
    what: &str,
    name: &str,
    array: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| {
        type_error(format!(
            "{what}: expected a NumPy array of {}, got {}",
            name,
            describe(array)
        ))
    })?;
    if array.is_c_contiguous() {
        Ok(array)
    } else {
        Err(value_error(format!(
            "{what}: expected a contiguous array; numpy.ascontiguousarray makes one"
        )))
    }
}

/// The type of an object, with that of its elements.
pub fn describe(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    let name = name.map_or_else(|_| "an object".to_owned(), |name| name.to_string());
    match object.getattr("dtype") {
        Ok(dtype) => format!("{name} of {dtype}"),
        Err(_) => name,
    }
}

/// The values of an array.
pub fn slice<'a, T: Element>(array: &'a Input<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(value_error)
}

/// The values of an array that may be missing.
pub fn optional_slice<'a, T: Number>(array: &'a Option<Input<'_, T>>) -> PyResult<Option<&'a [T]>> {
    array.as_ref().map(slice).transpose()
}

/// The values of an array, to be set.
pub fn slice_mut<'a, T: Number>(array: &'a mut Output<'_, T>) -> PyResult<&'a mut [T]> {
    array.as_slice_mut().map_err(value_error)
}

/// The values of an array that may be missing, to be set.
pub fn optional_slice_mut<'a, T: Number>(
    array: &'a mut Option<Output<'_, T>>,
) -> PyResult<Option<&'a mut [T]>> {
    array.as_mut().map(slice_mut).transpose()
}

/// Values as a new array.
pub fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_vec(py, values)
}

/// `work!(T)` for the number type of an array.
macro_rules! of_number_type {
    ($array:expr, $T:ident => $work:expr) => {{
        let array: &pyo3::Bound<'_, pyo3::PyAny> = $array;
        if array.cast::<numpy::PyArrayDyn<f32>>().is_ok() {
            type $T = f32;
            $work
        } else if array.cast::<numpy::PyArrayDyn<f64>>().is_ok() {
            type $T = f64;
            $work
        } else {
            Err($crate::errors::type_error(format!(
                "expected a NumPy array of float32 or float64, got {}",
                $crate::arrays::describe(array)
            )))
        }
    }};
}
pub(crate) use of_number_type;
