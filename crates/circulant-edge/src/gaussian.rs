//! The posterior of one parameter, as the file has it, and draws from it.
//!
//! `a = mean + V xi + deviation * zeta` with independent standard normal `xi` (one per column of `V`) and `zeta`; the
//! first values of the parameter's stream of noise are `xi`. So a draw is the one that the desktop makes of the same seed.

use circulant_core::Complex;
use circulant_core::random::{NoiseKey, Normals, seed_for};

use crate::EdgeError;
use crate::bytes::Cursor;
use crate::memory::{get, set};
use crate::number::Number;
use crate::values::{Deviations, Format, Groups, Values};

/// Columns of `V` at most.
pub(crate) const MAX_RANK: usize = 64;

/// The purpose of noise for predictions, `circulant::noise::Purpose::Prediction`.
const PREDICTION: u64 = 4;
/// Bits of a stream below the posterior sample.
const SITE_BITS: u32 = 16;

/// Which network is drawn: none for the posterior's mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    pub(crate) sample: u32,
}

impl Draw {
    /// The noise of a parameter.
    pub(crate) fn key(self, stream: u16) -> NoiseKey {
        NoiseKey {
            seed: seed_for(self.seed, PREDICTION),
            stream: u64::from(self.sample) << SITE_BITS | u64::from(stream),
        }
    }

    /// Other noise than that of any parameter.
    pub(crate) fn local_key(self, stream: u16) -> NoiseKey {
        let key = self.key(stream);
        NoiseKey {
            stream: key.stream | 1 << 63,
            ..key
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
    /// Reads a posterior of `count` values; those of a dense matrix have its columns.
    pub(crate) fn read(
        cursor: &mut Cursor<'a>,
        what: &'static str,
        count: usize,
        columns: Option<usize>,
    ) -> Result<Self, EdgeError> {
        let kind = cursor.u8()?;
        let format = Format::of(cursor.u8()?)?;
        let shift = cursor.u8()?;
        let rank = usize::from(cursor.u8()?);
        let found = cursor.u32()?;
        let stream = cursor.u16()?;
        let reserved = cursor.u16()?;
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
        if shift > 16 || reserved != 0 {
            return value("the groups of a posterior", shift.into());
        }
        let low_rank = kind == 2;
        if low_rank != (rank > 0) || rank > MAX_RANK || (low_rank && columns.is_some()) {
            return value("the rank of a posterior", rank as u64);
        }
        let groups = columns.map_or(Groups::Blocks(shift), Groups::Columns);
        let mean = Values::read(cursor, format, groups, count)?;
        let factor = if low_rank {
            let values = count.checked_mul(rank).ok_or(EdgeError::Size)?;
            Some(Values::read(cursor, format, Groups::Blocks(shift), values)?)
        } else {
            None
        };
        let deviation = if kind == 0 {
            None
        } else {
            Some(Deviations::read(cursor, format, count)?)
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

    /// The values of a draw one after the other, in memory for the noise and for `xi`.
    pub(crate) fn values<'m, T: Number>(
        &'m self,
        draw: Option<Draw>,
        noise: &'m mut [Complex<T>],
        xi: &'m mut [Complex<T>],
    ) -> Result<Drawn<'m, 'a, T>, EdgeError> {
        let noise = match (draw, self.deviation) {
            (Some(draw), Some(deviation)) => {
                let count = self.rank + self.count;
                let mut normals = Normals::new(draw.key(self.stream), count, noise)?;
                for column in 0..self.rank {
                    set(xi, column, normals.draw());
                }
                Some((normals, deviation))
            }
            _ => None,
        };
        Ok(Drawn {
            gaussian: self,
            noise,
            xi,
            next: 0,
        })
    }

    /// Noise for sums of these parameters.
    pub(crate) fn local_key(&self, draw: Draw) -> NoiseKey {
        draw.local_key(self.stream)
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

/// A draw that is read in order.
pub(crate) struct Drawn<'m, 'a, T> {
    gaussian: &'m Gaussian<'a>,
    noise: Option<(Normals<'m, T>, Deviations<'a>)>,
    xi: &'m [Complex<T>],
    next: usize,
}

impl<T: Number> Drawn<'_, '_, T> {
    /// The next value.
    #[inline]
    pub(crate) fn draw(&mut self) -> T {
        let index = self.next;
        self.next += 1;
        let mut value: T = self.gaussian.mean.at(index);
        if let Some((normals, deviation)) = &mut self.noise {
            if let Some(factor) = &self.gaussian.factor {
                let first = index * self.gaussian.rank;
                for column in 0..self.gaussian.rank {
                    value = value + factor.at::<T>(first + column) * get(self.xi, column);
                }
            }
            value = value + T::single(deviation.at(index)) * normals.draw();
        }
        value
    }
}
