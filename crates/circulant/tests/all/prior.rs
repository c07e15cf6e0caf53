//! The spectral prior against its definition: variances, the Gaussian-process covariance by closed form and by
//! draws, densities.

use crate::common;
use circulant::bayes::{
    Frequency, Matern, Slope, SpectralPrior, SquaredExponential, StationarySpectrum, Table,
};
use circulant::noise::NoiseKey;
use circulant::operator::Layout;
use circulant::operator::{HalfPlane, HalfSpectrum};

const EXACT: f64 = 1e-12;

fn signal(length: usize, modes: usize) -> Layout {
    Layout::Signal(HalfSpectrum::with_modes(length, modes).expect("valid"))
}

fn image(height: usize, width: usize, cutoff: f64, channels: [usize; 2]) -> Layout {
    Layout::Image {
        plane: HalfPlane::with_radius(height, width, cutoff).expect("valid"),
        channels_in: channels[0],
        channels_out: channels[1],
    }
}

fn slope(alpha: f64) -> Slope {
    Slope {
        deviation: 1.5,
        alpha,
    }
}

#[test]
fn variances_follow_the_slope() {
    for (length, modes) in [(1, 1), (2, 2), (7, 4), (8, 5), (8, 3), (12, 7), (13, 7)] {
        let prior = SpectralPrior::new(&signal(length, modes), &slope(0.7)).expect("valid");
        let mut expected = Vec::new();
        for k in 0..modes {
            let rho = k.min(length - k) as f64 / (length / 2).max(1) as f64;
            let density = 2.25 / (1.0 + rho.powf(0.7));
            let is_real = k == 0 || 2 * k == length;
            if is_real {
                expected.push(density);
            } else {
                expected.extend([density / 2.0; 2]);
            }
        }
        assert!(
            common::difference(prior.variances(), &expected) < EXACT,
            "{length}, {modes}"
        );
    }
}

#[test]
fn a_flat_slope_is_white() {
    let prior = SpectralPrior::new(&signal(9, 5), &slope(0.0)).expect("valid");
    assert!((prior.covariance(0) - 1.125).abs() < EXACT);
    assert!((1..9).all(|tau| prior.covariance(tau).abs() < EXACT));
}

/// Every block is the process of a signal of its length.
#[test]
fn blocks_have_the_prior_of_a_signal() {
    use circulant::nn::BlockCirculant1dConfig;
    let config = BlockCirculant1dConfig::new(24, 16, 8).with_modes(Some(4));
    let layout = config.init(&circulant::cpu()).spectrum_layout();
    let matern = Matern {
        deviation: 1.3,
        length_scale: 2.0,
        nu: 1.5,
    };
    let one = SpectralPrior::new(&signal(8, 4), &matern).expect("valid");
    let blocks = SpectralPrior::new(&layout, &matern).expect("valid");
    let repeated: Vec<f64> = one.variances().iter().flat_map(|v| [*v; 6]).collect();
    assert_eq!(blocks.variances(), repeated);
}

#[test]
fn channel_pairs_share_the_variances() {
    let one = SpectralPrior::new(&image(3, 4, 1.0, [1, 1]), &slope(1.0)).expect("valid");
    let many = SpectralPrior::new(&image(3, 4, 1.0, [2, 3]), &slope(1.0)).expect("valid");
    let repeated: Vec<f64> = one.variances().iter().flat_map(|v| [*v; 6]).collect();
    assert_eq!(many.variances(), repeated);
}

/// Sample covariances of 1e5 draws against `k(tau)`, within four standard errors. Gaussian fourth moments give the
/// standard error `sqrt((k(0)^2 + k(tau)^2)/n)`.
fn check_draws(layout: &Layout, spectrum: &dyn StationarySpectrum) {
    const DRAWS: usize = 100_000;
    let prior = SpectralPrior::new(layout, spectrum).expect("valid");
    let (height, width) = layout.grid();
    let mut sums = vec![0.0; height * width];
    for stream in 0..DRAWS as u64 {
        let filter = prior.draw_filter(NoiseKey { seed: 5, stream });
        for (sum, value) in sums.iter_mut().zip(&filter) {
            *sum += filter[0] * value;
        }
    }
    let variance = prior.covariance_2d(0, 0);
    for (index, sum) in sums.iter().enumerate() {
        let expected = prior.covariance_2d(index % width, index / width);
        let error = (variance.powi(2) + expected.powi(2)).sqrt() / (DRAWS as f64).sqrt();
        let got = sum / DRAWS as f64;
        assert!(
            (got - expected).abs() < 4.0 * error,
            "{layout:?} at {index}: {got} instead of {expected} +- {error}"
        );
    }
}

#[test]
fn draws_have_the_covariance_of_the_process_1d() {
    check_draws(&signal(8, 5), &slope(2.0));
    check_draws(&signal(7, 4), &slope(1.0));
    check_draws(&signal(8, 3), &slope(1.0));
    let matern = Matern {
        deviation: 0.8,
        length_scale: 0.2,
        nu: 1.5,
    };
    check_draws(&signal(9, 5), &matern);
}

