//! Dense projections of a vision transformer to spectral ones, and back.

use super::{LinearReport, SurgeryError, nearest_circulant, to_dense};
use crate::models::{Attention, Projection, VisionTransformer};
use crate::nn::BiasKind;

/// The model with the nearest circulant in the place of every dense projection to queries, keys, values and output, and how
/// much each of them changed. Everything else, spectral projections too, stays as it is.
///
/// With [`BiasKind::Vector`] the biases are kept; with [`BiasKind::Scalar`] the model has the parameters of one made with
/// [`ProjectionKind::Spectral`](crate::models::ProjectionKind::Spectral), and its records fit.
///
/// ```
/// use circulant::models::{ProjectionKind, VisionTransformerConfig};
/// use circulant::nn::BiasKind;
/// use circulant::surgery::{to_dense_projections, to_spectral_projections};
///
/// let config = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense).with_d(8).with_depth(2).with_heads(2);
/// let dense = config.init(&circulant::cpu());
/// let (spectral, report) = to_spectral_projections(dense, BiasKind::Scalar)?;
/// for layer in &report {
///     println!("{}: {:.3}", layer.path, layer.relative_error);
/// }
/// let dense_again = to_dense_projections(spectral);
/// # let _ = dense_again;
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn to_spectral_projections(
    mut model: VisionTransformer,
    bias: BiasKind,
) -> Result<(VisionTransformer, Vec<LinearReport>), SurgeryError> {
    let mut reports = Vec::new();
    for (index, block) in model.blocks.iter_mut().enumerate() {
        for (name, projection) in projections(&mut block.attention) {
            let Projection::Dense(linear) = &*projection else {
                continue;
            };
            let path = format!("blocks.{index}.attention.{name}");
            let nearest = nearest_circulant(linear, bias).map_err(SurgeryError::of_layer(&path))?;
            reports.push(LinearReport {
                path,
                shape: linear.weight.dims(),
                relative_error: nearest.relative_error,
            });
            *projection = Projection::Spectral(nearest.layer);
        }
    }
    Ok((model, reports))
}

/// The model with dense matrices in the place of structured projections. It computes the same.
pub fn to_dense_projections(mut model: VisionTransformer) -> VisionTransformer {
    for block in &mut model.blocks {
        let attention = projections(&mut block.attention).map(|(_, projection)| projection);
        let mlp = [&mut block.expand, &mut block.contract];
        for projection in attention.into_iter().chain(mlp) {
            *projection = Projection::Dense(match &*projection {
                Projection::Dense(_) => continue,
                Projection::Spectral(layer) => to_dense(layer),
                Projection::Diagonal(layer) => to_dense(layer),
                Projection::Blocks(layer) => to_dense(layer),
            });
        }
    }
    model
}

fn projections(attention: &mut Attention) -> [(&'static str, &mut Projection); 4] {
    [
        ("query", &mut attention.query),
        ("key", &mut attention.key),
        ("value", &mut attention.value),
        ("output", &mut attention.output),
    ]
}
