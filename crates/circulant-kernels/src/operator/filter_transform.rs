//! Spatial filters and the coordinates of their spectra: `h_f = sum_t w_t exp(-2 pi i f t/n)`
//! (unnormalised, `docs/mathematics.md`, section 1), its inverse, and its adjoint for training spatial filters.
//!
//! Filters travel through the lanes like a batch of rows, two as one complex row:
//! with `Z` the transform of `a + i b`, `A(f) = (Z(f) + conj Z(-f))/2` and
//! `B(f) = (Z(f) - conj Z(-f))/2i`.
//!
//! `unsafe`: see `batch.rs` and `transform/`; the filters' length is compared with the batch first.

use std::ptr::null_mut;

use circulant_core::{HalfPlane, HalfSpectrum};
use num_complex::Complex;

use crate::error::{KernelError, expect_len, expect_positive, volume};
use crate::operator::batch::Batch;
use crate::operator::channels::{Frequency, FrequencyTable};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::{InverseBlock, LaneBias, LanePlan, Sink};
use crate::vector::{Isa, Promised};

/// The map between spatial filters `[C_out, C_in, H, W]` (1D: `[d]`) and the coordinates of their
/// spectra `[coordinate, C_in, C_out]` (1D: `[d_eff]`).
pub struct FilterTransform<T: Real> {
    isa: Isa,
    plan: LanePlan<T>,
    table: FrequencyTable,
    coordinates: usize,
    channels_in: usize,
    channels_out: usize,
}

impl<T: Real> FilterTransform<T> {
    /// Filters of signals.
    pub fn new_1d(layout: &HalfSpectrum) -> Self {
        let plan = LanePlan::new(1, layout.length());
        Self {
            isa: Isa::best(),
            table: FrequencyTable::new(
                1,
                layout.length(),
                &layout.full().collect::<Vec<_>>(),
                plan.order(),
            ),
            plan,
            coordinates: layout.coordinates(),
            channels_in: 1,
            channels_out: 1,
        }
    }

    /// Filters of images.
    pub fn new_2d(
        layout: &HalfPlane,
        channels_in: usize,
        channels_out: usize,
    ) -> Result<Self, KernelError> {
        expect_positive(&[("C_in", channels_in), ("C_out", channels_out)])?;
        let (height, width) = (layout.height(), layout.width());
        volume("the filters", &[channels_in, channels_out, height, width])?;
        let plan = LanePlan::new(height, width);
        Ok(Self {
            isa: Isa::best(),
            table: FrequencyTable::new(
                height,
                width,
                &layout.full().collect::<Vec<_>>(),
                plan.order(),
            ),
            plan,
            coordinates: layout.coordinates(),
            channels_in,
            channels_out,
        })
    }

    fn batch(&self) -> Batch {
        Batch {
            batch: self.channels_in * self.channels_out,
            channels: 1,
            len: self.plan.len(),
            slots: self.plan.order().len(),
            lanes: self.isa.lanes::<T>(),
        }
    }

    fn check(&self, filters: &[T], coordinates: &[T]) -> Result<(), KernelError> {
        let pairs = self.channels_in * self.channels_out;
        expect_len("filters", filters.len(), pairs * self.plan.len())?;
        expect_len("coordinates", coordinates.len(), pairs * self.coordinates)
    }

    /// Where a filter `(o, c)`, the `index`-th in memory, stands among the channel pairs.
    fn channel_pair(&self, index: usize) -> usize {
        index % self.channels_in * self.channels_out + index / self.channels_in
    }

