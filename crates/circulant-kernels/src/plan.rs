//! The batched circulant operator, its gradients, and the choice of the way it runs.
//!
//! | operator | input | coordinates | output |
//! | --- | --- | --- | --- |
//! | [`CirculantPlan::new_1d`] | `[batch, d]` | `[filters, d_eff]` | `[filters, batch, d]` |
//! | [`CirculantPlan::new_2d`] | `[batch, C_in, H, W]` | `[filters, coordinate, C_in, C_out]` | `[filters, batch, C_out, H, W]` |
//!
//! Several filters share one transform of the input; that is how posterior samples, or the query,
//! key and value of an attention layer, are computed. Slices are contiguous and row-major.

use crate::bins::Bin;
use crate::blocks::{Batch, Bias, Shared};
use crate::error::{KernelError, expect_len};
use crate::half_plane::HalfPlane;
use crate::half_spectrum::HalfSpectrum;
use crate::lane_fft::{LanePlan, is_smooth};
use crate::mixing::{FrequencyTable, Mixing};
use crate::real::Real;
use crate::rows::RowPlan;
use crate::scratch::Scratch;
use crate::simd::Isa;
use crate::single::{Input, OutputGradient, Single, Sums};

/// What happens to the biased output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    Identity,
    /// `tanh`, applied while the rows are still in registers.
    Tanh,
}

/// The parameters of one or several filters.
#[derive(Debug, Clone, Copy)]
pub struct Filters<'a, T> {
    /// Free real coordinates, one filter after the other.
    pub coordinates: &'a [T],
    /// Per filter either one number per output channel (a scalar in 1D) or one per output element.
    pub bias: Option<&'a [T]>,
    /// What follows the bias.
    pub activation: Activation,
}

/// Which gradients to compute, and where to put them. They are set, not added to.
#[derive(Debug, Default)]
pub struct Gradients<'a, T> {
    /// `[batch, C_in, ...]`, summed over the filters.
    pub x: Option<&'a mut [T]>,
    /// The shape of the coordinates.
    pub coordinates: Option<&'a mut [T]>,
    /// The shape of the bias.
    pub bias: Option<&'a mut [T]>,
}

/// The transform of a batch of inputs, in the order that its plan works in. Its memory is reused
/// by later calls once it is dropped.
#[derive(Debug)]
pub struct KeptSpectrum<T: Real> {
    data: Scratch<T>,
    batch: usize,
    by_row: bool,
    /// Height, width and channels of the inputs.
    source: (usize, usize, usize),
}

impl<T: Real> KeptSpectrum<T> {
    /// The number of inputs, `batch`.
    pub fn batch(&self) -> usize {
        self.batch
    }
}

/// Everything about one operator that does not depend on the numbers: transforms, layout, and the
/// instruction set. Make it once and share it between threads.
///
/// ```
/// use circulant_kernels::{Activation, CirculantPlan, Filters, HalfSpectrum};
///
/// let plan = CirculantPlan::<f64>::new_1d(&HalfSpectrum::new(4)?);
/// // h = (1, 1, 1): the identity.
/// let filters = Filters { coordinates: &[1.0, 1.0, 0.0, 1.0], bias: Some(&[0.5]), activation: Activation::Identity };
/// let mut y = [0.0; 4];
/// plan.forward(&[1.0, 2.0, 3.0, 4.0], filters, &mut y)?;
/// assert!(y.iter().zip([1.5, 2.5, 3.5, 4.5]).all(|(a, b)| (a - b).abs() < 1e-12));
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub struct CirculantPlan<T: Real> {
    isa: Isa,
    grid: (usize, usize),
    len: usize,
    channels_in: usize,
    channels_out: usize,
    coordinates: usize,
    /// Absent only for a signal whose length has a large prime factor.
    lanes: Option<LanePlan<T>>,
    /// The bins of the full plane, in the order of the lanes.
    positions: Vec<Bin>,
    /// Signals of one channel have a second way.
    rows: Option<RowPlan<T>>,
    /// Only with several channels.
    table: Option<FrequencyTable>,
}

