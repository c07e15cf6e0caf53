use circulant_kernels::optimisers::adan::*;
use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;
use circulant_kernels::runtime::chunks::CHUNK;
use circulant_kernels::{KernelError, Real};

fn settings(time: usize, weight_decay: f32, decoupled: bool) -> AdanSettings {
    AdanSettings {
        learning_rate: 1e-2,
        beta_1: 0.98,
        beta_2: 0.92,
        beta_3: 0.99,
        epsilon: 1e-8,
        weight_decay,
        decoupled,
        time,
    }
}

/// Parameter, average, difference, square, negative gradient.
type State<T> = [Vec<T>; 5];

fn take_step<T: Real>(
    state: &mut State<T>,
    gradient: &[T],
    settings: AdanSettings,
) -> Result<(), KernelError> {
    let old = state.clone();
    let before = old.each_ref().map(|values| &values[..]);
    let after = state.each_mut().map(|values| &mut values[..]);
    adan_step(before, gradient, settings, after)
}

/// `AdaptiveNesterovMomentum::transform` and `Adan::step`, operation by operation.
fn transcription(
    parameter: f32,
    g: f32,
    state: &mut Option<[f32; 4]>,
    settings: AdanSettings,
) -> f32 {
    let AdanSettings {
        beta_1,
        beta_2,
        beta_3,
        ..
    } = settings;
    let [exp_avg, exp_avg_sq, exp_avg_diff, _] = *state.insert(match *state {
        Some([exp_avg, exp_avg_sq, exp_avg_diff, neg_pre_grad]) => {
            let grad_diff = neg_pre_grad + g;
            let grad_diff_sq = (grad_diff * beta_2 + g) * (grad_diff * beta_2 + g);
            [
                exp_avg * beta_1 + g * (1.0 - beta_1),
                exp_avg_sq * beta_3 + grad_diff_sq * (1.0 - beta_3),
                exp_avg_diff * beta_2 + grad_diff * (1.0 - beta_2),
                -g,
            ]
        }
        None => [g * (1.0 - beta_1), g * g * (1.0 - beta_3), 0.0, -g],
    });
    let time = settings.time as i32;
    let denom = exp_avg_sq.sqrt() / (1.0 - beta_3.powi(time)).sqrt() + settings.epsilon;
    let update = exp_avg / (1.0 - beta_1.powi(time)) / denom
        + exp_avg_diff * beta_2 / (1.0 - beta_2.powi(time)) / denom;
    let decay_rate = settings.learning_rate * f64::from(settings.weight_decay);
    let delta = update * settings.learning_rate as f32;
    if decay_rate == 0.0 {
        parameter - delta
    } else if settings.decoupled {
        parameter * (1.0 - decay_rate) as f32 - delta
    } else {
        (parameter - delta) / (1.0 + decay_rate) as f32
    }
}

#[test]
fn a_run_is_bit_for_bit_that_of_the_transcription() {
    for (len, decay, decoupled) in [
        (1, 0.0, false),
        (13, 0.02, false),
        (CHUNK + 1, 0.02, true),
        (3 * CHUNK + 3, 1e-4, false),
    ] {
        // The state before the first step must not matter: Burn has none.
        let mut ours: State<f32> = [0.25, 0.0, 0.0, 0.0, 7.0].map(|x| vec![x; len]);
        let mut theirs = vec![0.25; len];
        let mut states = vec![None; len];
        let mut gradient = vec![0.0; len];
        for time in 1..=12 {
            let stream = time as u64;
            standard_normal(NoiseKey { seed: 5, stream }, &mut gradient);
            let settings = settings(time, decay, decoupled);
            take_step(&mut ours, &gradient, settings).unwrap();
            for ((p, g), state) in theirs.iter_mut().zip(&gradient).zip(&mut states) {
                *p = transcription(*p, *g, state, settings);
            }
            assert_eq!(ours[0], theirs, "length {len}, step {time}");
        }
    }
}

/// The numbers of a first step by hand: `m/c_1 = g`, `v/c_3 = g^2`, so the step is the rate.
#[test]
fn the_first_step_is_the_learning_rate() {
    let mut state: State<f64> = [1.0, 0.0, 0.0, 0.0, 0.0].map(|x| vec![x]);
    take_step(&mut state, &[3.0], settings(1, 0.0, false)).unwrap();
    assert!((state[0][0] - 0.99).abs() < 1e-6);
    assert_eq!(state[4][0], -3.0);
}

#[test]
fn wrong_sizes_and_times_are_errors() {
    let step = |lengths: [usize; 5], time| {
        let mut state: State<f32> = lengths.map(|len| vec![0.0; len]);
        take_step(&mut state, &[0.0; 2], settings(time, 0.0, false))
    };
    assert!(step([2; 5], 1).is_ok());
    assert!(step([2; 5], 0).is_err());
    for which in 0..5 {
        let mut lengths = [2; 5];
        lengths[which] = 3;
        assert!(step(lengths, 1).is_err());
    }
}