    /// Spatial filters to coordinates.
    pub fn analyse(&self, filters: &[T], coordinates: &mut [T]) -> Result<(), KernelError> {
        self.check(filters, coordinates)?;
        let batch = self.batch();
        let spectrum = batch.transform(self.isa, &self.plan, filters, None);
        let half = T::of(0.5);
        for frequency in &self.table.frequencies {
            for lane in 0..batch.lanes_used() {
                let (here, there) = entries(&batch, frequency, lane);
                let z = Complex::new(spectrum[here], spectrum[here + batch.lanes]);
                let mirrored = Complex::new(spectrum[there], -spectrum[there + batch.lanes]);
                let (sum, difference) = ((z + mirrored) * half, (z - mirrored) * half);
                // Division by i turns (re, im) into (im, -re).
                let values = [sum, Complex::new(difference.im, -difference.re)];
                for (index, value) in (2 * lane..batch.batch).zip(values) {
                    let pair = self.channel_pair(index);
                    coordinates[frequency.coordinate * batch.batch + pair] = value.re;
                    if frequency.mirror.is_some() {
                        coordinates[(frequency.coordinate + 1) * batch.batch + pair] = value.im;
                    }
                }
            }
        }
        Ok(())
    }

    /// Coordinates to spatial filters: `w_t = (1/n) sum_f h_f exp(+2 pi i f t/n)`.
    pub fn synthesise(&self, coordinates: &[T], filters: &mut [T]) -> Result<(), KernelError> {
        let scale = T::one() / T::of(self.plan.len() as f64);
        self.inverse(coordinates, filters, scale, scale)
    }

    /// The adjoint of [`Self::analyse`]: a gradient of the coordinates to one of the filters.
    pub fn adjoint(
        &self,
        grad_coordinates: &[T],
        grad_filters: &mut [T],
    ) -> Result<(), KernelError> {
        // The inverse transform meets a free complex bin twice, the adjoint only once.
        self.inverse(grad_coordinates, grad_filters, T::one(), T::of(0.5))
    }

    fn inverse(
        &self,
        coordinates: &[T],
        filters: &mut [T],
        real_scale: T,
        complex_scale: T,
    ) -> Result<(), KernelError> {
        self.check(filters, coordinates)?;
        let batch = self.batch();
        let mut spectrum = Scratch::<T>::zeroed(batch.spectrum_len());
        for frequency in &self.table.frequencies {
            for lane in 0..batch.lanes_used() {
                let (here, there) = entries(&batch, frequency, lane);
                let value = |index: usize| {
                    if index >= batch.batch {
                        return Complex::new(T::zero(), T::zero());
                    }
                    let pair = self.channel_pair(index);
                    let at = |part| coordinates[(frequency.coordinate + part) * batch.batch + pair];
                    match frequency.mirror {
                        None => Complex::new(at(0) * real_scale, T::zero()),
                        Some(_) => Complex::new(at(0) * complex_scale, at(1) * complex_scale),
                    }
                };
                let (a, b) = (value(2 * lane), value(2 * lane + 1));
                // a + i b here, conj(a) + i conj(b) at the opposite frequency.
                spectrum[there] = a.re + b.im;
                spectrum[there + batch.lanes] = b.re - a.im;
                spectrum[here] = a.re - b.im;
                spectrum[here + batch.lanes] = a.im + b.re;
            }
        }
        let (spectrum, filters) = (Shared::writer(&mut spectrum), Shared::writer(filters));
        batch.map_tasks(|blocks| {
            for block in blocks {
                let pass = InverseBlock {
                    plan: &self.plan,
                    product: None,
                    block: spectrum.at(block * batch.block_stride()),
                    sink: Sink::Rows(&batch.pointers(filters, block, null_mut())),
                    bias: LaneBias::None,
                    tanh: false,
                };
                // SAFETY: `check` has compared the filters with the batch, and the spectrum was made for it; the block and
                // its rows are this task's alone.
                T::block_pass(self.isa, unsafe { Promised::new(pass.into()) });
            }
        });
        Ok(())
    }
}

/// Indices of the real parts of a lane at a frequency and at the opposite one.
fn entries(batch: &Batch, frequency: &Frequency, lane: usize) -> (usize, usize) {
    let block = lane / batch.lanes * batch.block_stride() + lane % batch.lanes;
    let at = |position: usize| block + position * 2 * batch.lanes;
    let mirror = frequency.mirror.unwrap_or(frequency.position);
    (at(frequency.position), at(mirror))
}
