//! What the plan's calls take and give.

use crate::elements::gather::ByteScale;
use crate::real::Real;
use crate::runtime::scratch::Scratch;

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

/// Inputs, one after the other: `[n, C_in, ...]`.
#[derive(Debug, Clone, Copy)]
pub enum Inputs<'a, T> {
    /// As they are.
    Numbers(&'a [T]),
    /// As bytes, which become numbers block by block.
    Bytes(&'a [u8], &'a ByteScale),
}

impl<T> Inputs<'_, T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Bytes(bytes, _) => bytes.len(),
        }
    }
}

/// Inputs with their classes.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a, T> {
    /// Those of the batch, and others.
    pub inputs: Inputs<'a, T>,
    /// Which of the inputs make up the batch; all of them when absent.
    pub rows: Option<&'a [usize]>,
    /// The class of every input of the batch.
    pub labels: &'a [i64],
}

/// The transform of a batch of inputs, in the order that its plan works in. Its memory is reused
/// by later calls once it is dropped.
#[derive(Debug)]
pub struct KeptSpectrum<T: Real> {
    pub(super) data: Scratch<T>,
    pub(super) batch: usize,
    pub(super) form: SpectrumForm,
}

/// Everything that says where a spectrum has which number. A plan reads the spectra of its own form only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpectrumForm {
    pub(super) order: SpectrumOrder,
    /// Height, width and channels of the inputs.
    pub(super) source: (usize, usize, usize),
    /// Lanes of a block.
    pub(super) lanes: usize,
}

/// The way that a spectrum was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpectrumOrder {
    /// Row after row.
    Rows,
    /// Blocks of lanes.
    Lanes,
    /// Blocks of lanes, of rows with zeros behind them.
    PaddedLanes,
}

impl SpectrumForm {
    /// For messages.
    pub(super) fn describe(self) -> String {
        let (height, width, channels) = self.source;
        let order = match self.order {
            SpectrumOrder::Rows => "row by row".into(),
            SpectrumOrder::Lanes => format!("in {} lanes", self.lanes),
            SpectrumOrder::PaddedLanes => format!("padded, in {} lanes", self.lanes),
        };
        format!("the spectrum of {height} x {width} inputs of {channels} channels, {order}")
    }
}

impl<T: Real> KeptSpectrum<T> {
    /// The number of inputs, `batch`.
    pub fn batch(&self) -> usize {
        self.batch
    }
}
