//! The fused operator for one channel, signals and images alike: a block of rows goes transform ->
//! multiply -> inverse while it sits in cache, for one filter or several that share the transform.
//!
//! With `Z` the transform of a packed pair of rows, `W` of its output gradient and `h` the filter:
//! output `IFFT(h Z)`, input gradient `IFFT(conj(h) W)`, and the gradient of the bins comes from
//! `A_f = sum over pairs of conj(Z_f) W_f` at all frequencies `f` of the full plane.
//!
//! `unsafe`: see `blocks.rs` and `lane_fft/`, whose pointers meet here.

use std::ptr::null_mut;

use crate::bins::Bin;
use crate::blocks::{Batch, Bias, BlockBias, Shared};
use crate::butterfly::Complexes;
use crate::lane_fft::{ForwardBlock, InverseBlock, LaneBias, LanePlan, Product};
use crate::real::Real;
use crate::scratch::Scratch;
use crate::simd::{Isa, Kernel, Vector};

/// From this many bytes of a block on, the product with the filter replaces the gradient in place:
/// a second block would push the first out of the second-level cache (512 x 2048: 2.72 ms with two
/// blocks, 2.34 ms in place; 512 x 784: 0.72 ms with two, 0.79 ms in place).
const IN_PLACE_FROM: usize = 100_000;

/// One channel: the transform and the bins in its order.
pub(crate) struct Single<'a, T> {
    pub(crate) isa: Isa,
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) bins: &'a [Bin],
    pub(crate) coordinates: usize,
}

/// What a filter's backward pass reads: output gradient, and output when it went through `tanh`.
#[derive(Clone, Copy)]
pub(crate) struct OutputGradient<'a, T> {
    pub(crate) grad: &'a [T],
    pub(crate) tanh: Option<&'a [T]>,
}

/// Sums over the batch that the backward pass collects.
pub(crate) struct Sums<T> {
    pub(crate) coordinates: Vec<T>,
    pub(crate) bias: Vec<T>,
}

