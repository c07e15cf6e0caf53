//! The caller's memory: complex numbers, which hold real ones two by two.

use circulant_core::Complex;

use crate::model::Model;
use crate::runtime::Draws;

/// Real number `index` of some memory.
#[inline(always)]
pub(crate) fn get<T: Copy>(memory: &[Complex<T>], index: usize) -> T {
    let pair = memory[index / 2];
    if index.is_multiple_of(2) {
        pair.re
    } else {
        pair.im
    }
}

/// Puts a real number.
#[inline(always)]
pub(crate) fn set<T>(memory: &mut [Complex<T>], index: usize, value: T) {
    let pair = &mut memory[index / 2];
    if index.is_multiple_of(2) {
        pair.re = value;
    } else {
        pair.im = value;
    }
}

/// How many complex numbers every use of memory has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Roots of unity of all layers.
    pub(crate) roots: usize,
    /// The input of the first layer: its spectrum, sums over its channels, or the input itself.
    pub(crate) input: usize,
    /// A spectrum of a draw.
    pub(crate) spectrum: usize,
    /// What a layer gives, and scratch on the way there.
    pub(crate) output: usize,
    /// What a layer gets, behind the first one.
    pub(crate) between: usize,
    /// Noise of a low-rank factor.
    pub(crate) xi: usize,
    /// Logits and what is summed over samples.
    pub(crate) heads: usize,
}

/// The memory, cut up.
pub(crate) struct Parts<'m, T> {
    pub(crate) roots: &'m mut [Complex<T>],
    pub(crate) input: &'m mut [Complex<T>],
    pub(crate) work: Work<'m, T>,
    pub(crate) heads: &'m mut [Complex<T>],
}

/// What a draw needs.
pub(crate) struct Work<'m, T> {
    pub(crate) spectrum: &'m mut [Complex<T>],
    pub(crate) output: &'m mut [Complex<T>],
    pub(crate) between: &'m mut [Complex<T>],
    pub(crate) xi: &'m mut [Complex<T>],
}

/// Logits, two sums per output, and the logits at the mean.
pub(crate) const HEADS: usize = 4;

impl Plan {
    /// What a model needs to draw this. Memory for weights suffices for sums.
    pub(crate) fn of(model: &Model<'_>, draws: Draws) -> Self {
        let mut plan = Self {
            heads: HEADS * model.logits().div_ceil(2),
            ..Self::default()
        };
        for (index, layer) in model.layers().enumerate() {
            let rank = layer.weights.rank.max(layer.bias.rank).div_ceil(2);
            plan.xi = plan.xi.max(rank);
            let sizes = layer.sizes(index == 0);
            plan.roots += layer.roots_len();
            plan.spectrum = plan.spectrum.max(sizes.spectrum);
            plan.output = plan.output.max(sizes.output);
            if index == 0 {
                let sums = layer.sums_len();
                let smaller = draws == Draws::Sums && sums > 0;
                plan.input = if smaller { sums } else { sizes.input };
            } else if index + 1 < model.layer_count() {
                plan.between = plan.between.max(layer.kind.sizes()[0].div_ceil(2));
            }
        }
        plan
    }

    pub(crate) fn total(&self) -> usize {
        self.roots + self.input + self.spectrum + self.output + self.between + self.xi + self.heads
    }

    /// Cuts memory of [`Self::total`] numbers.
    pub(crate) fn cut<'m, T>(&self, memory: &'m mut [Complex<T>]) -> Parts<'m, T> {
        let (roots, memory) = memory.split_at_mut(self.roots);
        let (input, memory) = memory.split_at_mut(self.input);
        let (spectrum, memory) = memory.split_at_mut(self.spectrum);
        let (output, memory) = memory.split_at_mut(self.output);
        let (between, memory) = memory.split_at_mut(self.between);
        let (xi, heads) = memory.split_at_mut(self.xi);
        Parts {
            roots,
            input,
            work: Work {
                spectrum,
                output,
                between,
                xi,
            },
            heads,
        }
    }
}
