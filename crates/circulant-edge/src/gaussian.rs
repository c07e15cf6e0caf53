//! The posterior of one parameter, as the file has it, and draws from it.
//!
//! `a = mean + V xi + deviation * zeta` with independent standard normal `xi` (one per column of `V`) and `zeta`; the
//! first values of the parameter's noise are `xi`. With the desktop's noise a draw is the one that the desktop makes of the
//! same seed. No value depends on the order in which they are asked for, so nothing is kept.

use circulant_core::Complex;
use circulant_core::random::{CounterKey, NoiseKey, normal_at, seed_for};

use crate::bytes::Cursor;
use crate::memory::set;
use crate::number::Number;
use crate::runtime::Draws;
use crate::values::{Blocks, Deviations, Format, Groups, Sharing, Values};
use crate::{EdgeError, WEIGHTS};

/// The number of the groups that are coordinates, in the place of the binary logarithm of a block.
pub(crate) const COORDINATES: u8 = u8::MAX;

/// What the values of a parameter are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Vector,
    /// Coordinates of a layer of channels, so many values each.
    Coordinates(usize),
    /// A matrix of so many columns.
    Matrix(usize),
}

/// Columns of `V` at most.
pub(crate) const MAX_RANK: usize = 64;

/// The purpose of noise for predictions, `circulant::noise::Purpose::Prediction`.
const PREDICTION: u64 = 4;
/// Bits of a stream below the posterior sample.
const SITE_BITS: u32 = 16;

/// Which network is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    pub(crate) sample: u32,
    pub(crate) draws: Draws,
}

impl Draw {
    /// The noise of a parameter.
    fn noise(self, stream: u16) -> Noise {
        if self.is_of_weights() {
            let [seed, stream] = self.seed_and_stream(stream);
            return Noise::Desktop(NoiseKey { seed, stream });
        }
        Noise::Device(self.counter(stream))
    }

    /// Whether every weight is drawn, as the desktop does.
    pub(crate) fn is_of_weights(self) -> bool {
        WEIGHTS && self.draws == Draws::Weights
    }

    fn counter(self, stream: u16) -> CounterKey {
        let [seed, stream] = self.seed_and_stream(stream);
        CounterKey::new(seed, stream)
    }

    fn seed_and_stream(self, stream: u16) -> [u64; 2] {
        let stream = u64::from(self.sample) << SITE_BITS | u64::from(stream);
        [seed_for(self.seed, PREDICTION), stream]
    }
}

/// The standard normal values of one parameter in one draw: those of the desktop, or cheaper ones.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    Desktop(NoiseKey),
    Device(CounterKey),
}

impl Noise {
    #[inline]
    pub(crate) fn at<T: Number>(self, index: usize) -> T {
        match self {
            Self::Desktop(key) if WEIGHTS => T::single(normal_at(key, index)),
            Self::Desktop(NoiseKey { .. }) => T::zero(),
            Self::Device(key) => T::normal(key.normal(index as u32)),
        }
    }
}

/// A point, or a Gaussian with independent values and perhaps a low-rank factor on top.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gaussian<'a> {
    pub(crate) count: usize,
    pub(crate) rank: usize,
    stream: u16,
    pub(crate) mean: Values<'a>,
    factor: Option<Values<'a>>,
    pub(crate) deviation: Option<Deviations<'a>>,
}

impl<'a> Gaussian<'a> {
    /// Reads a posterior of `count` values.
    pub(crate) fn read(
        cursor: &mut Cursor<'a>,
        what: &'static str,
        count: usize,
        shape: Shape,
    ) -> Result<Self, EdgeError> {
        let kind = cursor.u8()?;
        let format = Format::of(cursor.u8()?)?;
        let shift = cursor.u8()?;
        let rank = usize::from(cursor.u8()?);
        let found = cursor.u32()?;
        let stream = cursor.u16()?;
        let shared = cursor.u16()?;
        if usize::try_from(found) != Ok(count) {
            return Err(EdgeError::Mismatch {
                what,
                expected: count,
                found: found as usize,
            });
        }
        let value = |what, found: u64| Err(EdgeError::Value { what, found });
        if kind > 2 {
            return value("the kind of a posterior", kind.into());
        }
        let low_rank = kind == 2;
        if low_rank != (rank > 0) || rank > MAX_RANK {
            return value("the rank of a posterior", rank as u64);
        }
        let (groups, factor_groups) = match shape {
            Shape::Matrix(_) if low_rank => return value("the rank of a posterior", rank as u64),
            Shape::Matrix(columns) if shift <= 16 => {
                (Groups::Columns(columns), Groups::Columns(columns))
            }
            Shape::Coordinates(run) if shift == COORDINATES => {
                (Groups::Runs(run), Groups::Runs(run * rank.max(1)))
            }
            _ if shift <= 16 => (Groups::Blocks(shift), Groups::Blocks(shift)),
            _ => return value("the groups of a posterior", shift.into()),
        };
        let sharing = match (usize::from(shared), shape) {
            (0, _) => Sharing::Own,
            _ if format != Format::Int8 || kind == 0 => {
                return value("the sharing of deviations", shared.into());
            }
            (1, Shape::Matrix(columns)) => Sharing::Product {
                rows: count / columns,
                columns,
            },
            (length, Shape::Vector) => Sharing::Runs(length),
            _ => return value("the sharing of deviations", shared.into()),
        };
        let mean = Values::read(cursor, format, groups, count)?;
        let factor = if low_rank {
            let values = count.checked_mul(rank).ok_or(EdgeError::Size)?;
            Some(Values::read(cursor, format, factor_groups, values)?)
        } else {
            None
        };
        let deviation = if kind == 0 {
            None
        } else {
            Some(Deviations::read(cursor, format, sharing, count)?)
        };
        Ok(Self {
            count,
            rank,
            stream,
            mean,
            factor,
            deviation,
        })
    }

