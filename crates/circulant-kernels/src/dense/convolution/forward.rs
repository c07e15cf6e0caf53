//! A few images of a batch: `y = act(w * x + b)`.
//!
//! A tile is `C` output channels at `S` vectors of columns. All taps run with its `C S` sums in
//! registers; a tap loads `S` vectors and `C` weights for `C S` multiplications.
//!
//! `unsafe`: vectors are read from planes and written to images through pointers. `convolve` checks
//! once per image that the last read and the last write end within their slices.

use super::Convolution;
use super::planes::{PaddedPlanes, Spot};
use crate::elements::activation::Activation;
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::vector::{Kernel, Lanes, MAX_LANES, Present, Vector};

/// Weights in the order in which the tiles read them, and what belongs to each.
#[derive(Debug)]
pub struct Stencil<T> {
    pub(super) channels_in: usize,
    pub(super) channels_out: usize,
    taps: Vec<usize>,
    spots: Vec<Spot>,
    /// For every tile of channels, for every tap, one weight per channel.
    weights: Vec<T>,
}

/// Channels of a tile when `rest` of them are left.
#[inline(always)]
fn tile_channels(rest: usize) -> usize {
    match rest {
        8.. => 8,
        4..8 => 4,
        2..4 => 2,
        _ => 1,
    }
}

impl<T: Real> Stencil<T> {
    pub(super) fn new(sizes: &Convolution, planes: &PaddedPlanes, weight: &[T]) -> Self {
        let count = sizes.channels_in * sizes.kernel[0] * sizes.kernel[1];
        Self::pack(
            sizes.channels_in,
            sizes.channels_out,
            planes,
            |output, tap| weight[output * count + tap],
        )
    }

    /// The stencil of the gradient of `x`: from the outputs to the inputs, turned by half a turn.
    pub(super) fn turned(sizes: &Convolution, planes: &PaddedPlanes, weight: &[T]) -> Self {
        let area = sizes.kernel[0] * sizes.kernel[1];
        Self::pack(
            sizes.channels_out,
            sizes.channels_in,
            planes,
            |input, tap| {
                let (output, tap) = (tap / area, tap % area);
                weight[(output * sizes.channels_in + input) * area + area - 1 - tap]
            },
        )
    }

    fn pack(
        channels_in: usize,
        channels_out: usize,
        planes: &PaddedPlanes,
        weight: impl Fn(usize, usize) -> T,
    ) -> Self {
        let taps = planes.taps(channels_in);
        let mut weights = Vec::with_capacity(channels_out * taps.len());
        let mut first = 0;
        while first < channels_out {
            let end = first + tile_channels(channels_out - first);
            for tap in 0..taps.len() {
                weights.extend((first..end).map(|channel| weight(channel, tap)));
            }
            first = end;
        }
        Self {
            channels_in,
            channels_out,
            taps,
            spots: planes.spots(),
            weights,
        }
    }

    /// `to = act(w * planes + b)` for one image; without `bias`, it is zero.
    #[inline(always)]
    pub(super) fn convolve<V: Vector<Scalar = T>>(
        &self,
        there: Present<V>,
        planes: &PaddedPlanes,
        from: &[T],
        bias: Option<&[T]>,
        activation: Activation,
        to: &mut [T],
    ) {
        let image_len = planes.height * planes.width;
        let (last_tap, last_spot) = (
            self.taps[self.taps.len() - 1],
            self.spots[self.spots.len() - 1],
        );
        let columns = planes.width.min(V::LANES);
        assert!(
            planes.lanes == V::LANES
                && last_spot.from + last_tap + V::LANES <= from.len()
                && last_spot.to + columns <= image_len
                && self.channels_out * image_len == to.len()
                && self.channels_out * self.taps.len() == self.weights.len()
                && bias.is_none_or(|bias| bias.len() == self.channels_out),
            "the stencil fits the image"
        );
        let mut channel = 0;
        while channel < self.channels_out {
            let channels = tile_channels(self.channels_out - channel);
            // SAFETY: taps and spots are increasing, so the last ones, checked above, end within
            // the slices; the weights and images of `channels` channels follow the first.
            unsafe {
                let tile = Tiles {
                    there,
                    taps: &self.taps,
                    spots: &self.spots,
                    weights: self.weights.as_ptr().add(channel * self.taps.len()),
                    bias: bias.map(|bias| bias.as_ptr().add(channel)),
                    from: from.as_ptr(),
                    to: to.as_mut_ptr().add(channel * image_len),
                    image_len,
                    columns,
                    activation,
                };
                match channels {
                    8 => tile.run::<8, 1>(),
                    4 => tile.run::<4, 2>(),
                    2 => tile.run::<2, 4>(),
                    _ => tile.run::<1, 8>(),
                }
            }
            channel += channels;
        }
    }
}

