//! What others do instead of a posterior over all weights, on the same models.
//!
//! | baseline | what it is | here |
//! | --- | --- | --- |
//! | softmax | one network | a point estimate: [`Site::point`](crate::bayes::Site::point) |
//! | temperature scaling | one number by held-out data (Guo et al., 2017) | [`temperature`], for posteriors [`calibrate`](crate::bayes::calibrate) |
//! | deep ensemble | networks from several seeds (Lakshminarayanan et al., 2017) | [`average`] |
//! | MC dropout | masks in prediction too (Gal and Ghahramani, 2016) | [`DropoutClassifier`] |
//! | last-layer Laplace | a Gaussian around the read-out (Kristiadi et al., 2020) | [`LastLayerLaplace`] |
//! | feature density | a Gaussian per class on the hidden layer (DDU; Mukhoti et al., 2023) | [`FeatureDensity`] |
//!
//! [`LinearReadout`] gives the hidden layer of a classifier. Everything else takes plain slices, row-major.
//!
//! ```
//! use circulant::baselines::FeatureDensity;
//! use circulant::metrics::auroc;
//!
//! // Two classes in two features, and inputs between and beside them.
//! let features = [0.0, 0.1, 0.1, 0.0, -0.1, 0.0, 0.0, -0.1, 5.0, 5.1, 5.1, 5.0, 4.9, 5.0, 5.0, 4.9];
//! let labels = [0_usize, 0, 0, 0, 1, 1, 1, 1];
//! let density = FeatureDensity::fit(&features, 2, &labels, 2, 2)?;
//! let familiar = density.log_densities(&[0.0, 0.0, 5.0, 5.0])?;
//! let other = density.log_densities(&[2.5, 2.5, 5.0, 0.0])?;
//! assert_eq!(auroc(&familiar, &other)?, 1.0);
//! # Ok::<(), circulant::metrics::MetricError>(())
//! ```

mod density;
mod dropout;
mod ensemble;
mod laplace;
mod matrix;
mod readout;
mod temperature;

pub use self::density::FeatureDensity;
pub use self::dropout::DropoutClassifier;
pub use self::ensemble::average;
pub use self::laplace::LastLayerLaplace;
pub use self::readout::{HiddenFeatures, LinearReadout};
pub use self::temperature::temperature;
