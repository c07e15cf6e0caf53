//! What a transformer is made of: one fused operation each on the CPU, composed of Burn's own on every other device.

use std::f64::consts::SQRT_2;

use burn::backend::Dispatch;
use burn::tensor::{DType, Element, Tensor, TensorData};
use circulant_kernels::{DROPOUT_GROUP, Dropout, Real, dropout_into};

use crate::backend::fused::is_native;
use crate::backend::transformer::{AttentionSettings, TransformerOps};

/// `gelu(x) = x P(x)` with the normal distribution `P`, the exact form.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if !is_native(&x.device()) {
        // Not Burn's own: its derivative is that of the approximation by tanh, 1e-3 off.
        let twice = x.clone().div_scalar(SQRT_2).erf().add_scalar(1.0);
        return (x * twice).mul_scalar(0.5);
    }
    Tensor::from_dispatch(Dispatch::gelu_saving(x.into_dispatch()))
}

/// `x_i/(1 - rate)`, or zero with a probability of `rate`. The mask is a function of the key of `dropout` and of `i` alone, on every
/// device.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::functional::dropout;
/// use circulant::functional::Dropout;
/// use circulant::noise::NoiseKey;
///
/// let x = Tensor::<1>::ones([1000], &circulant::cpu());
/// let half = Dropout::new(0.5, NoiseKey { seed: 1, stream: 0 })?;
/// let mean: f32 = dropout(x, half).mean().into_scalar();
/// assert!((mean - 1.0).abs() < 0.1);
/// # Ok::<(), circulant::operator::KernelError>(())
/// ```
pub fn dropout<const D: usize>(x: Tensor<D>, dropout: Dropout) -> Tensor<D> {
    if !is_native(&x.device()) {
        let mask = mask(&x, dropout);
        return x * mask;
    }
    Tensor::from_dispatch(Dispatch::dropout_masked(x.into_dispatch(), dropout))
}

/// The factors of a dropout, made on the host.
fn mask<const D: usize>(x: &Tensor<D>, dropout: Dropout) -> Tensor<D> {
    let len = x.shape().num_elements();
    match x.dtype() {
        DType::F64 => on_device(factors::<f64>(len, dropout), x),
        _ => on_device(factors::<f32>(len, dropout), x),
    }
}

/// The same for the weights `[batch, heads, tokens, tokens]` of attention, of which every head begins a group of random numbers.
fn mask_of_weights(weights: &Tensor<4>, dropout: Dropout) -> Tensor<4> {
    let [batch, heads, rows, columns] = weights.dims();
    match weights.dtype() {
        DType::F64 => on_device(
            of_heads::<f64>(batch * heads, rows * columns, dropout),
            weights,
        ),
        _ => on_device(
            of_heads::<f32>(batch * heads, rows * columns, dropout),
            weights,
        ),
    }
}

fn of_heads<T: Real>(heads: usize, size: usize, dropout: Dropout) -> Vec<T> {
    let padded = size.next_multiple_of(DROPOUT_GROUP);
    let mut factors = factors::<T>(heads * padded, dropout);
    let mut place = 0;
    factors.retain(|_| {
        place += 1;
        (place - 1) % padded < size
    });
    factors
}

fn factors<T: Real>(len: usize, dropout: Dropout) -> Vec<T> {
    let mut factors = vec![T::of(0.0); len];
    dropout_into(&vec![T::of(1.0); len], dropout, &mut factors).expect("slices of one length");
    factors
}

fn on_device<T: Element, const D: usize>(factors: Vec<T>, like: &Tensor<D>) -> Tensor<D> {
    let options = (&like.device(), like.dtype());
    Tensor::from_data(TensorData::new(factors, like.shape()), options)
}

/// `(x - mean)/sqrt(variance + epsilon) gamma + beta` over the last axis; the variance divides by `n`.
///
/// # Shapes
///
/// - x, output: `[..., n]`
/// - gamma, beta: `[n]`
///
/// # Panics
///
/// Panics, naming both sizes, if gamma or beta are not as long as the last axis.
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
) -> Tensor<D> {
    check_norm(&x, &gamma, &beta);
    if !is_native(&x.device()) {
        let centred = x.clone() - x.mean_dim(D - 1);
        let variance = centred.clone().powi_scalar(2).mean_dim(D - 1);
        return centred / variance.add_scalar(epsilon).sqrt() * gamma.unsqueeze()
            + beta.unsqueeze();
    }
    Tensor::from_dispatch(Dispatch::normalise_layer(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        epsilon,
    ))
}

fn check_norm<const D: usize>(x: &Tensor<D>, gamma: &Tensor<1>, beta: &Tensor<1>) {
    let expected = x.dims().last().copied();
    let got = [gamma.dims()[0], beta.dims()[0]];
    assert!(
        got.iter().all(|&len| Some(len) == expected),
        "x {:?} needs a gamma and a beta as long as its last axis, got {got:?}",
        x.dims()
    );
}

/// `dropout(softmax(Q K^t/sqrt(d_head))) V` per head, heads being blocks of columns. The mask of the dropout is a function of its key,
/// the same on all devices.
///
/// # Shapes
///
/// - query, key, value, output: `[batch, tokens, heads*d_head]`
///
/// # Panics
///
/// Panics if the shapes differ or if the width is no multiple of the heads.
pub fn attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: usize,
    dropout: Option<Dropout>,
) -> Tensor<3> {
    let [batch, tokens, width] = query.dims();
    assert!(
        key.dims() == query.dims() && value.dims() == query.dims(),
        "queries, keys and values must have one shape, got {:?}, {:?} and {:?}",
        query.dims(),
        key.dims(),
        value.dims()
    );
    assert!(
        heads > 0 && width.is_multiple_of(heads),
        "a width of {width} cannot be cut into {heads} heads"
    );
    if is_native(&query.device()) {
        return Tensor::from_dispatch(Dispatch::attend(
            query.into_dispatch(),
            key.into_dispatch(),
            value.into_dispatch(),
            AttentionSettings { heads, dropout },
        ));
    }
    let d_head = width / heads;
    let split = |x: Tensor<3>| x.reshape([batch, tokens, heads, d_head]).swap_dims(1, 2);
    let [query, key, value] = [query, key, value].map(split);
    let scores = query.matmul(key.transpose());
    let scores = scores.div_scalar((d_head as f64).sqrt());
    let mut weights = burn::tensor::activation::softmax(scores, 3);
    if let Some(dropout) = dropout {
        let mask = mask_of_weights(&weights, dropout);
        weights = weights * mask;
    }
    let mixed = weights.matmul(value).swap_dims(1, 2);
    mixed.reshape([batch, tokens, width])
}
