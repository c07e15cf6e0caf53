//! What else a caller relies on: biases of both shapes, errors, and sums that do not depend on the
//! threads.

use super::*;
use crate::oracle::same_on_threads;

#[test]
fn a_bias_per_element() {
    let batch = 17;
    let layout = HalfPlane::new(3, 4).expect("valid");
    for (inputs, outputs) in [(1, 1), (2, 3)] {
        for plan in Case::image(&layout, inputs, outputs).plans::<f64>() {
            check_bias_per_element(&plan, batch);
        }
    }
    // Block-circulant: step by step, and group by group.
    let layout = HalfPlane::new(1, 6).expect("valid");
    for batch in [19, 90] {
        for plan in Case::image(&layout, 2, 3).plans::<f64>() {
            check_bias_per_element(&plan, batch);
        }
    }
    // In rows, in lanes, and in lanes of another length.
    for (length, batch) in [(12, 1), (12, batch), (17, batch)] {
        let layout = HalfSpectrum::new(length).expect("valid");
        for plan in Case::signal(&layout).plans::<f64>() {
            check_bias_per_element(&plan, batch);
        }
    }
}

/// Two filters, the same and its double, with a bias for every element.
fn check_bias_per_element(plan: &CirculantPlan<f64>, batch: usize) {
    let unit = plan.output_len();
    let x = noise(1, batch * plan.input_len());
    let mut a = noise(2, plan.coordinates());
    a.extend(a.clone().iter().map(|a| 2.0 * a));
    let b = noise(3, 2 * unit);
    let g = noise(4, 2 * batch * unit);
    let filters = |bias| Filters {
        coordinates: &a[..],
        bias,
        activation: Activation::Tanh,
    };
    let (mut y, mut plain) = (vec![0.0; g.len()], vec![0.0; g.len()]);
    let kept = plan
        .forward_keeping(&x, filters(Some(&b)), &mut y)
        .expect("fits");
    let unbiased = Filters {
        activation: Activation::Identity,
        ..filters(None)
    };
    plan.forward(&x, unbiased, &mut plain).expect("fits");
    let bias_at = |i: usize| i / (batch * unit) * unit + i % unit;
    let expected: Vec<f64> = plain
        .iter()
        .enumerate()
        .map(|(i, y)| (y + b[bias_at(i)]).tanh())
        .collect();
    assert!(relative_error(&y, &expected) < 1e-12);
    let mut grad = vec![0.0; b.len()];
    let wanted = Gradients {
        bias: Some(&mut grad),
        ..Gradients::default()
    };
    plan.backward(&kept, filters(Some(&b)), &y, &g, wanted)
        .expect("fits");
    let mut sums = vec![0.0; b.len()];
    for (i, (g, y)) in g.iter().zip(&expected).enumerate() {
        sums[bias_at(i)] += g * (1.0 - y * y);
    }
    for (grad, sum) in grad.iter().zip(&sums) {
        assert!((grad - sum).abs() < 1e-12, "{grad} {sum}");
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
    let message =
        |result: Result<(), circulant_kernels::KernelError>| result.unwrap_err().to_string();
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
    let signal = HalfSpectrum::new(96).expect("valid");
    let block = HalfPlane::new(1, 8).expect("valid");
    let blocks = CirculantPlan::new_2d(&block, 12, 12).expect("valid");
    for plan in [CirculantPlan::new_1d(&signal), blocks] {
        for batch in [40, 600] {
            check_threads(&plan, batch);
        }
    }
}

fn check_threads(plan: &CirculantPlan<f32>, batch: usize) {
    let [x, a, g] = [
        (1, batch * plan.input_len()),
        (2, plan.coordinates()),
        (3, batch * plan.output_len()),
    ]
    .map(|(seed, len)| narrow::<f32>(&exact_noise(seed, len)));
    let bias = vec![0.0; plan.output_len()];
    same_on_threads(|| {
        let filters = Filters {
            coordinates: &a[..],
            bias: Some(&bias),
            activation: Activation::Identity,
        };
        let kept = plan.transform(&x).expect("fits");
        let (mut grad, mut grad_bias) = (a.clone(), bias.clone());
        let wanted = Gradients {
            coordinates: Some(&mut grad),
            bias: Some(&mut grad_bias),
            ..Gradients::default()
        };
        plan.backward(&kept, filters, &[], &g, wanted)
            .expect("fits");
        (grad, grad_bias)
    });
}

/// Infinite values, of a damaged file say, give results that are not finite instead of a panic.
#[test]
fn infinite_numbers_do_not_panic() {
    for length in [1, 2, 7, 8, 17, 784] {
        let layout = HalfSpectrum::new(length).expect("valid");
        for plan in Case::signal(&layout).plans::<f32>() {
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
