//! Posterior factors `q(a)` over the values of one parameter.
//!
//! | posterior | `q(a)` | parameters |
//! | --- | --- | --- |
//! | [`LowRankGaussian`] | `N(mu, U diag(lambda^2) U^T + diag(sigma^2) + eps I)` | `d (r + 2) + r` |
//! | [`MeanFieldGaussian`] | `N(mu, diag(sigma^2))` | `2d` |
//! | [`PointEstimate`] | all mass at `mu` | `d` |
//!
//! # Initial scale
//!
//! A posterior starts at the values of the network it was made from, with a standard deviation of
//! [`INITIAL_DEVIATION`]. An output of a layer with `n` inputs of size one and independent weights then has noise of
//! `sqrt(n)/100`: 0.28 for 784 inputs, less than the signal, so that the first gradients point where those of
//! the point estimate do. Started at the width of the prior, a layer of 784 inputs has noise of
//! 28 times its signal: the data term then only teaches the posterior to shrink, and it takes hundreds of steps until
//! the means learn anything.

mod low_rank;
mod mean_field;
mod point;

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use circulant_kernels::NoiseKey;

use crate::backend::fused::{PlainGaussian, PlainTensors};
use crate::nn::{to_host, with_values};

pub use self::low_rank::{JITTER, LowRankGaussian, RANK};
pub use self::mean_field::MeanFieldGaussian;
pub use self::point::PointEstimate;

/// The standard deviation that a posterior starts with.
pub const INITIAL_DEVIATION: f64 = 0.01;

/// A factor of the posterior: `d` values, flat.
pub trait Posterior: Module {
    /// The number of coordinates, `d`.
    fn coordinates(&self) -> usize {
        self.mean().dims()[0]
    }

    /// `mu: [d]`.
    fn mean(&self) -> Tensor<1>;

    /// A reparameterised sample `[d]`: differentiable in the parameters, and the same for the same key.
    fn sample(&self, key: NoiseKey) -> Tensor<1>;

    /// `weight * KL(q || N(0, diag(prior_variance)))` as `[1]`, differentiable in the parameters and in
    /// `prior_variance`, which is `[d]` or `[1]`, the same for all. For the point estimate it is
    /// `-weight * log p(mu)`, so that one training loop serves MAP too.
    fn kl(&self, prior_variance: Tensor<1>, weight: f64) -> Tensor<1>;

    /// The differential entropy.
    fn entropy(&self) -> f64;
}

/// A posterior whose draws are functions of standard normal numbers.
pub(crate) trait FromNormals: Posterior {
    /// How many a draw needs.
    fn normals(&self) -> usize;

    /// [`Posterior::sample`] of these numbers; none if it needs none.
    fn sample_of(&self, normals: Option<Tensor<1>>) -> Tensor<1>;
}

/// Any of the posteriors.
#[derive(Module, Debug)]
#[non_exhaustive]
pub enum AnyPosterior {
    /// Low rank plus diagonal.
    LowRank(LowRankGaussian),
    /// Diagonal.
    MeanField(MeanFieldGaussian),
    /// No spread.
    Point(PointEstimate),
}

/// Calls the method on whichever posterior it is.
macro_rules! each {
    ($posterior:expr, $inner:ident => $call:expr) => {
        match $posterior {
            AnyPosterior::LowRank($inner) => $call,
            AnyPosterior::MeanField($inner) => $call,
            AnyPosterior::Point($inner) => $call,
        }
    };
}

impl AnyPosterior {
    /// The posterior off the tape, if it has a closed form there.
    pub(crate) fn plain(&self) -> Option<PlainGaussian> {
        match self {
            Self::LowRank(q) => PlainGaussian::new(
                q.mean.val(),
                Some((q.factor.val(), q.scale.val())),
                q.log_deviation.val(),
                q.jitter(),
            ),
            Self::MeanField(q) => {
                PlainGaussian::new(q.mean.val(), None, q.log_deviation.val(), 0.0)
            }
            Self::Point(_) => None,
        }
    }

    /// Hands the gradients of [`Self::plain`] over under the names of the parameters.
    pub(crate) fn register(&self, gradients: PlainTensors, into: &mut GradientsParams) {
        let (mean, log_deviation) = match self {
            Self::LowRank(q) => {
                if let Some((factor, scale)) = gradients.low_rank {
                    into.register(q.factor.id, factor);
                    into.register(q.scale.id, scale);
                }
                (&q.mean, &q.log_deviation)
            }
            Self::MeanField(q) => (&q.mean, &q.log_deviation),
            Self::Point(_) => unreachable!("a point estimate is never off the tape"),
        };
        into.register(mean.id, gradients.mean);
        into.register(log_deviation.id, gradients.log_deviation);
    }

