//! What the plan's calls take and give.

use crate::elements::activation::Activation;
use crate::real::Real;
use crate::runtime::scratch::Scratch;

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
    /// Groups of rows, channel after channel.
    Channels,
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
            SpectrumOrder::Channels => format!("channel by channel in {} lanes", self.lanes),
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
