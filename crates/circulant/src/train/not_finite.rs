//! What has stopped being finite, for the error that names it.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use crate::parameters::ParameterPath;

/// Finds a parameter, or failing that a gradient, that is not finite.
struct FindNotFinite<'a> {
    path: ParameterPath,
    gradients: Option<&'a GradientsParams>,
    found: Option<String>,
}

impl ModuleVisitor for FindNotFinite<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = match self.gradients {
            None => Some(param.val().inner()),
            Some(gradients) => gradients.get::<D>(param.id),
        };
        let is_bad = |tensor: Tensor<D>| tensor.into_data().iter::<f64>().any(|x| !x.is_finite());
        if self.found.is_none() && tensor.is_some_and(is_bad) {
            self.found = Some(self.path.name());
        }
    }
}

/// The first parameter, or gradient, of `network` that is not finite.
pub(crate) fn find_not_finite<M: Module>(
    network: &M,
    gradients: Option<&GradientsParams>,
) -> Option<String> {
    let mut find = FindNotFinite {
        path: ParameterPath::default(),
        gradients,
        found: None,
    };
    network.visit(&mut find);
    find.found
}