    /// Takes over the values of a posterior that was off the tape.
    pub(crate) fn set(&mut self, numbers: PlainTensors) {
        let (mean, log_deviation) = match self {
            Self::LowRank(q) => {
                if let Some((factor, scale)) = numbers.low_rank {
                    set(&mut q.factor, factor);
                    set(&mut q.scale, scale);
                }
                (&mut q.mean, &mut q.log_deviation)
            }
            Self::MeanField(q) => (&mut q.mean, &mut q.log_deviation),
            Self::Point(_) => unreachable!("a point estimate is never off the tape"),
        };
        set(mean, numbers.mean);
        set(log_deviation, numbers.log_deviation);
    }

    /// The distribution of the values plus a number.
    pub(crate) fn shifted(mut self, by: f64) -> Self {
        let mean = match &mut self {
            Self::LowRank(posterior) => &mut posterior.mean,
            Self::MeanField(posterior) => &mut posterior.mean,
            Self::Point(posterior) => &mut posterior.mean,
        };
        *mean = moved(mean, by);
        self
    }

    /// The distribution of the values plus independent Gaussians of this deviation.
    pub(crate) fn widened(mut self, by: f64) -> Self {
        let log_deviation = match &mut self {
            Self::LowRank(posterior) => &mut posterior.log_deviation,
            Self::MeanField(posterior) => &mut posterior.log_deviation,
            Self::Point(posterior) => {
                let (mean, device) = (to_host(posterior.mean.val()), posterior.mean.device());
                return Self::MeanField(MeanFieldGaussian::new(mean, by, &device));
            }
        };
        *log_deviation = map(log_deviation, |x| x.exp().hypot(by).ln());
        self
    }

    /// The distribution of the values times a positive factor.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let times = |param: &Param<Tensor<1>>| map(param, |x| x * factor);
        let wider = |param: &Param<Tensor<1>>| map(param, |x| x + factor.ln());
        match self {
            Self::LowRank(posterior) => Self::LowRank(posterior.scaled(factor)),
            Self::MeanField(posterior) => Self::MeanField(MeanFieldGaussian {
                mean: times(&posterior.mean),
                log_deviation: wider(&posterior.log_deviation),
            }),
            Self::Point(posterior) => Self::Point(PointEstimate {
                mean: times(&posterior.mean),
            }),
        }
    }
}

/// The mean of a posterior, moved.
fn moved(mean: &Param<Tensor<1>>, by: f64) -> Param<Tensor<1>> {
    map(mean, |x| x + by)
}

/// Gives a parameter on an autodiff device other values, which begin a tape.
fn set<const D: usize>(param: &mut Param<Tensor<D>>, numbers: Tensor<D>) {
    *param = Param::initialized(param.id, Tensor::from_inner(numbers).require_grad());
}

/// The parameter with every number changed.
fn map(param: &Param<Tensor<1>>, change: impl Fn(f64) -> f64) -> Param<Tensor<1>> {
    let numbers = to_host(param.val()).into_iter();
    with_values(param, numbers.map(change).collect())
}

impl FromNormals for AnyPosterior {
    fn normals(&self) -> usize {
        each!(self, posterior => posterior.normals())
    }

    fn sample_of(&self, normals: Option<Tensor<1>>) -> Tensor<1> {
        each!(self, posterior => posterior.sample_of(normals))
    }
}

impl Posterior for AnyPosterior {
    fn mean(&self) -> Tensor<1> {
        each!(self, posterior => posterior.mean())
    }

    fn sample(&self, key: NoiseKey) -> Tensor<1> {
        each!(self, posterior => posterior.sample(key))
    }

    fn kl(&self, prior_variance: Tensor<1>, weight: f64) -> Tensor<1> {
        each!(self, posterior => posterior.kl(prior_variance, weight))
    }

    fn entropy(&self) -> f64 {
        each!(self, posterior => posterior.entropy())
    }
}

/// A parameter on `device` out of values on the host.
fn constant(value: f64, count: usize, device: &Device) -> Param<Tensor<1>> {
    crate::nn::parameter(vec![value; count], [count], device)
}