impl<T: Real> std::fmt::Debug for CirculantPlan<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CirculantPlan")
            .field("isa", &self.isa)
            .field("len", &self.len)
            .field("channels", &(self.channels_in, self.channels_out))
            .field("coordinates", &self.coordinates)
            .finish_non_exhaustive()
    }
}

impl<T: Real> CirculantPlan<T> {
    /// The circulant operator on signals of one channel.
    pub fn new_1d(layout: &HalfSpectrum) -> Self {
        Self::with_isa_1d(layout, Isa::best())
    }

    pub(crate) fn with_isa_1d(layout: &HalfSpectrum, isa: Isa) -> Self {
        let lanes = is_smooth(layout.length()).then(|| LanePlan::new(1, layout.length()));
        let full = layout.full();
        let order = lanes.as_ref().map_or(&[][..], LanePlan::order);
        Self {
            isa,
            grid: (1, layout.length()),
            len: layout.length(),
            channels_in: 1,
            channels_out: 1,
            coordinates: layout.coordinates(),
            positions: bins_in(order, &full),
            lanes,
            rows: Some(RowPlan::new(layout)),
            table: None,
        }
    }

    /// The BCCB operator on images, which mixes channels per frequency.
    pub fn new_2d(
        layout: &HalfPlane,
        channels_in: usize,
        channels_out: usize,
    ) -> Result<Self, KernelError> {
        Self::with_isa_2d(layout, channels_in, channels_out, Isa::best())
    }

    pub(crate) fn with_isa_2d(
        layout: &HalfPlane,
        channels_in: usize,
        channels_out: usize,
        isa: Isa,
    ) -> Result<Self, KernelError> {
        if channels_in == 0 || channels_out == 0 {
            let what = if channels_in == 0 { "C_in" } else { "C_out" };
            return Err(KernelError::ZeroSize { what });
        }
        let (height, width) = (layout.height(), layout.width());
        let lanes = LanePlan::new(height, width);
        let full = layout.full();
        let several = channels_in * channels_out > 1;
        Ok(Self {
            isa,
            grid: (height, width),
            len: height * width,
            channels_in,
            channels_out,
            coordinates: layout.coordinates() * channels_in * channels_out,
            positions: bins_in(lanes.order(), &full),
            table: several.then(|| FrequencyTable::new(height, width, &full, lanes.order())),
            lanes: Some(lanes),
            rows: None,
        })
    }

    /// Numbers of one input, `C_in*len`.
    pub fn input_len(&self) -> usize {
        self.channels_in * self.len
    }

    /// Numbers of one output, `C_out*len`.
    pub fn output_len(&self) -> usize {
        self.channels_out * self.len
    }

    /// Free real coordinates of one filter, `d_eff`.
    pub fn coordinates(&self) -> usize {
        self.coordinates
    }

    /// The transform of a batch `[batch, C_in, ...]`.
    pub fn transform(&self, x: &[T]) -> Result<KeptSpectrum<T>, KernelError> {
        let batch = self.batch_of(x)?;
        Ok(match self.way(batch) {
            Way::Rows(rows) => KeptSpectrum {
                data: rows.transform(x),
                batch,
                by_row: true,
                source: self.source(),
            },
            Way::Lanes(lanes) => {
                let data = self
                    .batch(batch, self.channels_in)
                    .transform(self.isa, lanes, x, None);
                KeptSpectrum {
                    data,
                    batch,
                    by_row: false,
                    source: self.source(),
                }
            }
        })
    }

    /// `y = act(K x + bias)` for every filter.
    pub fn forward(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let batch = self.batch_of(x)?;
        match self.way(batch) {
            Way::Lanes(lanes) if self.table.is_none() => {
                self.check(batch, &filters, y.len())?;
                self.run_single(lanes, batch, Input::Rows(x), filters, y);
                Ok(())
            }
            _ => self.apply(&self.transform(x)?, filters, y),
        }
    }

