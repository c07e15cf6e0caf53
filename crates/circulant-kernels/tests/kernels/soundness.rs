//! What safe code must not be able to do: read or write out of bounds, whatever sizes and kept values it hands over.

use circulant_kernels::{
    Activation, Attention, CirculantPlan, Convolution, FilterTransform, Filters, Gradients,
    HalfPlane, HalfSpectrum, KernelError, Readout, ReadoutGradients, clip_norm_2d,
    convolution_norm_bound, cross_entropy, ensemble_statistics, gather_rows, gram_bound_2d,
    gram_bound_matrix, linear_stack_into, matrix_norm, operator_norm_2d, singular_values_2d,
};

fn filters<'a>(coordinates: &'a [f32], bias: Option<&'a [f32]>) -> Filters<'a, f32> {
    Filters {
        coordinates,
        bias,
        activation: Activation::Identity,
    }
}

/// A signal of a prime length and an image of one row have inputs of one shape, but spectra of two: the signal's is that of
/// rows with zeros behind them, more than twice as long.
#[test]
fn a_spectrum_of_another_way_is_refused() {
    let (length, batch) = (19, 64);
    let signal = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(length).expect("valid"));
    let image = CirculantPlan::<f32>::new_2d(&HalfPlane::new(1, length).expect("valid"), 1, 1)
        .expect("valid");
    let x = vec![1.0; batch * length];
    let (coordinates, mut y) = (vec![0.5; length], vec![0.0; batch * length]);
    let filters = filters(&coordinates, None);
    for (maker, reader) in [(&image, &signal), (&signal, &image)] {
        let kept = maker.transform(&x).expect("fits");
        let error = reader.apply(&kept, filters, &mut y);
        assert!(
            matches!(error, Err(KernelError::ForeignSpectrum { .. })),
            "{error:?}"
        );
        let mut grad = vec![0.0; length];
        let wanted = Gradients {
            coordinates: Some(&mut grad[..]),
            ..Gradients::default()
        };
        let error = reader.backward(&kept, filters, &[], &x, wanted);
        assert!(
            matches!(error, Err(KernelError::ForeignSpectrum { .. })),
            "{error:?}"
        );
        maker.apply(&kept, filters, &mut y).expect("its own");
    }
}

/// Where both do the same, each reads the other's.
#[test]
fn a_spectrum_of_the_same_form_is_read() {
    let (length, batch) = (16, 64);
    let signal = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(length).expect("valid"));
    let image = CirculantPlan::<f32>::new_2d(&HalfPlane::new(1, length).expect("valid"), 1, 1)
        .expect("valid");
    let x: Vec<f32> = (0..batch * length).map(|i| (i % 7) as f32).collect();
    let coordinates: Vec<f32> = (0..length).map(|i| (i % 3) as f32).collect();
    let [mut own, mut foreign] = [vec![0.0; x.len()], vec![0.0; x.len()]];
    let kept = signal.transform(&x).expect("fits");
    let filters = filters(&coordinates, None);
    signal.apply(&kept, filters, &mut own).expect("fits");
    image.apply(&kept, filters, &mut foreign).expect("fits");
    assert_eq!(own, foreign);
}

/// With a bias per position the output is kept row by row, with one number in lanes: as long, in another order.
#[test]
fn a_kept_output_in_another_order_is_refused() {
    let (length, batch, classes) = (16, 64, 3);
    let plan = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(length).expect("valid"));
    let x = vec![1.0; batch * length];
    let (coordinates, positions) = (vec![0.5; length], vec![0.25; length]);
    let weight = vec![0.125; length * classes];
    let readout = Readout {
        weight: &weight,
        bias: &[0.0; 3],
    };
    let mut z = vec![0.0; batch * classes];
    let per_position = filters(&coordinates, Some(&positions));
    let one_number = filters(&coordinates, Some(&positions[..1]));
    for (forward, backward) in [(per_position, one_number), (one_number, per_position)] {
        let kept = plan
            .forward_readout_keeping(&x, forward, readout, &mut z)
            .expect("fits");
        let pass = |filters| {
            let of_readout = ReadoutGradients::default();
            plan.backward_readout(
                &kept,
                filters,
                readout,
                &z,
                Gradients::default(),
                of_readout,
            )
        };
        let error = pass(backward);
        assert!(
            matches!(error, Err(KernelError::ForeignSpectrum { .. })),
            "{error:?}"
        );
        pass(forward).expect("its own");
    }
}

