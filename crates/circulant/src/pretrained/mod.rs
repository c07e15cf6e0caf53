//! Weights of other libraries by a map of names: PyTorch models, as safetensors or as `torch.save` writes them, into Burn modules.
//!
//! PyTorch stores the matrix of a dense layer as `[out, in]`, Burn as `[in, out]`; timm and `torch.nn.MultiheadAttention` keep
//! queries, keys and values in one tensor; the patch embedding is a convolution `[d, C, p, p]` there and a dense layer
//! `[C*p*p, d]` here, over the same order of pixels. [`NameMap`] describes all of it. Nothing is changed unless every tensor
//! of the file has a place and every parameter a tensor.
//!
//! timm's layer norms add `1e-6` to the variance, Burn's and torch's `1e-5`: logits differ slightly where a variance is small.
//!
//! ```no_run
//! use circulant::models::{ProjectionKind, VisionTransformerConfig};
//! use circulant::pretrained;
//!
//! // vit_tiny_patch16_224 of timm.
//! let config = VisionTransformerConfig::new(224, 16, 1000, ProjectionKind::Dense)
//!     .with_d(192).with_depth(12).with_heads(3);
//! let mut model = config.init(&circulant::cpu());
//! pretrained::load_vision_transformer(&mut model, "model.safetensors")?;
//! # Ok::<(), pretrained::PretrainedError>(())
//! ```

mod error;
mod names;
mod tensors;

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

pub use error::PretrainedError;
pub use names::NameMap;

use crate::models::VisionTransformer;
use crate::nn::with_values;
use crate::parameters::ParameterPath;
use tensors::File;

/// Reads a dense vision transformer with the names of timm, torchvision or Hugging Face, which are told apart by themselves;
/// a prefix such as `module.` may stand before them.
pub fn load_vision_transformer(
    model: &mut VisionTransformer,
    path: impl AsRef<Path>,
) -> Result<(), PretrainedError> {
    let file = File::read(path.as_ref())?;
    let names = NameMap::detect(file.names());
    let names = names.ok_or_else(|| PretrainedError::UnknownNames {
        path: file.path.clone(),
        found: file.names().map(str::to_owned).collect(),
    })?;
    apply(model, &file, &names)
}

/// Reads the parameters of `module` from a checkpoint with other names. On any error the module is as it was.
pub fn load<M: Module>(
    module: &mut M,
    path: impl AsRef<Path>,
    names: &NameMap,
) -> Result<(), PretrainedError> {
    apply(module, &File::read(path.as_ref())?, names)
}

fn apply<M: Module>(module: &mut M, file: &File, names: &NameMap) -> Result<(), PretrainedError> {
    let mut shapes = Shapes::default();
    module.visit(&mut shapes);
    let values = tensors::converted(file, names, &shapes.shapes)?;
    *module = module.clone().map(&mut PutValues {
        path: ParameterPath::default(),
        values,
    });
    Ok(())
}

/// The shapes of all parameters by their paths.
#[derive(Default)]
struct Shapes {
    path: ParameterPath,
    shapes: BTreeMap<String, Vec<usize>>,
}

impl ModuleVisitor for Shapes {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape().to_vec();
        self.shapes.insert(self.path.name(), shape);
    }
}

struct PutValues {
    path: ParameterPath,
    values: BTreeMap<String, Vec<f64>>,
}

impl ModuleMapper for PutValues {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.values.remove(&self.path.name()) {
            Some(values) => with_values(&param, values),
            None => param,
        }
    }
}
