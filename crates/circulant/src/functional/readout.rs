//! A circulant operator with a linear read-out behind it: one fused operation on the CPU, two
//! steps on every other device.

use burn::backend::Dispatch;
use burn::tensor::{Shape, Tensor};

use super::{check_len, check_parameters, cross_entropy, run};
use crate::backend::fused::{FusedOps, Selection, is_native};
use crate::data::{Examples, Inputs};
use crate::operator::Operator;

/// `act(K x + b) W + c`; the activation is the operator's.
///
/// # Shapes
///
/// - x: `[batch, ...]` with the operator's `C_in*H*W` values per input
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
    let (batch, classes) = (batch_of(x.dims(), operator), constant.dims()[0]);
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

/// The [`cross_entropy`] of [`circulant_readout`], summed over the batch. On the CPU it is one operation that takes every
/// block of inputs through both layers and back at once: the inputs are read where they lie, and nothing is kept but the
/// gradients. The inputs are data; no gradients reach them.
///
/// # Shapes
///
/// Those of [`circulant_readout`]; output: `[1]`.
///
/// # Panics
///
/// Panics, naming both sizes, if a tensor does not fit the operator, and if a row or a class does not exist.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::data::Examples;
/// use circulant::functional::{circulant_cross_entropy, circulant_readout, cross_entropy};
/// use circulant::operator::HalfSpectrum;
/// use circulant::operator::Operator;
///
/// let device = circulant::cpu();
/// let operator = Operator::signal(HalfSpectrum::new(2)?);
/// let inputs = Tensor::<2>::from_data([[3.0, 1.0], [0.0, 2.0]], &device);
/// let (a, b) = (Tensor::<1>::ones([2], &device), Tensor::<1>::zeros([1], &device));
/// let (w, c) = (Tensor::<2>::ones([2, 3], &device), Tensor::<1>::from_data([0.0, 1.0, 2.0], &device));
/// let examples = Examples { inputs: inputs.clone().into(), rows: None, labels: [2, 0].into() };
/// let loss = circulant_cross_entropy(examples, a.clone(), b.clone(), w.clone(), c.clone(), &operator);
/// let two_steps = cross_entropy(circulant_readout(inputs, a, b, w, c, &operator), [2, 0]);
/// loss.into_data().assert_approx_eq::<f32>(&two_steps.into_data(), Default::default());
/// # Ok::<(), circulant::operator::KernelError>(())
/// ```
pub fn circulant_cross_entropy<const D: usize>(
    examples: Examples<D>,
    coordinates: Tensor<1>,
    bias: Tensor<1>,
    weight: Tensor<2>,
    constant: Tensor<1>,
    operator: &Operator,
) -> Tensor<1> {
    if !is_native(&examples.inputs.device()) {
        let x = examples.batch();
        let logits = circulant_readout(x, coordinates, bias, weight, constant, operator);
        return cross_entropy(logits, examples.labels);
    }
    check_parameters(1, &coordinates.dims(), Some(bias.dims()), operator);
    let classes = constant.dims()[0];
    check_weight(&weight.dims(), [operator.output_len(), classes]);
    batch_of(examples.inputs.dims(), operator);
    let (inputs, bytes) = match examples.inputs {
        Inputs::Numbers(inputs) => (inputs.into_dispatch(), None),
        Inputs::Bytes(bytes) => {
            let nothing = Tensor::<1>::empty([0], &bytes.device);
            (nothing.into_dispatch(), Some((bytes.values, bytes.scale)))
        }
    };
    let selection = Selection {
        bytes,
        rows: examples.rows,
        labels: examples.labels,
    };
    Tensor::from_dispatch(Dispatch::circulant_cross_entropy(
        inputs,
        coordinates.into_dispatch(),
        bias.into_dispatch(),
        weight.into_dispatch(),
        constant.into_dispatch(),
        operator.clone(),
        selection,
    ))
}

/// [`circulant_readout`] with several filters, each with its read-out, on the same input.
///
/// # Shapes
///
/// - x: `[batch, ...]` with the operator's `C_in*H*W` values per input
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
    let batch = batch_of(x.dims(), operator);
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

fn batch_of<const D: usize>(dims: [usize; D], operator: &Operator) -> usize {
    check_len("an input", dims[1..].iter().product(), operator.input_len());
    dims[0]
}

fn check_weight<const W: usize>(got: &[usize; W], expected: [usize; W]) {
    assert!(
        *got == expected,
        "the read-out must be {expected:?}, got {got:?}"
    );
}
