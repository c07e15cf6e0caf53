//! Singular values against the norms that the geometry certifies, and against known matrices.

use burn::module::Param;
use burn::tensor::Tensor;
use circulant::geometry::{Lipschitz, SingularValues};
use circulant::models::{HiddenKind, HiddenLayer, ImageClassifierConfig};
use circulant::nn::SpectralCirculant1dConfig;

use crate::common::{host, largest_singular_value};

/// f32 parameters, and a bound that is rounded up.
const TOLERANCE: f64 = 1e-3;

#[test]
fn the_first_is_the_norm() {
    for kind in HiddenKind::ALL {
        let model = ImageClassifierConfig::new(kind)
            .with_image([1, 6, 8])
            .with_classes(3)
            .with_depth(2)
            .init(&circulant::cpu());
        let bound = model.network_bound().expect("bounded");
        let singular = model.singular_values().expect("finite");
        for ((name, values), norm) in singular.iter().zip(bound.layers()) {
            let upper = norm.norm().upper().get();
            assert_eq!(name, norm.name());
            assert!(values[0] <= upper * (1.0 + TOLERANCE), "{kind:?} {name}");
            // The bound of a convolution is not that of the circular one.
            if kind != HiddenKind::Convolution {
                assert!(values[0] >= upper * (1.0 - TOLERANCE), "{kind:?} {name}");
            }
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
            // As many as the smaller side of the matrix.
            let count = if name == "output" { 3 } else { 48 };
            assert_eq!(values.len() % count, 0, "{kind:?} {name}");
        }
        assert_eq!(singular.len(), 3);
    }
}

#[test]
fn a_convolution_of_one_tap_has_one_singular_value() {
    let device = circulant::cpu();
    let config = ImageClassifierConfig::new(HiddenKind::Convolution).with_channels(Some(1));
    let mut model = config.with_image([1, 6, 8]).init(&device);
    let HiddenLayer::Convolution(layer) = &mut model.hidden else {
        panic!("asked for a convolution");
    };
    let taps = [0.0_f32, 0.0, 0.0, -2.5, 0.0, 0.0, 0.0, 0.0, 0.0];
    let taps = Tensor::<1>::from_floats(taps, &device).reshape([1, 1, 3, 3]);
    layer.weight = Param::from_tensor(taps);
    for value in model.hidden.singular_values([6, 8]).expect("finite") {
        assert!((value - 2.5).abs() < 1e-6, "{value}");
    }
}

#[test]
fn a_cropped_layer_has_those_of_its_matrix() {
    for [d_in, d_out] in [[7, 7], [9, 4], [4, 9]] {
        let layer = SpectralCirculant1dConfig::new(d_in)
            .with_d_out(Some(d_out))
            .with_seed(Some(3))
            .init(&circulant::cpu());
        let values = layer.singular_values().expect("finite");
        assert_eq!(values.len(), d_in.min(d_out));
        let matrix = layer.dense_matrix();
        let [rows, columns] = matrix.dims();
        let largest = largest_singular_value(rows, columns, &host(matrix));
        assert!((values[0] / largest - 1.0).abs() < 1e-5, "{d_in} {d_out}");
    }
}
