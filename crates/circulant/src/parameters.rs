//! The parameters of a module and their paths: the names of the fields, without those of enum variants, as in records.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Shape, Tensor};

use crate::nn::{COORDINATES, SpectrumMark, to_host, with_values};
use crate::operator::Layout;

/// Where the walk is.
#[derive(Debug, Default)]
pub(crate) struct ParameterPath(Vec<String>);

impl ParameterPath {
    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_owned());
        }
    }

    pub(crate) fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }

    pub(crate) fn name(&self) -> String {
        self.0.join(".")
    }

    /// What the paths of the fields beside the one that was entered last begin with.
    pub(crate) fn around(&self) -> String {
        let around = self.0.split_last().map_or(&[][..], |(_, around)| around);
        around.iter().flat_map(|name| [name, "."]).collect()
    }
}

/// A float parameter that is trained.
pub(crate) struct FoundParameter {
    pub(crate) id: ParamId,
    pub(crate) path: String,
    /// Which float parameter of the module it is, in the order of visits.
    pub(crate) position: usize,
    pub(crate) shape: Shape,
    pub(crate) values: Vec<f64>,
    pub(crate) device: Device,
    /// The layout, if these are the coordinates of a spectral layer.
    pub(crate) spectrum: Option<Layout>,
}

/// All of them, in the order of visits. Frozen ones and running statistics are left out.
pub(crate) fn trained_parameters<M: Module>(module: &M) -> Vec<FoundParameter> {
    let mut search = Search::default();
    module.visit(&mut search);
    for (layer, layout) in search.spectra {
        let coordinates = layer + COORDINATES;
        let found = search.found.iter_mut();
        if let Some(found) = found.into_iter().find(|found| found.path == coordinates) {
            found.spectrum = Some(layout);
        }
    }
    search.found
}

/// A number that changes with the values of the trained parameters.
pub(crate) fn checksum<M: Module>(module: &M) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    for found in trained_parameters(module) {
        let bytes = found.values.iter().flat_map(|value| value.to_le_bytes());
        hash.update(&bytes.collect::<Vec<u8>>());
    }
    hash.finalize()
}

/// The layouts of all spectral layers of a module, by the paths of the layers.
pub(crate) fn spectral_layers<M: Module>(module: &M) -> BTreeMap<String, Layout> {
    let mut search = Search::default();
    module.visit(&mut search);
    let spectra = search.spectra.into_iter();
    spectra
        .map(|(layer, layout)| (layer.trim_end_matches('.').to_owned(), layout))
        .collect()
}

/// The path of a field of the layer at `layer`.
pub(crate) fn field(layer: &str, name: &str) -> String {
    if layer.is_empty() {
        name.to_owned()
    } else {
        format!("{layer}.{name}")
    }
}

#[derive(Default)]
struct Search {
    path: ParameterPath,
    visited: usize,
    found: Vec<FoundParameter>,
    /// The spectral layers, as the beginning of the paths of their parameters.
    spectra: Vec<(String, Layout)>,
}

impl ModuleVisitor for Search {
    fn enter_module(&mut self, name: &str, container: &str) {
        if let Some(layout) = SpectrumMark::layout(name, container) {
            self.spectra.push((self.path.around(), layout));
        }
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (tensor, position) = (param.val(), self.visited);
        self.visited += 1;
        let device = tensor.device();
        let is_trained = if device.is_autodiff() {
            tensor.is_require_grad()
        } else {
            // Without gradients only the parameter itself knows whether it is to have them.
            param.clone().train().val().is_require_grad()
        };
        if !is_trained {
            return;
        }
        self.found.push(FoundParameter {
            id: param.id,
            path: self.path.name(),
            position,
            shape: tensor.shape(),
            values: to_host(tensor),
            device,
            spectrum: None,
        });
    }
}

/// The shapes of all parameters by their paths.
pub(crate) fn parameter_shapes<M: Module>(module: &M) -> BTreeMap<String, Vec<usize>> {
    let mut shapes = Shapes::default();
    module.visit(&mut shapes);
    shapes.shapes
}

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

/// The module with other values for the parameters at these paths.
pub(crate) fn put_values<M: Module>(module: M, values: BTreeMap<String, Vec<f64>>) -> M {
    module.map(&mut PutValues {
        path: ParameterPath::default(),
        values,
    })
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

/// Burn's parameter ids are random, and optimisers file their state under them: ids made of the paths let a state be
/// found again by another process.
pub(crate) fn with_stable_ids<M: Module>(module: M) -> M {
    module.map(&mut StableIds::default())
}

#[derive(Default)]
struct StableIds(ParameterPath);

impl ModuleMapper for StableIds {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.0.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // FNV-1a: ids need only differ within one network.
        let hash = self
            .0
            .name()
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
            });
        let (_, value, mapper) = param.consume();
        Param::from_mapped_value(ParamId::from(hash), value, mapper)
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};

    use super::*;
    use crate::bayes::BayesianConfig;
    use crate::noise::{Noise, Purpose};

    #[derive(Module, Debug)]
    struct Encoder {
        frozen: Linear,
        norm: BatchNorm,
        output: Linear,
    }

    const TRAINED: [&str; 4] = ["norm.gamma", "norm.beta", "output.weight", "output.bias"];

    #[test]
    fn frozen_parameters_and_running_statistics_are_not_trained_on_any_device() {
        for device in [crate::cpu(), crate::cpu().autodiff()] {
            let encoder = Encoder {
                frozen: LinearConfig::new(3, 4).init(&device).no_grad(),
                norm: BatchNormConfig::new(4).init(&device),
                output: LinearConfig::new(4, 2).init(&device),
            };
            let paths = |module: &Encoder| -> Vec<String> {
                let found = trained_parameters(module).into_iter();
                found.map(|found| found.path).collect()
            };
            assert_eq!(paths(&encoder), TRAINED);
            let network = BayesianConfig::new().init(encoder).expect("valid");
            let sites: Vec<&str> = network.posteriors().map(|(path, _)| path).collect();
            assert_eq!(sites, TRAINED);
            // Whatever is drawn is as trainable as the network was.
            let noise = Noise::new(1, Purpose::Prediction, 0, 0);
            for module in [network.valid().mean(), network.valid().sample(noise)] {
                assert_eq!(paths(&module), TRAINED);
            }
        }
    }
}