    /// [`Self::forward`] that also returns the spectrum of `x` for the backward pass.
    pub fn forward_keeping(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<KeptSpectrum<T>, KernelError> {
        let batch = self.batch_of(x)?;
        self.check(batch, &filters, y.len())?;
        match self.way(batch) {
            Way::Lanes(lanes) if self.table.is_none() => {
                let blocks = self.batch(batch, 1);
                let mut data = Scratch::take(blocks.blocks() * blocks.block_stride());
                let keep = Shared::writer(&mut data);
                self.run_single(lanes, batch, Input::Keep(x, keep), filters, y);
                Ok(KeptSpectrum {
                    data,
                    batch,
                    by_row: false,
                    source: self.source(),
                })
            }
            _ => {
                let kept = self.transform(x)?;
                self.apply(&kept, filters, y)?;
                Ok(kept)
            }
        }
    }

    /// [`Self::forward`] from a kept spectrum: no transform of the input.
    pub fn apply(
        &self,
        kept: &KeptSpectrum<T>,
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let batch = kept.batch;
        let count = self.check(batch, &filters, y.len())?;
        let tanh = filters.activation == Activation::Tanh;
        match self.way_of(kept)? {
            Way::Rows(rows) => {
                rows.forward(
                    &kept.data,
                    filters.coordinates,
                    |f| self.bias(&filters, count, f),
                    tanh,
                    y,
                );
            }
            Way::Lanes(lanes) if self.table.is_none() => {
                self.run_single(lanes, batch, Input::Kept(&kept.data), filters, y);
            }
            Way::Lanes(lanes) => {
                let mixing = self.mixing(lanes, batch);
                let outputs = y.chunks_exact_mut(batch * self.output_len());
                let coordinates = filters.coordinates.chunks_exact(self.coordinates);
                for (f, (y, coordinates)) in outputs.zip(coordinates).enumerate() {
                    mixing.forward(
                        &kept.data,
                        coordinates,
                        self.bias(&filters, count, f),
                        tanh,
                        y,
                    );
                }
            }
        }
        Ok(())
    }

    /// The gradients of everything from the gradient of the output.
    ///
    /// `y` is the output of the forward pass; it is read only when the activation is `tanh`, and
    /// may be empty otherwise.
    pub fn backward(
        &self,
        kept: &KeptSpectrum<T>,
        filters: Filters<'_, T>,
        y: &[T],
        grad_y: &[T],
        gradients: Gradients<'_, T>,
    ) -> Result<(), KernelError> {
        let batch = kept.batch;
        let count = self.check(batch, &filters, grad_y.len())?;
        let tanh = filters.activation == Activation::Tanh;
        if tanh {
            expect_len("y", y.len(), grad_y.len())?;
        }
        let Gradients {
            x: grad_x,
            coordinates: grad_coordinates,
            bias: grad_bias,
        } = gradients;
        if let Some(grad_x) = &grad_x {
            expect_len("the gradient of x", grad_x.len(), batch * self.input_len())?;
        }
        if let Some(grad) = &grad_coordinates {
            expect_len(
                "the gradient of the coordinates",
                grad.len(),
                filters.coordinates.len(),
            )?;
        }
        let per_bias = filters.bias.map_or(0, <[T]>::len);
        if let Some(grad) = &grad_bias {
            expect_len("the gradient of the bias", grad.len(), per_bias)?;
        }
        let one = batch * self.output_len();
        let outputs: Vec<_> = (0..count)
            .map(|f| OutputGradient {
                grad: &grad_y[f * one..(f + 1) * one],
                tanh: tanh.then(|| &y[f * one..(f + 1) * one]),
            })
            .collect();
        let mut channel_sums = vec![T::zero(); count * self.channels_out];
        let way = self.way_of(kept)?;
        if let (Way::Lanes(lanes), true) = (&way, self.table.is_some()) {
            self.backward_mixing(
                lanes,
                kept,
                filters.coordinates,
                &outputs,
                (grad_x, grad_coordinates, &mut channel_sums),
            );
        } else {
            let wanted = grad_coordinates.is_some();
            let Sums { coordinates, bias } = match way {
                Way::Rows(rows) => {
                    rows.backward(&kept.data, filters.coordinates, &outputs, grad_x, wanted)
                }
                Way::Lanes(lanes) => self.single(lanes).backward(
                    &self.batch(batch, 1),
                    &kept.data,
                    filters.coordinates,
                    &outputs,
                    grad_x,
                    wanted,
                ),
            };
            if let Some(grad) = grad_coordinates {
                grad.copy_from_slice(&coordinates);
            }
            channel_sums = bias;
        }
        if let Some(grad) = grad_bias {
            if per_bias == count * self.channels_out {
                grad.copy_from_slice(&channel_sums);
            } else {
                position_sums(&outputs, self.output_len(), grad);
            }
        }
        Ok(())
    }

    fn backward_mixing(
        &self,
        lanes: &LanePlan<T>,
        kept: &KeptSpectrum<T>,
        coordinates: &[T],
        outputs: &[OutputGradient<'_, T>],
        (grad_x, mut grad_coordinates, channel_sums): (
            Option<&mut [T]>,
            Option<&mut [T]>,
            &mut [T],
        ),
    ) {
        let mixing = self.mixing(lanes, kept.batch);
        let masked = self.table.as_ref().map_or(&[][..], |table| &table.masked);
        let mut grad_spectrum = grad_x
            .is_some()
            .then(|| mixing.spectrum(&mixing.inputs, masked));
        for (f, output) in outputs.iter().enumerate() {
            let gradient = mixing
                .outputs
                .transform(self.isa, lanes, output.grad, output.tanh);
            mixing.channel_sums(
                &gradient,
                &mut channel_sums[f * self.channels_out..][..self.channels_out],
            );
            let own = f * self.coordinates..(f + 1) * self.coordinates;
            mixing.backward(
                &kept.data,
                &gradient,
                &coordinates[own.clone()],
                grad_coordinates.as_deref_mut().map(|grad| &mut grad[own]),
                grad_spectrum
                    .as_deref_mut()
                    .map(|spectrum| (spectrum, f > 0)),
            );
        }
        if let (Some(grad_x), Some(spectrum)) = (grad_x, grad_spectrum.as_deref_mut()) {
            mixing.inverse(&mixing.inputs, spectrum, Bias::None, false, grad_x);
        }
    }

    fn batch_of(&self, x: &[T]) -> Result<usize, KernelError> {
        let unit = self.input_len();
        if x.is_empty() || !x.len().is_multiple_of(unit) {
            return Err(KernelError::Multiple {
                what: "x",
                unit,
                got: x.len(),
            });
        }
        Ok(x.len() / unit)
    }

    /// Checks all lengths and returns the number of filters.
    fn check(
        &self,
        batch: usize,
        filters: &Filters<'_, T>,
        y: usize,
    ) -> Result<usize, KernelError> {
        let got = filters.coordinates.len();
        if got == 0 || !got.is_multiple_of(self.coordinates) {
            return Err(KernelError::Multiple {
                what: "coordinates",
                unit: self.coordinates,
                got,
            });
        }
        let count = got / self.coordinates;
        if let Some(bias) = filters.bias
            && bias.len() != count * self.output_len()
        {
            expect_len("bias", bias.len(), count * self.channels_out)?;
        }
        expect_len("y", y, count * batch * self.output_len())?;
        Ok(count)
    }

    fn bias<'a>(&self, filters: &Filters<'a, T>, count: usize, filter: usize) -> Bias<'a, T> {
        match filters.bias {
            None => Bias::None,
            Some(all) => {
                let one = &all[filter * all.len() / count..(filter + 1) * all.len() / count];
                if one.len() == self.channels_out {
                    Bias::Channels(one)
                } else {
                    Bias::Positions(one)
                }
            }
        }
    }

