//! What safe code must not be able to do: read or write out of bounds, whatever sizes and kept values it hands over.

use circulant_kernels::{
    Activation, CirculantPlan, Filters, Gradients, HalfPlane, HalfSpectrum, KernelError, Readout,
    ReadoutGradients,
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
