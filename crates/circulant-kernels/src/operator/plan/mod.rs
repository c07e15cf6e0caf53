//! The batched circulant operator, its gradients, and the choice of the way it runs.
//!
//! | operator | input | coordinates | output |
//! | --- | --- | --- | --- |
//! | [`CirculantPlan::new_1d`] | `[batch, d]` | `[filters, d_eff]` | `[filters, batch, d]` |
//! | [`CirculantPlan::new_2d`] | `[batch, C_in, H, W]` | `[filters, coordinate, C_in, C_out]` | `[filters, batch, C_out, H, W]` |
//!
//! Several filters share one transform of the input; that is how posterior samples, or the query,
//! key and value of an attention layer, are computed. Slices are contiguous and row-major.

mod arguments;
mod backward;
mod forward;
mod loss;
mod readout;

pub use arguments::{Filters, Gradients, KeptSpectrum};
use arguments::{SpectrumForm, SpectrumOrder};
pub use readout::{KeptReadout, Readout, ReadoutGradients};

use circulant_core::{Bin, HalfPlane, HalfSpectrum};

use crate::error::{KernelError, expect_len, expect_positive, expect_volume, volume};
use crate::operator::batch::{Batch, Bias};
use crate::operator::blocks::BlockMixing;
use crate::operator::by_row::RowPlan;
use crate::operator::channels::{FrequencyTable, Mixing};
use crate::operator::in_order;
use crate::operator::one_channel::Single;
use crate::operator::padded::PaddedPlan;
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::transform::{LanePlan, is_smooth};
use crate::vector::Isa;

