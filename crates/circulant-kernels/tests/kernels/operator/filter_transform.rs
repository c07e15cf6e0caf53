use crate::oracle::{dot, naive_dft, noise, relative_error};
use circulant_core::Bin;
use circulant_kernels::operator::filter_transform::*;
use circulant_kernels::{HalfPlane, HalfSpectrum};

/// A few roundings in f64.
const TOLERANCE: f64 = 1e-12;

fn check(height: usize, width: usize, inputs: usize, outputs: usize) {
    let layout = HalfPlane::new(height, width).expect("valid");
    let n = height * width;
    let transform = FilterTransform::<f64>::new_2d(&layout, inputs, outputs).expect("valid");
    let filters = noise(1, inputs * outputs * n);
    let mut coordinates = vec![0.0; filters.len()];
    transform.analyse(&filters, &mut coordinates).expect("fits");

    let mut expected = vec![0.0; filters.len()];
    for o in 0..outputs {
        for c in 0..inputs {
            let spectrum = naive_dft(height, width, &filters[(o * inputs + c) * n..][..n]);
            let pairs = inputs * outputs;
            for (f, bin) in layout.full().enumerate() {
                match bin {
                    Bin::Real { coordinate } => {
                        expected[coordinate * pairs + c * outputs + o] = spectrum[f].re;
                    }
                    Bin::Complex { coordinate } => {
                        expected[coordinate * pairs + c * outputs + o] = spectrum[f].re;
                        expected[(coordinate + 1) * pairs + c * outputs + o] = spectrum[f].im;
                    }
                    Bin::Conjugate { .. } | Bin::Masked => {}
                }
            }
        }
    }
    assert!(
        relative_error(&coordinates, &expected) < TOLERANCE,
        "{height} x {width}"
    );

    let mut back = vec![0.0; filters.len()];
    transform.synthesise(&coordinates, &mut back).expect("fits");
    assert!(
        relative_error(&back, &filters) < TOLERANCE,
        "{height} x {width}"
    );

    // <analyse(w), g> = <w, adjoint(g)>
    let g = noise(2, coordinates.len());
    let mut adjoint = vec![0.0; filters.len()];
    transform.adjoint(&g, &mut adjoint).expect("fits");
    let (left, right) = (dot(&coordinates, &g), dot(&filters, &adjoint));
    assert!(
        (left - right).abs() < TOLERANCE * (1.0 + left.abs()) * n as f64,
        "{left} {right}"
    );
}

#[test]
fn filters_and_coordinates_of_every_shape() {
    for (height, width) in [(1, 1), (1, 8), (1, 19), (4, 6), (5, 7), (17, 2), (16, 16)] {
        for (inputs, outputs) in [(1, 1), (2, 3), (5, 4)] {
            check(height, width, inputs, outputs);
        }
    }
}

#[test]
fn a_signal_is_an_image_of_one_row() {
    for d in [1, 2, 9, 16, 23] {
        let signal = FilterTransform::<f64>::new_1d(&HalfSpectrum::new(d).expect("valid"));
        let image = FilterTransform::<f64>::new_2d(&HalfPlane::new(1, d).expect("valid"), 1, 1)
            .expect("valid");
        let w = noise(3, d);
        let (mut a, mut b) = (vec![0.0; d], vec![0.0; d]);
        signal.analyse(&w, &mut a).expect("fits");
        image.analyse(&w, &mut b).expect("fits");
        assert_eq!(a, b);
    }
}
