//! The operators on tensors, for those who bring their own parameters (posterior samples, shared
//! filters). The layers of [`nn`](crate::nn) are built of these.
//!
//! | function | `x` | coordinates | bias | output |
//! | --- | --- | --- | --- | --- |
//! | [`circulant_1d`] | `[..., C_in*d]` | `[d_eff]` | `[C_out]` or `[C_out*d]` | `[..., C_out*d]` |
//! | [`circulant_1d_filters`] | `[..., C_in*d]` | `[filters, d_eff]` | `[filters, C_out]` or `[filters, C_out*d]` | `[filters, ..., C_out*d]` |
//! | [`bccb_2d`] | `[batch, C_in, H, W]` | `[coordinate, C_in, C_out]` | `[C_out]` | `[batch, C_out, H, W]` |
//! | [`bccb_2d_filters`] | `[batch, C_in, H, W]` | `[filters, coordinate, C_in, C_out]` | `[filters, C_out]` | `[filters, batch, C_out, H, W]` |
//! | [`circulant_readout`] | `[batch, ...]` | `[d_eff]` | `[C_out]`, and a weight and a constant | `[batch, classes]` |
//! | [`circulant_cross_entropy`] | the same, and classes | `[d_eff]` | the same | `[1]` |
//! | [`circulant_readout_filters`] | `[batch, ...]` | `[filters, d_eff]` | `[filters, C_out]`, and so on | `[filters, batch, classes]` |
//!
//! The forms with several filters transform their input once. The activation of the operator
//! ([`Operator::with_activation`]) is applied to the biased output, within the kernel.
//!
//! [`linear`], [`conv2d`], [`tanh`] and [`cross_entropy`] are what usually follows, fused on the CPU; [`gelu`], [`layer_norm`],
//! [`attention`] and [`dropout`] are those of a transformer; [`gaussian_nll`] and [`poisson_nll`] are losses of other tasks, and
//! [`weighted_cross_entropy`], [`weighted_gaussian_nll`] and [`weighted_poisson_nll`] those of examples with weights.

mod dense;
mod likelihood;
mod max_min;
mod pixels;
mod readout;
mod transformer;

use std::sync::Arc;

use burn::backend::Dispatch;
use burn::tensor::{Shape, Tensor};

pub use circulant_kernels::Dropout;

pub use self::dense::{conv2d, cross_entropy, linear, select_rows, tanh};
pub use self::likelihood::{
    gaussian_nll, poisson_nll, weighted_cross_entropy, weighted_gaussian_nll, weighted_poisson_nll,
};
pub use self::max_min::max_min;
pub use self::pixels::pixel_unshuffle;
pub use self::readout::{circulant_cross_entropy, circulant_readout, circulant_readout_filters};
pub use self::transformer::{attention, dropout, gelu, layer_norm};
use crate::backend::{CirculantOps, ensure_supported};
use crate::operator::{Isometries, Layout, Operator};

/// `y = act(IRFFT(h * RFFT(x)) + b)` over the last axis; with an operator of [`Operator::blocks`] a matrix of circulant blocks,
/// `Y[o] = act(IRFFT(sum_c K[o,c] * RFFT(X[c])) + b[o])`. A signal has one channel, `C_in = C_out = 1`.
///
/// # Shapes
///
/// - x: `[..., C_in*d]`
/// - coordinates: `[d_eff]`, of blocks in the order `[coordinate, C_in, C_out]`
/// - bias: `[C_out]` or `[C_out*d]`
/// - output: `[..., C_out*d]`
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use circulant::functional::circulant_1d;
/// use circulant::operator::HalfSpectrum;
/// use circulant::operator::Operator;
///
/// let device = Device::flex();
/// let operator = Operator::signal(HalfSpectrum::new(4)?);
/// // h = (2, 2, 2): twice the identity.
/// let coordinates = Tensor::<1>::from_data([2.0, 2.0, 0.0, 2.0], &device);
/// let x = Tensor::<2>::from_data([[1.0, 2.0, 3.0, 4.0]], &device);
/// let y = circulant_1d(x, coordinates, None, &operator);
/// y.into_data().assert_approx_eq::<f32>(&[[2.0, 4.0, 6.0, 8.0]].into(), Default::default());
/// # Ok::<(), circulant::operator::KernelError>(())
/// ```
pub fn circulant_1d<const D: usize>(
    x: Tensor<D>,
    coordinates: Tensor<1>,
    bias: Option<Tensor<1>>,
    operator: &Operator,
) -> Tensor<D> {
    check_signal(x.dims().as_slice(), operator);
    check_parameters(
        1,
        coordinates.dims().as_slice(),
        bias.as_ref().map(|b| b.dims()),
        operator,
    );
    let mut shape = x.dims();
    shape[D - 1] = operator.output_len();
    run(x, coordinates, bias, operator, Shape::from(shape))
}

