//! Circulant operators: forward, gradients, norms, spectra and filters.

use std::sync::OnceLock;

use circulant::operator::Layout;
use circulant_kernels::{
    Activation, CirculantPlan, Complex, FilterTransform, Filters, Gradients, HalfPlane,
    HalfSpectrum, KernelError, NormEnclosure, Real, clip_norm_1d, clip_norm_2d, operator_norm_1d,
    operator_norm_2d, singular_values_2d,
};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{
    Number, array, input, of_number_type, optional, optional_output, optional_slice,
    optional_slice_mut, output, slice, slice_mut,
};
use crate::errors::value_error;
use crate::prior::Spectrum;
use crate::threads::run;

/// A circulant operator of fixed size, with the plans of its transforms. Make it once.
#[pyclass(frozen, module = "circulant._engine")]
pub struct Operator {
    shape: Shape,
    single: OnceLock<Plans<f32>>,
    double: OnceLock<Plans<f64>>,
}

/// What it applies to.
enum Shape {
    Signal(HalfSpectrum),
    Image {
        plane: HalfPlane,
        channels: (usize, usize),
    },
}

/// The plans of one number type.
struct Plans<T: Real> {
    operator: CirculantPlan<T>,
    filters: OnceLock<FilterTransform<T>>,
}

/// A number type with a place for its plans.
trait Planned: Number {
    fn cell(operator: &Operator) -> &OnceLock<Plans<Self>>;
}

impl Planned for f32 {
    fn cell(operator: &Operator) -> &OnceLock<Plans<f32>> {
        &operator.single
    }
}

impl Planned for f64 {
    fn cell(operator: &Operator) -> &OnceLock<Plans<f64>> {
        &operator.double
    }
}

const CHECKED: &str = "the sizes were checked when the operator was made";

impl Operator {
    fn of(shape: Shape) -> Self {
        Self {
            shape,
            single: OnceLock::new(),
            double: OnceLock::new(),
        }
    }

    fn plans<T: Planned>(&self) -> &Plans<T> {
        T::cell(self).get_or_init(|| Plans {
            operator: match &self.shape {
                Shape::Signal(half) => CirculantPlan::new_1d(half),
                Shape::Image { plane, channels } => {
                    CirculantPlan::new_2d(plane, channels.0, channels.1).expect(CHECKED)
                }
            },
            filters: OnceLock::new(),
        })
    }

    fn filters<T: Planned>(&self) -> &FilterTransform<T> {
        self.plans::<T>().filters.get_or_init(|| match &self.shape {
            Shape::Signal(half) => FilterTransform::new_1d(half),
            Shape::Image { plane, channels } => {
                FilterTransform::new_2d(plane, channels.0, channels.1).expect(CHECKED)
            }
        })
    }

    fn layout(&self) -> Layout {
        match &self.shape {
            Shape::Signal(half) => Layout::Signal(*half),
            Shape::Image { plane, channels } => Layout::Image {
                plane: plane.clone(),
                channels_in: channels.0,
                channels_out: channels.1,
            },
        }
    }

    /// Bins that are stored, of all channel pairs.
    fn stored_bins(&self) -> usize {
        match &self.shape {
            Shape::Signal(half) => half.bins(),
            Shape::Image { plane, channels } => plane.bins() * channels.0 * channels.1,
        }
    }
}

/// The most positions of a grid: tables of them are made.
const MOST_POSITIONS: usize = 1 << 26;

fn expect_moderate(sizes: &[usize]) -> PyResult<()> {
    let product = sizes
        .iter()
        .try_fold(1_usize, |all, &size| all.checked_mul(size));
    match product {
        Some(product) if product <= MOST_POSITIONS => Ok(()),
        _ => Err(value_error(format!(
            "expected sizes of at most {MOST_POSITIONS} positions together, got {sizes:?}; choose smaller sizes"
        ))),
    }
}

fn activation(tanh: bool) -> Activation {
    if tanh {
        Activation::Tanh
    } else {
        Activation::Identity
    }
}

#[pymethods]
impl Operator {
    /// The operator on signals of one channel with the lowest `modes` bins, or all.
    #[staticmethod]
    #[pyo3(signature = (length, modes=None))]
    fn signal(length: usize, modes: Option<usize>) -> PyResult<Self> {
        expect_moderate(&[length])?;
        let half = match modes {
            Some(modes) => HalfSpectrum::with_modes(length, modes),
            None => HalfSpectrum::new(length),
        };
        let half = half.map_err(value_error)?;
        Ok(Self::of(Shape::Signal(half)))
    }

    /// The operator on images with the bins within `radius`.
    #[staticmethod]
    fn image(
        height: usize,
        width: usize,
        channels_in: usize,
        channels_out: usize,
        radius: f64,
    ) -> PyResult<Self> {
        expect_moderate(&[height, width])?;
        expect_moderate(&[channels_in, channels_out])?;
        let plane = HalfPlane::with_radius(height, width, radius).map_err(value_error)?;
        let channels = (channels_in, channels_out);
        let operator = CirculantPlan::new_2d(&plane, channels_in, channels_out);
        let plans = Plans {
            operator: operator.map_err(value_error)?,
            filters: OnceLock::new(),
        };
        Ok(Self {
            single: OnceLock::from(plans),
            ..Self::of(Shape::Image { plane, channels })
        })
    }

