//! A circulant operator with a linear read-out behind it: one fused operation on the CPU, two
//! steps on every other device.

use burn::backend::Dispatch;
use burn::tensor::{Shape, Tensor};

use super::{check_len, check_parameters, run};
use crate::ops::Operator;
use crate::ops::fused::{FusedOps, is_native};

/// `act(K x + b) W + c`; the activation is the operator's.
///
/// # Shapes
///
/// - x: `[batch, ...]` with the operator's `C_in*H*W` numbers per input
/// - coordinates: `[d_eff]`
/// - bias: `[C_out]` or `[C_out*H*W]`
/// - weight: `[C_out*H*W, classes]`
/// - constant: `[classes]`
/// - output: `[batch, classes]`
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator.
pub fn circulant_readout<const D: usize>(
    x: Tensor<D>,
    coordinates: Tensor<1>,
    bias: Tensor<1>,
    weight: Tensor<2>,
    constant: Tensor<1>,
    operator: &Operator,
) -> Tensor<2> {
    check_parameters(1, &coordinates.dims(), Some(bias.dims()), operator);
    let (batch, classes) = (batch_of(&x, operator), constant.dims()[0]);
    check_weight(&weight.dims(), [operator.output_len(), classes]);
    if is_native(&x.device()) {
        return Tensor::from_dispatch(Dispatch::circulant_readout(
            x.into_dispatch(),
            coordinates.into_dispatch(),
            bias.into_dispatch(),
            weight.into_dispatch(),
            constant.into_dispatch(),
            operator.clone(),
            Shape::from(vec![batch, classes]),
        ));
    }
    let shape = Shape::from(vec![batch, operator.output_len()]);
    let hidden: Tensor<2> = run(x, coordinates, Some(bias), operator, shape);
    hidden.matmul(weight) + constant.unsqueeze_dim(0)
}

/// [`circulant_readout`] with several filters, each with its read-out, on the same input.
///
/// # Shapes
///
/// - x: `[batch, ...]` with the operator's `C_in*H*W` numbers per input
/// - coordinates: `[filters, d_eff]`
/// - bias: `[filters, C_out]` or `[filters, C_out*H*W]`
/// - weight: `[filters, C_out*H*W, classes]`
/// - constant: `[filters, classes]`
/// - output: `[filters, batch, classes]`
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator.
pub fn circulant_readout_filters<const D: usize>(
    x: Tensor<D>,
    coordinates: Tensor<2>,
    bias: Tensor<2>,
    weight: Tensor<3>,
    constant: Tensor<2>,
    operator: &Operator,
) -> Tensor<3> {
    let [filters, classes] = constant.dims();
    check_parameters(filters, &coordinates.dims(), Some(bias.dims()), operator);
    let batch = batch_of(&x, operator);
    check_weight(&weight.dims(), [filters, operator.output_len(), classes]);
    if is_native(&x.device()) {
        return Tensor::from_dispatch(Dispatch::circulant_readout(
            x.into_dispatch(),
            coordinates.into_dispatch(),
            bias.into_dispatch(),
            weight.into_dispatch(),
            constant.into_dispatch(),
            operator.clone(),
            Shape::from(vec![filters, batch, classes]),
        ));
    }
    let shape = Shape::from(vec![filters, batch, operator.output_len()]);
    let hidden: Tensor<3> = run(x, coordinates, Some(bias), operator, shape);
    hidden.matmul(weight) + constant.unsqueeze_dim(1)
}

fn batch_of<const D: usize>(x: &Tensor<D>, operator: &Operator) -> usize {
    let dims = x.dims();
    check_len("an input", dims[1..].iter().product(), operator.input_len());
    dims[0]
}

fn check_weight<const W: usize>(got: &[usize; W], expected: [usize; W]) {
    assert!(
        *got == expected,
        "the read-out must be {expected:?}, got {got:?}"
    );
}