/// [`circulant_1d`] with several filters on the same input; `D_OUT` is `D + 1`.
///
/// # Shapes
///
/// - x: `[..., C_in*d]`
/// - coordinates: `[filters, d_eff]`
/// - bias: `[filters, C_out]` or `[filters, C_out*d]`
/// - output: `[filters, ..., C_out*d]`
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator.
pub fn circulant_1d_filters<const D: usize, const D_OUT: usize>(
    x: Tensor<D>,
    coordinates: Tensor<2>,
    bias: Option<Tensor<2>>,
    operator: &Operator,
) -> Tensor<D_OUT> {
    assert!(
        D_OUT == D + 1,
        "the output has the filters as its first dimension: expected rank {}, got {D_OUT}",
        D + 1
    );
    check_signal(x.dims().as_slice(), operator);
    let filters = coordinates.dims()[0];
    check_parameters(
        filters,
        coordinates.dims().as_slice(),
        bias.as_ref().map(|b| b.dims()),
        operator,
    );
    let mut shape = vec![filters];
    shape.extend(x.dims());
    shape[D] = operator.output_len();
    run(x, coordinates, bias, operator, Shape::from(shape))
}

/// `Y[o] = act(IRFFT2(sum_c K[o,c] * RFFT2(X[c])) + b[o])`.
///
/// # Shapes
///
/// - x: `[batch, C_in, H, W]`
/// - coordinates: `[coordinate, C_in, C_out]`, or the same values in another shape
/// - bias: `[C_out]`
/// - output: `[batch, C_out, H, W]`
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator.
pub fn bccb_2d<const C: usize>(
    x: Tensor<4>,
    coordinates: Tensor<C>,
    bias: Option<Tensor<1>>,
    operator: &Operator,
) -> Tensor<4> {
    let [batch, ..] = check_image(&x, operator);
    check_parameters(
        1,
        coordinates.dims().as_slice(),
        bias.as_ref().map(|b| b.dims()),
        operator,
    );
    let shape = image_shape(batch, operator);
    run(x, coordinates, bias, operator, Shape::from(shape.to_vec()))
}

/// [`bccb_2d`] with several filters on the same input.
///
/// # Shapes
///
/// - x: `[batch, C_in, H, W]`
/// - coordinates: `[filters, coordinate, C_in, C_out]`, or `[filters, ...]` with the same values
/// - bias: `[filters, C_out]`
/// - output: `[filters, batch, C_out, H, W]`
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator.
pub fn bccb_2d_filters<const C: usize>(
    x: Tensor<4>,
    coordinates: Tensor<C>,
    bias: Option<Tensor<2>>,
    operator: &Operator,
) -> Tensor<5> {
    let [batch, ..] = check_image(&x, operator);
    let filters = coordinates.dims()[0];
    check_parameters(
        filters,
        coordinates.dims().as_slice(),
        bias.as_ref().map(|b| b.dims()),
        operator,
    );
    let mut shape = vec![filters];
    shape.extend(image_shape(batch, operator));
    run(x, coordinates, bias, operator, Shape::from(shape))
}

/// The coordinates of the spatial filter `w`: `h_k = sum_t w_t exp(-2 pi i k t/d)`.
///
/// # Shapes
///
/// - filter: `[d]`
/// - output: `[d_eff]`
///
/// # Panics
///
/// Panics, naming both sizes, if the filter does not fit the operator.
pub fn coordinates_of_filter_1d(filter: Tensor<1>, operator: &Operator) -> Tensor<1> {
    check_len("the filter", filter.dims()[0], operator.output_len());
    analyse(filter, operator, vec![operator.coordinates()])
}

