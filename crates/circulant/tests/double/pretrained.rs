//! Checkpoints with the names of timm and others, written by the test, against a transformer in plain loops that reads the
//! tensors as PyTorch does.

use std::path::PathBuf;

use crate::common::{difference, double, host, numbers, random};
use crate::torch_transformer::{
    CHANNELS, CLASSES, D, DEPTH, HEADS, PATCH, SIDE, Tensors, oracle, timm,
};
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use circulant::models::{ProjectionKind, VisionTransformer, VisionTransformerConfig};
use circulant::pretrained::{NameMap, PretrainedError, load, load_vision_transformer};
use safetensors::tensor::{Dtype, TensorView};

/// Both sides sum in f64 in another order, and Burn's error function is good to about 1e-15.
const EXACT: f64 = 1e-11;

fn model(device: &Device) -> VisionTransformer {
    config(ProjectionKind::Dense).init(device)
}

fn config(kind: ProjectionKind) -> VisionTransformerConfig {
    VisionTransformerConfig::new(SIDE, PATCH, CLASSES, kind)
        .with_channels(CHANNELS)
        .with_d(D)
        .with_depth(DEPTH)
        .with_heads(HEADS)
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory can be made"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("model.safetensors")
    }

    fn write(&self, tensors: &Tensors) -> PathBuf {
        let bytes = |values: &[f64]| {
            values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let tensors: Vec<_> = tensors
            .iter()
            .map(|(name, (shape, values))| (name, shape, bytes(values)))
            .collect();
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F64, (*shape).clone(), bytes)
                .expect("as many bytes as numbers");
            (name.as_str(), view)
        });
        let bytes = safetensors::serialize(views, None).expect("names differ");
        std::fs::write(self.path(), bytes).expect("the directory is writable");
        self.path()
    }
}

fn images() -> Tensor<4> {
    random(77, [2, CHANNELS, SIDE, SIDE], &double())
}

fn check(model: &VisionTransformer) {
    let images = images();
    let pixels = host(images.clone());
    let expected: Vec<f64> = pixels
        .chunks_exact(pixels.len() / 2)
        .flat_map(|image| oracle(&timm(), image))
        .collect();
    let gap = difference(&host(model.forward(images)), &expected);
    assert!(gap < EXACT, "{gap:e}");
}

#[test]
fn timm_checkpoints_compute_what_they_do_in_pytorch() {
    let directory = Directory::new();
    let mut plain = model(&double());
    load_vision_transformer(&mut plain, directory.write(&timm())).unwrap();
    check(&plain);
    // The names as of a model wrapped for several GPUs.
    let wrapped = timm()
        .into_iter()
        .map(|(name, tensor)| (format!("module.{name}"), tensor))
        .collect();
    let mut model = model(&double());
    load_vision_transformer(&mut model, directory.write(&wrapped)).unwrap();
    check(&model);
}

/// Files of `bench/fixtures/pretrained.py`.
#[test]
fn files_of_torch_are_read_as_they_are() {
    let fixture = |name: &str| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name)
    };
    for name in ["timm.pt", "timm-legacy.pt"] {
        let mut model = model(&double());
        load_vision_transformer(&mut model, fixture(name)).unwrap();
        check(&model);
    }
    // Cut anywhere, it is refused.
    let directory = Directory::new();
    let whole = std::fs::read(fixture("timm.pt")).unwrap();
    let mut model = model(&double());
    let before = host(model.forward(images()));
    for share in 1..8 {
        std::fs::write(directory.path(), &whole[..whole.len() * share / 8]).unwrap();
        assert!(load_vision_transformer(&mut model, directory.path()).is_err());
    }
    assert_eq!(host(model.forward(images())), before);
}

