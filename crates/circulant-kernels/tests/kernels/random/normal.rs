use circulant_kernels::random::normal::*;
use circulant_kernels::random::philox::words;
use circulant_kernels::runtime::chunks::CHUNK;
use circulant_kernels::vector::Isa;
use circulant_kernels::{NoiseKey, Real};

use crate::oracle::{normal, same_on_threads, slow_tail, wide};

/// Values of a statistical test. The seeds are fixed: a test passes always or never.
const COUNT: usize = 1_000_000;
/// Standard errors that a statistic may be off.
const ERRORS: f64 = 4.5;

fn key(seed: u64, stream: u64) -> NoiseKey {
    NoiseKey { seed, stream }
}

fn numbers<T: Real>(key: NoiseKey, len: usize) -> Vec<T> {
    normal(key.seed, key.stream, len)
}

fn upper_tail(x: f64) -> f64 {
    if x < 0.0 {
        1.0 - slow_tail(-x)
    } else {
        slow_tail(x)
    }
}

fn check_statistics<T: Real>() {
    for seed in 0..3 {
        let z = wide(&numbers::<T>(key(seed, 7), COUNT));
        let n = COUNT as f64;
        let moment = |power: i32| z.iter().map(|z| z.powi(power)).sum::<f64>() / n;
        // The moments of a standard normal number and the variances of their estimates.
        let moments = [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)];
        for (power, exact, variance) in moments {
            let error = (moment(power) - exact) / f64::sqrt(variance / n);
            assert!(error.abs() < ERRORS, "moment {power}: {error}");
        }
        for lag in [1, 2, 8, PAIRS, GROUP] {
            let products = z.iter().zip(&z[lag..]).map(|(a, b)| a * b);
            let error = products.sum::<f64>() / f64::sqrt((COUNT - lag) as f64);
            assert!(error.abs() < ERRORS, "lag {lag}: {error}");
        }
        for bound in [0.5, 1.0, 2.0, 3.0, 4.0] {
            let share = 2.0 * upper_tail(bound);
            let found = z.iter().filter(|z| z.abs() > bound).count() as f64;
            let error = (found - n * share) / (n * share * (1.0 - share)).sqrt();
            assert!(error.abs() < ERRORS, "tail {bound}: {error}");
        }
    }
}

#[test]
fn f32_numbers_are_standard_normal() {
    check_statistics::<f32>();
}

#[test]
fn f64_numbers_are_standard_normal() {
    check_statistics::<f64>();
}

fn check_kolmogorov_smirnov<T: Real>() {
    let mut z = wide(&numbers::<T>(key(1, 2), 100_000));
    z.sort_by(f64::total_cmp);
    let n = z.len() as f64;
    let distance = |(i, z): (usize, &f64)| {
        let cdf = 1.0 - upper_tail(*z);
        (cdf - i as f64 / n).max((i + 1) as f64 / n - cdf)
    };
    let largest = z.iter().enumerate().map(distance).fold(0.0, f64::max);
    // The statistic is above 1.95 once in a thousand times.
    assert!(largest * n.sqrt() < 1.95, "{}", largest * n.sqrt());
}

#[test]
fn the_distribution_is_the_normal_one() {
    check_kolmogorov_smirnov::<f32>();
    check_kolmogorov_smirnov::<f64>();
}

#[test]
fn a_pair_is_accurate() {
    let check = |radius: u32, angle: u32| {
        let u = f64::from(((radius >> 1) as f32 + 0.5) / (1u32 << 31) as f32);
        let r = (-2.0 * u.ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * f64::from(angle) / 2f64.powi(32)).sin_cos();
        let (length, direction) = (length_of(radius), direction_of(angle));
        let (cosine, sine) = (length * direction.0, length * direction.1);
        for (found, exact) in [(cosine, r * cos), (sine, r * sin)] {
            // Beside a quarter turn f64 itself is only good to 1e-16 of a turn.
            let error = (f64::from(found) - exact).abs();
            assert!(error <= 1e-6 * exact.abs() + 1e-14, "{found} {exact}");
        }
    };
    let mut words = [0, 0];
    for i in 0..200_000u64 {
        words = [0, 1].map(|w| circulant_kernels::random::philox::uniform_u64(key(3, w), i) as u32);
        check(words[0], words[1]);
    }
    for edge in [
        0,
        1,
        2,
        3,
        1 << 29,
        1 << 30,
        3 << 29,
        1 << 31,
        u32::MAX - 1,
        u32::MAX,
    ] {
        check(edge, words[1]);
        check(words[0], edge);
        check(edge, edge);
        check(edge, edge.wrapping_sub(1));
    }
}

/// Beside `u = 1` a logarithm rounded up would be positive, and its root NaN.
#[test]
fn no_word_gives_nan() {
    for i in 0..1 << 20 {
        for word in [i, u32::MAX - i, 3 << 30 | i, i * 4093] {
            let (cos, sin) = direction_of(word);
            assert!(length_of(word) >= 0.0 && length_of(word) < 6.7);
            assert!(cos.abs() <= 1.000_001 && sin.abs() <= 1.000_001);
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let len = 3 * CHUNK + 77;
    let expected: Vec<f32> = numbers(key(5, 6), len);
    let wide: Vec<f64> = numbers(key(5, 6), len);
    for isa in Isa::available() {
        let mut out = vec![0.0f32; len];
        fill(isa, key(5, 6), &mut out);
        assert!(
            out.iter()
                .zip(&expected)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
        let mut out = vec![0.0; len];
        fill(isa, key(5, 6), &mut out);
        assert!(out == wide);
    }
}

#[test]
fn a_number_does_not_depend_on_the_length_or_the_threads() {
    let long: Vec<f32> = numbers(key(1, 1), 50_000);
    let wide: Vec<f64> = numbers(key(1, 1), 50_000);
    for len in [0, 1, 5, GROUP, GROUP + 1, CHUNK - 1, CHUNK + 3, 40_001] {
        assert_eq!(numbers::<f32>(key(1, 1), len), long[..len]);
        assert_eq!(numbers::<f64>(key(1, 1), len), wide[..len]);
    }
    assert_eq!(same_on_threads(|| numbers::<f32>(key(1, 1), 50_000)), long);
}

/// Frozen, so that a change of the mapping from words to values is noticed.
#[test]
fn the_first_numbers_are_those_of_the_definition() {
    let z: Vec<f32> = numbers(key(8, 9), 600);
    for i in [0usize, 1, 127, 128, 200, 255, 256, 300, 511, 599] {
        let (group, pair) = ((i / GROUP) as u64, i % PAIRS);
        let words = words(key(8, 9), 64 * group + pair as u64 % 64);
        let length = length_of(words[pair / 64] as u32);
        let (cos, sin) = direction_of(words[2 + pair / 64] as u32);
        assert_eq!(z[i], length * if i % GROUP < PAIRS { cos } else { sin });
    }
}

#[test]
fn streams_and_seeds_have_nothing_in_common() {
    let streams: Vec<Vec<f32>> = (0..20)
        .map(|i| numbers(key(i / 10, i % 10), 10_000))
        .collect();
    for (i, a) in streams.iter().enumerate() {
        for b in &streams[..i] {
            let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum();
            assert!(sum.abs() < 5.0 * 100.0);
            let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
            assert!(equal < 10);
        }
    }
    assert_ne!(numbers::<f32>(key(0, 1), 9), numbers::<f32>(key(1, 0), 9));
    assert_ne!(
        numbers::<f32>(key(1 << 32, 0), 9),
        numbers::<f32>(key(1, 0), 9)
    );
}