    /// Free real coordinates of a filter, of all channel pairs.
    #[getter]
    fn coordinates(&self) -> usize {
        match &self.shape {
            Shape::Signal(half) => half.coordinates(),
            Shape::Image { plane, channels } => plane.coordinates() * channels.0 * channels.1,
        }
    }

    /// `y = act(K x + bias)`, into `y`.
    #[pyo3(signature = (x, coordinates, bias, tanh, y))]
    fn forward(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        coordinates: &Bound<'_, PyAny>,
        bias: Option<&Bound<'_, PyAny>>,
        tanh: bool,
        y: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        of_number_type!(x, T => self.forward_of::<T>(py, x, coordinates, bias, tanh, y))
    }

    /// The gradients of everything, into those arrays that are given.
    #[pyo3(signature = (x, coordinates, bias, tanh, y, grad_y, grad_x=None, grad_coordinates=None, grad_bias=None))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
    fn backward(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        coordinates: &Bound<'_, PyAny>,
        bias: Option<&Bound<'_, PyAny>>,
        tanh: bool,
        y: Option<&Bound<'_, PyAny>>,
        grad_y: &Bound<'_, PyAny>,
        grad_x: Option<&Bound<'_, PyAny>>,
        grad_coordinates: Option<&Bound<'_, PyAny>>,
        grad_bias: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        of_number_type!(x, T => {
            let inputs = BackwardInputs {
                x: input::<T>("x", x)?,
                coordinates: input("coordinates", coordinates)?,
                bias: optional("bias", bias)?,
                y: optional("y", y)?,
                grad_y: input("grad_y", grad_y)?,
            };
            let mut grad_x = optional_output::<T>("grad_x", grad_x)?;
            let mut grad_coordinates = optional_output::<T>("grad_coordinates", grad_coordinates)?;
            let mut grad_bias = optional_output::<T>("grad_bias", grad_bias)?;
            let gradients = Gradients {
                x: optional_slice_mut(&mut grad_x)?,
                coordinates: optional_slice_mut(&mut grad_coordinates)?,
                bias: optional_slice_mut(&mut grad_bias)?,
            };
            self.backward_of(py, &inputs, activation(tanh), gradients)
        })
    }

    /// The stored bins of coordinates.
    fn half_spectrum<'py>(
        &self,
        py: Python<'py>,
        coordinates: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_number_type!(coordinates, T => {
            let coordinates = input::<T>("coordinates", coordinates)?;
            let values = slice(&coordinates)?;
            let mut bins = vec![Complex::<T>::default(); self.stored_bins()];
            let unpacked = match &self.shape {
                Shape::Signal(half) => half.unpack(values, &mut bins),
                Shape::Image { plane, channels } => {
                    plane.unpack(values, channels.0 * channels.1, &mut bins)
                }
            };
            unpacked.map_err(value_error)?;
            Ok(array(py, T::complex(bins)).into_any())
        })
    }

    /// The coordinates of filters: those of the spectrum.
    fn analyse(
        &self,
        py: Python<'_>,
        filters: &Bound<'_, PyAny>,
        coordinates: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        of_number_type!(filters, T => self.transform_of::<T>(py, filters, coordinates, FilterTransform::analyse))
    }

    /// The filters of coordinates.
    fn synthesise(
        &self,
        py: Python<'_>,
        coordinates: &Bound<'_, PyAny>,
        filters: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        of_number_type!(filters, T => self.transform_of::<T>(py, coordinates, filters, FilterTransform::synthesise))
    }

    /// A gradient of the coordinates to one of the filters.
    fn analyse_adjoint(
        &self,
        py: Python<'_>,
        grad_coordinates: &Bound<'_, PyAny>,
        grad_filters: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        of_number_type!(grad_filters, T => self.transform_of::<T>(py, grad_coordinates, grad_filters, FilterTransform::adjoint))
    }

    /// The largest singular value, enclosed.
    fn norm(&self, py: Python<'_>, coordinates: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        let coordinates = input::<f64>("coordinates", coordinates)?;
        let values = slice(&coordinates)?;
        let norm = run(py, values.len(), || match &self.shape {
            Shape::Signal(half) => operator_norm_1d(half, values),
            Shape::Image { plane, channels } => {
                operator_norm_2d(plane, channels.0, channels.1, values)
            }
        })?;
        let NormEnclosure { lower, upper } = norm.map_err(value_error)?;
        Ok((lower, upper))
    }

    /// All singular values, in falling order.
    fn singular_values<'py>(
        &self,
        py: Python<'py>,
        coordinates: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let coordinates = input::<f64>("coordinates", coordinates)?;
        let values = slice(&coordinates)?;
        let singular = run(py, values.len(), || self.singular_values_of(values))?;
        Ok(array(py, singular.map_err(value_error)?))
    }

    /// Brings the norm down to a limit, in place.
    fn clip(&self, py: Python<'_>, coordinates: &Bound<'_, PyAny>, limit: f64) -> PyResult<()> {
        let mut coordinates = output::<f64>("coordinates", coordinates)?;
        let values = slice_mut(&mut coordinates)?;
        run(py, values.len(), || match &self.shape {
            Shape::Signal(half) => clip_norm_1d(half, values, limit),
            Shape::Image { plane, channels } => {
                clip_norm_2d(plane, channels.0, channels.1, values, limit)
            }
        })?
        .map_err(value_error)
    }

    /// The prior's variance of every coordinate.
    #[pyo3(signature = (spectrum, deviation, alpha, length_scale, nu))]
    fn prior_variances<'py>(
        &self,
        py: Python<'py>,
        spectrum: &str,
        deviation: f64,
        alpha: f64,
        length_scale: f64,
        nu: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let spectrum = Spectrum::new(spectrum, deviation, alpha, length_scale, nu)?;
        let prior = spectrum.prior(&self.layout())?;
        Ok(array(py, prior.variances().to_vec()))
    }

    /// Draws from the prior, one after the other: coordinates, or filters.
    #[pyo3(signature = (spectrum, deviation, alpha, length_scale, nu, seed, draws, filters))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
    fn prior_draws<'py>(
        &self,
        py: Python<'py>,
        spectrum: &str,
        deviation: f64,
        alpha: f64,
        length_scale: f64,
        nu: f64,
        seed: u64,
        draws: usize,
        filters: bool,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let spectrum = Spectrum::new(spectrum, deviation, alpha, length_scale, nu)?;
        let prior = spectrum.prior(&self.layout())?;
        let values = py.detach(|| Spectrum::draws(&prior, seed, draws, filters))?;
        Ok(array(py, values))
    }
}

