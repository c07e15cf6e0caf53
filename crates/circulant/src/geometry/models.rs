//! The bounds of the models of this library. Attention has none, and the vision transformer says so.

use super::{GeometryError, Lipschitz, LipschitzActivation, NetworkBound, SameConvolution};
use crate::models::{Attention, HiddenLayer, ImageClassifier, VisionTransformer};

impl Lipschitz for ImageClassifier {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        let mut parts = Vec::new();
        for (name, layer) in self.hidden_layers() {
            let name = name.as_str();
            parts.push(match layer {
                HiddenLayer::SpectralCirculant(layer) => NetworkBound::layer(name, layer),
                HiddenLayer::BlockCirculant(layer) => NetworkBound::layer(name, layer),
                HiddenLayer::SpectralBccb(layer) => NetworkBound::layer(name, layer),
                HiddenLayer::SpatialCirculant(layer) => NetworkBound::layer(name, layer),
                HiddenLayer::SpatialBccb(layer) => NetworkBound::layer(name, layer),
                HiddenLayer::Convolution(layer) => {
                    NetworkBound::layer(name, &SameConvolution::new(layer, self.grid()))
                }
                HiddenLayer::Dense(layer) => NetworkBound::layer(name, layer),
            }?);
            parts.push(NetworkBound::activation(LipschitzActivation::Tanh));
        }
        parts.push(NetworkBound::layer("output", &self.output)?);
        Ok(NetworkBound::sequence(parts))
    }
}

fn attention_has_no_bound(layer: &str) -> GeometryError {
    GeometryError::NoBound {
        layer: layer.to_owned(),
        reason: "the products of dot-product attention grow with the square of its input, so it has no global \
                 Lipschitz constant; look at the norms of its projections instead"
            .to_owned(),
    }
}

/// Always an error: dot-product attention has no global Lipschitz constant.
impl Lipschitz for Attention {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        Err(attention_has_no_bound("attention"))
    }
}

/// Always an error that names the first attention layer.
impl Lipschitz for VisionTransformer {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        Err(attention_has_no_bound("blocks.0.attention"))
    }
}
