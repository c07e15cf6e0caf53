//! The gradients of one head.
//!
//! `unsafe`: see the module above.

use super::blocks::{HeadBlock, LANES, block_len, random_len, random_numbers};
use super::{Attention, Head, HeadColumns, QueryKeyValue};
use crate::dense::small_product::small_product;
use crate::real::Real;
use crate::transformer::dropout::Dropout;
use crate::vector::lane_sums::dot;
use crate::vector::{Kernel, Present, Promised, Vector};

/// Values of scratch memory of a job.
pub(super) fn scratch_len<T>(sizes: &Attention) -> usize {
    let (tokens, dim) = (sizes.tokens, sizes.head_dim);
    block_len(dim, tokens)
        + 2 * block_len(tokens, tokens)
        + 4 * block_len(tokens, dim)
        + random_len::<T>(tokens)
}

/// One head of one batch entry.
pub struct HeadBackward<'a, T> {
    pub(super) head: Head,
    pub(super) inputs: QueryKeyValue<&'a [T]>,
    pub(super) dropout: Option<Dropout>,
    pub(super) log_sums: &'a [T],
    pub(super) grad: &'a [T],
    pub(super) gradients: QueryKeyValue<HeadColumns<T>>,
    pub(super) scratch: &'a mut [T],
}

impl<T: Real> Kernel<T> for Promised<HeadBackward<'_, T>> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let job = self.job();
        let head = job.head;
        let Head { tokens, dim, .. } = head;
        let mut scratch = job.scratch;
        // K^T, then V^T: one after the other.
        let mut transposed = HeadBlock::cut::<V>(&mut scratch, dim, tokens);
        let mut weights = HeadBlock::cut::<V>(&mut scratch, tokens, tokens);
        let mut of_weights = HeadBlock::cut::<V>(&mut scratch, tokens, tokens);
        let mut queries = HeadBlock::cut::<V>(&mut scratch, tokens, dim);
        let mut keys = HeadBlock::cut::<V>(&mut scratch, tokens, dim);
        let mut grad = HeadBlock::cut::<V>(&mut scratch, tokens, dim);
        let mut out = HeadBlock::cut::<V>(&mut scratch, tokens, dim);
        let scale = head.scale::<T>();
        queries.copy_head(head, job.inputs.query, scale);
        keys.copy_head(head, job.inputs.key, T::one());
        grad.copy_head(head, job.grad, T::one());

        let square = (tokens, dim, weights.row);
        head.prefetch_next(job.inputs.query);
        transposed.transpose_head(there, head, job.inputs.key);
        // SAFETY: here and below the blocks are of these sizes and apart from each other.
        unsafe {
            small_product::<V>(square, queries.left(), transposed.right(), weights.out());
        }
        for (i, &log_sum) in job.log_sums.iter().enumerate() {
            weights.shift_row::<V>(i, T::one(), log_sum);
        }
        weights.exponentials::<V>();

        head.prefetch_next(job.grad);
        transposed.transpose_head(there, head, job.inputs.value);
        // SAFETY: as above.
        unsafe {
            small_product::<V>(square, grad.left(), transposed.right(), of_weights.out());
        }
        // The factor of the dropout is the same for all gradients: it waits for the end.
        let mut factor = T::one();
        if let Some(dropout) = job.dropout {
            factor = T::of(dropout.scale());
            let numbers = random_numbers(dropout, head, scratch);
            through_dropped_softmax::<V>(&mut weights, &mut of_weights, dropout, numbers);
        } else {
            through_softmax::<V>(&weights, &mut of_weights);
        }

        head.prefetch_next(job.inputs.key);
        head.prefetch_next(job.inputs.value);
        let tall = (tokens, tokens, out.row);
        // SAFETY: as above; this job alone writes these columns of the gradients.
        unsafe {
            let of = job.gradients;
            small_product::<V>(tall, weights.transposed_left(), grad.right(), out.out());
            out.write_head(head, of.value, &[factor]);
            small_product::<V>(tall, of_weights.left(), keys.right(), out.out());
            out.write_head(head, of.query, &[factor * scale]);
            small_product::<V>(
                tall,
                of_weights.transposed_left(),
                queries.right(),
                out.out(),
            );
            out.write_head(head, of.key, &[factor]);
        }
    }
}

/// The gradients of the weights `P` to those of the products: `dS = P (dP - sum(P dP))` by rows.
#[inline(always)]
fn through_softmax<V: Vector>(
    weights: &HeadBlock<'_, V::Scalar>,
    of_weights: &mut HeadBlock<'_, V::Scalar>,
) {
    for i in 0..weights.rows {
        let shift = dot::<V, LANES>(weights.row_of(i), of_weights.row_of(i));
        let own = i * weights.row..(i + 1) * weights.row;
        let row = of_weights.values[own.clone()].iter_mut();
        for (out, &weight) in row.zip(&weights.values[own]) {
            *out = weight * (*out - shift);
        }
    }
}

/// The same behind a dropout: `dP` is masked first, and `P` afterwards, for the gradient of the values.
#[inline(always)]
fn through_dropped_softmax<V: Vector>(
    weights: &mut HeadBlock<'_, V::Scalar>,
    of_weights: &mut HeadBlock<'_, V::Scalar>,
    dropout: Dropout,
    numbers: &[u16],
) {
    let (columns, threshold) = (weights.columns, dropout.threshold());
    let zero = num_traits::Zero::zero();
    let rows = weights.values.chunks_exact_mut(weights.row);
    let rows = rows.zip(of_weights.values.chunks_exact_mut(of_weights.row));
    for ((weights, out), numbers) in rows.zip(numbers.chunks_exact(columns)) {
        let (weights, out) = (&mut weights[..columns], &mut out[..columns]);
        for (out, &number) in out.iter_mut().zip(numbers) {
            *out = if number < threshold { zero } else { *out };
        }
        let shift = dot::<V, LANES>(weights, out);
        for ((weight, out), &number) in weights.iter_mut().zip(out).zip(numbers) {
            *out = *weight * (*out - shift);
            *weight = if number < threshold { zero } else { *weight };
        }
    }
}
