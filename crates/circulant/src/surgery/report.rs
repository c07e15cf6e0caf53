//! How far the dense layers of a module are from circulant ones.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::SurgeryError;
use super::projection::{Projection, finite};
use crate::nn::to_host;
use crate::parameters::ParameterPath;

/// What Burn calls the layers that are looked at.
const LINEAR: &str = "Struct:Linear";

/// One `Linear` of a module.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LinearReport {
    /// Its path, e.g. `blocks.0.attention.query`.
    pub path: String,
    /// `[in, out]`.
    pub shape: [usize; 2],
    /// `norm(W - C)/norm(W)` with the nearest circulant matrix `C`; cropped if the matrix is not square.
    pub relative_error: f64,
}

impl LinearReport {
    /// Whether the matrix is square, so that it can be replaced without padding or cropping.
    pub fn is_square(&self) -> bool {
        self.shape[0] == self.shape[1]
    }
}

/// All `Linear` layers of a module, in its order.
///
/// ```
/// use circulant::models::{ProjectionKind, VisionTransformerConfig};
/// use circulant::surgery::linear_report;
///
/// let model = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense)
///     .with_d(8).with_depth(1).with_heads(2).init(&circulant::cpu());
/// let report = linear_report(&model)?;
/// let square: Vec<_> = report.iter().filter(|layer| layer.is_square()).collect();
/// assert_eq!(square[0].path, "blocks.0.attention.query");
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn linear_report<M: Module>(module: &M) -> Result<Vec<LinearReport>, SurgeryError> {
    each_linear(module, |path, shape, values| LinearReport {
        path: path.to_owned(),
        shape,
        relative_error: Projection::of(values, shape, shape[0].max(shape[1])).relative_error,
    })
}

/// Something about the matrix of every `Linear` of a module, from its path, shape and values.
pub(super) fn each_linear<M: Module, R>(
    module: &M,
    make: impl Fn(&str, [usize; 2], &[f64]) -> R,
) -> Result<Vec<R>, SurgeryError> {
    let mut found = LinearSearch {
        path: ParameterPath::default(),
        stack: Vec::new(),
        make,
        layers: Vec::new(),
    };
    module.visit(&mut found);
    found.layers.into_iter().collect()
}

struct LinearSearch<F, R> {
    path: ParameterPath,
    /// Names and containers on the way to the parameter at hand.
    stack: Vec<(String, String)>,
    make: F,
    layers: Vec<Result<R, SurgeryError>>,
}

impl<F: Fn(&str, [usize; 2], &[f64]) -> R, R> ModuleVisitor for LinearSearch<F, R> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
        self.stack.push((name.to_owned(), container.to_owned()));
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
        self.stack.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let is_weight = self
            .stack
            .last()
            .is_some_and(|(name, container)| name == "weight" && container == LINEAR);
        if D != 2 || !is_weight {
            return;
        }
        let name = self.path.name();
        let path = name.trim_end_matches("weight").trim_end_matches('.');
        // D is 2: the same tensor under its type.
        let weight = Tensor::<2>::from_dispatch(param.val().into_dispatch());
        let shape = weight.dims();
        let values = finite(to_host(weight)).map_err(SurgeryError::of_layer(path));
        let made = values.map(|values| (self.make)(path, shape, &values));
        self.layers.push(made);
    }
}
