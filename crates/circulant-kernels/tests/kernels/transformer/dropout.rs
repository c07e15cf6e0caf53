use circulant_kernels::NoiseKey;
use circulant_kernels::random::philox::words;
use circulant_kernels::runtime::chunks::CHUNK;
use circulant_kernels::transformer::dropout::*;

use crate::oracle::{dot, normal, same_on_threads};

const KEY: NoiseKey = NoiseKey { seed: 9, stream: 2 };
/// Standard errors that a statistic may be off; the key is fixed.
const ERRORS: f64 = 4.5;

fn kept(rate: f64, key: NoiseKey, len: usize) -> Vec<bool> {
    let dropout = Dropout::new(rate, key).unwrap();
    let mut y = vec![0.0f32; len];
    dropout_into(&vec![1.0; len], dropout, &mut y).unwrap();
    assert!(y.iter().all(|y| *y == 0.0 || *y == dropout.scale() as f32));
    y.into_iter().map(|y| y != 0.0).collect()
}

#[test]
fn the_share_and_the_neighbours_are_those_of_chance() {
    let n = 1_000_000;
    for rate in [0.001, 0.1, 0.5, 0.9] {
        let kept = kept(rate, KEY, n);
        let deviation = (rate * (1.0 - rate) * n as f64).sqrt();
        let dropped = kept.iter().filter(|kept| !**kept).count() as f64;
        assert!((dropped - rate * n as f64).abs() < ERRORS * deviation);
        for lag in [1, 64, BLOCKS * 4, GROUP] {
            let both = kept.iter().zip(&kept[lag..]).filter(|(a, b)| !**a && !**b);
            let (share, count) = (rate * rate, (n - lag) as f64);
            // Pairs share members: their count varies more than that of independent ones.
            let deviation = (share * (1.0 - share) * count * (1.0 + 4.0 * rate)).sqrt();
            let error = (both.count() as f64 - share * count) / deviation;
            assert!(error.abs() < ERRORS, "rate {rate}, lag {lag}: {error}");
        }
    }
}

/// Frozen, so that a change of the mapping from words to elements is noticed.
#[test]
fn the_mask_is_that_of_the_definition() {
    let kept = kept(0.3, KEY, 3 * GROUP);
    for (i, kept) in kept.into_iter().enumerate() {
        let (group, place) = ((i / GROUP) as u64, i % GROUP);
        let block = FIRST_BLOCK + 64 * group + place as u64 % 64;
        let word = words(KEY, block)[place % 256 / 64] as u32;
        let number = if place < 256 {
            word & 0xffff
        } else {
            word >> 16
        };
        assert_eq!(
            kept,
            f64::from(number) >= (0.3 * STEPS).round(),
            "element {i}"
        );
    }
}

#[test]
fn an_element_does_not_depend_on_the_length_or_the_threads() {
    let long = kept(0.2, KEY, 40_000);
    for len in [0, 1, 7, GROUP, CHUNK + 3, 20_011] {
        assert_eq!(kept(0.2, KEY, len), long[..len]);
    }
    assert_eq!(same_on_threads(|| kept(0.2, KEY, 40_000)), long);
    let other = NoiseKey { stream: 3, ..KEY };
    assert_ne!(kept(0.2, other, 40_000), long);
}

#[test]
fn f64_has_the_same_mask_and_backward_is_the_adjoint() {
    let dropout = Dropout::new(0.25, KEY).unwrap();
    let [x, g] = [2, 5].map(|stream| normal::<f64>(9, stream, 5001));
    let (mut y, mut dx) = (x.clone(), g.clone());
    dropout_into(&x, dropout, &mut y).unwrap();
    dropout_into(&g, dropout, &mut dx).unwrap();
    let kept = kept(0.25, KEY, 5001);
    assert!(y.iter().zip(kept).all(|(y, kept)| (*y != 0.0) == kept));
    assert!((dot(&y, &g) - dot(&x, &dx)).abs() < 1e-9);
}

#[test]
fn rates() {
    assert!(kept(0.0, KEY, 100_000).into_iter().all(|kept| kept));
    assert_eq!(Dropout::new(0.1, KEY).unwrap().rate(), 6554.0 / STEPS);
    assert!(Dropout::new(0.999_999_9, KEY).unwrap().scale().is_finite());
    for rate in [-0.1, 1.0, f64::NAN] {
        assert!(Dropout::new(rate, KEY).is_err());
    }
    let dropout = Dropout::new(0.5, KEY).unwrap();
    assert!(dropout_into(&[0.0f32; 3], dropout, &mut [0.0; 2]).is_err());
}