#[test]
fn other_libraries_have_other_names() {
    let directory = Directory::new();
    let renamed = |pairs: &[(&str, &str)]| -> Tensors {
        let rename = |(name, tensor)| {
            let name = pairs.iter().fold(String::clone(&name), |name, (from, to)| {
                name.replace(from, to)
            });
            (name, tensor)
        };
        timm().into_iter().map(rename).collect()
    };
    let torchvision = renamed(&[
        ("patch_embed.proj", "conv_proj"),
        ("cls_token", "class_token"),
        ("pos_embed", "encoder.pos_embedding"),
        ("blocks.", "encoder.layers.encoder_layer_"),
        ("norm1", "ln_1"),
        ("norm2", "ln_2"),
        ("attn.qkv.", "self_attention.in_proj_"),
        ("attn.proj", "self_attention.out_proj"),
        ("mlp.fc1", "mlp.0"),
        ("mlp.fc2", "mlp.3"),
        ("norm.", "encoder.ln."),
        ("head.", "heads.head."),
    ]);
    assert!(
        torchvision.contains_key("encoder.layers.encoder_layer_1.self_attention.in_proj_weight")
    );
    let mut hugging_face = renamed(&[
        (
            "patch_embed.proj",
            "vit.embeddings.patch_embeddings.projection",
        ),
        ("cls_token", "vit.embeddings.cls_token"),
        ("pos_embed", "vit.embeddings.position_embeddings"),
        ("blocks.", "vit.encoder.layer."),
        ("norm1", "layernorm_before"),
        ("norm2", "layernorm_after"),
        ("attn.proj", "attention.output.dense"),
        ("mlp.fc1", "intermediate.dense"),
        ("mlp.fc2", "output.dense"),
        ("norm.", "vit.layernorm."),
        ("head.", "classifier."),
    ]);
    let fused: Vec<String> = hugging_face
        .keys()
        .filter(|name| name.contains("qkv"))
        .cloned()
        .collect();
    for name in fused {
        let (mut shape, values) = hugging_face.remove(&name).unwrap();
        shape[0] /= 3;
        for (part, values) in ["query", "key", "value"]
            .iter()
            .zip(values.chunks_exact(values.len() / 3))
        {
            let name = name.replace("attn.qkv", &format!("attention.attention.{part}"));
            hugging_face.insert(name, (shape.clone(), values.to_vec()));
        }
    }
    for tensors in [torchvision, hugging_face] {
        let mut model = model(&double());
        load_vision_transformer(&mut model, directory.write(&tensors)).unwrap();
        check(&model);
    }
}

#[derive(Module, Debug)]
struct Small {
    norm: LayerNorm,
    layers: Vec<Linear>,
}

#[test]
fn any_module_takes_the_names_of_torch_nn() {
    let layer = || LinearConfig::new(3, 2).init(&double());
    let mut module = Small {
        norm: LayerNormConfig::new(3).init(&double()),
        layers: vec![layer(), layer()],
    };
    let entry = |name: &str, shape: &[usize], seed| {
        (
            name.to_owned(),
            (shape.to_vec(), numbers(seed, shape.iter().product())),
        )
    };
    let tensors: Tensors = [
        entry("norm.weight", &[3], 1),
        entry("norm.bias", &[3], 2),
        entry("layers.0.weight", &[2, 3], 3),
        entry("layers.0.bias", &[2], 4),
        entry("layers.1.weight", &[2, 3], 5),
        entry("layers.1.bias", &[2], 6),
    ]
    .into();
    let names = NameMap::torch_nn(&module);
    load(&mut module, Directory::new().write(&tensors), &names).unwrap();
    assert_eq!(host(module.norm.gamma.val()), numbers(1, 3));
    assert_eq!(
        host(module.norm.beta.as_ref().unwrap().val()),
        numbers(2, 3)
    );
    let got = host(module.layers[1].weight.val().transpose());
    assert_eq!(got, numbers(5, 6));
}

/// A new head for other classes.
#[test]
fn heads_can_be_left_out() {
    let directory = Directory::new();
    let mut model = config(ProjectionKind::Dense).with_seed(9).init(&double());
    let path = directory.write(&timm());
    let names = NameMap::timm()
        .ignoring("head.weight")
        .ignoring("head.bias");
    let error = load(&mut model, &path, &names).unwrap_err();
    assert!(
        matches!(&error, PretrainedError::Missing { names, .. } if names == &["head.bias", "head.weight"]),
        "{error}"
    );
    load(
        &mut model,
        &path,
        &names.keeping("head.weight").keeping("head.bias"),
    )
    .unwrap();
}

