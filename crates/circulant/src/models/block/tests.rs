//! A fused block is the composition of its parts.

use burn::tensor::TensorData;

use super::super::seeds::Seeds;
use super::*;

/// f32 rounding through a few layers.
const SINGLE: f32 = 2e-5;

fn random(shape: [usize; 3], device: &Device) -> Tensor<3> {
    let count = shape.iter().product();
    let number = |i: usize| ((i * 7919 + 31) % 1009) as f32 / 500.0 - 1.0;
    let values: Vec<f32> = (0..count).map(number).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn gap(a: Tensor<3>, b: Tensor<3>) -> f32 {
    (a - b).abs().max().into_scalar()
}

#[test]
fn fused_blocks_are_their_parts() {
    let device = crate::cpu();
    let sizes = [(1, 1, 1, 1), (3, 5, 7, 1), (2, 13, 6, 3), (4, 65, 128, 4)];
    use ProjectionKind::{Blocks, Dense, Spectral};
    for (kind, mlp) in [
        (Dense, [Dense; 2]),
        (Spectral, [Dense; 2]),
        (Blocks(1), [Blocks(1), Spectral]),
    ] {
        for (batch, tokens, d, heads) in sizes {
            let shape = BlockShape {
                attention: [kind; 2],
                mlp,
                d,
                heads,
                hidden: 4 * d,
            };
            let block = Block::new(&shape, &mut Seeds::new(3), &device).expect("fits");
            let x = random([batch, tokens, d], &device);

            let attended = block
                .attention
                .block(&block.attention_norm, x.clone(), [None, None]);
            let normalised = normalise(&block.attention_norm, x.clone());
            let expected = x.clone() + block.attention.forward(normalised);
            assert!(gap(attended, expected) < SINGLE);

            let key = NoiseKey { seed: 3, stream: 0 };
            let mut dropouts = Dropouts::new(0.2, Some(key));
            for masks in [[None, None], [dropouts.next(), dropouts.next()]] {
                let fused = block.mlp(x.clone(), masks);
                let hidden = block.expand.forward(block.mlp_norm.forward(x.clone()));
                let mut hidden = burn::tensor::activation::gelu(hidden);
                if let Some(dropout) = masks[0] {
                    hidden = functional::dropout(hidden, dropout);
                }
                let y = block.contract.forward(hidden);
                assert!(gap(fused, add_dropped(x.clone(), y, masks[1])) < SINGLE);
            }
        }
    }
}

#[test]
fn every_dropout_has_its_own_stream() {
    let key = |stream| NoiseKey { seed: 3, stream };
    let mut dropouts = Dropouts::new(0.5, Some(key(7)));
    let (first, second) = (dropouts.next(), dropouts.next());
    assert!(first.is_some() && first != second);
    assert_ne!(Dropouts::new(0.5, Some(key(8))).next(), second);
    assert!(Dropouts::new(0.5, None).next().is_none());
    assert!(Dropouts::new(0.0, Some(key(7))).next().is_none());
}
