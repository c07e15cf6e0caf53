//! The plain operator: one real transform per row, by realfft. It serves batches that are too small to
//! fill the lanes.

use std::sync::{Arc, Mutex, PoisonError};

use circulant_core::{Bin, HalfSpectrum};
use num_complex::Complex;
use rayon::prelude::*;
use realfft::{ComplexToReal, FftError, RealFftPlanner, RealToComplex};

use crate::elements::elementwise::tanh_into;
use crate::operator::batch::Bias;
use crate::operator::one_channel::{OutputGradient, Sums};
use crate::real::Real;
use crate::runtime::chunks::SEQUENTIAL_BELOW;
use crate::runtime::scratch::Scratch;

/// Transforms and layout for rows of one length.
pub(crate) struct RowPlan<T> {
    layout: HalfSpectrum,
    forward: Arc<dyn RealToComplex<T>>,
    inverse: Arc<dyn ComplexToReal<T>>,
    idle: Mutex<Vec<Workspace<T>>>,
}

/// One thread's buffers.
struct Workspace<T> {
    row: Vec<T>,
    bins: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: Real> RowPlan<T> {
    pub(crate) fn new(layout: &HalfSpectrum) -> Self {
        let mut planner = RealFftPlanner::new();
        Self {
            layout: *layout,
            forward: planner.plan_fft_forward(layout.length()),
            inverse: planner.plan_fft_inverse(layout.length()),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Runs `work` with buffers that an earlier call has left, or new ones.
    fn with_workspace<R>(&self, work: impl FnOnce(&mut Workspace<T>) -> R) -> R {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let left = idle().pop();
        let mut workspace = left.unwrap_or_else(|| self.workspace());
        let result = work(&mut workspace);
        idle().push(workspace);
        result
    }

    fn workspace(&self) -> Workspace<T> {
        let scratch = self
            .forward
            .get_scratch_len()
            .max(self.inverse.get_scratch_len());
        Workspace {
            row: vec![T::zero(); self.layout.length()],
            bins: vec![Complex::new(T::zero(), T::zero()); self.layout.bins()],
            scratch: vec![Complex::new(T::zero(), T::zero()); scratch],
        }
    }

    /// Values that a kept spectrum has per row.
    pub(crate) fn kept_per_row(&self) -> usize {
        2 * self.layout.bins()
    }

    /// `h/n` of every filter, `[filter][bin]`.
    fn multipliers(&self, coordinates: &[T]) -> Vec<Complex<T>> {
        let scale = T::one() / T::of(self.layout.length() as f64);
        let mut bins = vec![Complex::new(T::zero(), T::zero()); self.layout.bins()];
        let mut all =
            Vec::with_capacity(bins.len() * coordinates.len() / self.layout.coordinates());
        for filter in coordinates.chunks_exact(self.layout.coordinates()) {
            self.layout
                .unpack(filter, &mut bins)
                .expect("the plan checks lengths before it calls");
            all.extend(bins.iter().map(|h| h * scale));
        }
        all
    }

    /// `bins = RFFT(row)`, destroying `row`.
    fn analyse(&self, work: &mut Workspace<T>) {
        self.forward
            .process_with_scratch(&mut work.row, &mut work.bins, &mut work.scratch)
            .expect("the workspace has the plan's lengths");
    }

    /// `row = IRFFT(bins)`, destroying the bins.
    fn synthesise(&self, work: &mut Workspace<T>) {
        let done =
            self.inverse
                .process_with_scratch(&mut work.bins, &mut work.row, &mut work.scratch);
        match done {
            // Products at self-conjugate bins stay real, unless a number is infinite: zero times that is no number,
            // in the imaginary part too. The transform is done all the same, and its result is no number either.
            Ok(()) | Err(FftError::InputValues(..)) => {}
            Err(error) => panic!("the workspace has the plan's lengths: {error}"),
        }
    }

    /// Runs `work` on every item, on all threads when there are enough values in `total`.
    fn for_each<W: Send>(
        &self,
        total: usize,
        items: Vec<W>,
        work: impl Fn(&mut Workspace<T>, W) + Sync + Send,
    ) {
        if total < SEQUENTIAL_BELOW || items.len() == 1 {
            self.with_workspace(|workspace| {
                items.into_iter().for_each(|item| work(workspace, item));
            });
        } else {
            items
                .into_par_iter()
                .for_each(|item| self.with_workspace(|workspace| work(workspace, item)));
        }
    }

    /// The spectra of all rows, Re and Im interleaved.
    pub(crate) fn transform(&self, x: &[T]) -> Scratch<T> {
        let length = self.layout.length();
        let mut kept = Scratch::take(x.len() / length * self.kept_per_row());
        let items = x
            .chunks_exact(length)
            .zip(kept.chunks_exact_mut(self.kept_per_row()))
            .collect();
        self.for_each(x.len(), items, |work, (row, out)| {
            work.row.copy_from_slice(row);
            self.analyse(work);
            for (bin, out) in work.bins.iter().zip(out.chunks_exact_mut(2)) {
                (out[0], out[1]) = (bin.re, bin.im);
            }
        });
        kept
    }

    /// `y[filter] = act(filter * x + bias[filter])` from kept spectra.
    pub(crate) fn forward<'a>(
        &self,
        kept: &[T],
        coordinates: &[T],
        bias: impl Fn(usize) -> Bias<'a, T> + Sync + Send,
        tanh: bool,
        y: &mut [T],
    ) {
        let length = self.layout.length();
        let rows = kept.len() / self.kept_per_row();
        let multipliers = self.multipliers(coordinates);
        let total = y.len();
        let items = y.chunks_exact_mut(length).enumerate().collect();
        self.for_each(total, items, |work, (index, y)| {
            let (filter, row) = (index / rows, index % rows);
            let x = &kept[row * self.kept_per_row()..];
            let h = &multipliers[filter * self.layout.bins()..];
            for ((out, x), h) in work.bins.iter_mut().zip(x.chunks_exact(2)).zip(h) {
                *out = Complex::new(x[0], x[1]) * h;
            }
            self.synthesise(work);
            match bias(filter) {
                Bias::None => y.copy_from_slice(&work.row),
                Bias::Channels(b) => y
                    .iter_mut()
                    .zip(&work.row)
                    .for_each(|(y, &x)| *y = x + b[0]),
                Bias::Positions(b) => {
                    y.iter_mut()
                        .zip(work.row.iter().zip(b))
                        .for_each(|(y, (&x, &b))| *y = x + b);
                }
            }
            if tanh {
                // The same function as in lanes, whose error is known; that of the system's library is not.
                work.row.copy_from_slice(y);
                tanh_into(&work.row, y).expect("the workspace has the plan's lengths");
            }
        });
    }

    /// Gradients of the input (summed over the filters), of every filter and of its scalar bias.
    pub(crate) fn backward(
        &self,
        kept: &[T],
        coordinates: &[T],
        outputs: &[OutputGradient<'_, T>],
        grad_x: Option<&mut [T]>,
        want_coordinates: bool,
    ) -> Sums<T> {
        let (length, bins) = (self.layout.length(), self.layout.bins());
        let rows = kept.len() / self.kept_per_row();
        let multipliers = self.multipliers(coordinates);
        // Chunks depend on the batch alone, so that sums do not depend on the threads.
        let step = rows.div_ceil(64);
        let zero = Complex::new(T::zero(), T::zero());
        let chunks = rows.div_ceil(step);
        let wanted = if want_coordinates {
            bins * outputs.len()
        } else {
            0
        };
        let mut parts = vec![(vec![zero; wanted], vec![T::zero(); outputs.len()]); chunks];
        let grad_rows: Vec<Option<&mut [T]>> = match grad_x {
            Some(grad_x) => grad_x.chunks_mut(step * length).map(Some).collect(),
            None => (0..chunks).map(|_| None).collect(),
        };
        let items = parts.iter_mut().zip(grad_rows).enumerate().collect();
        self.for_each(
            kept.len() * outputs.len(),
            items,
            |work, (chunk, ((sums, bias), mut grad_x))| {
                let mut input = vec![zero; bins];
                for row in chunk * step..rows.min((chunk + 1) * step) {
                    input.fill(zero);
                    let x = &kept[row * self.kept_per_row()..];
                    for (filter, output) in outputs.iter().enumerate() {
                        let at = row * length..(row + 1) * length;
                        work.row.copy_from_slice(&output.grad[at.clone()]);
                        if let Some(tanh) = output.tanh {
                            for (g, &y) in work.row.iter_mut().zip(&tanh[at]) {
                                *g = *g * (T::one() - y * y);
                            }
                        }
                        self.analyse(work);
                        bias[filter] = bias[filter] + work.bins[0].re;
                        if want_coordinates {
                            let sums = &mut sums[filter * bins..(filter + 1) * bins];
                            for ((sum, x), g) in
                                sums.iter_mut().zip(x.chunks_exact(2)).zip(&work.bins)
                            {
                                *sum = *sum + Complex::new(x[0], -x[1]) * g;
                            }
                        }
                        let h = &multipliers[filter * bins..];
                        for ((out, g), h) in input.iter_mut().zip(&work.bins).zip(h) {
                            *out = *out + g * h.conj();
                        }
                    }
                    if let Some(grad_x) = grad_x.as_deref_mut() {
                        work.bins.copy_from_slice(&input);
                        self.synthesise(work);
                        let at = (row - chunk * step) * length;
                        grad_x[at..at + length].copy_from_slice(&work.row);
                    }
                }
            },
        );
        self.collect(parts, outputs.len(), want_coordinates)
    }

    /// Adds the chunks in order; a free complex bin counts twice (section 3 of `docs/mathematics.md`).
    fn collect(
        &self,
        parts: Vec<(Vec<Complex<T>>, Vec<T>)>,
        filters: usize,
        want_coordinates: bool,
    ) -> Sums<T> {
        let mut parts = parts.into_iter();
        let (mut sums, mut bias) = parts.next().expect("a batch has at least one row");
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
            let scale = T::one() / T::of(self.layout.length() as f64);
            coordinates = vec![T::zero(); filters * self.layout.coordinates()];
            for (out, sums) in coordinates
                .chunks_exact_mut(self.layout.coordinates())
                .zip(sums.chunks_exact(self.layout.bins()))
            {
                for (k, a) in sums.iter().enumerate() {
                    match self.layout.bin(k) {
                        Bin::Real { coordinate } => out[coordinate] = a.re * scale,
                        Bin::Complex { coordinate } => {
                            out[coordinate] = (a.re + a.re) * scale;
                            out[coordinate + 1] = (a.im + a.im) * scale;
                        }
                        Bin::Conjugate { .. } | Bin::Masked => {}
                    }
                }
            }
        }
        Sums {
            coordinates,
            bias,
            weight: Vec::new(),
        }
    }
}
