use crate::oracle::slow_tail;
use circulant_kernels::real::Real;
use circulant_kernels::vector::normal_tail::*;

/// Units in the last place beside those of the exponential's argument.
const UNITS: f64 = 6.0;
/// What the oracle itself loses near 1, where `1/2` less a sum is 0.16.
const ORACLE: f64 = 4e-15;

/// Without fused products, the less accurate way.
fn tail_of<T: Real>(a: T) -> (T, T) {
    let Tail { late, early, ratio } = a.tail_argument().normal_tail::<T::Portable>();
    (late * (early * ratio), late * early)
}

fn check(a: f64, (tail, density): (f64, f64), unit: f64) {
    let bound = (UNITS + 0.5 * a * a) * unit + ORACLE;
    let exact = slow_tail(a);
    assert!((tail - exact).abs() <= bound * exact, "{a}: {tail} {exact}");
    let exact = (-0.5 * a * a).exp() * DENSITY_AT_ZERO;
    assert!((density - exact).abs() <= bound * exact, "{a}: {density}");
}

#[test]
fn f32_is_good_to_a_few_units() {
    for i in 0..130_000 {
        let a = i as f32 * 1e-4;
        let (tail, density) = tail_of(a);
        check(a.into(), (tail.into(), density.into()), f32::EPSILON.into());
    }
}

#[test]
fn f64_is_good_to_a_few_units() {
    for i in 0..37_000 {
        let a = f64::from(i) * 1e-3;
        check(a, tail_of(a), f64::EPSILON);
    }
}

#[test]
fn erf_is_that_of_the_tables() {
    for (z, erf) in [
        (0.0, 0.0),
        (0.5, 0.520_499_877_813_046_5),
        (1.0, 0.842_700_792_949_714_9),
        (2.0, 0.995_322_265_018_952_7),
        (3.0, 0.999_977_909_503_001_4),
    ] {
        let (tail, _) = tail_of(z * std::f64::consts::SQRT_2);
        assert!((1.0 - 2.0 * tail - erf).abs() < 1e-15);
    }
    // erfc of a large number, where 1 - erf has no digit left.
    let (tail, _) = tail_of(10.0 * std::f64::consts::SQRT_2);
    assert!((2.0 * tail / 2.088_487_583_762_545e-45 - 1.0).abs() < 1e-13);
}

#[test]
fn the_ends() {
    for a in [14.0f32, 1e30, f32::MAX, f32::INFINITY] {
        assert_eq!(tail_of(a), (0.0, 0.0));
    }
    for a in [38.0f64, 1e3, f64::MAX, f64::INFINITY] {
        assert_eq!(tail_of(a), (0.0, 0.0));
    }
    assert!(tail_of(f32::NAN).0.is_nan() && tail_of(f64::NAN).0.is_nan());
}
