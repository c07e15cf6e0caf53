//! Adapters of C3A ("circular convolution adaptation") as the `peft` package saves them, `adapter_model.safetensors`.
//!
//! Such an adapter adds `Delta W x` to a dense layer. Its kernel `w: [out/b, in/b, b]` means, per block of length `b`,
//! `y_t = (1/in) sum_s w[o, c, (s - t) mod b] x_s`: the offset runs the other way than in a layer of this library, and the sum is divided by the
//! number of inputs. So `w'[o, c, k] = w[o, c, -k mod b]/in` are the filters of the same [`BlockCirculant1d`](crate::nn::BlockCirculant1d).

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::Module;

use super::PretrainedError;
use super::tensors::File;
use crate::nn::COORDINATES;
use crate::operator::{Layout, Operator};
use crate::parameters::{field, put_values, spectral_layers};

/// Before and behind the path of a layer.
const PREFIX: &str = "base_model.model.";
const KERNEL: &str = "c3a_kernel";

/// Reads the adapters of a file into the layers of circulant blocks of a module. `place` turns the path of an adapted layer, such as
/// `encoder.layer.0.query`, into that of the [`BlockCirculant1d`](crate::nn::BlockCirculant1d) for it. Every such layer of the module needs an
/// adapter and every adapter a layer; on any error the module is as it was.
///
/// ```no_run
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use burn::tensor::Tensor;
/// use circulant::nn::{BiasKind, BlockCirculant1d, BlockCirculant1dConfig};
/// use circulant::pretrained;
///
/// #[derive(Module, Debug)]
/// struct Adapted {
///     query: Linear,
///     query_adapter: BlockCirculant1d,
/// }
///
/// impl Adapted {
///     fn forward(&self, x: Tensor<2>) -> Tensor<2> {
///         self.query.forward(x.clone()) + self.query_adapter.forward(x)
///     }
/// }
///
/// let device = circulant::cpu();
/// let mut model = Adapted {
///     query: LinearConfig::new(768, 768).init(&device),
///     query_adapter: BlockCirculant1dConfig::new(768, 768, 256).with_bias(BiasKind::None).init(&device),
/// };
/// pretrained::load_c3a(&mut model, "adapter_model.safetensors", |layer| format!("{layer}_adapter"))?;
/// # Ok::<(), pretrained::PretrainedError>(())
/// ```
pub fn load_c3a<M: Module>(
    module: &mut M,
    path: impl AsRef<Path>,
    place: impl Fn(&str) -> String,
) -> Result<(), PretrainedError> {
    let file = File::read(path.as_ref())?;
    let layers = spectral_layers(module);
    let mut missing: BTreeMap<&str, &Layout> = layers
        .iter()
        .filter(|(_, layout)| matches!(layout, Layout::Image { .. }))
        .map(|(layer, layout)| (layer.as_str(), layout))
        .collect();
    let tensors = file.tensors()?;
    let (mut values, mut unused) = (BTreeMap::new(), Vec::new());
    for name in file.names() {
        let layer = name.strip_prefix(PREFIX).unwrap_or(name);
        let Some(layer) = layer.strip_suffix(KERNEL) else {
            unused.push(name.to_owned());
            continue;
        };
        let target = place(layer.trim_end_matches('.'));
        let Some(layout) = missing.remove(target.as_str()) else {
            unused.push(format!("{name} (for {target})"));
            continue;
        };
        let tensor = file.tensor(&tensors, name)?;
        let ((channels_in, channels_out), (height, block)) = (layout.channels(), layout.grid());
        // A kernel has every bin of one row.
        let expected = vec![channels_out, channels_in, layout.pair_coordinates()];
        if tensor.shape() != expected || expected[2] != block || height != 1 {
            return Err(PretrainedError::Shape {
                path: file.path.clone(),
                name: name.to_owned(),
                target,
                expected,
                found: tensor.shape().to_vec(),
            });
        }
        let kernels = file.values(name, &tensor)?;
        let inputs = (channels_in * block) as f64;
        let filters: Vec<f64> = kernels
            .chunks_exact(block)
            .flat_map(|kernel| (0..block).map(move |k| kernel[(block - k) % block] / inputs))
            .collect();
        let operator = Operator::of(layout.clone());
        let mut coordinates = vec![0.0; operator.coordinates()];
        let transform = &operator.plans::<f64>().filters;
        transform
            .analyse(&filters, &mut coordinates)
            .expect("the shape was compared");
        values.insert(field(&target, COORDINATES), coordinates);
    }
    let path = file.path.clone();
    if !unused.is_empty() {
        return Err(PretrainedError::Unused {
            path,
            names: unused,
            expected: layers.into_keys().collect(),
        });
    }
    if !missing.is_empty() {
        return Err(PretrainedError::Missing {
            path,
            names: missing.into_keys().map(str::to_owned).collect(),
            found: file.names().map(str::to_owned).collect(),
        });
    }
    *module = put_values(module.clone(), values);
    Ok(())
}
