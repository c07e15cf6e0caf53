//! C3A adapters as the `peft` package saves them; `bench/fixtures/adapters.py` makes the files.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use circulant::models::{Projection, ProjectionKind};
use circulant::nn::{BiasKind, BlockCirculant1d, BlockCirculant1dConfig};
use circulant::pretrained::{PretrainedError, load_c3a};
use serde_json::Value;

use crate::common::{difference, host};

/// f32 on both sides.
const SINGLE: f64 = 1e-5;

#[derive(Module, Debug)]
struct Adapted {
    query: Linear,
    output: Linear,
    query_adapter: BlockCirculant1d,
    output_adapter: BlockCirculant1d,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn expected() -> Value {
    let text = std::fs::read_to_string(fixture("c3a.json")).expect("committed");
    serde_json::from_str(&text).expect("JSON")
}

/// All numbers of nested lists.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}

fn tensor<const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), &circulant::cpu())
}

fn adapter(d_in: usize, d_out: usize, block: usize, device: &Device) -> BlockCirculant1d {
    BlockCirculant1dConfig::new(d_in, d_out, block)
        .with_bias(BiasKind::None)
        .init(device)
}

fn adapted(block: usize) -> Adapted {
    let (device, file) = (circulant::cpu(), expected());
    let linear = |name: &str, d_out: usize| {
        let projection = Projection::new(ProjectionKind::Dense, [12, d_out], 0, &device);
        let Ok(Projection::Dense(mut linear)) = projection else {
            panic!("asked for a dense layer");
        };
        let values = |kind: &str| numbers(&file["base"][format!("{name}.{kind}")]);
        let weight = tensor(values("weight"), [d_out, 12]).transpose();
        linear.weight = linear.weight.map(|_| weight);
        linear.bias = linear
            .bias
            .map(|bias| bias.map(|_| tensor(values("bias"), [d_out])));
        linear
    };
    Adapted {
        query: linear("query", 12),
        output: linear("output", 8),
        query_adapter: adapter(12, 12, block, &device),
        output_adapter: adapter(12, 8, block, &device),
    }
}

fn place(layer: &str) -> String {
    format!("{layer}_adapter")
}

#[test]
fn an_adapted_model_computes_what_peft_computes() {
    let mut model = adapted(4);
    load_c3a(&mut model, fixture("c3a.safetensors"), place).expect("fits");
    let file = expected();
    let x = tensor(numbers(&file["x"]), [3, 12]);
    let hidden = model.query.forward(x.clone()) + model.query_adapter.forward(x);
    let hidden = hidden.tanh();
    let y = model.output.forward(hidden.clone()) + model.output_adapter.forward(hidden);
    let gap = difference(&host(y), &numbers(&file["y"]));
    assert!(gap < SINGLE, "{gap}");
}

#[test]
fn adapters_that_do_not_fit_are_named_and_nothing_is_changed() {
    let path = fixture("c3a.safetensors");
    // Another block.
    let mut other = adapted(2);
    let before = host(other.query_adapter.coordinates.val());
    let error = load_c3a(&mut other, &path, place).expect_err("another block");
    let PretrainedError::Shape {
        expected, found, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((expected, found), (&vec![4, 6, 2], &vec![2, 3, 4]));
    assert_eq!(host(other.query_adapter.coordinates.val()), before);
    // A foreign tensor: no layer of that name.
    let error = load_c3a(&mut adapted(4), &path, str::to_owned).expect_err("no such layers");
    let text = error.to_string();
    assert!(
        text.contains("output.c3a_kernel") && text.contains("query_adapter"),
        "{text}"
    );
    // A layer without an adapter.
    #[derive(Module, Debug)]
    struct More {
        adapted: Adapted,
        value: BlockCirculant1d,
    }
    let mut more = More {
        adapted: adapted(4),
        value: adapter(12, 12, 4, &circulant::cpu()),
    };
    let inner = |layer: &str| format!("adapted.{layer}_adapter");
    let error = load_c3a(&mut more, &path, inner).expect_err("value has none");
    assert!(
        matches!(&error, PretrainedError::Missing { names, .. } if names == &["value"]),
        "{error}"
    );
    // Layers with fewer bins than a kernel has.
    let mut masked = adapted(4);
    let config = BlockCirculant1dConfig::new(12, 12, 4).with_bias(BiasKind::None);
    masked.query_adapter = config.with_modes(Some(2)).init(&circulant::cpu());
    assert!(load_c3a(&mut masked, &path, place).is_err());
    // A file that is cut off, and one that is not there.
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.safetensors");
    let bytes = std::fs::read(&path).expect("committed");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    for path in [cut, folder.path().join("absent")] {
        assert!(load_c3a(&mut adapted(4), path, place).is_err());
    }
}