    /// A draw, or the mean, with memory for `xi`.
    pub(crate) fn values<'m, T: Number>(
        &'m self,
        draw: Option<Draw>,
        xi: &'m mut [Complex<T>],
    ) -> Drawn<'m, 'a, T> {
        let noise = match (draw, self.deviation) {
            (Some(draw), Some(deviation)) => {
                let noise = self.noise(draw);
                for column in 0..self.rank {
                    set(xi, column, noise.at(column));
                }
                Some((noise, deviation))
            }
            _ => None,
        };
        Drawn {
            gaussian: self,
            noise,
            xi,
        }
    }

    /// The noise of this parameter.
    pub(crate) fn noise(&self, draw: Draw) -> Noise {
        draw.noise(self.stream)
    }

    /// What a share of one stands for among the deviations.
    pub(crate) fn unit(&self) -> f32 {
        self.deviation.map_or(1.0, |deviation| deviation.unit())
    }

    /// The noise of the device for this parameter.
    pub(crate) fn counter(&self, draw: Draw) -> CounterKey {
        draw.counter(self.stream)
    }

    /// Means and deviations, if they are integers of blocks that no factor belongs to.
    pub(crate) fn codes(&self) -> Option<Codes<'a>> {
        let mean = self.mean.blocks().filter(|_| self.rank == 0)?;
        let deviations = self.deviation?.codes()?.0;
        Some(Codes { mean, deviations })
    }

    /// All that is stored, if all of it is integers of runs of this length.
    pub(crate) fn runs(&self, length: usize) -> Option<CodeRuns<'a>> {
        let factors = match self.factor {
            Some(factor) => factor.runs(length * self.rank)?,
            None => &[],
        };
        Some(CodeRuns {
            means: self.mean.runs(length)?,
            factors,
            rank: self.rank,
            deviations: self.deviation?.codes()?.0,
        })
    }

    /// What a code of a value counts, and of a row of the factor.
    pub(crate) fn scales(&self, index: usize) -> [f32; 2] {
        let factor = self
            .factor
            .map_or(0.0, |factor| factor.scale_of(index * self.rank));
        [self.mean.scale_of(index), factor]
    }

    /// Row `index` of the factor times `xi`.
    fn shared<T: Number>(&self, index: usize, xi: &[Complex<T>]) -> T {
        match self.factor {
            Some(factor) => factor.dot(index * self.rank, self.rank, xi),
            None => T::zero(),
        }
    }

    /// An entry of the factor.
    pub(crate) fn factor_at<T: Number>(&self, index: usize, column: usize) -> T {
        match self.factor {
            Some(factor) => factor.at(index * self.rank + column),
            None => T::zero(),
        }
    }

    /// The variance of value `index`.
    pub(crate) fn variance(&self, index: usize) -> f32 {
        let own = self.deviation.map_or(0.0, |deviation| deviation.at(index));
        let shared = |factor: Values<'_>| {
            let row = index * self.rank..(index + 1) * self.rank;
            let row = row.map(|place| factor.at::<f32>(place));
            row.map(|value| value * value).sum::<f32>()
        };
        own * own + self.factor.map_or(0.0, shared)
    }
}

/// A Gaussian with integers, without a factor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Codes<'a> {
    mean: Blocks<'a>,
    deviations: &'a [u8],
}

/// A Gaussian with integers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeRuns<'a> {
    means: &'a [u8],
    factors: &'a [u8],
    pub(crate) rank: usize,
    deviations: &'a [u8],
}

/// Codes after each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeRow<'a> {
    pub(crate) means: &'a [u8],
    /// Row by row.
    pub(crate) factors: &'a [u8],
    pub(crate) deviations: &'a [u8],
}

impl<'a> CodeRuns<'a> {
    /// The codes of these values.
    #[inline]
    pub(crate) fn row(&self, first: usize, count: usize) -> Option<CodeRow<'a>> {
        let (from, to) = (first * self.rank, (first + count) * self.rank);
        Some(CodeRow {
            means: self.means.get(first..first + count)?,
            factors: self.factors.get(from..to)?,
            deviations: self.deviations.get(first..first + count)?,
        })
    }
}

impl Codes<'_> {
    /// A value of a draw, if no factor belongs to it. `unit` is what a share of one stands for.
    #[inline(always)]
    pub(crate) fn draw<T: Number>(&self, index: usize, unit: f32, key: CounterKey) -> T {
        let share = self.deviations.get(index).copied().unwrap_or(u8::MAX);
        let own = T::normal(key.normal(index as u32)).share(share);
        self.mean.at::<T>(index) + own.scaled(unit)
    }
}

/// The values of a draw.
pub(crate) struct Drawn<'m, 'a, T> {
    gaussian: &'m Gaussian<'a>,
    noise: Option<(Noise, Deviations<'a>)>,
    xi: &'m [Complex<T>],
}

impl<T: Number> Drawn<'_, '_, T> {
    /// Value `index`: the same whenever it is asked for.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> T {
        let gaussian = self.gaussian;
        let mean = gaussian.mean.at(index);
        let Some((noise, deviation)) = &self.noise else {
            return mean;
        };
        let own = deviation.times(index, noise.at::<T>(gaussian.rank + index));
        mean + gaussian.shared(index, self.xi) + own
    }
}
