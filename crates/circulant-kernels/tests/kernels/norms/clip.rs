use circulant_core::HalfSpectrum;

use super::*;
use crate::oracle::noise;
use circulant_kernels::norms::{clip_norm_1d, clip_norm_2d, operator_norm_1d, operator_norm_2d};

/// What a clipped norm may exceed its limit by.
const TINY: f64 = 1e-11;

#[test]
fn moduli_are_clipped_and_phases_kept() {
    for d in [1, 2, 7, 8, 64] {
        let layout = HalfSpectrum::new(d).expect("valid");
        for scale in [1.0, 1e300, 1e-300] {
            let a: Vec<f64> = noise(2, d).iter().map(|x| x * scale).collect();
            let limit = 0.5 * scale;
            let mut clipped = a.clone();
            clip_norm_1d(&layout, &mut clipped, limit).expect("finite");
            assert!(operator_norm_1d(&layout, &clipped).expect("finite").lower <= limit);
            for k in 0..layout.bins() {
                let bin = layout.bin(k);
                let (old, new) = (bin.value(|i| a[i]), bin.value(|i| clipped[i]));
                let modulus = old.re.hypot(old.im);
                if modulus <= limit {
                    assert_eq!(old, new);
                } else {
                    let expected = (old / modulus) * limit;
                    assert!((new / scale - expected / scale).norm() < 1e-14);
                }
            }
            let mut twice = clipped.clone();
            clip_norm_1d(&layout, &mut twice, limit).expect("finite");
            assert_eq!(twice, clipped);
        }
    }
    let layout = HalfSpectrum::new(3).expect("valid");
    let mut largest = [f64::MAX; 3];
    clip_norm_1d(&layout, &mut largest, 1.0).expect("finite");
    assert!((largest[1] - 0.5f64.sqrt()).abs() < 1e-15);
    clip_norm_1d(&layout, &mut largest, 0.0).expect("finite");
    assert_eq!(largest, [0.0; 3]);
}

#[test]
fn singular_values_are_clipped() {
    for (height, width, inputs, outputs) in [(3, 4, 3, 2), (2, 2, 2, 5), (5, 3, 4, 4), (3, 3, 1, 1)]
    {
        let layout = HalfPlane::new(height, width).expect("valid");
        let channels = [inputs, outputs];
        let pairs = inputs * outputs;
        let unit = noise(4, layout.coordinates() * pairs);
        // The first is above all norms, the last far below all singular values.
        for (scale, limit) in [
            (1.0, 1e3),
            (1.0, 1.2),
            (1e200, 0.9e200),
            (1e-200, 1e-200),
            (1.0, 1e-20),
        ] {
            let a: Vec<f64> = unit.iter().map(|x| x * scale).collect();
            let mut clipped = a.clone();
            clip_norm_2d(&layout, inputs, outputs, &mut clipped, limit).expect("finite");
            let norm = operator_norm_2d(&layout, inputs, outputs, &clipped).expect("finite");
            assert!(norm.lower <= limit * (1.0 + TINY), "{norm:?} {limit}");

            let (before, after) = (
                bin_matrices(&layout, channels, &a),
                bin_matrices(&layout, channels, &clipped),
            );
            for (old, new) in before.iter().zip(&after) {
                let old = faer::Scale(c64::new(1.0 / limit, 0.0)) * old;
                let new = faer::Scale(c64::new(1.0 / limit, 0.0)) * new;
                let svd = old.thin_svd().expect("converges");
                if svd.S().column_vector()[0].re <= 1.0 {
                    assert_eq!(old, new, "a bin below the limit is not touched");
                    continue;
                }
                let values = svd.S().column_vector();
                let middle = Mat::from_fn(values.nrows(), values.nrows(), |i, j| {
                    c64::new(if i == j { values[i].re.min(1.0) } else { 0.0 }, 0.0)
                });
                let expected = svd.U() * middle * svd.V().adjoint();
                assert!((new - expected).norm_l2() < TINY);
            }
            let mut twice = clipped.clone();
            clip_norm_2d(&layout, inputs, outputs, &mut twice, limit).expect("finite");
            assert_eq!(twice, clipped, "clipping twice is clipping once");
        }
    }
}

#[test]
fn wrong_limits_and_values_are_errors() {
    let signal = HalfSpectrum::new(3).expect("valid");
    let layout = HalfPlane::new(2, 2).expect("valid");
    for limit in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(clip_norm_1d(&signal, &mut [1.0; 3], limit).is_err());
        assert!(clip_norm_2d(&layout, 2, 1, &mut [1.0; 8], limit).is_err());
    }
    assert!(clip_norm_1d(&signal, &mut [1.0; 2], 1.0).is_err());
    assert!(clip_norm_1d(&signal, &mut [f64::NAN; 3], 1.0).is_err());
    assert!(clip_norm_2d(&layout, 2, 1, &mut [1.0; 7], 1.0).is_err());
    assert!(clip_norm_2d(&layout, 2, 1, &mut [f64::INFINITY; 8], 1.0).is_err());
    let mut zeros = [0.0; 8];
    clip_norm_2d(&layout, 2, 1, &mut zeros, 0.0).expect("finite");
    assert_eq!(zeros, [0.0; 8]);
}
