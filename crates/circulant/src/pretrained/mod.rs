//! Weights of other libraries by a map of names: PyTorch models, as safetensors or as `torch.save` writes them, into Burn modules;
//! and C3A adapters of the `peft` package into layers of circulant blocks ([`load_c3a`]).
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

mod c3a;
mod error;
mod names;
mod tensors;

use std::path::Path;

use burn::module::Module;

pub use c3a::load_c3a;
pub use error::PretrainedError;
pub use names::NameMap;

use crate::models::VisionTransformer;
use crate::parameters::{parameter_shapes, put_values};
use tensors::{File, is_float};

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

/// A matrix of a checkpoint.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Matrix {
    /// Its name in the file.
    pub name: String,
    /// As it is there.
    pub shape: [usize; 2],
    /// Row-major.
    pub values: Vec<f64>,
}

/// All float tensors of a checkpoint with two axes of more than one, in the order of their names.
pub fn matrices(path: impl AsRef<Path>) -> Result<Vec<Matrix>, PretrainedError> {
    let file = File::read(path.as_ref())?;
    let tensors = file.tensors()?;
    let mut found = Vec::new();
    for (name, tensor) in tensors.tensors() {
        let &[rows, columns] = tensor.shape() else {
            continue;
        };
        if rows > 1 && columns > 1 && is_float(tensor.dtype()) {
            found.push(Matrix {
                values: file.values(&name, &tensor)?,
                name,
                shape: [rows, columns],
            });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn apply<M: Module>(module: &mut M, file: &File, names: &NameMap) -> Result<(), PretrainedError> {
    let values = tensors::converted(file, names, &parameter_shapes(module))?;
    *module = put_values(module.clone(), values);
    Ok(())
}
