//! One parameter of a Bayesian network: its posterior, and its prior as a tensor.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

use super::normals::Normals;
use super::posterior::{
    AnyPosterior, FromNormals, INITIAL_DEVIATION, LowRankGaussian, MeanFieldGaussian,
    PointEstimate, Posterior,
};
use super::prior::SlopeConstants;
use super::{PosteriorKind, Prior, Site, SpectralPrior};
use crate::backend::fused::PlainGaussian;
use crate::nn::to_host;
use crate::noise::NoiseKey;
use crate::parameters::FoundParameter;

/// The posterior of one parameter, and of its prior's slope if that is learned.
#[derive(Module, Debug)]
pub struct Factor {
    /// Of the parameter.
    pub posterior: AnyPosterior,
    /// Of `z` with `alpha = softplus(z)`.
    pub slope: Option<MeanFieldGaussian>,
}

#[derive(Debug, Clone)]
pub(super) enum PriorTensor {
    /// `[1]` or `[d]`.
    Fixed(Box<Tensor<1>>),
    Learned(Box<(SpectralPrior, SlopeConstants)>),
}

/// `z` at the start: `alpha = softplus(z) = 1`, the paper's slope.
const INITIAL_SLOPE: f64 = 0.541_324_854_612_918_1;

impl Factor {
    pub(super) fn new(
        site: &Site,
        parameter: &FoundParameter,
        deviation: f64,
        key: NoiseKey,
    ) -> Self {
        let (values, device) = (parameter.values.clone(), &parameter.device);
        let posterior = match site.posterior {
            PosteriorKind::LowRank { rank, jitter } => AnyPosterior::LowRank(LowRankGaussian::new(
                values, rank, deviation, jitter, key, device,
            )),
            PosteriorKind::MeanField => {
                AnyPosterior::MeanField(MeanFieldGaussian::new(values, deviation, device))
            }
            PosteriorKind::Point | PosteriorKind::Deterministic => {
                AnyPosterior::Point(PointEstimate::new(values, device))
            }
        };
        let learned = matches!(&site.prior, Prior::Spectral(prior) if prior.learned().is_some());
        let slope =
            learned.then(|| MeanFieldGaussian::new(vec![INITIAL_SLOPE], INITIAL_DEVIATION, device));
        Self { posterior, slope }
    }

    /// The posterior off the tape, if all of it has a closed form.
    pub(super) fn plain(&self) -> Option<PlainGaussian> {
        match &self.slope {
            None => self.posterior.plain(),
            Some(_) => None,
        }
    }

    /// How many normal numbers a draw of the slope needs, if it is learned.
    pub(super) fn slope_normals(&self) -> Option<usize> {
        self.slope.as_ref().map(FromNormals::normals)
    }

    /// `weight * KL` of the parameter and of the slope, which is the next draw if it is learned.
    pub(super) fn kl(&self, prior: &PriorTensor, weight: f64, normals: &mut Normals) -> Tensor<1> {
        let prior = match (prior, &self.slope) {
            (PriorTensor::Fixed(variance), _) => variance.as_ref().clone(),
            (PriorTensor::Learned(prior), slope) => {
                let slope = slope.as_ref().expect("made together with the prior");
                let z = normals.draw(slope);
                let unit = Tensor::ones([1], &z.device());
                let kl = self.posterior.kl(prior.1.variances(z), weight);
                return kl + slope.kl(unit, weight);
            }
        };
        self.posterior.kl(prior, weight)
    }
}

impl PriorTensor {
    pub(super) fn new(prior: &Prior, device: &Device) -> Self {
        let tensor = |values: Vec<f64>| {
            let shape = [values.len()];
            Self::Fixed(Box::new(Tensor::from_data(
                TensorData::new(values, shape),
                device,
            )))
        };
        match prior {
            Prior::Normal { variance } => tensor(vec![*variance]),
            Prior::Diagonal(variances) => tensor(variances.clone()),
            Prior::Spectral(prior) => match prior.learned() {
                Some(slope) => Self::Learned(Box::new((prior.clone(), slope.on(device)))),
                None => tensor(prior.variances().to_vec()),
            },
        }
    }

    pub(super) fn variances(&self) -> Vec<f64> {
        match self {
            Self::Fixed(variance) => to_host(variance.as_ref().clone()),
            Self::Learned(prior) => prior.0.variances().to_vec(),
        }
    }

    pub(super) fn to_device(&self, device: &Device) -> Self {
        match self {
            Self::Fixed(variances) => {
                Self::Fixed(Box::new(variances.as_ref().clone().to_device(device)))
            }
            Self::Learned(prior) => {
                let (prior, slope) = prior.as_ref();
                Self::Learned(Box::new((prior.clone(), slope.to_device(device))))
            }
        }
    }
}
