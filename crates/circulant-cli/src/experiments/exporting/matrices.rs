//! The network at the posterior's mean as dense matrices, which every framework has.

use std::fmt::Write;

use anyhow::ensure;
use circulant_core::{BccbOperator, CirculantOperator, Complex, HalfPlane, HalfSpectrum};
use serde_json::{Map, json};

use super::network::{PlainLayer, PlainMap, PlainNetwork};

/// Entries of a matrix at most.
const MAX_ENTRIES: usize = 1 << 27;

/// `y = W x + b`.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Outputs and inputs.
    pub shape: [usize; 2],
    /// `[outputs, inputs]`, row by row.
    pub weight: Vec<f32>,
    /// One per output.
    pub bias: Vec<f32>,
}

/// A linear map, from the first slice to the second.
type Apply<'a> = &'a mut dyn FnMut(&[f64], &mut [f64]) -> anyhow::Result<()>;

/// The layers at the posterior's mean.
pub fn matrices(network: &PlainNetwork) -> anyhow::Result<Vec<Matrix>> {
    network.layers.iter().map(Matrix::of).collect()
}

impl Matrix {
    /// A layer at its mean: column `j` is what it makes of the `j`-th unit vector.
    fn of(layer: &PlainLayer) -> anyhow::Result<Self> {
        let [inputs, outputs] = layer.map.sizes();
        let entries = inputs.saturating_mul(outputs);
        ensure!(
            entries <= MAX_ENTRIES,
            "a layer from {inputs} to {outputs} values would be a matrix of {entries} entries, more than {MAX_ENTRIES}; \
             export it with --to edge or --to c"
        );
        let mut weight = vec![0.0_f32; entries];
        let coordinates: Vec<f64> = layer.weights.mean.iter().map(|&a| f64::from(a)).collect();
        let mut columns = |apply: Apply<'_>| {
            let (mut x, mut y) = (vec![0.0; inputs], vec![0.0; outputs]);
            for j in 0..inputs {
                x[j] = 1.0;
                apply(&x, &mut y)?;
                x[j] = 0.0;
                for (i, value) in y.iter().enumerate() {
                    weight[i * inputs + j] = *value as f32;
                }
            }
            anyhow::Ok(())
        };
        let zero = Complex::new(0.0, 0.0);
        match layer.map {
            PlainMap::Circulant { length, modes } => {
                let layout = HalfSpectrum::with_modes(length, modes)?;
                let mut roots = vec![zero; CirculantOperator::<f64>::roots_len(&layout)];
                let operator = CirculantOperator::new(layout, &mut roots)?;
                let mut scratch = vec![zero; operator.scratch_len()];
                columns(&mut |x, y| {
                    Ok(operator.forward(&coordinates, None, x, y, &mut scratch)?)
                })?;
            }
            PlainMap::Bccb {
                channels,
                grid,
                cutoff,
                ..
            } => {
                let plane = HalfPlane::with_radius(grid[0], grid[1], cutoff)?;
                let mut roots = vec![zero; BccbOperator::<f64>::roots_len(&plane)];
                let operator = BccbOperator::new(&plane, channels, &mut roots)?;
                let mut scratch = vec![zero; operator.scratch_len()];
                // With padding behind inputs and outputs.
                let size = grid[0] * grid[1];
                let [mut padded, mut whole] = channels.map(|count| vec![0.0; count * size]);
                columns(&mut |x, y| {
                    padded[..inputs].copy_from_slice(x);
                    operator.forward(&coordinates, None, &padded, &mut whole, &mut scratch)?;
                    y.copy_from_slice(&whole[..outputs]);
                    Ok(())
                })?;
            }
            PlainMap::Dense { .. } => {
                for (j, row) in layer.weights.mean.chunks_exact(outputs).enumerate() {
                    for (i, value) in row.iter().enumerate() {
                        weight[i * inputs + j] = *value;
                    }
                }
            }
        }
        let own = outputs / layer.bias.mean.len().max(1);
        let bias = layer.bias.mean.iter();
        Ok(Self {
            shape: [outputs, inputs],
            weight,
            bias: bias.flat_map(|&b| std::iter::repeat_n(b, own)).collect(),
        })
    }
}

/// The layers as safetensors with the names of `torch.nn.Sequential`: `0.weight`, `0.bias`, `2.weight`, ...
pub fn safetensors(matrices: &[Matrix]) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    let mut put = |name: String, shape: &[usize], values: &[f32]| {
        let start = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
        header.insert(name, entry);
    };
    for (index, matrix) in matrices.iter().enumerate() {
        // Activations have numbers too.
        let name = 2 * index;
        put(format!("{name}.weight"), &matrix.shape, &matrix.weight);
        put(format!("{name}.bias"), &matrix.shape[..1], &matrix.bias);
    }
    packed(header, &data)
}

/// A file of safetensors.
pub fn packed(header: Map<String, serde_json::Value>, data: &[u8]) -> Vec<u8> {
    let mut header = serde_json::Value::Object(header).to_string();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

/// Python that loads [`safetensors`] into torch.
pub fn snippet(network: &PlainNetwork, preparation: &str) -> String {
    let mut layers = String::new();
    for (index, layer) in network.layers.iter().enumerate() {
        let [inputs, outputs] = layer.map.sizes();
        if index > 0 {
            layers.push_str("    torch.nn.Tanh(),\n");
        }
        let _ = writeln!(layers, "    torch.nn.Linear({inputs}, {outputs}),");
    }
    format!(
        "\"\"\"The network at the posterior's mean: `logits = network(x)`.\n\n{preparation}\n\"\"\"\n\
         from pathlib import Path\n\nimport torch\nfrom safetensors.torch import load_file\n\n\
         network = torch.nn.Sequential(\n{layers})\n\
         network.load_state_dict(load_file(Path(__file__).with_name(\"network.safetensors\")))\n"
    )
}
