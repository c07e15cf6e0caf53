//! The models of the paper's experiments, as Burn modules, and their parameter counts.
//!
//! | model | module |
//! | --- | --- |
//! | images, or frozen features: hidden layers with tanh, a linear read-out (MNIST's as the default) | [`ImageClassifier`] |
//! | vision transformer with dense or structured projections, role by role | [`VisionTransformer`] |
//! | orthogonal convolutions, Lipschitz constant one | [`OrthogonalNetwork`] |
//! | numbers or counts in the place of classes | [`TargetNetwork`] |
//!
//! [`parameter_table`] counts all of them, and [`SavedClassifier`] takes a trained one elsewhere.

mod attention;
mod block;
mod counts;
mod hidden_layer;
mod image_classifier;
mod normalised_readout;
mod orthogonal_network;
mod projection;
mod saved;
mod seeds;
mod target_network;
mod vision_transformer;

pub use attention::Attention;
pub use block::Block;
pub use counts::{CountedModel, ParameterCount, parameter_table};
pub use hidden_layer::{HiddenKind, HiddenLayer};
pub use image_classifier::{ImageClassifier, ImageClassifierConfig};
pub use normalised_readout::NormalisedReadout;
pub use orthogonal_network::{OrthogonalNetwork, OrthogonalNetworkConfig};
pub use projection::{Projection, ProjectionKind};
pub use saved::{SavedClassifier, SavedError, weight_sites};
pub use target_network::{Likelihood, TargetNetwork, TargetNetworkConfig};
pub use vision_transformer::{VisionTransformer, VisionTransformerConfig};
