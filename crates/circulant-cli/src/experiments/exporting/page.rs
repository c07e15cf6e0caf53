//! The playground with a model in it: one page that needs nothing else.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use circulant_data::{ImageSet, Normalisation, Pixels};
use circulant_edge::write::{WrittenGaussian, WrittenNormalisation};
use circulant_edge::{Draws, Format, Sampling};
use serde_json::json;

use super::agreement::{DevicePredictions, Inputs, Way, predict};
use super::device;
use super::network::{PlainMap, PlainNetwork};

/// The page, with marks where things go.
const PAGE: &str = include_str!("../../../assets/playground.html");
/// `circulant-edge` as WebAssembly, made by `web/build.sh`.
const RUNTIME: &[u8] = include_bytes!("../../../assets/runtime.wasm");
/// Images whose entropies are compared with.
const COMPARED: usize = 2000;
/// Images that show the accuracy at a band limit.
const LIMITED: usize = 1000;
/// Values of an input that a browser still draws well.
const MAX_INPUTS: usize = 64 * 64 * 3;

/// The page of a model on test images.
pub fn page(
    network: &PlainNetwork,
    normalisation: &Normalisation,
    model: &[u8],
    samples: u32,
    slope: f64,
    set: &ImageSet,
    labels: Option<&[usize]>,
) -> anyhow::Result<String> {
    let [channels, height, width] = network.image;
    anyhow::ensure!(
        (channels == 1 || channels == 3) && channels * height * width <= MAX_INPUTS && height > 1,
        "inputs of {channels} x {height} x {width}, expected images of 1 or 3 channels and at most {MAX_INPUTS} values; \
         use --to edge"
    );
    let written = device::normalisation(normalisation, None);
    let compared = set.first(COMPARED);
    let way = Way::Sampled(Sampling::new(samples));
    let found = predict(model, &Inputs::of(&compared), way)?;
    let mut entropies = found.entropies.clone();
    entropies.sort_by(f32::total_cmp);
    let quantile = |share: usize| entropies[(entropies.len() - 1) * share / 100];
    let quantiles: Vec<f32> = (0..=100).map(quantile).collect();
    let accuracy = labels.map(|labels| accuracy(&found, labels, network.classes));
    let (kind, band) = match network.layers.as_slice() {
        [layer, _] => match layer.map {
            PlainMap::Circulant { .. } => {
                let limited = set.first(LIMITED);
                ("circulant", band(network, &written, &limited, labels)?)
            }
            _ => ("other", Vec::new()),
        },
        _ => ("other", Vec::new()),
    };
    let (examples, example_labels) = examples(set, labels, network.classes);
    let (mean, deviation) = match normalisation {
        Normalisation::Standard { mean, std } => (mean.clone(), std.clone()),
        _ => (vec![0.0], vec![1.0]),
    };
    let names: Vec<String> = (0..network.classes)
        .map(|class| {
            let name = network.class_names.get(class);
            name.cloned().unwrap_or_else(|| class.to_string())
        })
        .collect();
    let weights: usize = network
        .layers
        .iter()
        .map(|layer| layer.weights.mean.len())
        .sum();
    let data = json!({
        "image": network.image,
        "classes": names,
        "mean": mean,
        "deviation": deviation,
        "quantiles": quantiles,
        "tested": compared.len(),
        "accuracy": accuracy.unwrap_or(0.0),
        "kind": kind,
        "band": band,
        "bandTested": LIMITED.min(set.len()),
        "slope": slope,
        "weights": weights,
        "examples": STANDARD.encode(examples),
        "labels": example_labels,
    });
    // A name must not end the script that it stands in.
    let data = serde_json::to_string(&data)
        .context("numbers and words")?
        .replace('<', "\\u003c");
    Ok(PAGE
        .replacen("{{WASM}}", &STANDARD.encode(RUNTIME), 1)
        .replacen("{{MODEL}}", &STANDARD.encode(model), 1)
        .replacen("{{DATA}}", &data, 1))
}

fn accuracy(found: &DevicePredictions, labels: &[usize], classes: usize) -> f64 {
    let rows = found.probabilities.chunks_exact(classes);
    let best =
        |row: &[f32]| (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
    let count = rows.len();
    let right = rows
        .zip(labels)
        .filter(|(row, label)| best(row) == **label)
        .count();
    right as f64 / count.max(1) as f64
}

/// The accuracy of the mean network with the lowest frequencies alone.
fn band(
    network: &PlainNetwork,
    normalisation: &WrittenNormalisation,
    set: &ImageSet,
    labels: Option<&[usize]>,
) -> anyhow::Result<Vec<(usize, f64)>> {
    let Some(labels) = labels else {
        return Ok(Vec::new());
    };
    let mut limited = network.clone();
    for layer in &mut limited.layers {
        for gaussian in [&mut layer.weights, &mut layer.bias] {
            *gaussian = WrittenGaussian::point(std::mem::take(&mut gaussian.mean));
        }
    }
    let whole = limited.layers[0].weights.mean.clone();
    let bins = whole.len() / 2 + 1;
    let sampling = Sampling {
        draws: Draws::Sums,
        ..Sampling::new(1)
    };
    let mut points = Vec::new();
    let steps = 14;
    for step in 0..=steps {
        let modes = ((bins as f64).powf(step as f64 / steps as f64).round() as usize).max(1);
        if points.last().is_some_and(|(last, _)| *last == modes) {
            continue;
        }
        let mut kept = whole.clone();
        kept.iter_mut().skip(2 * modes - 1).for_each(|a| *a = 0.0);
        limited.layers[0].weights.mean = kept;
        let bytes = device::model_without_radii(&limited, normalisation, Format::F32, 1)?;
        let found = predict(&bytes, &Inputs::of(set), Way::Sampled(sampling))?;
        points.push((modes, accuracy(&found, labels, network.classes)));
    }
    Ok(points)
}

/// The first image of every class, four bits per value, and their classes.
fn examples(set: &ImageSet, labels: Option<&[usize]>, classes: usize) -> (Vec<u8>, Vec<usize>) {
    let Some(labels) = labels else {
        return Default::default();
    };
    let [_, channels, height, width] = set.shape();
    let row = channels * height * width;
    let (mut packed, mut found) = (Vec::new(), Vec::new());
    for class in 0..classes.min(10) {
        let Some(index) = labels.iter().position(|&label| label == class) else {
            continue;
        };
        let place = index * row..(index + 1) * row;
        let values: Vec<u8> = match set.pixels() {
            Pixels::U8(bytes) => bytes[place]
                .iter()
                .map(|&x| ((u32::from(x) * 15 + 127) / 255) as u8)
                .collect(),
            Pixels::F32(floats) => floats[place]
                .iter()
                .map(|x| (x.clamp(0.0, 1.0) * 15.0).round() as u8)
                .collect(),
        };
        packed.extend(
            values
                .chunks(2)
                .map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4),
        );
        found.push(class);
    }
    (packed, found)
}
