//! Parameter counts, from the modules themselves.

use burn::module::Module;
use burn::store::ModuleSnapshot;
use burn::tensor::Device;

use super::{
    FeatureHeadConfig, HiddenKind, ImageClassifierConfig, ProjectionKind, VisionTransformer,
    VisionTransformerConfig,
};

/// Real numbers that a module learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterCount {
    /// Everything but the biases.
    pub weights: usize,
    /// The tensors named `bias`.
    pub biases: usize,
}

impl ParameterCount {
    /// Counts the parameters of a module.
    pub fn of<M: Module>(module: &M) -> Self {
        let is_bias = |name: &str| name == "bias" || name.ends_with(".bias");
        let mut count = Self {
            weights: 0,
            biases: 0,
        };
        for tensor in module.collect(None, None, true) {
            let numbers = tensor.shape.num_elements();
            if is_bias(&tensor.name) {
                count.biases += numbers;
            } else {
                count.weights += numbers;
            }
        }
        count
    }

    /// Weights and biases together.
    pub fn total(&self) -> usize {
        self.weights + self.biases
    }
}

/// One row of the table of parameter counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedModel {
    /// What the model is.
    pub model: String,
    /// Its real parameters.
    pub count: ParameterCount,
    /// The number that the paper prints for it.
    pub paper: usize,
    /// What the paper's number counts.
    pub paper_counts: &'static str,
}

const ALL: &str = "weights and biases";
const WEIGHTS: &str = "weights";
const BINS: &str = "a complex bin as one, and a slope per projection";

/// Builds every model of the paper and counts its parameters.
///
/// ```
/// let table = circulant::models::parameter_table(&burn::tensor::Device::flex());
/// assert!(table.iter().any(|row| row.count.total() == 8_635));
/// ```
pub fn parameter_table(device: &Device) -> Vec<CountedModel> {
    let mut table = Vec::new();
    let mnist = [
        ("MNIST spectral circulant", HiddenKind::SpectralCirculant),
        ("MNIST spectral BCCB", HiddenKind::SpectralBccb),
        ("MNIST spatial circulant", HiddenKind::SpatialCirculant),
        ("MNIST spatial BCCB", HiddenKind::SpatialBccb),
        ("MNIST convolution", HiddenKind::Convolution),
        ("MNIST dense", HiddenKind::Dense),
    ];
    for (model, kind) in mnist {
        let count = ParameterCount::of(&ImageClassifierConfig::new(kind).init(device));
        table.push(CountedModel {
            model: model.into(),
            count,
            paper: count.total(),
            paper_counts: ALL,
        });
    }
    let mut head = |model: String, config: FeatureHeadConfig| {
        let count = ParameterCount::of(&config.init(device));
        table.push(CountedModel {
            model,
            count,
            paper: count.weights,
            paper_counts: WEIGHTS,
        });
    };
    head(
        "CIFAR-10 head dense 32".into(),
        FeatureHeadConfig::new().with_dense(Some(32)),
    );
    for modes in [1025, 768, 512, 256, 128, 64] {
        let config = FeatureHeadConfig::new().with_modes(Some(modes));
        head(format!("CIFAR-10 head spectral K = {modes}"), config);
    }
    for (data, [image, patch, classes]) in
        [("CIFAR-10", [32, 4, 10]), ("Tiny ImageNet", [64, 8, 200])]
    {
        let kinds = [
            ("dense", ProjectionKind::Dense, ALL),
            ("spectral", ProjectionKind::Spectral, BINS),
        ];
        for (name, kind, paper_counts) in kinds {
            let model: VisionTransformer =
                VisionTransformerConfig::new(image, patch, classes, kind).init(device);
            table.push(CountedModel {
                model: format!("ViT {data} {name}"),
                count: ParameterCount::of(&model),
                paper: model.paper_count(),
                paper_counts,
            });
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    type Expected = (&'static str, Option<(usize, usize)>, Option<usize>, usize);

    /// The table of the specification: weights and biases where it gives them, the total, and
    /// the paper's number.
    const EXPECTED: [Expected; 17] = [
        (
            "MNIST spectral circulant",
            Some((8_624, 11)),
            Some(8_635),
            8_635,
        ),
        ("MNIST spectral BCCB", Some((8_624, 11)), Some(8_635), 8_635),
        (
            "MNIST spatial circulant",
            Some((8_624, 11)),
            Some(8_635),
            8_635,
        ),
        ("MNIST spatial BCCB", Some((8_624, 11)), Some(8_635), 8_635),
        (
            "MNIST convolution",
            Some((62_792, 18)),
            Some(62_810),
            62_810,
        ),
        ("MNIST dense", Some((622_496, 794)), Some(623_290), 623_290),
        ("CIFAR-10 head dense 32", None, None, 65_856),
        ("CIFAR-10 head spectral K = 1025", None, None, 22_528),
        ("CIFAR-10 head spectral K = 768", None, None, 22_015),
        ("CIFAR-10 head spectral K = 512", None, None, 21_503),
        ("CIFAR-10 head spectral K = 256", None, None, 20_991),
        ("CIFAR-10 head spectral K = 128", None, None, 20_735),
        ("CIFAR-10 head spectral K = 64", None, None, 20_607),
        ("ViT CIFAR-10 dense", None, Some(1_205_898), 1_205_898),
        ("ViT CIFAR-10 spectral", None, Some(812_706), 811_218),
        ("ViT Tiny ImageNet dense", None, Some(1_248_840), 1_248_840),
        ("ViT Tiny ImageNet spectral", None, Some(855_648), 854_160),
    ];

    #[test]
    fn counts_are_those_of_the_specification() {
        let table = parameter_table(&Device::flex());
        assert_eq!(table.len(), EXPECTED.len());
        for (row, (model, parts, total, paper)) in table.iter().zip(EXPECTED) {
            assert_eq!(row.model, model);
            assert_eq!(row.paper, paper, "{model}");
            if let Some(parts) = parts {
                assert_eq!((row.count.weights, row.count.biases), parts, "{model}");
            }
            if let Some(total) = total {
                assert_eq!(row.count.total(), total, "{model}");
            }
        }
    }

    #[test]
    fn counts_agree_with_burn() {
        let model = ImageClassifierConfig::new(HiddenKind::Dense).init(&Device::flex());
        assert_eq!(ParameterCount::of(&model).total(), model.num_params());
    }
}