#[test]
fn half_precision_is_read() {
    let directory = Directory::new();
    let mut module = LinearConfig::new(2, 2).with_bias(false).init(&double());
    // 1, -2, 0.5, 4 in bfloat16: the upper halves of their f32 bits.
    let bytes: Vec<u8> = [1.0_f32, -2.0, 0.5, 4.0]
        .iter()
        .flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes())
        .collect();
    let view = TensorView::new(Dtype::BF16, vec![2, 2], &bytes).unwrap();
    std::fs::write(
        directory.path(),
        safetensors::serialize([("weight", view)], None).unwrap(),
    )
    .unwrap();
    let names = NameMap::new().transposed("weight", "weight");
    load(&mut module, directory.path(), &names).unwrap();
    assert_eq!(host(module.weight.val()), [1.0, 0.5, -2.0, 4.0]);
    let view = TensorView::new(Dtype::I64, vec![2, 2], &[0; 32]).unwrap();
    std::fs::write(
        directory.path(),
        safetensors::serialize([("weight", view)], None).unwrap(),
    )
    .unwrap();
    let error = load(&mut module, directory.path(), &names).unwrap_err();
    assert!(
        matches!(error, PretrainedError::NumberType { .. }),
        "{error}"
    );
}

/// Every mistake is named, and the model stays as it was.
#[test]
fn mistakes_are_errors() {
    let directory = Directory::new();
    let mut model = model(&double());
    let before = host(model.forward(images()));
    let mut refused = |change: &dyn Fn(&mut Tensors), expected: &[&str]| {
        let mut tensors = timm();
        change(&mut tensors);
        let error = load_vision_transformer(&mut model, directory.write(&tensors))
            .unwrap_err()
            .to_string();
        assert!(expected.iter().all(|text| error.contains(text)), "{error}");
    };
    refused(
        &|tensors| drop(tensors.remove("blocks.1.attn.qkv.bias")),
        &["blocks.1.attention.query.bias", "nothing found"],
    );
    refused(
        &|tensors| drop(tensors.insert("dist_token".into(), (vec![1], vec![0.0]))),
        &["no place", "dist_token"],
    );
    refused(
        &|tensors| drop(tensors.insert("blocks.2.norm1.bias".into(), (vec![D], vec![0.0; D]))),
        &["blocks.2.norm1.bias"],
    );
    refused(
        &|tensors| drop(tensors.insert("head.weight".into(), (vec![5, D], vec![0.0; 5 * D]))),
        &["head.weight", "[3, 4]", "[5, 4]"],
    );
    refused(
        &|tensors| drop(tensors.insert("pos_embed".into(), (vec![1, 2, D], vec![0.0; 2 * D]))),
        &["pos_embed", "[1, 5, 4]", "[1, 2, 4]"],
    );
    refused(
        &|tensors| tensors.retain(|name, _| !name.starts_with("patch_embed")),
        &["timm", "NameMap"],
    );
    assert_eq!(host(model.forward(images())), before);

    let twice = NameMap::new()
        .copied("norm.weight", "norm.gamma")
        .copied("norm.bias", "norm.gamma");
    let kept: Tensors = timm()
        .into_iter()
        .filter(|(name, _)| name.starts_with("norm."))
        .collect();
    let error = load(&mut model, directory.write(&kept), &twice).unwrap_err();
    assert!(matches!(error, PretrainedError::Twice { .. }), "{error}");

    // Spectral projections have no matrices: first load, then surgery.
    let mut spectral = config(ProjectionKind::Spectral).init(&double());
    let error = load_vision_transformer(&mut spectral, directory.write(&timm())).unwrap_err();
    assert!(matches!(error, PretrainedError::Unused { .. }), "{error}");

    for (bytes, text) in [
        (&b"PK\x03\x04rest"[..], "complete"),
        (b"\x80\x02rest", "complete"),
        (b"", "complete"),
        (b"nonsense, long enough", "complete"),
    ] {
        std::fs::write(directory.path(), bytes).unwrap();
        let error = load_vision_transformer(&mut model, directory.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains(text), "{error}");
    }
    std::fs::remove_file(directory.path()).unwrap();
    let error = load_vision_transformer(&mut model, directory.path()).unwrap_err();
    assert!(matches!(error, PretrainedError::Read { .. }));
}
