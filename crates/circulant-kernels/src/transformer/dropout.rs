//! Dropout, `y_i = x_i/(1 - rate)` or zero with probability `rate`, with a mask that is a function of
//! a key and of `i`: nothing is stored, and the backward pass is the same map on the gradient.
//!
//! Element `i` is dropped when its 16-bit number is below `65536 rate`, so that the rate is a multiple
//! of `2^-16`; the factor belongs to the rounded rate, and the mean is exact. 64 blocks of the
//! Philox generator make a group of 512 numbers: word `w` of block `j` gives number `64 w + j` by its
//! low half and `256 + 64 w + j` by its high one, an order that needs no shuffling.

use rayon::prelude::*;

use crate::error::{KernelError, expect_len};
use crate::random::philox::{NoiseKey, words};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, fewest_chunks};
use crate::vector::{Kernel, Present, Vector};

/// Blocks of a group.
const BLOCKS: usize = 64;
/// Numbers of a group.
pub(crate) const GROUP: usize = 8 * BLOCKS;
/// No stream of normal numbers gets this far, and integers begin at `2^63`: one key serves for all.
const FIRST_BLOCK: u64 = 1 << 62;
/// Numbers of 16 bits.
const STEPS: f64 = 65536.0;
// Every chunk begins with a group.
const _: () = assert!(CHUNK.is_multiple_of(GROUP));

/// A rate and the mask's key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    key: NoiseKey,
    threshold: u16,
}

impl Dropout {
    /// Drops with a probability of `rate`, in `[0, 1)`, rounded to a multiple of `2^-16`.
    ///
    /// Every call of a training step needs a stream of its own.
    pub fn new(rate: f64, key: NoiseKey) -> Result<Self, KernelError> {
        if !(0.0..1.0).contains(&rate) {
            return Err(KernelError::Rate { got: rate });
        }
        let threshold = (rate * STEPS).round().min(STEPS - 1.0) as u16;
        Ok(Self { key, threshold })
    }

    /// The probability of the mask, after rounding.
    pub fn rate(&self) -> f64 {
        f64::from(self.threshold) / STEPS
    }

    /// `1/(1 - rate)`, what is kept is multiplied with.
    pub fn scale(&self) -> f64 {
        1.0 / (1.0 - self.rate())
    }

    pub(crate) fn threshold(&self) -> u16 {
        self.threshold
    }

    /// The numbers of the groups from `first` on; `out` holds whole groups.
    #[inline(always)]
    pub(crate) fn numbers(&self, first: u64, out: &mut [u16]) {
        let (groups, _) = out.as_chunks_mut::<GROUP>();
        let mut scratch = [[0; BLOCKS]; 4];
        for (i, group) in groups.iter_mut().enumerate() {
            let block = FIRST_BLOCK + (first + i as u64) * BLOCKS as u64;
            numbers_of_group(self.key, block, &mut scratch, group);
        }
    }
}

#[inline(always)]
fn numbers_of_group(
    key: NoiseKey,
    first_block: u64,
    scratch: &mut [[u32; BLOCKS]; 4],
    out: &mut [u16; GROUP],
) {
    // Two independent blocks at a time: one alone would wait for its own products.
    for i in 0..BLOCKS / 2 {
        for j in [i, i + BLOCKS / 2] {
            let words = words(key, first_block + j as u64);
            scratch[0][j] = words[0] as u32;
            scratch[1][j] = words[1] as u32;
            scratch[2][j] = words[2] as u32;
            scratch[3][j] = words[3] as u32;
        }
    }
    let (low, high) = out.split_at_mut(GROUP / 2);
    let words = scratch.as_flattened();
    for ((low, high), &word) in low.iter_mut().zip(high).zip(words) {
        *low = word as u16;
        *high = (word >> 16) as u16;
    }
}

/// `y = dropout(x)`; with the gradient of `y` as `x` it is the backward pass.
///
/// ```
/// use circulant_kernels::{Dropout, NoiseKey, dropout_into};
/// let dropout = Dropout::new(0.5, NoiseKey { seed: 1, stream: 0 })?;
/// let mut y = [0.0f32; 9];
/// dropout_into(&[1.0; 9], dropout, &mut y)?;
/// assert!(y.iter().all(|y| *y == 0.0 || *y == 2.0));
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn dropout_into<T: Real>(x: &[T], dropout: Dropout, y: &mut [T]) -> Result<(), KernelError> {
    expect_len("y", y.len(), x.len())?;
    x.par_chunks(CHUNK)
        .zip(y.par_chunks_mut(CHUNK))
        .enumerate()
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|(chunk, (x, y))| {
            let first = (chunk * (CHUNK / GROUP)) as u64;
            let place = Place { first, skip: 0 };
            let job = DropoutChunk {
                x,
                y,
                dropout,
                place,
            };
            T::dropout_chunk(best_isa(), job);
        });
    Ok(())
}

/// Where a chunk begins: in group `first`, behind `skip` of its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    first: u64,
    skip: usize,
}

impl Place {
    /// The place of element `index`.
    pub(crate) fn of(index: usize) -> Self {
        Self {
            first: (index / GROUP) as u64,
            skip: index % GROUP,
        }
    }
}

