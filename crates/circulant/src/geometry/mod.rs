//! Sound Lipschitz bounds and certificates.
//!
//! The norm of a circulant layer is the largest of its eigenvalues, which are its parameters: it costs nothing and is exact. From the norms of
//! its layers follows a bound of a network's sensitivity, and from that a radius inside which its decision cannot change.
//!
//! ```text
//! layers --OperatorNorm--> NormBounds --NetworkBound--> Lipschitz bound --CertificateConfig--> radii
//! ```
//!
//! | piece | what it is |
//! | --- | --- |
//! | [`UpperBound`], [`LowerBound`], [`Estimate`] | values that say on which side of the truth they are |
//! | [`OperatorNorm`], [`NormBounds`] | the norms of all linear layers, enclosed |
//! | [`Lipschitz`], [`NetworkBound`], [`LipschitzActivation`] | the bound of a network, from a description of it |
//! | [`CertificateConfig`], [`Certificate`] | radii per input, for the f32 forward pass as it is computed |
//! | [`PosteriorGeometryConfig`] | norms, margins and radii over posterior samples |
//! | [`PredictiveBoundsConfig`], [`PredictiveCertificate`] | radii of the averaged prediction, and bounds of its probabilities |
//! | [`TargetBoundsConfig`] | how far the prediction of a number can move |
//! | [`prior_norm_bound`], [`prior_network_bound`] | how large norms can be under the prior |
//! | [`AttackConfig`], [`Attacked`] | what projected gradient ascent finds inside a radius |
//! | [`NormControl`] | layers below a norm, also during training |
//! | [`NormPenalty`] | a differentiable upper bound of the norm, as a regulariser |
//!
//! Nothing here is a rounded estimate that might be too small: upper bounds are rounded up, radii down, and the rounding errors of the f32 forward
//! pass itself are subtracted from every margin ([`NetworkBound::rounding_error`]). One thing is not proven: the f32 errors of sigmoid,
//! silu, gelu and Burn's own tanh, which call functions of the platform, were measured at samples. A network that has one of
//! them says so ([`NetworkBound::is_proven`], [`Certificates::is_proven`]).
//!
//! A [`Certificate`] is about one network of fixed values: a point estimate, a posterior mean, one posterior sample. A [`PredictiveCertificate`] is about
//! the class probabilities that are averaged over samples, which is what is predicted ([`predictive`]).
//!
//! ```
//! use burn::tensor::Tensor;
//! use circulant::geometry::{CertificateConfig, Lipschitz, NormControl, Target};
//! use circulant::models::{HiddenKind, ImageClassifierConfig};
//!
//! let device = circulant::cpu();
//! let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 64]);
//! let mut head = config.with_classes(3).init(&device);
//! // At most 1-Lipschitz, layer by layer.
//! head.clip_norm(1.0)?;
//! let bound = head.network_bound()?;
//! for layer in bound.layers() {
//!     println!("{}: at most {}", layer.name(), layer.norm().upper());
//! }
//! assert!(bound.upper().get() <= 1.0 + 1e-12);
//! // The decision at x holds for every x' this near.
//! let x = Tensor::<2>::ones([1, 64], &device);
//! let certificates = CertificateConfig::new().certify(&head, x, Target::Predicted)?;
//! let first = certificates.inputs[0];
//! println!("radius {} (the paper's: {})", first.best(), first.paper);
//! assert!(first.best().get() >= first.paper.get());
//! # Ok::<(), circulant::geometry::GeometryError>(())
//! ```

pub mod activation;
pub mod attack;
mod bound;
pub mod certificate;
pub mod control;
mod diagonals;
pub mod distribution;
mod error;
mod exponential;
pub mod gram;
mod models;
pub mod network_bound;
pub mod norms;
pub mod padding;
pub mod predictive;
mod radii;
pub mod rounding;
mod singular_values;
mod summary;
pub mod tail;
pub mod target;

#[doc(inline)]
pub use self::activation::LipschitzActivation;
#[doc(inline)]
pub use self::attack::{AttackConfig, Attacked};
pub use self::bound::{Estimate, LowerBound, UpperBound};
#[doc(inline)]
pub use self::certificate::{Certificate, CertificateConfig, Certificates, Target};
#[doc(inline)]
pub use self::control::{NormControl, clip_convolution};
#[doc(inline)]
pub use self::distribution::{Distribution, Histogram, PosteriorGeometry, PosteriorGeometryConfig};
pub use self::error::GeometryError;
#[doc(inline)]
pub use self::gram::NormPenalty;
#[doc(inline)]
pub use self::network_bound::{LayerBound, Lipschitz, NetworkBound};
#[doc(inline)]
pub use self::norms::{NormBounds, OperatorNorm, SameConvolution};
#[doc(inline)]
pub use self::predictive::{
    PredictiveBounds, PredictiveBoundsConfig, PredictiveCertificate, PredictiveCertificates,
};
pub use self::singular_values::SingularValues;
pub use self::summary::{CertifiedAt, Quantiles, Radii};
#[doc(inline)]
pub use self::tail::{PriorNetworkBound, prior_network_bound, prior_norm_bound};
#[doc(inline)]
pub use self::target::{TargetBounds, TargetBoundsConfig};