struct BackwardInputs<'py, T: Number> {
    x: crate::arrays::Input<'py, T>,
    coordinates: crate::arrays::Input<'py, T>,
    bias: Option<crate::arrays::Input<'py, T>>,
    y: Option<crate::arrays::Input<'py, T>>,
    grad_y: crate::arrays::Input<'py, T>,
}

impl Operator {
    fn forward_of<T: Planned>(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        coordinates: &Bound<'_, PyAny>,
        bias: Option<&Bound<'_, PyAny>>,
        tanh: bool,
        y: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (x, coordinates) = (input::<T>("x", x)?, input::<T>("coordinates", coordinates)?);
        let (bias, mut y) = (optional::<T>("bias", bias)?, output::<T>("y", y)?);
        let (x, y) = (slice(&x)?, slice_mut(&mut y)?);
        let filters = Filters {
            coordinates: slice(&coordinates)?,
            bias: optional_slice(&bias)?,
            activation: activation(tanh),
        };
        let plan = &self.plans::<T>().operator;
        run(py, x.len().max(y.len()), || plan.forward(x, filters, y))?.map_err(value_error)
    }

    fn backward_of<T: Planned>(
        &self,
        py: Python<'_>,
        inputs: &BackwardInputs<'_, T>,
        activation: Activation,
        gradients: Gradients<'_, T>,
    ) -> PyResult<()> {
        let (x, grad_y) = (slice(&inputs.x)?, slice(&inputs.grad_y)?);
        let y = optional_slice(&inputs.y)?.unwrap_or_default();
        let filters = Filters {
            coordinates: slice(&inputs.coordinates)?,
            bias: optional_slice(&inputs.bias)?,
            activation,
        };
        let plan = &self.plans::<T>().operator;
        let work = || plan.backward(&plan.transform(x)?, filters, y, grad_y, gradients);
        run(py, x.len().max(grad_y.len()), work)?.map_err(value_error)
    }

    fn transform_of<T: Planned>(
        &self,
        py: Python<'_>,
        from: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        work: impl Fn(&FilterTransform<T>, &[T], &mut [T]) -> Result<(), KernelError> + Send + Sync,
    ) -> PyResult<()> {
        let (from, mut to) = (
            input::<T>("the input", from)?,
            output::<T>("the output", to)?,
        );
        let (from, to) = (slice(&from)?, slice_mut(&mut to)?);
        let filters = self.filters::<T>();
        run(py, from.len(), || work(filters, from, to))?.map_err(value_error)
    }

    fn singular_values_of(&self, coordinates: &[f64]) -> Result<Vec<f64>, KernelError> {
        match &self.shape {
            // A signal is an image of one row.
            Shape::Signal(half) => {
                let mut bins = vec![Complex::default(); half.bins()];
                half.unpack(coordinates, &mut bins)?;
                let moduli = |k: usize| {
                    let modulus = bins[k].norm();
                    std::iter::repeat_n(modulus, half.multiplicity(k))
                };
                let mut values: Vec<f64> = (0..half.bins()).flat_map(moduli).collect();
                values.sort_by(|a, b| b.total_cmp(a));
                Ok(values)
            }
            Shape::Image { plane, channels } => {
                singular_values_2d(plane, channels.0, channels.1, coordinates)
            }
        }
    }
}
