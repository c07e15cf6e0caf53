//! A model of `circulant-edge`, with the bounds that its radii need.
//!
//! A radius on the device is about the network that is there: its parameters are those that were rounded, and the bound on
//! the rounding of its logits is four times that of the desktop's kernels (roots of unity come from f32, sums have another
//! order), plus what activations lose as integers of `2^-14`. All of it is doubled, for both ends of the ball.

use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use circulant::geometry::{Lipschitz, UpperBound};
use circulant::models::{HiddenLayer, ImageClassifier};
use circulant_data::table::ColumnKind;
use circulant_data::{Normalisation, TableSchema};
use circulant_edge::write::{self, ModelWriter, WrittenNormalisation, WrittenRadii};
use circulant_edge::{Activation, Format, Model, sum_bits};

use super::network::{Outcome, PlainMap, PlainNetwork};

/// Classes whose pairs have a bound each.
const MAX_PAIRED: usize = 64;
/// On top of the desktop's rounding errors.
const ROUNDING: f64 = 4.0;
/// Norms of inputs at which the rounding is looked at.
const NORMS: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];

/// The file of a network.
pub fn model(
    network: &PlainNetwork,
    normalisation: &WrittenNormalisation,
    format: Format,
    samples: u32,
) -> anyhow::Result<Vec<u8>> {
    let mut writer = writer(network, normalisation, format, samples);
    // What the device has is what the bounds are about.
    let written = writer.finish();
    let means = write::means(&Model::read(&written)?);
    if matches!(network.outcome, Outcome::Classes) && network.classes <= MAX_PAIRED {
        writer.radii(radii(network, &means, normalisation, format)?);
    }
    Ok(writer.finish())
}

/// The same without radii.
pub fn model_without_radii(
    network: &PlainNetwork,
    normalisation: &WrittenNormalisation,
    format: Format,
    samples: u32,
) -> anyhow::Result<Vec<u8>> {
    let bytes = writer(network, normalisation, format, samples).finish();
    Model::read(&bytes)?;
    Ok(bytes)
}

fn writer(
    network: &PlainNetwork,
    normalisation: &WrittenNormalisation,
    format: Format,
    samples: u32,
) -> ModelWriter {
    let mut writer = ModelWriter::new(network.image, network.classes, format);
    writer.samples(samples);
    writer.normalisation(normalisation.clone());
    match network.outcome {
        Outcome::Classes => {}
        Outcome::Value(target) => writer.targets(vec![target]),
        Outcome::ValueWithNoise(target) => writer.targets_with_noise_per_input(vec![target]),
        Outcome::Count => writer.counts(),
    }
    for name in &network.class_names {
        writer.name(name);
    }
    let last = network.layers.len() - 1;
    for (index, layer) in network.layers.iter().enumerate() {
        let (weights, bias) = (&layer.weights, &layer.bias);
        match layer.map {
            PlainMap::Circulant { length, modes } => writer.circulant(length, modes, weights, bias),
            PlainMap::Bccb {
                channels,
                grid,
                cutoff,
                sizes,
            } => writer.padded_bccb(channels, grid, sizes, cutoff, weights, bias),
            PlainMap::Dense { sizes } if index == last => writer.read_out(sizes[0], weights, bias),
            PlainMap::Dense { sizes } => writer.dense(sizes, Activation::Tanh, weights, bias),
        }
    }
    writer
}

/// How the inputs of a run are normalised: as images, or as the columns of a table.
pub fn normalisation(images: &Normalisation, table: Option<&TableSchema>) -> WrittenNormalisation {
    if let Some(schema) = table {
        // A level of a category is 0 or 1 as it is.
        let columns = schema.columns.iter().flat_map(|column| match &column.kind {
            ColumnKind::Number {
                mean, deviation, ..
            } => vec![(*mean as f32, *deviation as f32)],
            ColumnKind::Category { levels } => vec![(0.0, 1.0); levels.len()],
        });
        let (mean, deviation) = columns.unzip();
        return WrittenNormalisation {
            unit: false,
            mean,
            deviation,
        };
    }
    match images {
        Normalisation::Raw => WrittenNormalisation::default(),
        Normalisation::Unit => WrittenNormalisation {
            unit: true,
            ..WrittenNormalisation::default()
        },
        Normalisation::Standard { mean, std } => WrittenNormalisation {
            unit: true,
            mean: mean.clone(),
            deviation: std.clone(),
        },
    }
}

