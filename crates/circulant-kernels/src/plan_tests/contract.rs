//! What else a caller relies on: biases of both shapes, errors, and sums that do not depend on the
//! threads.

use super::*;

#[test]
fn a_bias_per_element() {
    let (height, width, batch) = (3, 4, 5);
    let layout = HalfPlane::new(height, width).expect("valid");
    for (inputs, outputs) in [(1, 1), (2, 3)] {
        for plan in plans_2d::<f64>(&layout, inputs, outputs) {
            let unit = outputs * height * width;
            let x = noise(1, batch * inputs * height * width);
            let (a, b) = (noise(2, plan.coordinates()), noise(3, unit));
            let g = noise(4, batch * unit);
            let filters = |bias| Filters {
                coordinates: &a[..],
                bias,
                activation: Activation::Tanh,
            };
            let (mut y, mut plain) = (vec![0.0; batch * unit], vec![0.0; batch * unit]);
            let kept = plan
                .forward_keeping(&x, filters(Some(&b)), &mut y)
                .expect("fits");
            let unbiased = Filters {
                activation: Activation::Identity,
                ..filters(None)
            };
            plan.forward(&x, unbiased, &mut plain).expect("fits");
            let expected: Vec<f64> = plain
                .iter()
                .enumerate()
                .map(|(i, y)| (y + b[i % unit]).tanh())
                .collect();
            assert!(relative_error(&y, &expected) < 1e-12);
            let mut grad = vec![0.0; unit];
            let wanted = Gradients {
                bias: Some(&mut grad),
                ..Gradients::default()
            };
            plan.backward(&kept, filters(Some(&b)), &y, &g, wanted)
                .expect("fits");
            for (i, grad) in grad.iter().enumerate() {
                let sum: f64 = (0..batch)
                    .map(|row| g[row * unit + i] * (1.0 - expected[row * unit + i].powi(2)))
                    .sum();
                assert!((grad - sum).abs() < 1e-12, "{grad} {sum}");
            }
        }
    }
}

#[test]
fn wrong_shapes_are_errors_that_name_both() {
    let plan = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(8).expect("valid"));
    let fits = Filters {
        coordinates: &[0.0; 8][..],
        bias: None,
        activation: Activation::Identity,
    };
    let mut y = [0.0; 16];
    let message = |result: Result<(), crate::KernelError>| result.unwrap_err().to_string();
    assert!(
        message(plan.forward(&[0.0; 15], fits, &mut y)).contains("multiple of 8 values, got 15")
    );
    assert!(message(plan.forward(&[], fits, &mut y)).contains("got 0"));
    assert!(message(plan.forward(&[0.0; 8], fits, &mut y)).contains("expected 8 values, got 16"));
    let short = Filters {
        coordinates: &[0.0; 7][..],
        ..fits
    };
    assert!(
        message(plan.forward(&[0.0; 16], short, &mut y)).contains("multiple of 8 values, got 7")
    );
    let biased = Filters {
        bias: Some(&[0.0; 3][..]),
        ..fits
    };
    assert!(
        message(plan.forward(&[0.0; 16], biased, &mut y))
            .contains("bias: expected 1 values, got 3")
    );
    // A spectrum of another plan.
    let other = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(9).expect("valid"));
    let kept = other.transform(&[0.0; 18]).expect("fits");
    assert!(message(plan.apply(&kept, fits, &mut y)).contains("the kept spectrum"));
}

/// The same input gives the same bytes, whatever the number of threads.
#[test]
fn gradients_do_not_depend_on_the_threads() {
    let plan = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(96).expect("valid"));
    let (x, a, g) = (
        exact_noise(1, 600 * 96),
        exact_noise(2, 96),
        exact_noise(3, 600 * 96),
    );
    let (x, a, g) = (round::<f32>(&x), round::<f32>(&a), round::<f32>(&g));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| {
            let filters = Filters {
                coordinates: &a[..],
                bias: None,
                activation: Activation::Identity,
            };
            let kept = plan.transform(&x).expect("fits");
            let mut grad = vec![0.0; 96];
            let wanted = Gradients {
                coordinates: Some(&mut grad),
                ..Gradients::default()
            };
            plan.backward(&kept, filters, &[], &g, wanted)
                .expect("fits");
            grad
        })
    };
    assert_eq!(run(1), run(3));
}

/// Infinite numbers, of a damaged file say, give results that are not finite instead of a panic.
#[test]
fn infinite_numbers_do_not_panic() {
    for length in [1, 2, 7, 8, 784] {
        let layout = HalfSpectrum::new(length).expect("valid");
        for plan in plans_1d::<f32>(&layout) {
            for (value, batch) in [(f32::INFINITY, 1), (f32::INFINITY, 40), (f32::NAN, 1)] {
                for place in [0, length / 2, length - 1] {
                    let mut a = vec![1.0; length];
                    a[place] = value;
                    let filters = Filters {
                        coordinates: &a[..],
                        bias: None,
                        activation: Activation::Identity,
                    };
                    let x = vec![0.0; batch * length];
                    let mut y = vec![0.0; batch * length];
                    plan.forward(&x, filters, &mut y).expect("fits");
                    assert!(y.iter().any(|y| !y.is_finite()), "{length} {place}");
                }
            }
        }
    }
}