#[test]
fn draws_have_the_covariance_of_the_process_2d() {
    check_draws(&image(4, 6, 1.0, [1, 1]), &slope(2.0));
    check_draws(&image(3, 5, 1.0, [1, 1]), &slope(1.0));
    check_draws(&image(4, 4, 0.6, [1, 1]), &slope(1.0));
    let smooth = SquaredExponential {
        deviation: 1.0,
        length_scale: 0.15,
    };
    check_draws(&image(5, 4, 1.0, [1, 1]), &smooth);
}

/// `k(tau)` as the plain sum over the full spectrum, built from the variances of the coordinates alone.
#[test]
fn covariance_is_the_transform_of_the_variances() {
    for length in [6, 7] {
        let layout = signal(length, length / 2 + 1);
        let prior = SpectralPrior::new(&layout, &slope(1.3)).expect("valid");
        let mut densities = vec![0.0; length];
        let mut coordinate = 0;
        for k in 0..=length / 2 {
            let is_real = k == 0 || 2 * k == length;
            let parts = if is_real { 1 } else { 2 };
            densities[k] = prior.variances()[coordinate..coordinate + parts]
                .iter()
                .sum();
            densities[(length - k) % length] = densities[k];
            coordinate += parts;
        }
        for tau in 0..2 * length {
            let sum: f64 = (0..length)
                .map(|k| {
                    let angle = std::f64::consts::TAU * (k * tau) as f64 / length as f64;
                    densities[k] * angle.cos()
                })
                .sum();
            assert!((prior.covariance(tau) - sum / length as f64).abs() < EXACT);
        }
    }
}

/// On a fine grid and with a short length scale, the wrapped kernel is the kernel on the line.
#[test]
fn smooth_spectra_are_the_familiar_kernels() {
    let layout = signal(400, 201);
    let ell = 0.05;
    let smooth = SquaredExponential {
        deviation: 2.0,
        length_scale: ell,
    };
    let matern = Matern {
        deviation: 2.0,
        length_scale: ell,
        nu: 1.5,
    };
    let smooth = SpectralPrior::new(&layout, &smooth).expect("valid");
    let matern = SpectralPrior::new(&layout, &matern).expect("valid");
    // Jitter of 1e-6 per bin, and frequencies beyond the grid.
    let (jitter, truncation) = (1e-4, 2e-2);
    for tau in [0, 5, 20, 60] {
        let r = tau as f64 / 400.0 / ell;
        let expected = 4.0 * (-0.5 * r * r).exp();
        assert!((smooth.covariance(tau) - expected).abs() < jitter, "{tau}");
        let r = 3.0_f64.sqrt() * r;
        let expected = 4.0 * (1.0 + r) * (-r).exp();
        assert!(
            (matern.covariance(tau) - expected).abs() < truncation,
            "{tau}"
        );
    }
}

#[test]
fn log_density_is_the_product_of_normals() {
    let prior = SpectralPrior::new(&image(3, 4, 1.0, [1, 2]), &slope(1.0)).expect("valid");
    let a = common::numbers(3, prior.variances().len());
    let expected: f64 = a
        .iter()
        .zip(prior.variances())
        .map(|(a, v)| (-0.5 * a * a / v).exp() / (std::f64::consts::TAU * v).sqrt())
        .map(f64::ln)
        .sum();
    assert!((prior.log_density(&a).expect("fits") - expected).abs() < 1e-10);
    assert!(prior.log_density(&a[1..]).is_err());
}

#[test]
fn wrong_spectra_are_named() {
    let layout = signal(6, 4);
    let error = |spectrum: &dyn StationarySpectrum| {
        SpectralPrior::new(&layout, spectrum)
            .expect_err("wrong spectrum")
            .to_string()
    };
    assert!(error(&slope(-0.1)).contains("alpha"));
    assert!(error(&slope(f64::NAN)).contains("alpha"));
    let table = |values: [f64; 6]| Table(values.to_vec());
    assert!(error(&table([1.0, 2.0, 3.0, 4.0, 3.0, 2.1])).contains("symmetric"));
    assert!(error(&table([1.0, 2.0, -3.0, 4.0, -3.0, 2.0])).contains("positive"));
    assert!(error(&table([1.0, f64::NAN, 3.0, 4.0, 3.0, f64::NAN])).contains("positive"));
    assert!(error(&Table(vec![1.0; 5])).contains("expected 6 values, got 5"));
    let negative = Slope {
        deviation: -1.0,
        alpha: 1.0,
    };
    assert!(error(&negative).contains("sigma0"));
    let prior = SpectralPrior::new(&layout, &table([1.0, 2.0, 3.0, 4.0, 3.0, 2.0]));
    assert_eq!(
        prior.expect("valid").variances(),
        [1.0, 1.0, 1.0, 1.5, 1.5, 4.0]
    );
}

/// A user's own spectrum behind the trait.
#[test]
fn a_spectrum_of_ones_own() {
    #[derive(Debug)]
    struct Notch;
    impl StationarySpectrum for Notch {
        fn densities(&self, grid: &[Frequency]) -> Result<Vec<f64>, circulant::bayes::BayesError> {
            let one = |bin: &Frequency| if bin.waves[1] == 2.0 { 0.1 } else { 1.0 };
            Ok(grid.iter().map(one).collect())
        }
    }
    let prior = SpectralPrior::new(&signal(6, 4), &Notch).expect("valid");
    assert_eq!(prior.variances(), [1.0, 0.5, 0.5, 0.05, 0.05, 1.0]);
}
