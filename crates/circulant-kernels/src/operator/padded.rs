//! Lengths with a large prime factor, in lanes: a circulant matrix of length `d` is the corner of one
//! of any length `m >= 2d - 1`. With `c` the filter, `y_i = sum_j c[(i - j) mod d] x_j` reads the
//! differences `1 - d .. d - 1`, so `x` with zeros behind it, times the longer filter
//! `(c_0, .., c_{d-1}, 0, .., 0, c_1, .., c_{d-1})`, begins with `y`. A row costs two transforms of a smooth length
//! near `2d`; Bluestein's algorithm, which gives the spectrum too, would cost four.
//!
//! The filters are turned into longer ones, and their gradients back, in f64: once per call.

use std::sync::Arc;

use circulant_core::{Bin, HalfSpectrum};
use num_complex::Complex;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use crate::operator::batch::{Batch, Bias};
use crate::operator::in_order;
use crate::operator::one_channel::{Input, OutputGradient, Outputs, Single, Sums};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::transform::LanePlan;
use crate::vector::Isa;

/// The operator of one length as the corner of a longer one.
pub(crate) struct PaddedPlan<T> {
    isa: Isa,
    lanes: LanePlan<T>,
    /// The longer layout's bins in the order of the lanes.
    positions: Vec<Bin>,
    short: Transforms,
    long: Transforms,
}

/// A layout with its transforms.
struct Transforms {
    layout: HalfSpectrum,
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

impl Transforms {
    fn new(layout: HalfSpectrum) -> Self {
        let mut planner = RealFftPlanner::new();
        Self {
            forward: planner.plan_fft_forward(layout.length()),
            inverse: planner.plan_fft_inverse(layout.length()),
            layout,
        }
    }

    /// The bins of one filter.
    fn bins<T: Real>(&self, coordinates: &[T]) -> Vec<Complex<f64>> {
        let bins = (0..self.layout.bins()).map(|k| self.layout.bin(k));
        bins.map(|bin| bin.value(|coordinate| coordinates[coordinate].wide()))
            .collect()
    }

    /// The left inverse of [`Self::bins`].
    fn coordinates<T: Real>(&self, bins: &[Complex<f64>]) -> impl Iterator<Item = T> + use<T> {
        let mut coordinates = vec![0.0; self.layout.coordinates()];
        self.layout
            .pack(bins, &mut coordinates)
            .expect("the layout's own lengths");
        coordinates.into_iter().map(T::of)
    }

    /// `sum over all frequencies of bins_k exp(2 pi i kl/n)`. Values that are not finite stay so.
    fn synthesise(&self, mut bins: Vec<Complex<f64>>) -> Vec<f64> {
        let mut out = self.inverse.make_output_vec();
        // An error here says that a self-conjugate bin is not real; the transform is done all the same.
        let _ = self.inverse.process(&mut bins, &mut out);
        out
    }

    fn analyse(&self, mut row: Vec<f64>) -> Vec<Complex<f64>> {
        let mut bins = self.forward.make_output_vec();
        self.forward
            .process(&mut row, &mut bins)
            .expect("the row has the plan's length");
        bins
    }

    /// Multiplies the free complex bins.
    fn scale_complex(&self, bins: &mut [Complex<f64>], factor: f64) {
        for (k, bin) in bins.iter_mut().enumerate() {
            if self.layout.multiplicity(k) == 2 {
                *bin *= factor;
            }
        }
    }
}

impl<T: Real> PaddedPlan<T> {
    pub(crate) fn new(layout: &HalfSpectrum, isa: Isa) -> Self {
        let length = padded_length(layout.length());
        let long = HalfSpectrum::new(length).expect("longer than a valid layout");
        let lanes = LanePlan::new(1, length);
        let full: Vec<Bin> = long.full().collect();
        Self {
            isa,
            positions: in_order(lanes.order(), &full),
            lanes,
            short: Transforms::new(*layout),
            long: Transforms::new(long),
        }
    }

    fn lengths(&self) -> (usize, usize) {
        (self.short.layout.length(), self.long.layout.length())
    }

    fn batch(&self, batch: usize) -> Batch {
        Batch {
            batch,
            channels: 1,
            len: self.lanes.len(),
            slots: self.positions.len(),
            lanes: self.isa.lanes::<T>(),
        }
    }

    /// Values that [`Self::transform`] makes of so many rows.
    pub(crate) fn spectrum_len(&self, batch: usize) -> usize {
        self.batch(batch).spectrum_len()
    }

    fn single(&self) -> Single<'_, T> {
        Single {
            isa: self.isa,
            plan: &self.lanes,
            bins: &self.positions,
            coordinates: self.long.layout.coordinates(),
        }
    }

    /// Rows with zeros behind them.
    fn pad(&self, x: &[T]) -> Scratch<T> {
        let (short, long) = self.lengths();
        let mut padded = Scratch::take(x.len() / short * long);
        padded
            .par_chunks_exact_mut(long)
            .zip(x.par_chunks_exact(short))
            .with_min_len(ROWS_PER_TASK)
            .for_each(|(to, from)| {
                to[..short].copy_from_slice(from);
                to[short..].fill(T::zero());
            });
        padded
    }

