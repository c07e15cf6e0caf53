//! The models of the paper's experiments, as Burn modules, and their parameter counts.
//!
//! | model | module |
//! | --- | --- |
//! | MNIST: a hidden layer, tanh, a linear read-out | [`MnistModel`] |
//! | heads on frozen features of 2048 numbers | [`FeatureHead`] |
//! | vision transformer with dense or spectral projections | [`VisionTransformer`] |
//!
//! [`parameter_table`] counts all of them.

mod attention;
mod counts;
mod feature_head;
mod initial;
mod mnist;
mod vision_transformer;

pub use attention::{Attention, Projection, ProjectionKind};
pub use counts::{CountedModel, ParameterCount, parameter_table};
pub use feature_head::{FeatureHead, FeatureHeadConfig, FeatureLayer};
pub use mnist::{HiddenKind, HiddenLayer, MnistModel, MnistModelConfig};
pub use vision_transformer::{Block, VisionTransformer, VisionTransformerConfig};
