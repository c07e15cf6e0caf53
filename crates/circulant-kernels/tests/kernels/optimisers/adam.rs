use circulant_kernels::optimisers::adam::*;
use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;
use circulant_kernels::{KernelError, Real};

fn settings(time: usize) -> AdamSettings {
    AdamSettings {
        learning_rate: 1e-2,
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-5,
        time,
    }
}

/// A step in place.
fn take_step<T: Real>(
    parameter: &mut [T],
    gradient: &[T],
    [moment_1, moment_2]: [&mut [T]; 2],
    settings: AdamSettings,
) -> Result<(), KernelError> {
    let before = [parameter.to_vec(), moment_1.to_vec(), moment_2.to_vec()];
    let before = before.each_ref().map(|values| &values[..]);
    adam_step(before, gradient, settings, [parameter, moment_1, moment_2])
}

/// `AdaptiveMomentum::transform` and `Adam::step`, tensor operation by tensor operation.
fn transcription(
    parameter: &mut [f32],
    gradient: &[f32],
    state: &mut Option<(usize, Vec<f32>, Vec<f32>)>,
    settings: AdamSettings,
) {
    let zip = |a: &[f32], b: &[f32], f: fn(f32, f32) -> f32| -> Vec<f32> {
        a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
    };
    let times = |a: &[f32], s: f32| -> Vec<f32> { a.iter().map(|a| a * s).collect() };
    let AdamSettings { beta_1, beta_2, .. } = settings;
    let scaled = times(gradient, 1.0 - beta_1);
    let squared = times(&zip(gradient, gradient, |a, b| a * b), 1.0 - beta_2);
    let (time, moment_1, moment_2) = match state.take() {
        Some((time, moment_1, moment_2)) => (
            time + 1,
            zip(&times(&moment_1, beta_1), &scaled, |a, b| a + b),
            zip(&times(&moment_2, beta_2), &squared, |a, b| a + b),
        ),
        None => (1, scaled, squared),
    };
    let correction = (1.0 - beta_2.powi(time as i32)).sqrt();
    let combined = correction / (1.0 - beta_1.powi(time as i32));
    let divisor: Vec<f32> = moment_2
        .iter()
        .map(|v| v.sqrt() + settings.epsilon * correction)
        .collect();
    let delta = times(
        &zip(&times(&moment_1, combined), &divisor, |a, b| a / b),
        settings.learning_rate as f32,
    );
    parameter.copy_from_slice(&zip(parameter, &delta, |a, b| a - b));
    *state = Some((time, moment_1, moment_2));
}

#[test]
fn a_run_is_bit_for_bit_that_of_the_transcription() {
    for len in [1, 13, CHUNK + 1, 5 * CHUNK + 3] {
        let mut ours = vec![0.25f32; len];
        let mut theirs = ours.clone();
        let (mut moment_1, mut moment_2) = (vec![0.0; len], vec![0.0; len]);
        let mut state = None;
        let mut gradient = vec![0.0; len];
        for time in 1..=20 {
            let stream = time as u64;
            standard_normal(NoiseKey { seed: 5, stream }, &mut gradient);
            let settings = settings(time);
            take_step(
                &mut ours,
                &gradient,
                [&mut moment_1, &mut moment_2],
                settings,
            )
            .unwrap();
            transcription(&mut theirs, &gradient, &mut state, settings);
            assert_eq!(ours, theirs, "length {len}, step {time}");
        }
    }
}

#[test]
fn the_first_step_is_about_the_learning_rate() {
    let (mut parameter, mut moment_1, mut moment_2) = ([1.0f64], [0.0], [0.0]);
    let moments = [&mut moment_1[..], &mut moment_2];
    take_step(&mut parameter, &[3.0], moments, settings(1)).unwrap();
    assert!((parameter[0] - 0.99).abs() < 1e-6);
}

#[test]
fn wrong_sizes_and_times_are_errors() {
    let step = |p: usize, g, m, v, time| {
        let moments = [&mut vec![0.0; m][..], &mut vec![0.0; v]];
        take_step(&mut vec![0.0f32; p], &vec![0.0; g], moments, settings(time))
    };
    assert!(step(2, 2, 2, 2, 1).is_ok());
    assert!(step(2, 3, 2, 2, 1).is_err());
    assert!(step(2, 2, 3, 2, 1).is_err());
    assert!(step(2, 2, 2, 3, 1).is_err());
    assert!(step(2, 2, 2, 2, 0).is_err());
}