    fn batch(&self, batch: usize, channels: usize) -> Batch {
        Batch {
            batch,
            channels,
            len: self.len,
            slots: self.positions.len(),
            lanes: self.isa.lanes::<T>(),
        }
    }

    fn single<'a>(&'a self, plan: &'a LanePlan<T>) -> Single<'a, T> {
        Single {
            isa: self.isa,
            plan,
            bins: &self.positions,
            coordinates: self.coordinates,
        }
    }

    fn mixing<'a>(&'a self, plan: &'a LanePlan<T>, batch: usize) -> Mixing<'a, T> {
        Mixing {
            isa: self.isa,
            plan,
            table: self
                .table
                .as_ref()
                .expect("only called with several channels"),
            inputs: self.batch(batch, self.channels_in),
            outputs: self.batch(batch, self.channels_out),
        }
    }

    fn run_single(
        &self,
        lanes: &LanePlan<T>,
        batch: usize,
        x: Input<'_, T>,
        filters: Filters<'_, T>,
        y: &mut [T],
    ) {
        let count = filters.coordinates.len() / self.coordinates;
        self.single(lanes).forward(
            &self.batch(batch, 1),
            x,
            filters.coordinates,
            |f| self.bias(&filters, count, f),
            filters.activation == Activation::Tanh,
            y,
        );
    }

