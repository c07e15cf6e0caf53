//! Spatial filters to coordinates by the composed transform, and the adjoint.
//!
//! Filters have the unnormalised transform: `sqrt(HW)` times the unitary one.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Scalar, Shape};

use super::{ComplexPair, Composed, part, reshape};
use crate::operator::Operator;

/// [`CirculantOps::coordinates_of_filters`](crate::backend::CirculantOps::coordinates_of_filters) of any backend.
pub fn analyse<B: Backend>(
    filters: FloatTensor<B>,
    operator: &Operator,
    shape: Shape,
) -> FloatTensor<B> {
    let composed = Composed::<B>::of(operator, &filters);
    let (channels_in, channels_out) = operator.layout().channels();
    let (height, width) = operator.layout().grid();
    let pixels = height * width;
    let count = filters.shape().num_elements() / (channels_out * channels_in * pixels);
    let filters = reshape::<B>(filters, &[count, channels_out, channels_in, pixels]);
    let each = (0..count).map(|f| {
        let bins = composed.transform(part::<B>(filters.clone(), 0, f, 1), channels_in);
        let turned = |x| B::float_permute(x, &[0, 2, 1]);
        composed.pack(ComplexPair {
            re: turned(bins.re),
            im: turned(bins.im),
        })
    });
    let coordinates = B::float_cat(each.collect(), 0);
    B::float_reshape(B::float_mul_scalar(coordinates, root(pixels)), shape)
}

/// The adjoint of [`analyse`].
pub fn analyse_adjoint<B: Backend>(
    grad: FloatTensor<B>,
    operator: &Operator,
    shape: Shape,
) -> FloatTensor<B> {
    let composed = Composed::<B>::of(operator, &grad);
    let (channels_in, channels_out) = operator.layout().channels();
    let (height, width) = operator.layout().grid();
    let each = composed.filters(grad).into_iter().map(|grad| {
        // The inverse transform counts a complex bin twice.
        let bins = composed.unpack(B::float_div(grad, composed.constants.multiplicity.clone()));
        let turned = |x| B::float_permute(x, &[0, 2, 1]);
        let filter = composed.inverse(ComplexPair {
            re: turned(bins.re),
            im: turned(bins.im),
        });
        reshape::<B>(filter, &[channels_out, channels_in, height, width])
    });
    let filters = B::float_cat(each.collect(), 0);
    B::float_reshape(B::float_mul_scalar(filters, root(height * width)), shape)
}

fn root(pixels: usize) -> Scalar {
    Scalar::Float((pixels as f64).sqrt())
}