/// All tiles of a few channels of one image.
struct Tiles<'a, T, V> {
    there: Present<V>,
    taps: &'a [usize],
    spots: &'a [Spot],
    weights: *const T,
    bias: Option<*const T>,
    from: *const T,
    to: *mut T,
    image_len: usize,
    /// Values of a vector that are written.
    columns: usize,
    activation: Activation,
}

impl<T: Real, V: Vector<Scalar = T>> Tiles<'_, T, V> {
    /// # Safety
    /// From every spot, every tap must be able to read a vector; `weights` must hold `C` values
    /// per tap, `bias` `C` values; `columns` values must fit at every spot of the `C` images at
    /// `to`, and be no more than a vector has.
    #[inline(always)]
    unsafe fn run<const C: usize, const S: usize>(&self) {
        let last = self.spots.len() - 1;
        for first in (0..=last).step_by(S) {
            // A tile beyond the last spot computes that one again.
            let mut spots = [self.spots[last]; S];
            for (s, spot) in spots.iter_mut().enumerate() {
                *spot = self.spots[last.min(first + s)];
            }
            let mut sums = [[self.there.splat(T::zero()); S]; C];
            if let Some(bias) = self.bias {
                for c in 0..C {
                    // SAFETY: the caller promises `C` values.
                    sums[c] = [self.there.splat(unsafe { *bias.add(c) }); S];
                }
            }
            let mut weights = self.weights;
            for &tap in self.taps {
                // SAFETY: the caller promises the reads and `C` weights per tap.
                unsafe {
                    let mut values = [self.there.splat(T::zero()); S];
                    for s in 0..S {
                        values[s] = V::load(self.from.add(spots[s].from + tap));
                    }
                    for c in 0..C {
                        let weight = self.there.splat(*weights.add(c));
                        for s in 0..S {
                            sums[c][s] = values[s].mul_add(weight, sums[c][s]);
                        }
                    }
                    weights = weights.add(C);
                }
            }
            for c in 0..C {
                for s in 0..S {
                    // SAFETY: the caller promises room at every spot of `C` images.
                    unsafe {
                        let to = self.to.add(c * self.image_len + spots[s].to);
                        self.finish(sums[c][s], to);
                    }
                }
            }
        }
    }

    /// # Safety
    /// `columns` values must fit at `to`.
    #[inline(always)]
    unsafe fn finish(&self, sum: V, to: *mut T) {
        let y = match self.activation {
            Activation::Identity => sum,
            Activation::Tanh => T::tanh_lanes(sum),
        };
        if self.columns == V::LANES {
            // SAFETY: `columns` are all lanes.
            unsafe { y.store(to) };
        } else {
            let mut buffer = Lanes::<T, MAX_LANES>::zero();
            // SAFETY: the buffer holds the widest vector, and `columns` are fewer.
            unsafe {
                y.store(buffer.0.as_mut_ptr());
                to.copy_from_nonoverlapping(buffer.0.as_ptr(), self.columns);
            }
        }
    }
}

/// Whole images.
pub struct ForwardChunk<'a, T> {
    pub(super) planes: &'a PaddedPlanes,
    pub(super) stencil: &'a Stencil<T>,
    pub(super) bias: &'a [T],
    pub(super) activation: Activation,
    pub(super) x: &'a [T],
    pub(super) y: &'a mut [T],
}

impl<T: Real> Kernel<T> for ForwardChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let Self {
            planes, stencil, ..
        } = self;
        let image_len = planes.height * planes.width;
        let mut padded = Scratch::zeroed(planes.len(stencil.channels_in));
        let inputs = self.x.chunks_exact(stencil.channels_in * image_len);
        let outputs = self.y.chunks_exact_mut(stencil.channels_out * image_len);
        for (x, y) in inputs.zip(outputs) {
            planes.fill(x, &mut padded);
            stencil.convolve(there, planes, &padded, Some(self.bias), self.activation, y);
        }
    }
}