    /// Lanes when they exist and the batch fills a quarter of a block at least: a block costs
    /// the same however many of its rows are there.
    fn way(&self, batch: usize) -> Way<'_, T> {
        match (&self.lanes, &self.rows) {
            (Some(lanes), Some(_)) if 2 * batch >= self.isa.lanes::<T>() => Way::Lanes(lanes),
            (_, Some(rows)) => Way::Rows(rows),
            (Some(lanes), None) => Way::Lanes(lanes),
            (None, None) => unreachable!("a plan has lanes or rows"),
        }
    }

    fn source(&self) -> (usize, usize, usize) {
        (self.grid.0, self.grid.1, self.channels_in)
    }

    fn way_of(&self, kept: &KeptSpectrum<T>) -> Result<Way<'_, T>, KernelError> {
        let way = self.way(kept.batch);
        let fits = kept.source == self.source() && kept.by_row == matches!(way, Way::Rows(_));
        if !fits {
            return Err(KernelError::ForeignSpectrum {
                expected: self.source(),
                got: kept.source,
            });
        }
        Ok(way)
    }
}

/// The bins in the order of a transformed block; a gap is as good as a masked bin.
fn bins_in(order: &[Option<usize>], full: &[Bin]) -> Vec<Bin> {
    order
        .iter()
        .map(|frequency| frequency.map_or(Bin::Masked, |f| full[f]))
        .collect()
}

enum Way<'a, T: Real> {
    Lanes(&'a LanePlan<T>),
    Rows(&'a RowPlan<T>),
}

/// The gradient of a bias per output element: the sum over the batch.
fn position_sums<T: Real>(outputs: &[OutputGradient<'_, T>], unit: usize, out: &mut [T]) {
    for (output, sums) in outputs.iter().zip(out.chunks_exact_mut(unit)) {
        sums.fill(T::zero());
        for (row, g) in output.grad.chunks_exact(unit).enumerate() {
            match output.tanh {
                None => sums.iter_mut().zip(g).for_each(|(sum, &g)| *sum = *sum + g),
                Some(tanh) => {
                    let y = &tanh[row * unit..(row + 1) * unit];
                    for ((sum, &g), &y) in sums.iter_mut().zip(g).zip(y) {
                        *sum = *sum + g * (T::one() - y * y);
                    }
                }
            }
        }
    }
}