/// The coordinates of spatial filters, one per channel pair.
///
/// # Shapes
///
/// - filters: `[C_out, C_in, H, W]`
/// - output: `[coordinate, C_in, C_out]`
///
/// # Panics
///
/// Panics, naming both shapes, if the filters do not fit the operator.
pub fn coordinates_of_filter_2d(filters: Tensor<4>, operator: &Operator) -> Tensor<3> {
    let ((channels_in, channels_out), (height, width)) =
        (operator.layout().channels(), operator.layout().grid());
    let expected = [channels_out, channels_in, height, width];
    assert!(
        filters.dims() == expected,
        "the filters must be {expected:?} = [C_out, C_in, H, W], got {:?}",
        filters.dims()
    );
    let shape = vec![
        operator.coordinates() / (channels_in * channels_out),
        channels_in,
        channels_out,
    ];
    analyse(filters, operator, shape)
}

/// The coordinates of isometries, for operators whose norm is exactly one: a matrix with orthonormal columns (or rows) per frequency, by the
/// Cayley transform (`docs/mathematics.md`, section 12).
///
/// # Shapes
///
/// - generators: `[parameters]`
/// - output: `[d_eff]`, in the order `[coordinate, C_in, C_out]`
///
/// # Panics
///
/// Panics, naming both sizes, if the generators are not those of the isometries.
pub fn isometry_coordinates(generators: Tensor<1>, isometries: &Arc<Isometries>) -> Tensor<1> {
    check_len(
        "the generators",
        generators.dims()[0],
        isometries.parameters(),
    );
    let shape = Shape::from(vec![isometries.coordinates()]);
    ensure_supported(&generators.device());
    let generators = generators.into_dispatch();
    Tensor::from_dispatch(Dispatch::isometry_coordinates(
        generators,
        isometries.clone(),
        shape,
    ))
}

fn run<const X: usize, const C: usize, const B: usize, const Y: usize>(
    x: Tensor<X>,
    coordinates: Tensor<C>,
    bias: Option<Tensor<B>>,
    operator: &Operator,
    shape: Shape,
) -> Tensor<Y> {
    ensure_supported(&x.device());
    let (x, coordinates, operator) = (
        x.into_dispatch(),
        coordinates.into_dispatch(),
        operator.clone(),
    );
    Tensor::from_dispatch(match bias {
        None => Dispatch::circulant(x, coordinates, operator, shape),
        Some(bias) => {
            Dispatch::circulant_biased(x, coordinates, bias.into_dispatch(), operator, shape)
        }
    })
}

fn analyse<const F: usize, const C: usize>(
    filters: Tensor<F>,
    operator: &Operator,
    shape: Vec<usize>,
) -> Tensor<C> {
    ensure_supported(&filters.device());
    Tensor::from_dispatch(Dispatch::coordinates_of_filters(
        filters.into_dispatch(),
        operator.clone(),
        Shape::from(shape),
    ))
}

fn check_len(what: &str, got: usize, expected: usize) {
    assert!(
        got == expected,
        "{what}: expected {expected} values, got {got}"
    );
}

fn check_signal(x: &[usize], operator: &Operator) {
    let (height, _) = operator.layout().grid();
    assert!(
        height == 1,
        "a 1D function needs an operator of Operator::signal or Operator::blocks, got one for images"
    );
    let length = operator.input_len();
    assert!(
        x.last() == Some(&length),
        "x must be [..., {length}], got {x:?}"
    );
}

fn check_image(x: &Tensor<4>, operator: &Operator) -> [usize; 4] {
    let Layout::Image {
        plane, channels_in, ..
    } = operator.layout()
    else {
        panic!("a 2D function needs an operator of Operator::image, got one for signals")
    };
    let expected = [*channels_in, plane.height(), plane.width()];
    let dims = x.dims();
    assert!(
        dims[1..] == expected,
        "x must be [batch, C_in, H, W] with {expected:?} after the batch, got {dims:?}"
    );
    dims
}

/// One message for both parameters: sizes per filter.
fn check_parameters<const B: usize>(
    filters: usize,
    coordinates: &[usize],
    bias: Option<[usize; B]>,
    operator: &Operator,
) {
    let expected = filters * operator.coordinates();
    let got: usize = coordinates.iter().product();
    assert!(
        got == expected,
        "coordinates: expected {filters} x {} values, got the shape {coordinates:?}",
        operator.coordinates()
    );
    if let Some(bias) = bias {
        let got: usize = bias.iter().product();
        let (channel, element) = (operator.layout().channels().1, operator.output_len());
        assert!(
            got == filters * channel || got == filters * element,
            "bias: expected {filters} x {channel} or {filters} x {element} values, got the shape {bias:?}"
        );
    }
}

fn image_shape(batch: usize, operator: &Operator) -> [usize; 4] {
    let (height, width) = operator.layout().grid();
    [batch, operator.layout().channels().1, height, width]
}
