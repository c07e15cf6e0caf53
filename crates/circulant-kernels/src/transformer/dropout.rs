//! Dropout, `y_i = x_i/(1 - rate)` or zero with probability `rate`, with a mask that is a function of
//! a key and of `i`: nothing is stored, and the backward pass is the same map on the gradient.
//!
//! Element `i` is dropped when its 16-bit number is below `65536 rate`, so that the rate is a multiple
//! of `2^-16`; the factor belongs to the rounded rate, and the mean is exact. 64 blocks of the
//! Philox generator make a group of 512 values: word `w` of block `j` gives number `64 w + j` by its
//! low half and `256 + 64 w + j` by its high one, an order that needs no shuffling.

use crate::error::{KernelError, expect_len};
use crate::random::philox::{NoiseKey, words};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, each_chunk};
use crate::vector::{Kernel, Present, Vector};

/// Blocks of a group.
pub const BLOCKS: usize = 64;
/// Values of a group: where they begin, in elements, is a multiple of it. The weights of every head of attention begin a group.
pub const GROUP: usize = 8 * BLOCKS;
/// No stream of normal values gets this far, and integers begin at `2^63`: one key serves for all.
pub const FIRST_BLOCK: u64 = 1 << 62;
/// Values of 16 bits.
pub const STEPS: f64 = 65536.0;
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
    each_chunk(x.len(), [(x, CHUNK)], [(y, CHUNK)], |chunk, [x], [y]| {
        T::dropout_chunk(best_isa(), DropoutChunk::new(x, dropout, chunk * CHUNK, y));
    });
    Ok(())
}

/// Where a chunk begins: in group `first`, behind `skip` of its values.
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
    x: &'a [T],
    y: &'a mut [T],
    dropout: Dropout,
    place: Place,
}

impl<'a, T> DropoutChunk<'a, T> {
    /// The elements from `first` on.
    pub(crate) fn new(x: &'a [T], dropout: Dropout, first: usize, y: &'a mut [T]) -> Self {
        Self {
            x,
            y,
            dropout,
            place: Place::of(first),
        }
    }
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
