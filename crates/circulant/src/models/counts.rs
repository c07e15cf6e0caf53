//! Parameter counts, from the modules themselves.

use burn::module::Module;
use burn::store::ModuleSnapshot;
use burn::tensor::Device;

use super::{
    HiddenKind, ImageClassifierConfig, ProjectionKind, VisionTransformer, VisionTransformerConfig,
};

/// Real numbers that a module learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct CountedModel {
    /// What the model is.
    pub model: String,
    /// Its real parameters.
    pub count: ParameterCount,
    /// The count that the paper prints for it (tables 4, 6 and 9 and section 7.3), if it does.
    pub paper: Option<usize>,
    /// What the paper counts.
    pub paper_counts: &'static str,
}

const ALL: &str = "weights and biases";
const WEIGHTS: &str = "weights";
const NOT_PRINTED: &str = "not in the paper";
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
        (
            "spectral circulant",
            HiddenKind::SpectralCirculant,
            Some(8_635),
        ),
        ("spectral BCCB", HiddenKind::SpectralBccb, Some(8_635)),
        ("spatial circulant", HiddenKind::SpatialCirculant, None),
        ("spatial BCCB", HiddenKind::SpatialBccb, Some(8_635)),
        ("convolution", HiddenKind::Convolution, Some(62_810)),
        ("dense", HiddenKind::Dense, Some(623_290)),
    ];
    for (name, kind, paper) in mnist {
        table.push(CountedModel {
            model: format!("MNIST {name}"),
            count: ParameterCount::of(&ImageClassifierConfig::new(kind).init(device)),
            paper,
            paper_counts: ALL,
        });
    }
    let mut head = |name: String, config: ImageClassifierConfig, paper: usize| {
        table.push(CountedModel {
            model: format!("CIFAR-10 head {name}"),
            count: ParameterCount::of(&config.init(device)),
            paper: Some(paper),
            paper_counts: WEIGHTS,
        });
    };
    let features = |kind| ImageClassifierConfig::new(kind).with_image([1, 1, 2048]);
    let dense = features(HiddenKind::Dense).with_width(Some(32));
    head("dense 32".into(), dense, 65_856);
    for (modes, paper) in [
        (1025, 22_528),
        (768, 22_015),
        (512, 21_503),
        (256, 20_991),
        (128, 20_735),
        (64, 20_607),
    ] {
        let config = features(HiddenKind::SpectralCirculant).with_modes(Some(modes));
        head(format!("spectral K = {modes}"), config, paper);
    }
    use ProjectionKind::{Blocks, Dense, Diagonal, Spectral};
    for (name, [image, patch, classes], kind, paper) in [
        ("CIFAR-10 dense", [32, 4, 10], Dense, 1_205_898),
        ("CIFAR-10 spectral", [32, 4, 10], Spectral, 811_218),
        ("Tiny ImageNet dense", [64, 8, 200], Dense, 1_248_840),
        ("Tiny ImageNet spectral", [64, 8, 200], Spectral, 854_160),
    ] {
        let model: VisionTransformer =
            VisionTransformerConfig::new(image, patch, classes, kind).init(device);
        table.push(CountedModel {
            model: format!("ViT {name}"),
            count: ParameterCount::of(&model),
            paper: Some(paper),
            paper_counts: if kind == Spectral { BINS } else { ALL },
        });
    }
    for (name, projection, mlp) in [
        ("spectral, MLP in blocks of 8", Spectral, Blocks(8)),
        ("diagonals, MLP in blocks of 8", Diagonal, Blocks(8)),
        ("blocks of 32, MLP of 16", Blocks(32), Blocks(16)),
    ] {
        let config = VisionTransformerConfig::new(32, 4, 10, projection).with_mlp([mlp; 2]);
        table.push(CountedModel {
            model: format!("ViT CIFAR-10 {name}"),
            count: ParameterCount::of(&config.init(device)),
            paper: None,
            paper_counts: NOT_PRINTED,
        });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our count by the paper's way of counting, model by model.
    fn as_the_paper_counts(row: &CountedModel) -> usize {
        match row.paper_counts {
            WEIGHTS => row.count.weights,
            ALL => row.count.total(),
            // 24 projections of width 128: 65 bins, a bias and a slope instead of 128 coordinates and a bias.
            _ => row.count.total() - 24 * (129 - 67),
        }
    }

    #[test]
    fn counts_are_those_that_the_paper_prints() {
        let table = parameter_table(&Device::flex());
        assert_eq!(table.len(), 20);
        for row in table.iter().filter(|row| row.paper_counts != NOT_PRINTED) {
            let paper = row.paper.unwrap_or(8_635);
            assert_eq!(as_the_paper_counts(row), paper, "{}", row.model);
        }
        let not_printed: Vec<_> = table.iter().filter(|row| row.paper.is_none()).collect();
        assert_eq!(not_printed.len(), 4);
        assert_eq!(not_printed[0].model, "MNIST spatial circulant");
    }

    #[test]
    fn structured_transformers_are_counted_from_their_sizes() {
        // Patches, class token, positions, final norm and head; the norms of six blocks.
        let around = 48 * 128 + 128 + 128 + 65 * 128 + 256 + 128 * 10 + 10 + 6 * 512;
        let biases = 512 + 128;
        let mlp = |block: usize| 2 * 128 * 512 / block + biases;
        let table = parameter_table(&Device::flex());
        let counts: Vec<_> = table[17..].iter().map(|row| row.count.total()).collect();
        let expected = [
            6 * (4 * (128 + 1) + mlp(8)),
            6 * (4 * (3 * 128 + 128) + mlp(8)),
            6 * (4 * (128 * 128 / 32 + 128) + mlp(16)),
        ];
        assert_eq!(counts, expected.map(|blocks| around + blocks));
    }

    #[test]
    fn weights_and_biases_are_told_apart() {
        let parts = |row: &CountedModel| (row.count.weights, row.count.biases);
        let table = parameter_table(&Device::flex());
        let mnist: Vec<_> = table[..6].iter().map(parts).collect();
        let small = (8_624, 11);
        let others = [(62_792, 18), (622_496, 794)];
        assert_eq!(mnist, [small, small, small, small, others[0], others[1]]);
    }

    #[test]
    fn counts_agree_with_burn() {
        let model = ImageClassifierConfig::new(HiddenKind::Dense).init(&Device::flex());
        assert_eq!(ParameterCount::of(&model).total(), model.num_params());
    }
}
