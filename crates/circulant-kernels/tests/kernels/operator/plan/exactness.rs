//! Outputs and gradients within the bounds of the oracle.

use super::*;

#[test]
fn every_small_length_is_exact() {
    for length in 1..=64 {
        let layout = HalfSpectrum::new(length).expect("valid");
        let case = Case::signal(&layout);
        // One row takes the row way, nineteen fill lanes and leave an odd tail.
        for batch in [1, 19] {
            case.check_plans(batch, 1, false);
        }
    }
}

/// One row and a few more, by the naive transform both ways; quick enough for long signals.
fn check_long<T: Real>(length: usize) {
    let layout = HalfSpectrum::new(length).expect("valid");
    let full: Vec<Bin> = layout.full().collect();
    let a = exact_noise(5, length);
    let h = spectrum(&full, |k| a[k]);
    let row = exact_noise(6, length);
    let product: Vec<Complex<f64>> = naive_dft(1, length, &row)
        .iter()
        .zip(&h)
        .map(|(x, h)| x * h)
        .collect();
    let expected = naive_filter(1, length, &product);
    for plan in Case::signal(&layout).plans::<T>() {
        // A single row, and lanes whose rows are multiples of it.
        for batch in [1, 17] {
            let x: Vec<f64> = (0..batch)
                .flat_map(|i| row.iter().map(move |x| x * (1.0 + i as f64)))
                .collect();
            let filters = Filters {
                coordinates: &narrow::<T>(&a),
                bias: None,
                activation: Activation::Identity,
            };
            let mut y = vec![T::zero(); x.len()];
            plan.forward(&narrow::<T>(&x), filters, &mut y)
                .expect("shapes fit");
            for (i, y) in y.chunks_exact(length).enumerate() {
                let scaled: Vec<f64> = expected.iter().map(|y| y * (1.0 + i as f64)).collect();
                let error = relative_error(&wide(y), &scaled);
                assert!(
                    error <= tolerance::<T>(),
                    "{length}, {plan:?}: off by {error:e}"
                );
            }
        }
    }
}

#[test]
fn every_length_to_256_and_the_long_ones_are_exact() {
    for length in (1..=256).chain([784, 1024, 2048, 4099, 16384]) {
        check_long::<f64>(length);
        check_long::<f32>(length);
    }
}

/// The layouts with gaps (powers of two) have their own gradients to get right.
#[test]
fn gradients_where_blocks_have_gaps() {
    for length in [128, 256] {
        let layout = HalfSpectrum::new(length).expect("valid");
        let case = Case::signal(&layout);
        for plan in case.plans::<f64>() {
            case.check(&plan, 17, 2, true);
        }
    }
    // Long enough for the product with the filter to be taken in place.
    let layout = HalfSpectrum::new(2048).expect("valid");
    let plan = CirculantPlan::<f64>::new_1d(&layout);
    Case::signal(&layout).check(&plan, 9, 1, true);
    let layout = HalfPlane::new(16, 16).expect("valid");
    for (inputs, outputs) in [(1, 1), (2, 3)] {
        let case = Case::image(&layout, inputs, outputs);
        for plan in case.plans::<f64>() {
            case.check(&plan, 3, 1, false);
        }
    }
}

#[test]
fn masks_filters_and_tanh_in_1d() {
    for (length, modes) in [
        (1, 1),
        (2, 1),
        (7, 2),
        (8, 3),
        (12, 7),
        (30, 16),
        (31, 5),
        (49, 25),
    ] {
        let layout = HalfSpectrum::with_modes(length, modes).expect("valid");
        let case = Case::signal(&layout);
        for (batch, filters, tanh) in [(1, 3, true), (2, 2, false), (17, 3, true), (40, 2, false)] {
            case.check_plans(batch, filters, tanh);
        }
    }
}

#[test]
fn images_of_one_channel() {
    for (height, width) in [
        (1, 1),
        (1, 9),
        (9, 1),
        (4, 6),
        (5, 7),
        (8, 8),
        (3, 17),
        (19, 2),
        (12, 10),
    ] {
        for cutoff in [1.0, 0.6] {
            let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
            let case = Case::image(&layout, 1, 1);
            for (batch, filters, tanh) in [(1, 1, false), (19, 2, true)] {
                case.check_plans(batch, filters, tanh);
            }
        }
    }
}

#[test]
fn channel_mixing() {
    let channels = [(1, 2), (2, 1), (3, 5), (8, 8), (16, 4), (5, 9), (8, 16)];
    for (height, width) in [(1, 1), (4, 4), (3, 5), (2, 7), (1, 17)] {
        for (i, (inputs, outputs)) in channels.into_iter().enumerate() {
            let cutoff = if i % 2 == 0 { 1.0 } else { 0.5 };
            let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
            let case = Case::image(&layout, inputs, outputs);
            for (batch, filters, tanh) in [(1, 1, false), (5, 2, true)] {
                case.check_plans(batch, filters, tanh);
            }
        }
    }
}

/// Few rows (channels beside each other in lanes), some (steps one after the other), and many (groups shared out), with every
/// width of a tile and its rest; one group less than a row, and one more.
#[test]
fn block_circulant() {
    let shapes = [
        (1, 3, 2),
        (2, 5, 4),
        (3, 1, 4),
        (8, 6, 9),
        (12, 4, 2),
        (17, 2, 3),
        (16, 9, 5),
    ];
    for (i, (block, inputs, outputs)) in shapes.into_iter().enumerate() {
        let cutoff = if i % 2 == 0 { 1.0 } else { 0.6 };
        let layout = HalfPlane::with_radius(1, block, cutoff).expect("valid");
        let case = Case::image(&layout, inputs, outputs);
        for (batch, filters, tanh) in [(1, 1, false), (33, 2, true), (64, 1, true), (131, 2, false)]
        {
            case.check_plans(batch, filters, tanh);
        }
    }
}
