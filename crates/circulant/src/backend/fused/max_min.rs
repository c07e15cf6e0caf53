//! `[max(a, b), min(a, b)]` of the halves `a` and `b` of an axis in one pass, and its backward pass, which undoes the swaps.

use burn::backend::TensorMetadata;
use burn::tensor::DType;
use burn_flex::FlexTensor;

use super::fused_flex::{finish, like};
use crate::backend::circulant_flex::{Native, numbers, with_native};

/// Numbers of one half that lie together.
fn half(x: &FlexTensor, axis: usize) -> usize {
    let shape = x.shape().to_vec();
    shape[axis..].iter().product::<usize>() / 2
}

fn sorted_typed<T: Native + PartialOrd>(x: &FlexTensor, half: usize) -> FlexTensor {
    let mut y = like::<T>(x);
    let x = numbers::<T>(x, "x");
    let blocks = x.chunks_exact(2 * half);
    for (x, y) in blocks.zip(y.0.as_mut().chunks_exact_mut(2 * half)) {
        let (a, b) = x.split_at(half);
        let (larger, smaller) = y.split_at_mut(half);
        for (((a, b), larger), smaller) in a.iter().zip(b).zip(larger).zip(smaller) {
            let swap = a < b;
            *larger = if swap { *b } else { *a };
            *smaller = if swap { *a } else { *b };
        }
    }
    finish(y)
}

fn gradient_typed<T: Native + PartialOrd>(
    x: &FlexTensor,
    gradient: &FlexTensor,
    half: usize,
) -> FlexTensor {
    let mut out = like::<T>(x);
    let (x, gradient) = (numbers::<T>(x, "x"), numbers::<T>(gradient, "the gradient"));
    let blocks = x
        .chunks_exact(2 * half)
        .zip(gradient.chunks_exact(2 * half));
    for ((x, gradient), out) in blocks.zip(out.0.as_mut().chunks_exact_mut(2 * half)) {
        let (a, b) = x.split_at(half);
        let (larger, smaller) = gradient.split_at(half);
        let (of_a, of_b) = out.split_at_mut(half);
        let values = a.iter().zip(b).zip(larger).zip(smaller);
        for ((((a, b), larger), smaller), (of_a, of_b)) in values.zip(of_a.iter_mut().zip(of_b)) {
            let swap = a < b;
            *of_a = if swap { *smaller } else { *larger };
            *of_b = if swap { *larger } else { *smaller };
        }
    }
    finish(out)
}

/// Pairs in order, of a tensor that is contiguous.
pub(super) fn sorted(x: &FlexTensor, axis: usize) -> FlexTensor {
    match half(x, axis) {
        0 => x.clone(),
        half => with_native!(x.dtype(), sorted_typed(x, half)),
    }
}

/// The gradient of the input.
pub(super) fn gradient(x: &FlexTensor, gradient: FlexTensor, axis: usize) -> FlexTensor {
    let gradient = gradient.to_contiguous();
    match half(x, axis) {
        0 => gradient,
        half => with_native!(x.dtype(), gradient_typed(x, &gradient, half)),
    }
}
