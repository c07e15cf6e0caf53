//! A vision transformer in plain loops over tensors with the names, shapes and layouts of PyTorch.

use std::collections::BTreeMap;

use crate::common::numbers;

pub const SIDE: usize = 6;
pub const PATCH: usize = 3;
pub const CHANNELS: usize = 2;
pub const CLASSES: usize = 3;
pub const D: usize = 4;
pub const HEADS: usize = 2;
pub const DEPTH: usize = 2;
pub const HIDDEN: usize = 4 * D;
pub const TOKENS: usize = (SIDE / PATCH) * (SIDE / PATCH) + 1;

pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f64>)>;

/// Random numbers under the names and shapes of timm.
pub fn timm() -> Tensors {
    let mut shapes = vec![
        (
            "patch_embed.proj.weight".to_owned(),
            vec![D, CHANNELS, PATCH, PATCH],
        ),
        ("patch_embed.proj.bias".to_owned(), vec![D]),
        ("cls_token".to_owned(), vec![1, 1, D]),
        ("pos_embed".to_owned(), vec![1, TOKENS, D]),
        ("norm.weight".to_owned(), vec![D]),
        ("norm.bias".to_owned(), vec![D]),
        ("head.weight".to_owned(), vec![CLASSES, D]),
        ("head.bias".to_owned(), vec![CLASSES]),
    ];
    for block in 0..DEPTH {
        for (name, shape) in [
            ("norm1.weight", vec![D]),
            ("norm1.bias", vec![D]),
            ("attn.qkv.weight", vec![3 * D, D]),
            ("attn.qkv.bias", vec![3 * D]),
            ("attn.proj.weight", vec![D, D]),
            ("attn.proj.bias", vec![D]),
            ("norm2.weight", vec![D]),
            ("norm2.bias", vec![D]),
            ("mlp.fc1.weight", vec![HIDDEN, D]),
            ("mlp.fc1.bias", vec![HIDDEN]),
            ("mlp.fc2.weight", vec![D, HIDDEN]),
            ("mlp.fc2.bias", vec![D]),
        ] {
            shapes.push((format!("blocks.{block}.{name}"), shape));
        }
    }
    let tensor = |(seed, (name, shape)): (usize, (String, Vec<usize>))| {
        let values = numbers(seed as u64 + 1, shape.iter().product());
        (name, (shape, values))
    };
    shapes.into_iter().enumerate().map(tensor).collect()
}

/// `x W^t + b` with PyTorch's `W`, `[out, in]`.
pub fn linear(tensors: &Tensors, name: &str, x: &[f64]) -> Vec<f64> {
    let (weight, bias) = (
        &tensors[&format!("{name}.weight")].1,
        &tensors[&format!("{name}.bias")].1,
    );
    let rows = weight.chunks_exact(x.len()).zip(bias);
    rows.map(|(row, bias)| bias + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
        .collect()
}

pub fn norm(tensors: &Tensors, name: &str, x: &[f64]) -> Vec<f64> {
    let (scale, shift) = (
        &tensors[&format!("{name}.weight")].1,
        &tensors[&format!("{name}.bias")].1,
    );
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    let unit = |x: f64| (x - mean) / (variance + 1e-5).sqrt();
    (0..x.len())
        .map(|i| scale[i] * unit(x[i]) + shift[i])
        .collect()
}

/// `x (1 + erf(x/sqrt(2)))/2`, the error function by its series.
pub fn gelu(x: f64) -> f64 {
    let z = x / 2.0_f64.sqrt();
    let (mut term, mut sum) = (z, z);
    for n in 1..200 {
        term *= -z * z / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    x * (1.0 + sum * 2.0 / std::f64::consts::PI.sqrt()) / 2.0
}

pub fn attention(tensors: &Tensors, block: &str, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let qkv: Vec<Vec<f64>> = x
        .iter()
        .map(|x| linear(tensors, &format!("{block}.attn.qkv"), x))
        .collect();
    let width = D / HEADS;
    let mix = |t: usize| {
        let mut mixed = Vec::new();
        for head in 0..HEADS {
            let part = |s: usize, which: usize| &qkv[s][which * D + head * width..][..width];
            let score = |s: usize| {
                let product: f64 = part(t, 0).iter().zip(part(s, 1)).map(|(q, k)| q * k).sum();
                (product / (width as f64).sqrt()).exp()
            };
            let sum: f64 = (0..TOKENS).map(score).sum();
            mixed.extend((0..width).map(|i| {
                (0..TOKENS)
                    .map(|s| score(s) / sum * part(s, 2)[i])
                    .sum::<f64>()
            }));
        }
        linear(tensors, &format!("{block}.attn.proj"), &mixed)
    };
    (0..TOKENS).map(mix).collect()
}

/// The logits of one image `[C, H, W]`.
pub fn oracle(tensors: &Tensors, image: &[f64]) -> Vec<f64> {
    let positions = &tensors["pos_embed"].1;
    let kernel = &tensors["patch_embed.proj.weight"].1;
    let mut x = vec![tensors["cls_token"].1.clone()];
    for (row, column) in (0..2).flat_map(|row| [(row, 0), (row, 1)]) {
        let output = |o: usize| {
            let mut sum = tensors["patch_embed.proj.bias"].1[o];
            for (c, i, j) in (0..CHANNELS)
                .flat_map(|c| (0..PATCH * PATCH).map(move |p| (c, p / PATCH, p % PATCH)))
            {
                let pixel = image[(c * SIDE + row * PATCH + i) * SIDE + column * PATCH + j];
                sum += kernel[((o * CHANNELS + c) * PATCH + i) * PATCH + j] * pixel;
            }
            sum
        };
        x.push((0..D).map(output).collect());
    }
    let add = |x: &mut Vec<Vec<f64>>, y: Vec<Vec<f64>>| {
        let numbers = x.iter_mut().flatten().zip(y.into_iter().flatten());
        numbers.for_each(|(x, y)| *x += y);
    };
    add(
        &mut x,
        positions.chunks_exact(D).map(<[f64]>::to_vec).collect(),
    );
    for block in 0..DEPTH {
        let block = format!("blocks.{block}");
        let normal: Vec<_> = x
            .iter()
            .map(|x| norm(tensors, &format!("{block}.norm1"), x))
            .collect();
        add(&mut x, attention(tensors, &block, &normal));
        let mlp = |x: &Vec<f64>| {
            let hidden = linear(
                tensors,
                &format!("{block}.mlp.fc1"),
                &norm(tensors, &format!("{block}.norm2"), x),
            );
            let hidden: Vec<f64> = hidden.into_iter().map(gelu).collect();
            linear(tensors, &format!("{block}.mlp.fc2"), &hidden)
        };
        let change = x.iter().map(mlp).collect();
        add(&mut x, change);
    }
    linear(tensors, "head", &norm(tensors, "norm", &x[0]))
}
