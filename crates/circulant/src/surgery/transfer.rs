//! From a dense module to one with structured layers at some of its paths: the start of fine-tuning.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::SurgeryError;
use super::projection::{Projection, finite};
use crate::nn::{COORDINATES, to_host};
use crate::operator::{Layout, Operator};
use crate::parameters::{ParameterPath, field, parameter_shapes, put_values, spectral_layers};

/// A layer that was projected.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TransferredLayer {
    /// Its path.
    pub path: String,
    /// `[in, out]`.
    pub shape: [usize; 2],
    /// The length of a block; of a circulant layer the larger side.
    pub block: usize,
    /// `norm(W - C)/norm(W)`, without what a mask drops.
    pub relative_error: f64,
}

/// `target` with the values of `source`. Parameters of the same path and shape are copied; where `target` has a
/// [`SpectralCirculant1d`](crate::nn::SpectralCirculant1d) or a [`BlockCirculant1d`](crate::nn::BlockCirculant1d) and `source` a `Linear`, the
/// layer becomes the nearest one, a scalar bias the mean. So the types of the modules are the rule, in any Burn module: for instance
/// fields of the type [`Projection`](crate::models::Projection) that are dense in one and blocks in the other, where
/// [`block_table`](super::block_table) says it costs least. Nothing of `target` may be left without a source.
///
/// ```
/// use circulant::models::{ProjectionKind, VisionTransformerConfig};
/// use circulant::surgery::transfer;
///
/// let config = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense)
///     .with_d(8).with_depth(2).with_heads(2);
/// let trained = config.init(&circulant::cpu());
/// let compact = config.with_mlp([ProjectionKind::Blocks(4); 2]).init(&circulant::cpu().autodiff());
/// let (compact, layers) = transfer(&trained, compact)?; // fine-tune it
/// assert_eq!(layers.len(), 4);
/// assert_eq!((layers[0].path.as_str(), layers[0].block), ("blocks.0.contract", 4));
/// # let _ = compact;
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn transfer<S: Module, T: Module>(
    source: &S,
    target: T,
) -> Result<(T, Vec<TransferredLayer>), SurgeryError> {
    let mut values = Values::default();
    source.visit(&mut values);
    let values = values.found;
    let mut layers = Vec::new();
    let mut put = BTreeMap::new();
    let structured = spectral_layers(&target);
    let shapes = parameter_shapes(&target);
    for (path, layout) in &structured {
        let coordinates = field(path, COORDINATES);
        if values.contains_key(&coordinates) {
            continue;
        }
        let Some((shape, matrix)) = values.get(&field(path, "weight")) else {
            continue;
        };
        let &[d_in, d_out] = shape.as_slice() else {
            continue;
        };
        let (height, block) = layout.grid();
        let fits = height == 1
            && match layout {
                Layout::Signal(_) => block == d_in.max(d_out),
                Layout::Image { .. } => {
                    layout.channels() == (d_in.div_ceil(block), d_out.div_ceil(block))
                }
            };
        if !fits {
            continue;
        }
        let matrix = finite(matrix.clone()).map_err(SurgeryError::of_layer(path))?;
        let projection = Projection::of(&matrix, [d_in, d_out], block);
        let operator = Operator::of(layout.clone());
        let mut spectrum = vec![0.0; operator.coordinates()];
        let transform = &operator.plans::<f64>().filters;
        transform
            .analyse(&projection.filters, &mut spectrum)
            .expect("the filters of this layout");
        put.insert(coordinates, spectrum);
        layers.push(TransferredLayer {
            path: path.clone(),
            shape: [d_in, d_out],
            block,
            relative_error: projection.relative_error,
        });
    }
    for (path, expected) in shapes {
        if put.contains_key(&path) {
            continue;
        }
        let bias_of = path
            .strip_suffix("bias")
            .map(|layer| layer.trim_end_matches('.'));
        let scalar = expected == [1] && bias_of.is_some_and(|layer| structured.contains_key(layer));
        let found = match values.get(&path) {
            Some((shape, values)) if *shape == expected => values.clone(),
            Some((shape, values)) if scalar && shape.len() == 1 => {
                vec![values.iter().sum::<f64>() / values.len() as f64]
            }
            other => {
                let found = match other {
                    Some((shape, _)) => format!("found the shape {shape:?}"),
                    None => "found none".to_owned(),
                };
                return Err(SurgeryError::NoSource {
                    path,
                    expected,
                    found,
                });
            }
        };
        put.insert(path, found);
    }
    Ok((put_values(target, put), layers))
}

/// Shapes and values of all parameters by their paths.
#[derive(Default)]
struct Values {
    path: ParameterPath,
    found: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
}

impl ModuleVisitor for Values {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        self.found
            .insert(self.path.name(), (shape, to_host(tensor)));
    }
}
