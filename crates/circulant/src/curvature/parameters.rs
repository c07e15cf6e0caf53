//! The values of a subspace as one vector: out of a module, into a copy of it, and out of its gradients.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Gradients, Shape, Tensor, TensorData};

use super::{CurvatureError, Subspace};
use crate::nn::to_host;
use crate::parameters::trained_parameters;

/// One parameter of the subspace.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) path: String,
    /// Which float parameter of the module it is, in the order of visits.
    position: usize,
    shape: Shape,
    /// Its part of the vector.
    pub(super) range: std::ops::Range<usize>,
}

/// The parameters of a subspace and their values.
#[derive(Debug, Clone)]
pub(super) struct Parameters {
    pub(super) list: Vec<Parameter>,
    pub(super) values: Vec<f64>,
}

impl Parameters {
    pub(super) fn of<M: Module>(module: &M, subspace: &Subspace) -> Result<Self, CurvatureError> {
        let found = trained_parameters(module);
        let paths: Vec<String> = found.iter().map(|found| found.path.clone()).collect();
        let selected = subspace.select(&paths)?;
        let (mut list, mut values) = (Vec::new(), Vec::new());
        let chosen = found.into_iter().zip(selected);
        for (parameter, _) in chosen.filter(|(_, selected)| *selected) {
            if !parameter.device.is_autodiff() {
                return Err(CurvatureError::NoGradients {
                    path: parameter.path,
                });
            }
            if !parameter.values.iter().all(|value| value.is_finite()) {
                return Err(CurvatureError::NotFinite {
                    what: format!("a number of the parameter {:?}", parameter.path),
                });
            }
            let start = values.len();
            values.extend(parameter.values);
            list.push(Parameter {
                path: parameter.path,
                position: parameter.position,
                shape: parameter.shape,
                range: start..values.len(),
            });
        }
        if values.is_empty() {
            return Err(CurvatureError::EmptySubspace { known: paths });
        }
        Ok(Self { list, values })
    }

    /// A copy of `module` with these values in the place of the subspace's, in f64.
    pub(super) fn put<M: Module>(&self, module: &M, values: &[f64], gradients: bool) -> M {
        module.clone().map(&mut PutSubspace {
            visited: 0,
            parameters: self.list.iter().peekable(),
            values,
            gradients,
        })
    }

    /// Adds the gradients of the parameters of `module` to `sum`; a parameter without one does not take part.
    pub(super) fn add_gradients<M: Module>(
        &self,
        module: &M,
        gradients: &Gradients,
        sum: &mut [f64],
    ) -> Result<(), CurvatureError> {
        let mut reader = Read {
            visited: 0,
            parameters: self.list.iter().peekable(),
            gradients,
            sum,
            not_finite: None,
        };
        module.visit(&mut reader);
        match reader.not_finite {
            None => Ok(()),
            Some(path) => Err(CurvatureError::NotFinite {
                what: format!("the gradient of the parameter {path:?}"),
            }),
        }
    }
}

/// Every float parameter as f64, as the products need them.
pub(super) fn in_double<M: Module>(module: M) -> M {
    module.map(&mut ToDouble)
}

struct ToDouble;

impl ModuleMapper for ToDouble {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let tensor = param.val();
        if tensor.dtype() == DType::F64 {
            return param;
        }
        let shape = tensor.shape();
        let device = tensor.device();
        let data = TensorData::new(to_host(tensor), shape);
        Param::initialized(param.id, Tensor::from_data(data, (&device, DType::F64)))
    }
}

type Queue<'a> = std::iter::Peekable<std::slice::Iter<'a, Parameter>>;

struct PutSubspace<'a> {
    visited: usize,
    parameters: Queue<'a>,
    values: &'a [f64],
    gradients: bool,
}

impl ModuleMapper for PutSubspace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.visited;
        self.visited += 1;
        let Some(parameter) = self.parameters.next_if(|next| next.position == position) else {
            return param;
        };
        let values = self.values[parameter.range.clone()].to_vec();
        let data = TensorData::new(values, parameter.shape.clone());
        let tensor = Tensor::from_data(data, (&param.val().device(), DType::F64));
        Param::initialized(param.id, tensor.set_require_grad(self.gradients))
    }
}

struct Read<'a> {
    visited: usize,
    parameters: Queue<'a>,
    gradients: &'a Gradients,
    sum: &'a mut [f64],
    not_finite: Option<String>,
}

impl ModuleVisitor for Read<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let position = self.visited;
        self.visited += 1;
        let Some(parameter) = self.parameters.next_if(|next| next.position == position) else {
            return;
        };
        let Some(gradient) = param.val().grad(self.gradients) else {
            return;
        };
        let gradient = to_host(gradient);
        if !gradient.iter().all(|value| value.is_finite()) {
            self.not_finite.get_or_insert(parameter.path.clone());
        }
        let sum = &mut self.sum[parameter.range.clone()];
        sum.iter_mut()
            .zip(gradient)
            .for_each(|(sum, value)| *sum += value);
    }
}