/// A size that makes products wrap to something small.
const HUGE: usize = 1 << 61;

fn too_large<A: std::fmt::Debug>(result: Result<A, KernelError>) {
    assert!(
        matches!(result, Err(KernelError::TooLarge { .. })),
        "{result:?}"
    );
}

#[test]
fn sizes_whose_product_wraps_are_refused_by_every_layer() {
    too_large(Attention::new(8, 1, HUGE + 8));
    too_large(Attention::new(HUGE, 8, 1));
    too_large(Attention::new(1 << 32, 1, 1));
    too_large(Attention::new(1, HUGE, 8));
    let attention = Attention::new(8, 2, 4).expect("valid");
    assert_eq!(attention.log_sums_len(HUGE), usize::MAX);

    too_large(Convolution::new(8, 1, HUGE, 1, [1, 1]));
    too_large(Convolution::new(1, 8, 1, HUGE, [1, 1]));
    too_large(Convolution::new(HUGE, 8, 1, 1, [1, 1]));
    too_large(Convolution::new(1, 1, 1, 1, [HUGE + 1, 9]));
    too_large(Convolution::new(1, 1, usize::MAX, 1, [3, 3]));

    let plane = HalfPlane::new(4, 4).expect("valid");
    for (inputs, outputs) in [(HUGE, 1), (1, HUGE), (1 << 31, 1 << 31)] {
        too_large(CirculantPlan::<f32>::new_2d(&plane, inputs, outputs));
        assert!(matches!(
            FilterTransform::<f32>::new_2d(&plane, inputs, outputs),
            Err(KernelError::TooLarge { .. })
        ));
        too_large(operator_norm_2d(&plane, inputs, outputs, &[]));
        too_large(singular_values_2d(&plane, inputs, outputs, &[]));
        too_large(gram_bound_2d(&plane, inputs, outputs, &[], 2));
        too_large(clip_norm_2d(&plane, inputs, outputs, &mut [], 1.0));
    }
    too_large(matrix_norm(HUGE, 8, &[]));
    too_large(gram_bound_matrix(8, HUGE, &[], 2));
    too_large(convolution_norm_bound(&[], HUGE, 8, [1, 1], [4, 4]));
    too_large(convolution_norm_bound(&[1.0], 1, 1, [1, 1], [HUGE, HUGE]));
    too_large(convolution_norm_bound(
        &[1.0],
        1,
        1,
        [1, 1],
        [1 << 20, 1 << 20],
    ));
}

#[test]
fn sizes_whose_product_wraps_are_refused_by_every_function() {
    too_large(cross_entropy::<f32>(&[], HUGE, &[0; 8], None));
    let (mut p, mut of_mean) = ([0.0; 8], [0.0; 8]);
    let mut mean = [0.0; 8];
    too_large(ensemble_statistics(
        &[0.0; 8],
        HUGE + 1,
        8,
        &mut p,
        &mut of_mean,
        &mut mean,
    ));
    // What has a slice for every size is bounded by memory: the number of layers alone is not.
    let mut y = [0.0_f32; 0];
    assert!(linear_stack_into(&[0.0; 8], &[0.0; 8], &[], HUGE, &mut y).is_err());
}

#[test]
#[should_panic(expected = "row 9223372036854775808 of a matrix of 4 rows")]
fn a_row_whose_place_wraps_is_no_row() {
    gather_rows(&[0.0_f32; 8], &[1 << 63], &mut [0.0; 2]);
}