/// Everything about one operator that does not depend on the values: transforms, layout, and the
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
    /// What such a signal has instead.
    padded: Option<PaddedPlan<T>>,
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

    #[doc(hidden)]
    pub fn with_isa_1d(layout: &HalfSpectrum, isa: Isa) -> Self {
        let smooth = is_smooth(layout.length());
        let lanes = smooth.then(|| LanePlan::new(1, layout.length()));
        let full: Vec<Bin> = layout.full().collect();
        let order = lanes.as_ref().map_or(&[][..], LanePlan::order);
        Self {
            isa,
            grid: (1, layout.length()),
            len: layout.length(),
            channels_in: 1,
            channels_out: 1,
            coordinates: layout.coordinates(),
            positions: in_order(order, &full),
            lanes,
            padded: (!smooth).then(|| PaddedPlan::new(layout, isa)),
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

    #[doc(hidden)]
    pub fn with_isa_2d(
        layout: &HalfPlane,
        channels_in: usize,
        channels_out: usize,
        isa: Isa,
    ) -> Result<Self, KernelError> {
        expect_positive(&[("C_in", channels_in), ("C_out", channels_out)])?;
        let (height, width) = (layout.height(), layout.width());
        volume("an input", &[channels_in, height, width])?;
        volume("an output", &[channels_out, height, width])?;
        let filter = [layout.coordinates(), channels_in, channels_out];
        let coordinates = volume("the coordinates of a filter", &filter)?;
        let lanes = LanePlan::new(height, width);
        let full: Vec<Bin> = layout.full().collect();
        let several = channels_in * channels_out > 1;
        Ok(Self {
            isa,
            grid: (height, width),
            len: height * width,
            channels_in,
            channels_out,
            coordinates,
            positions: in_order(lanes.order(), &full),
            table: several.then(|| FrequencyTable::new(height, width, &full, lanes.order())),
            lanes: Some(lanes),
            padded: None,
            rows: None,
        })
    }

    /// Values of one input, `C_in*len`.
    pub fn input_len(&self) -> usize {
        self.channels_in * self.len
    }

    /// Values of one output, `C_out*len`.
    pub fn output_len(&self) -> usize {
        self.channels_out * self.len
    }

    /// Free real coordinates of one filter, `d_eff`.
    pub fn coordinates(&self) -> usize {
        self.coordinates
    }

    /// How many inputs so many values are.
    fn batch_of(&self, numbers: usize) -> Result<usize, KernelError> {
        let unit = self.input_len();
        if numbers == 0 || !numbers.is_multiple_of(unit) {
            return Err(KernelError::Multiple {
                what: "x",
                unit,
                got: numbers,
            });
        }
        Ok(numbers / unit)
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
            && bias.len() != volume("bias", &[count, self.output_len()])?
        {
            expect_volume("bias", bias.len(), &[count, self.channels_out])?;
        }
        expect_volume("y", y, &[count, batch, self.output_len()])?;
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

    fn table(&self) -> &FrequencyTable {
        self.table
            .as_ref()
            .expect("only called with several channels")
    }

    fn blocks<'a>(&'a self, plan: &'a LanePlan<T>, batch: usize) -> BlockMixing<'a, T> {
        BlockMixing {
            isa: self.isa,
            plan,
            table: self.table(),
            batch,
            inputs: self.channels_in,
            outputs: self.channels_out,
        }
    }

    fn mixing<'a>(&'a self, plan: &'a LanePlan<T>, batch: usize) -> Mixing<'a, T> {
        Mixing {
            isa: self.isa,
            plan,
            table: self.table(),
            inputs: self.batch(batch, self.channels_in),
            outputs: self.batch(batch, self.channels_out),
        }
    }

    /// Lanes when the batch fills a quarter of a block at least: a block costs the same however many
    /// of its rows are there. Padded rows are twice as long, and so must be twice as many.
    fn way(&self, batch: usize) -> Way<'_, T> {
        let quarters = 2 * batch / self.isa.lanes::<T>();
        match (&self.lanes, &self.padded, &self.rows) {
            (Some(lanes), ..) if self.table.is_some() && self.grid.0 == 1 && quarters >= 1 => {
                Way::Blocks(lanes)
            }
            (Some(lanes), _, rows) if rows.is_none() || quarters >= 1 => Way::Lanes(lanes),
            (_, Some(padded), _) if quarters >= 2 => Way::Padded(padded),
            (_, _, Some(rows)) => Way::Rows(rows),
            _ => unreachable!("a signal has rows, an image lanes"),
        }
    }

    /// The form of the spectra that a way makes and reads.
    fn form(&self, way: &Way<'_, T>) -> SpectrumForm {
        SpectrumForm {
            order: match way {
                Way::Lanes(_) => SpectrumOrder::Lanes,
                Way::Blocks(_) => SpectrumOrder::Channels,
                Way::Padded(_) => SpectrumOrder::PaddedLanes,
                Way::Rows(_) => SpectrumOrder::Rows,
            },
            source: (self.grid.0, self.grid.1, self.channels_in),
            lanes: self.isa.lanes::<T>(),
        }
    }

    fn keep(&self, way: &Way<'_, T>, batch: usize, data: Scratch<T>) -> KeptSpectrum<T> {
        KeptSpectrum {
            data,
            batch,
            form: self.form(way),
        }
    }

    /// The way to read a spectrum; an error when it is not of this plan's form, or not as long as that makes it.
    fn way_of(&self, kept: &KeptSpectrum<T>) -> Result<Way<'_, T>, KernelError> {
        let way = self.way(kept.batch);
        let form = self.form(&way);
        if form != kept.form {
            return Err(KernelError::ForeignSpectrum {
                expected: form.describe(),
                got: kept.form.describe(),
            });
        }
        let expected = match way {
            Way::Rows(rows) => kept.batch * rows.kept_per_row(),
            Way::Padded(padded) => padded.spectrum_len(kept.batch),
            Way::Lanes(_) => self.batch(kept.batch, self.channels_in).spectrum_len(),
            Way::Blocks(lanes) => self.blocks(lanes, kept.batch).spectrum_len(),
        };
        expect_len("the kept spectrum", kept.data.len(), expected)?;
        Ok(way)
    }
}

enum Way<'a, T: Real> {
    Lanes(&'a LanePlan<T>),
    /// Several channels of height 1, one at a time in all lanes.
    Blocks(&'a LanePlan<T>),
    Padded(&'a PaddedPlan<T>),
    Rows(&'a RowPlan<T>),
}
