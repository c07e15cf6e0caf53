//! All channels of one group of rows to spectra, or spectra back to rows.
//!
//! `unsafe`: see the module above.

use std::ops::Range;

use crate::operator::batch::Bias;
use crate::real::Real;
use crate::transform::{BlockPass, ForwardBlock, InverseBlock, LaneBias, LanePlan, RowPointers};
use crate::transform::{Sink, Source};
use crate::vector::{Kernel, MAX_LANES, Present, Promised, Vector};

/// Some channels of one group, one after the other.
pub struct ChannelPass<'a, T> {
    pub(super) plan: &'a LanePlan<T>,
    pub(super) channels: Range<usize>,
    /// The first channel's part of every row.
    pub(super) rows: RowPointers<T>,
    /// What stands for a row that is not there.
    pub(super) missing: *mut T,
    /// The spectrum of channel 0, and the values from one channel to the next.
    pub(super) spectra: (*mut T, usize),
    pub(super) way: Direction<'a, T>,
}

/// To spectra or back.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one per pass, on the stack"
)]
pub enum Direction<'a, T> {
    /// From rows.
    Forward {
        /// When there, the rows are gradients of `tanh` and these its values.
        tanh: Option<RowPointers<T>>,
        /// The sums of the spectra of all groups, laid out as they are.
        sums: Option<*mut T>,
    },
    /// To rows.
    Inverse { bias: Bias<'a, T>, tanh: bool },
}

impl<T: Real> Kernel<T> for Promised<ChannelPass<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let mut job = self.job();
        let len = job.plan.len();
        for channel in job.channels.clone() {
            let block = job.spectra.0.wrapping_add(channel * job.spectra.1);
            match &mut job.way {
                Direction::Forward { tanh, sums } => {
                    let pass = ForwardBlock {
                        plan: job.plan,
                        source: Source::Rows {
                            rows: &job.rows,
                            tanh: tanh.as_ref(),
                        },
                        block,
                    };
                    // SAFETY: the promise of this job.
                    unsafe { Promised::new(BlockPass::from(pass)) }.run::<V>(there);
                    if let Some(sums) = sums {
                        let sums = sums.wrapping_add(channel * job.spectra.1);
                        for at in (0..job.plan.order().len() * 2 * V::LANES).step_by(V::LANES) {
                            // SAFETY: as above; the sums are laid out as the spectra.
                            unsafe {
                                let sum = V::load(sums.add(at)).add(V::load(block.add(at)));
                                sum.store(sums.add(at));
                            }
                        }
                    }
                    if let Some(tanh) = tanh {
                        tanh.advance(len, job.missing);
                    }
                }
                Direction::Inverse { bias, tanh } => {
                    let lanes;
                    let bias = match bias {
                        Bias::None => LaneBias::None,
                        Bias::Channels(bias) => {
                            lanes = [bias[channel]; MAX_LANES];
                            LaneBias::Lanes(&lanes)
                        }
                        Bias::Positions(bias) => LaneBias::Row(bias[channel * len..].as_ptr()),
                    };
                    let pass = InverseBlock {
                        plan: job.plan,
                        product: None,
                        block,
                        sink: Sink::Rows(&job.rows),
                        bias,
                        tanh: *tanh,
                    };
                    // SAFETY: the promise of this job.
                    unsafe { Promised::new(BlockPass::from(pass)) }.run::<V>(there);
                }
            }
            job.rows.advance(len, job.missing);
        }
    }
}