impl<T: Real> Single<'_, T> {
    /// `h/n` at every position of a transformed block, for all filters. The two unitary
    /// transforms of the layer have the factor `1/n` together, which is applied here once.
    fn multipliers(&self, coordinates: &[T]) -> Scratch<T> {
        let scale = T::one() / T::of(self.plan.len() as f64);
        let filters = coordinates.len() / self.coordinates.max(1);
        let mut out = Scratch::take(filters * 2 * self.bins.len());
        for (filter, out) in coordinates
            .chunks_exact(self.coordinates)
            .zip(out.chunks_exact_mut(2 * self.bins.len()))
        {
            for (bin, h) in self.bins.iter().zip(out.chunks_exact_mut(2)) {
                let value = bin.value(|coordinate| filter[coordinate]);
                (h[0], h[1]) = (value.re * scale, value.im * scale);
            }
        }
        out
    }

    /// `y[filter] = act(filter * x + bias[filter])`; the spectrum of `x` goes to `keep` when given.
    pub(crate) fn forward<'b>(
        &self,
        batch: &Batch,
        x: Input<'_, T>,
        coordinates: &[T],
        bias: impl Fn(usize) -> Bias<'b, T> + Sync,
        tanh: bool,
        y: &mut [T],
    ) {
        let multipliers = self.multipliers(coordinates);
        let filters = multipliers.len() / (2 * self.bins.len());
        let output = batch.batch * batch.len;
        let entries = 2 * batch.lanes * batch.slots;
        let y = Shared::writer(y);
        batch.map_tasks(|blocks| {
            let mut local = Scratch::<T>::take(entries);
            let mut product = Scratch::<T>::take(entries);
            for block in blocks {
                let at = block * batch.block_stride();
                let (spectrum, rows) = match x {
                    Input::Kept(kept) => (Shared::reader(kept).at(at), None),
                    Input::Keep(rows, keep) => (keep.at(at), Some(rows)),
                    Input::Rows(rows) => (local.as_mut_ptr(), Some(rows)),
                };
                if let Some(rows) = rows {
                    T::forward_block(
                        self.isa,
                        ForwardBlock {
                            plan: self.plan,
                            rows: &batch.pointers(Shared::reader(rows), block, self.plan.zeros()),
                            tanh: None,
                            block: spectrum,
                        },
                    );
                }
                for filter in 0..filters {
                    T::inverse_block(
                        self.isa,
                        InverseBlock {
                            plan: self.plan,
                            product: Some(Product {
                                spectrum,
                                h: multipliers[filter * 2 * batch.slots..].as_ptr(),
                            }),
                            block: product.as_mut_ptr(),
                            rows: &batch.pointers(y.offset(filter * output), block, null_mut()),
                            bias: BlockBias::new(bias(filter), batch, block).lane_bias(),
                            tanh,
                        },
                    );
                }
            }
        });
    }

    /// Gradients of the input (summed over the filters), of every filter and of its scalar bias.
    pub(crate) fn backward(
        &self,
        batch: &Batch,
        kept: &[T],
        coordinates: &[T],
        outputs: &[OutputGradient<'_, T>],
        grad_x: Option<&mut [T]>,
        want_coordinates: bool,
    ) -> Sums<T> {
        let multipliers = self.multipliers(coordinates);
        let kept = Shared::reader(kept);
        let grad_x = grad_x.map(Shared::writer);
        let entries = 2 * batch.lanes * batch.slots;
        let parts = batch.map_tasks(|blocks| {
            let mut gradient = Scratch::<T>::take(entries);
            let apart = outputs.len() > 1 || entries * size_of::<T>() < IN_PLACE_FROM;
            let mut sum = Scratch::<T>::take(if apart { entries } else { 0 });
            let mut sums = Scratch::<T>::zeroed(if want_coordinates {
                entries * outputs.len()
            } else {
                0
            });
            let mut bias = vec![T::zero(); outputs.len()];
            for block in blocks {
                for (filter, output) in outputs.iter().enumerate() {
                    T::forward_block(
                        self.isa,
                        ForwardBlock {
                            plan: self.plan,
                            rows: &batch.pointers(
                                Shared::reader(output.grad),
                                block,
                                self.plan.zeros(),
                            ),
                            tanh: output
                                .tanh
                                .map(|y| {
                                    batch.pointers(Shared::reader(y), block, self.plan.zeros())
                                })
                                .as_ref(),
                            block: gradient.as_mut_ptr(),
                        },
                    );
                    // Position 0 is frequency 0: the sum of the gradient over each row.
                    bias[filter] = gradient[..2 * batch.lanes]
                        .iter()
                        .fold(bias[filter], |sum, &g| sum + g);
                    T::adjoint(
                        self.isa,
                        Adjoint {
                            slots: batch.slots,
                            x: kept.at(block * batch.block_stride()),
                            gradient: gradient.as_ptr(),
                            h: multipliers[filter * 2 * batch.slots..].as_ptr(),
                            sums: want_coordinates.then(|| sums[filter * entries..].as_mut_ptr()),
                            out: grad_x.map(|_| {
                                if apart {
                                    sum.as_mut_ptr()
                                } else {
                                    gradient.as_mut_ptr()
                                }
                            }),
                            add: filter > 0,
                        },
                    );
                }
                if let Some(grad_x) = grad_x {
                    T::inverse_block(
                        self.isa,
                        InverseBlock {
                            plan: self.plan,
                            product: None,
                            block: if apart {
                                sum.as_mut_ptr()
                            } else {
                                gradient.as_mut_ptr()
                            },
                            rows: &batch.pointers(grad_x, block, null_mut()),
                            bias: LaneBias::None,
                            tanh: false,
                        },
                    );
                }
            }
            let over_lanes: Vec<T> = sums
                .chunks_exact(batch.lanes)
                .map(|lanes| lanes.iter().fold(T::zero(), |sum, &x| sum + x))
                .collect();
            (over_lanes, bias)
        });
        self.collect(parts, outputs.len(), want_coordinates)
    }

    /// Adds the chunks in order and folds positions into coordinates: the adjoint of T with the
    /// multiplicities of SPEC section 9 (a complex bin meets its conjugate partner's sum too).
    fn collect(
        &self,
        parts: Vec<(Vec<T>, Vec<T>)>,
        filters: usize,
        want_coordinates: bool,
    ) -> Sums<T> {
        let mut parts = parts.into_iter();
        let (mut sums, mut bias) = parts.next().expect("a batch has at least one block");
        for (more, more_bias) in parts {
            sums.iter_mut()
                .zip(more)
                .for_each(|(sum, x)| *sum = *sum + x);
            bias.iter_mut()
                .zip(more_bias)
                .for_each(|(sum, x)| *sum = *sum + x);
        }
        let mut coordinates = Vec::new();
        if want_coordinates {
            let scale = T::one() / T::of(self.plan.len() as f64);
            coordinates = vec![T::zero(); filters * self.coordinates];
            for (out, sums) in coordinates
                .chunks_exact_mut(self.coordinates)
                .zip(sums.chunks_exact(2 * self.bins.len()))
            {
                for (&bin, a) in self.bins.iter().zip(sums.chunks_exact(2)) {
                    match bin {
                        Bin::Real { coordinate: c } => out[c] = out[c] + a[0] * scale,
                        Bin::Complex { coordinate: c } => {
                            out[c] = out[c] + a[0] * scale;
                            out[c + 1] = out[c + 1] + a[1] * scale;
                        }
                        Bin::Conjugate { coordinate: c } => {
                            out[c] = out[c] + a[0] * scale;
                            out[c + 1] = out[c + 1] - a[1] * scale;
                        }
                        Bin::Masked => {}
                    }
                }
            }
        }
        Sums { coordinates, bias }
    }
}

/// Where the forward pass takes the spectrum of its input from.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a, T> {
    /// Transform these rows and forget.
    Rows(&'a [T]),
    /// Transform these rows and keep their spectrum there.
    Keep(&'a [T], Shared<T>),
    /// A spectrum that was kept before.
    Kept(&'a [T]),
}

/// `sums += conj(x)*gradient` and `out (+)= conj(h)*gradient` at every position.
pub struct Adjoint<T> {
    slots: usize,
    x: *const T,
    gradient: *const T,
    h: *const T,
    sums: Option<*mut T>,
    out: Option<*mut T>,
    add: bool,
}

impl<T: Real> Kernel<T> for Adjoint<T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        for position in 0..self.slots {
            let at = position * 2 * V::LANES;
            // SAFETY: every pointer but `h` holds `slots` entries, `h` `slots` complex numbers.
            unsafe {
                let w: Complexes<V> = Complexes::load(self.gradient.add(at));
                if let Some(sums) = self.sums {
                    let z: Complexes<V> = Complexes::load(self.x.add(at));
                    let sum: Complexes<V> = Complexes::load(sums.add(at));
                    Complexes {
                        re: z.im.mul_add(w.im, z.re.mul_add(w.re, sum.re)),
                        im: z.im.neg_mul_add(w.re, z.re.mul_add(w.im, sum.im)),
                    }
                    .store(sums.add(at));
                }
                if let Some(out) = self.out {
                    let (re, im) = (*self.h.add(2 * position), *self.h.add(2 * position + 1));
                    let mut product = w.mul(Complexes::splat(re, -im));
                    if self.add {
                        product = product.add(Complexes::load(out.add(at)));
                    }
                    product.store(out.add(at));
                }
            }
        }
    }
}