impl Dropout {
    /// Calls `work(range, numbers)` with the numbers of every group that a chunk of `len` elements touches.
    #[inline(always)]
    pub(crate) fn for_groups(
        &self,
        place: Place,
        len: usize,
        mut work: impl FnMut(std::ops::Range<usize>, &[u16]),
    ) {
        let mut numbers = [0; GROUP];
        let (mut group, mut skip, mut at) = (place.first, place.skip, 0);
        while at < len {
            self.numbers(group, &mut numbers);
            let width = (GROUP - skip).min(len - at);
            work(at..at + width, &numbers[skip..skip + width]);
            (group, skip, at) = (group + 1, 0, at + width);
        }
    }
}

/// A chunk that begins anywhere.
pub struct DropoutChunk<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) y: &'a mut [T],
    pub(crate) dropout: Dropout,
    pub(crate) place: Place,
}

impl<T: Real> Kernel<T> for DropoutChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let scale = T::of(self.dropout.scale());
        let threshold = self.dropout.threshold;
        let (x, y) = (self.x, self.y);
        self.dropout.for_groups(
            self.place,
            x.len(),
            #[inline(always)]
            |own, numbers| {
                let pairs = y[own.clone()].iter_mut().zip(&x[own]);
                for ((y, &x), &number) in pairs.zip(numbers) {
                    *y = if number < threshold {
                        T::zero()
                    } else {
                        x * scale
                    };
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal::standard_normal;

    const KEY: NoiseKey = NoiseKey { seed: 9, stream: 2 };
    /// Standard errors that a statistic may be off; the key is fixed.
    const ERRORS: f64 = 4.5;

    fn kept(rate: f64, key: NoiseKey, len: usize) -> Vec<bool> {
        let dropout = Dropout::new(rate, key).unwrap();
        let mut y = vec![0.0f32; len];
        dropout_into(&vec![1.0; len], dropout, &mut y).unwrap();
        assert!(y.iter().all(|y| *y == 0.0 || *y == dropout.scale() as f32));
        y.into_iter().map(|y| y != 0.0).collect()
    }

    #[test]
    fn the_share_and_the_neighbours_are_those_of_chance() {
        let n = 1_000_000;
        for rate in [0.001, 0.1, 0.5, 0.9] {
            let kept = kept(rate, KEY, n);
            let deviation = (rate * (1.0 - rate) * n as f64).sqrt();
            let dropped = kept.iter().filter(|kept| !**kept).count() as f64;
            assert!((dropped - rate * n as f64).abs() < ERRORS * deviation);
            for lag in [1, 64, BLOCKS * 4, GROUP] {
                let both = kept.iter().zip(&kept[lag..]).filter(|(a, b)| !**a && !**b);
                let (share, count) = (rate * rate, (n - lag) as f64);
                // Pairs share members: their count varies more than that of independent ones.
                let deviation = (share * (1.0 - share) * count * (1.0 + 4.0 * rate)).sqrt();
                let error = (both.count() as f64 - share * count) / deviation;
                assert!(error.abs() < ERRORS, "rate {rate}, lag {lag}: {error}");
            }
        }
    }

    /// Frozen, so that a change of the mapping from words to elements is noticed.
    #[test]
    fn the_mask_is_that_of_the_definition() {
        let kept = kept(0.3, KEY, 3 * GROUP);
        for (i, kept) in kept.into_iter().enumerate() {
            let (group, place) = ((i / GROUP) as u64, i % GROUP);
            let block = FIRST_BLOCK + 64 * group + place as u64 % 64;
            let word = words(KEY, block)[place % 256 / 64] as u32;
            let number = if place < 256 {
                word & 0xffff
            } else {
                word >> 16
            };
            assert_eq!(
                kept,
                f64::from(number) >= (0.3 * STEPS).round(),
                "element {i}"
            );
        }
    }

    #[test]
    fn an_element_does_not_depend_on_the_length_or_the_threads() {
        let long = kept(0.2, KEY, 40_000);
        for len in [0, 1, 7, GROUP, CHUNK + 3, 20_011] {
            assert_eq!(kept(0.2, KEY, len), long[..len]);
        }
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            assert_eq!(pool.install(|| kept(0.2, KEY, 40_000)), long);
        }
        let other = NoiseKey { stream: 3, ..KEY };
        assert_ne!(kept(0.2, other, 40_000), long);
    }

    #[test]
    fn f64_has_the_same_mask_and_backward_is_the_adjoint() {
        let dropout = Dropout::new(0.25, KEY).unwrap();
        let (mut x, mut g) = (vec![0.0; 5001], vec![0.0; 5001]);
        standard_normal(KEY, &mut x);
        standard_normal(NoiseKey { stream: 5, ..KEY }, &mut g);
        let (mut y, mut dx) = (x.clone(), g.clone());
        dropout_into(&x, dropout, &mut y).unwrap();
        dropout_into(&g, dropout, &mut dx).unwrap();
        let kept = kept(0.25, KEY, 5001);
        assert!(y.iter().zip(kept).all(|(y, kept)| (*y != 0.0) == kept));
        let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!((inner(&y, &g) - inner(&x, &dx)).abs() < 1e-9);
    }

    #[test]
    fn rates() {
        assert!(kept(0.0, KEY, 100_000).into_iter().all(|kept| kept));
        assert_eq!(Dropout::new(0.1, KEY).unwrap().rate(), 6554.0 / STEPS);
        assert!(Dropout::new(0.999_999_9, KEY).unwrap().scale().is_finite());
        for rate in [-0.1, 1.0, f64::NAN] {
            assert!(Dropout::new(rate, KEY).is_err());
        }
        let dropout = Dropout::new(0.5, KEY).unwrap();
        assert!(dropout_into(&[0.0f32; 3], dropout, &mut [0.0; 2]).is_err());
    }
}
