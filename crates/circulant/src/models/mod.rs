//! The models of the paper's experiments, as Burn modules, and their parameter counts.
//!
//! | model | module |
//! | --- | --- |
//! | images: hidden layers with tanh, a linear read-out (MNIST's as the default) | [`ImageClassifier`] |
//! | heads on frozen features of 2048 numbers | [`FeatureHead`] |
//! | vision transformer with dense or spectral projections | [`VisionTransformer`] |
//!
//! [`parameter_table`] counts all of them, and [`SavedClassifier`] takes a trained one elsewhere.

mod attention;
mod block;
mod counts;
mod feature_head;
mod hidden_layer;
mod image_classifier;

mod saved;
mod seeds;
mod vision_transformer;

pub use attention::{Attention, Projection, ProjectionKind};
pub use block::Block;
pub use counts::{CountedModel, ParameterCount, parameter_table};
pub use feature_head::{FeatureHead, FeatureHeadConfig, FeatureLayer};
pub use hidden_layer::{HiddenKind, HiddenLayer};
pub use image_classifier::{ImageClassifier, ImageClassifierConfig};
pub use saved::{SavedClassifier, SavedError};
pub use vision_transformer::{VisionTransformer, VisionTransformerConfig};
