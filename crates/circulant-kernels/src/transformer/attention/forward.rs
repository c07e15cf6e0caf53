//! The output of one head.
//!
//! `unsafe`: see the module above.

use circulant_core::Scalar;

use super::blocks::{HeadBlock, LANES, block_len, padded, random_len, random_numbers};
use super::{Attention, Head, HeadColumns, QueryKeyValue};
use crate::dense::small_product::{Strided, small_product};
use crate::real::Real;
use crate::transformer::dropout::Dropout;
use crate::vector::elementary::Elementary;
use crate::vector::lane_sums::{largest, sum};
use crate::vector::{Kernel, Present, Promised, Vector};

/// Values of scratch memory of a job.
pub(super) fn scratch_len<T>(sizes: &Attention) -> usize {
    let (tokens, dim) = (sizes.tokens, sizes.head_dim);
    block_len(dim, tokens)
        + block_len(tokens, tokens)
        + 2 * block_len(tokens, dim)
        + padded(tokens)
        + random_len::<T>(tokens)
}

/// One head of one batch entry.
pub struct HeadForward<'a, T> {
    pub(super) head: Head,
    pub(super) inputs: QueryKeyValue<&'a [T]>,
    pub(super) dropout: Option<Dropout>,
    pub(super) output: HeadColumns<T>,
    pub(super) log_sums: &'a mut [T],
    pub(super) scratch: &'a mut [T],
}

impl<T: Real> Kernel<T> for Promised<HeadForward<'_, T>> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let job = self.job();
        let Head {
            tokens, dim, width, ..
        } = job.head;
        let mut scratch = job.scratch;
        let mut keys = HeadBlock::cut::<V>(&mut scratch, dim, tokens);
        let mut values = HeadBlock::cut::<V>(&mut scratch, tokens, dim);
        let mut weights = HeadBlock::cut::<V>(&mut scratch, tokens, tokens);
        let mut output = HeadBlock::cut::<V>(&mut scratch, tokens, dim);
        let factors = HeadBlock::cut::<V>(&mut scratch, 1, tokens);
        keys.transpose_head(there, job.head, job.inputs.key);
        values.copy_head(job.head, job.inputs.value, T::one());
        job.head.prefetch_next(job.inputs.key);
        let queries = &job.inputs.query[job.head.first..][..(tokens - 1) * width + dim];
        let queries = Strided {
            start: queries.as_ptr(),
            row: width,
            column: 1,
        };
        // SAFETY: the blocks are of these sizes and apart from each other; the queries are those of
        // the head.
        unsafe {
            small_product::<V>(
                (tokens, dim, weights.row),
                queries,
                keys.right(),
                weights.out(),
            );
        }
        job.head.prefetch_next(job.inputs.value);
        softmax::<V>(job.head, &mut weights, job.log_sums, factors.values);
        if let Some(dropout) = job.dropout {
            weights.drop_numbers(dropout, random_numbers(dropout, job.head, scratch));
            let scale = T::of(dropout.scale());
            for factor in factors.values.iter_mut() {
                *factor = *factor * scale;
            }
        }
        job.head.prefetch_next(job.inputs.query);
        // SAFETY: as above; this job alone writes these columns of the output.
        unsafe {
            small_product::<V>(
                (tokens, tokens, output.row),
                weights.left(),
                values.right(),
                output.out(),
            );
            output.write_head(job.head, job.output, &factors.values[..tokens]);
        }
    }
}

/// Products to exponentials that are not yet divided by their sums; `factors` are the inverses of the
/// sums: the output has fewer columns than there are weights.
#[inline(always)]
fn softmax<V: Vector>(
    head: Head,
    weights: &mut HeadBlock<'_, V::Scalar>,
    log_sums: &mut [V::Scalar],
    factors: &mut [V::Scalar],
) {
    let scale = head.scale::<V::Scalar>();
    for (i, log_sum) in log_sums.iter_mut().enumerate() {
        let shift = largest::<_, LANES>(weights.row_of(i)) * scale;
        *log_sum = shift;
        weights.shift_row::<V>(i, scale, shift);
    }
    weights.exponentials::<V>();
    for (i, factor) in factors[..log_sums.len()].iter_mut().enumerate() {
        *factor = sum::<_, LANES>(weights.row_of(i));
    }
    for (log_sum, factor) in log_sums.iter_mut().zip(factors) {
        *log_sum = *log_sum + factor.logarithm();
        *factor = V::Scalar::of(1.0) / *factor;
    }
}
