//! Steps of optimisers.

pub mod adam;
pub mod adan;

use crate::error::{KernelError, expect_len};
use crate::runtime::chunks::each_chunk;

/// A state of `N` slices, before a step or after it.
type Before<'a, T, const N: usize> = [&'a [T]; N];
type After<'a, T, const N: usize> = [&'a mut [T]; N];

/// `step(before, gradient, after)` for every chunk of so many values of slices that must be of one length.
fn in_chunks<T: Send + Sync, const N: usize>(
    before: Before<'_, T, N>,
    gradient: &[T],
    after: After<'_, T, N>,
    time: usize,
    chunk: usize,
    step: impl Fn(Before<'_, T, N>, &[T], After<'_, T, N>) + Sync,
) -> Result<(), KernelError> {
    let expected = gradient.len();
    for (before, after) in before.iter().zip(&after) {
        expect_len("the state before a step", before.len(), expected)?;
        expect_len("the state after a step", after.len(), expected)?;
    }
    if time == 0 {
        return Err(KernelError::ZeroSize {
            what: "the number of a step",
        });
    }
    let after = after.map(|slice| (slice, chunk));
    each_chunk(expected, [(gradient, chunk)], after, |index, [gradient], after| {
        let own = index * chunk..index * chunk + gradient.len();
        step(before.map(|slice| &slice[own.clone()]), gradient, after);
    });
    Ok(())
}
