//! What a case starts from and what ours makes of it, as a safetensors file for the peers to check.

use std::collections::HashMap;

use burn::module::{ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use safetensors::tensor::{Dtype, TensorView};

/// One tensor of the file.
pub struct Exported {
    pub name: String,
    pub kind: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

pub fn numbers(name: impl Into<String>, shape: &[usize], values: &[f32]) -> Exported {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    Exported {
        name: name.into(),
        kind: Dtype::F32,
        shape: shape.to_vec(),
        bytes: bytes.collect(),
    }
}

pub fn tensor<const D: usize>(name: impl Into<String>, tensor: Tensor<D>) -> Exported {
    let shape = tensor.dims();
    let values: Vec<f32> = tensor.into_data().try_into_vec().expect("f32");
    numbers(name, &shape, &values)
}

pub fn write(file: &str, tensors: &[Exported]) {
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .map(|tensor| {
            let view = TensorView::new(tensor.kind, tensor.shape.clone(), &tensor.bytes);
            (tensor.name.as_str(), view.expect("sizes fit"))
        })
        .collect();
    std::fs::write(file, safetensors::serialize(views, None).expect("valid")).expect("written");
}

/// The name of a parameter from its path of fields.
pub type Name = fn(&[String]) -> Option<String>;

/// The parameters of a module.
#[derive(Default)]
pub struct Collect<'a> {
    /// With these, `gradient.NAME` beside `parameter.NAME`.
    pub gradients: Option<&'a Gradients>,
    /// The whole path unless given; where it gives none, the parameter is left out.
    pub name: Option<Name>,
    pub path: Vec<String>,
    pub found: Vec<Exported>,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = match self.name {
            Some(name) => name(&self.path),
            None => Some(self.path.join(".")),
        };
        let Some(name) = name else { return };
        let value = param.val();
        if let Some(gradients) = self.gradients {
            let gradient = value.grad(gradients).expect("a gradient");
            self.found
                .push(tensor(format!("gradient.{name}"), gradient));
        }
        self.found
            .push(tensor(format!("parameter.{name}"), value.inner()));
    }
}