/// Bounds of a network with these weights and biases.
fn radii(
    network: &PlainNetwork,
    means: &[[Vec<f32>; 2]],
    normalisation: &WrittenNormalisation,
    format: Format,
) -> anyhow::Result<WrittenRadii> {
    let rounded = with_values(&network.mean, means);
    let bound = rounded.network_bound()?;
    let layers = bound.layers();
    let hidden = &layers[..layers.len() - 1];
    let body = hidden.iter().fold(UpperBound::ONE, |product, layer| {
        product * layer.norm().upper()
    });
    let classes = network.classes;
    let [weights, _] = &means[means.len() - 1];
    let mut differences = Vec::new();
    for high in 1..classes {
        for low in 0..high {
            let rows = weights.chunks_exact(classes);
            let difference = rows.map(|row| f64::from(row[high]) - f64::from(row[low]));
            let norm = UpperBound::norm(&difference.collect::<Vec<f64>>());
            differences.push(((body * norm).get() as f32).next_up());
        }
    }
    let error = |norm: f64| -> anyhow::Result<f64> {
        let error = bound.rounding_error(UpperBound::new(norm))?;
        Ok(error.get())
    };
    let fixed = error(0.0)?;
    let mut slope = 0.0_f64;
    for norm in NORMS {
        slope = slope.max((error(norm)? - fixed) / norm);
    }
    // An activation as an integer is cut off by less than 2^-14, and what it is computed from by `summed`.
    let [mut cut, mut cut_slope] = [0.0; 2];
    if format == Format::Int8 {
        let sum = |k: usize| -> f64 {
            let column = weights.iter().skip(k).step_by(classes);
            column.map(|weight| f64::from(weight.abs())).sum()
        };
        let largest = (0..classes).map(sum).fold(0.0, f64::max);
        // With one hidden layer; behind others their Lipschitz bounds are in the way, and they are no first layers of channels.
        let summed = match (network.layers.as_slice(), means) {
            ([first, _], [[weights, _], _]) => summed(&first.map, weights),
            ([first, ..], [[weights, _], ..]) => {
                let others = hidden[1..].iter();
                let others =
                    others.fold(1.0, |product, layer| product * layer.norm().upper().get());
                let width = first.map.sizes()[1] as f64;
                summed(&first.map, weights) * others * width.sqrt()
            }
            _ => 0.0,
        };
        cut = largest * ((0.5_f64).powi(14) + summed * largest_byte(normalisation));
        cut_slope = largest * summed;
    }
    let both_ends = |error: f64| ((2.0 * error) as f32).next_up();
    Ok(WrittenRadii {
        differences,
        rounding: [
            both_ends(2.0 * ROUNDING * slope + cut_slope),
            both_ends(ROUNDING * fixed + cut),
        ],
    })
}

/// How far sums over channels can be off at one position because parts of spectra are cut off as integers, for inputs of at
/// most one: every part by less than one unit.
fn summed(map: &PlainMap, coordinates: &[f32]) -> f64 {
    let PlainMap::Bccb { channels, .. } = map else {
        return 0.0;
    };
    let unit = (0.5_f64).powi(sum_bits(channels[0]) as i32);
    // Both parts of a bin with both coordinates, and its conjugate, are at most four times its coordinates.
    let sum = |output: usize| -> f64 {
        let own = coordinates.iter().skip(output).step_by(channels[1]);
        own.map(|a| f64::from(a.abs())).sum()
    };
    4.0 * unit * (0..channels[1]).map(sum).fold(0.0, f64::max)
}

/// The largest value of a byte behind the normalisation.
fn largest_byte(normalisation: &WrittenNormalisation) -> f64 {
    let pairs = normalisation.mean.iter().zip(&normalisation.deviation);
    let top = if normalisation.unit { 1.0 } else { 255.0 };
    let size = |(mean, deviation): (&f32, &f32)| {
        let (mean, deviation) = (f64::from(*mean), f64::from(*deviation));
        mean.abs().max((top - mean).abs()) / deviation
    };
    pairs.map(size).fold(
        if normalisation.mean.is_empty() {
            top
        } else {
            0.0
        },
        f64::max,
    )
}

/// The same network with other weights and biases.
fn with_values(network: &ImageClassifier, means: &[[Vec<f32>; 2]]) -> ImageClassifier {
    fn set<const D: usize>(parameter: &mut Param<Tensor<D>>, values: &[f32]) {
        let device = parameter.val().device();
        let data = TensorData::new(values.to_vec(), parameter.shape());
        *parameter = Param::from_tensor(Tensor::from_data(data, &device));
    }
    fn set_bias(bias: &mut Option<Param<Tensor<1>>>, values: &[f32]) {
        if let Some(bias) = bias {
            set(bias, values);
        }
    }
    let mut network = network.clone();
    let hidden = network.body.iter_mut().chain([&mut network.hidden]);
    for (layer, [weights, bias]) in hidden.zip(means) {
        match layer {
            HiddenLayer::SpectralCirculant(layer) => {
                set(&mut layer.coordinates, weights);
                set_bias(&mut layer.bias, bias);
            }
            HiddenLayer::BlockCirculant(layer) => {
                set(&mut layer.coordinates, weights);
                set_bias(&mut layer.bias, bias);
            }
            HiddenLayer::SpectralBccb(layer) => {
                set(&mut layer.coordinates, weights);
                set_bias(&mut layer.bias, bias);
            }
            HiddenLayer::Dense(layer) => {
                set(&mut layer.weight, weights);
                set_bias(&mut layer.bias, bias);
            }
            _ => {}
        }
    }
    if let Some([weights, bias]) = means.last() {
        set(&mut network.output.weight, weights);
        set_bias(&mut network.output.bias, bias);
    }
    network
}
