use circulant_core::elementary::sin_cos_of_octants;
use circulant_kernels::vector::elementary::*;

/// Two units in the last place of an f32.
const RELATIVE: f64 = 2.0 * 1.2e-7;

#[test]
fn exponential_is_accurate_everywhere() {
    for i in -86_600..88_700 {
        let x = i as f32 * 1e-3;
        let exact = f64::from(x).exp();
        let error = (f64::from(x.exponential()) - exact).abs();
        assert!(error <= RELATIVE * exact, "{x}: {}", x.exponential());
    }
}

#[test]
fn exponential_at_the_ends() {
    assert_eq!(f32::INFINITY.exponential(), f32::INFINITY);
    assert_eq!(89.0f32.exponential(), f32::INFINITY);
    assert_eq!(f32::NEG_INFINITY.exponential(), 0.0);
    assert_eq!((-87.0f32).exponential(), 0.0);
    assert_eq!(0.0f32.exponential(), 1.0);
    assert!(f32::NAN.exponential().is_nan());
}

#[test]
fn logarithm_is_accurate_everywhere() {
    let numbers = (0..2_000_000u32).map(|i| f32::from_bits(0x0080_0000 + i * 1059));
    let near_one = (0..100_000u32).map(|i| f32::from_bits(0x3f7f_0000 + i));
    for x in numbers.chain(near_one).filter(|x| x.is_finite()) {
        let exact = f64::from(x).ln();
        let error = (f64::from(x.logarithm()) - exact).abs();
        assert!(error <= RELATIVE * exact.abs(), "{x}: {}", x.logarithm());
    }
}

#[test]
fn logarithm_at_the_ends() {
    assert_eq!(0.0f32.logarithm(), f32::NEG_INFINITY);
    assert_eq!(1e-40f32.logarithm(), f32::NEG_INFINITY);
    assert_eq!(f32::INFINITY.logarithm(), f32::INFINITY);
    assert_eq!(1.0f32.logarithm(), 0.0);
    assert!((-1.0f32).logarithm().is_nan());
    assert!((-1e-40f32).logarithm().is_nan());
    assert!(f32::NAN.logarithm().is_nan());
}

#[test]
fn a_sum_of_logarithms_is_accurate() {
    for len in 0..=LOGARITHMS {
        let number = |i: usize| (i as f32 * 1.7 - 80.0).exp() * (1.0 + 0.37 * i as f32);
        let numbers: Vec<f32> = (0..len).map(|i| number(i % 70)).collect();
        let exact: f64 = numbers.iter().map(|x| f64::from(*x).ln()).sum();
        let error = (f32::sum_of_logarithms(&numbers) - exact).abs();
        assert!(error < 1e-7 * (1 + len) as f64, "{len}: {error}");
    }
}

#[test]
fn a_sum_of_logarithms_at_the_ends() {
    let sum = |x: f32| f32::sum_of_logarithms(&[2.0, x, 3.0]);
    for (x, expected) in [
        (0.0, f64::NEG_INFINITY),
        (f32::INFINITY, f64::INFINITY),
        (1e-40, 6.0f64.ln() + f64::from(1e-40f32).ln()),
    ] {
        assert_eq!(sum(x), expected);
    }
    for x in [
        f32::NAN,
        -f32::NAN,
        -1.0,
        -1e-40,
        f32::NEG_INFINITY,
        -f32::MAX,
    ] {
        assert!(sum(x).is_nan());
    }
}

#[test]
fn sine_and_cosine_are_accurate_up_to_an_octant() {
    for i in -78_539..=78_539 {
        let x = i as f32 * 1e-5;
        let (sin, cos) = sin_cos_of_octants(x);
        let (exact_sin, exact_cos) = f64::from(x).sin_cos();
        assert!((f64::from(sin) - exact_sin).abs() <= RELATIVE * exact_sin.abs());
        assert!((f64::from(cos) - exact_cos).abs() <= RELATIVE * exact_cos.abs());
    }
}