    /// The beginnings of padded rows.
    fn crop(&self, padded: &[T], out: &mut [T]) {
        let (short, long) = self.lengths();
        out.par_chunks_exact_mut(short)
            .zip(padded.par_chunks_exact(long))
            .with_min_len(ROWS_PER_TASK)
            .for_each(|(to, from)| to.copy_from_slice(&from[..short]));
    }

    /// The coordinates of the longer filters.
    fn lengthen(&self, coordinates: &[T]) -> Vec<T> {
        let (short, long) = self.lengths();
        let filters = coordinates.par_chunks_exact(self.short.layout.coordinates());
        let longer = filters.flat_map_iter(|filter| {
            let mut row = self.short.synthesise(self.short.bins(filter));
            row.iter_mut().for_each(|c| *c /= short as f64);
            row.resize(long, 0.0);
            row.copy_within(1..short, long + 1 - short);
            self.long.coordinates(&self.long.analyse(row))
        });
        longer.collect()
    }

    /// The gradient of the coordinates from that of the longer filters' coordinates: the adjoint of
    /// [`Self::lengthen`].
    fn shorten(&self, gradient: &[T]) -> Vec<T> {
        let (short, long) = self.lengths();
        let filters = gradient.par_chunks_exact(self.long.layout.coordinates());
        let shorter = filters.flat_map_iter(|filter| {
            let mut bins = self.long.bins(filter);
            self.long.scale_complex(&mut bins, 0.5);
            let mut row = self.long.synthesise(bins);
            for (l, at) in (long + 1 - short..long).enumerate() {
                row[l + 1] += row[at];
            }
            row.truncate(short);
            row.iter_mut().for_each(|c| *c /= short as f64);
            let mut bins = self.short.analyse(row);
            self.short.scale_complex(&mut bins, 2.0);
            self.short.coordinates(&bins)
        });
        shorter.collect()
    }

    /// The spectra of all rows with zeros behind them.
    pub(crate) fn transform(&self, x: &[T]) -> Scratch<T> {
        let padded = self.pad(x);
        let batch = self.batch(padded.len() / self.lanes.len());
        batch.transform(self.isa, &self.lanes, &padded, None)
    }

    /// `y[filter] = act(filter * x + bias[filter])` from kept spectra.
    pub(crate) fn forward<'a>(
        &self,
        (kept, batch): (&[T], usize),
        coordinates: &[T],
        bias: impl Fn(usize) -> Bias<'a, T> + Sync,
        tanh: bool,
        y: &mut [T],
    ) {
        let (short, long) = self.lengths();
        let filters = coordinates.len() / self.short.layout.coordinates();
        let biases: Vec<T> = (0..filters)
            .flat_map(|filter| match bias(filter) {
                Bias::Positions(bias) => self.pad(bias).to_vec(),
                Bias::None | Bias::Channels(_) => Vec::new(),
            })
            .collect();
        let mut padded = Scratch::take(y.len() / short * long);
        self.single().forward(
            &self.batch(batch),
            Input::Kept(kept),
            &self.lengthen(coordinates),
            |filter| match bias(filter) {
                Bias::Positions(_) => Bias::Positions(&biases[filter * long..(filter + 1) * long]),
                other => other,
            },
            tanh,
            &mut padded,
        );
        self.crop(&padded, y);
    }

    /// Gradients of the input (summed over the filters), of every filter and of its scalar bias.
    pub(crate) fn backward(
        &self,
        (kept, batch): (&[T], usize),
        coordinates: &[T],
        outputs: &[OutputGradient<'_, T>],
        grad_x: Option<&mut [T]>,
        want_coordinates: bool,
    ) -> Sums<T> {
        let padded: Vec<_> = outputs
            .iter()
            .map(|output| (self.pad(output.grad), output.tanh.map(|y| self.pad(y))))
            .collect();
        let outputs: Vec<_> = padded
            .iter()
            .map(|(grad, tanh)| OutputGradient {
                grad,
                tanh: tanh.as_deref(),
            })
            .collect();
        let mut padded_x = grad_x
            .is_some()
            .then(|| Scratch::take(batch * self.lanes.len()));
        let mut sums = self.single().backward(
            &self.batch(batch),
            kept,
            &self.lengthen(coordinates),
            Outputs::Rows(&outputs),
            padded_x.as_deref_mut(),
            want_coordinates,
        );
        if let (Some(grad_x), Some(padded)) = (grad_x, &padded_x) {
            self.crop(padded, grad_x);
        }
        sums.coordinates = self.shorten(&sums.coordinates);
        sums
    }
}

/// Rows that are copied in one go.
const ROWS_PER_TASK: usize = 16;

/// The smallest `m >= 2 length - 1` of the form `2^a 3^b 5^c 7^d` that is a multiple of 16: whole lines in the
/// transform's first tile, and butterflies that the lanes are good at.
fn padded_length(length: usize) -> usize {
    let mut m = (2 * length - 1).next_multiple_of(16);
    let is_good = |mut m: usize| {
        for prime in [2, 3, 5, 7] {
            while m.is_multiple_of(prime) {
                m /= prime;
            }
        }
        m == 1
    };
    while !is_good(m) {
        m += 16;
    }
    m
}
