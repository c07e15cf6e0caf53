//! Transforms and operators against sums by definition and dense matrices, and the laws that hold for
//! every size: odd, prime and 1.

use std::f64::consts::TAU;

use circulant_core::{
    BccbOperator, Bin, CirculantOperator, Complex, HalfPlane, HalfSpectrum, RealTransform, Scalar,
    SizeError,
};
use proptest::prelude::*;

/// Lengths of every kind: powers of 2, odd, prime, smooth, with large prime factors.
const LENGTHS: [usize; 24] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 19, 28, 30, 49, 64, 97, 127, 202, 243, 784,
];

/// A few hundred roundings, relative to the norm of what is summed.
fn tolerance<T: Scalar>() -> f64 {
    let one = T::one().wide();
    let epsilon = if T::of(one + 1e-12) == T::one() {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    32.0 * epsilon
}

/// Values in `[-1, 1)` that look random and are the same every time.
fn noise(seed: u64, len: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn rounded<T: Scalar>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}

fn wide<T: Scalar>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.wide()).collect()
}

fn zeros<T: Scalar>(len: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::zero(), T::zero()); len]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// `exp(i sign 2 pi k/n)`.
fn root(sign: f64, k: usize, n: usize) -> Complex<f64> {
    Complex::from_polar(1.0, sign * TAU * (k % n) as f64 / n as f64)
}

/// `x[s,t] = (1/n) sum_{u,v} h[u,v] exp(2 pi i (us/H + vt/W))`, by definition.
fn filter(height: usize, width: usize, full: &[Complex<f64>]) -> Vec<f64> {
    let at = |s: usize, t: usize| -> Complex<f64> {
        let sum: Complex<f64> = (0..height * width)
            .map(|f| full[f] * root(1.0, f / width * s, height) * root(1.0, f % width * t, width))
            .sum();
        sum / (height * width) as f64
    };
    let values = (0..height * width).map(|p| at(p / width, p % width));
    values
        .map(|value| {
            assert!(value.im.abs() < 1e-12, "a filter is real, got {value}");
            value.re
        })
        .collect()
}

/// The circular convolution of an image with a filter: the dense matrix of the operator, row by row.
fn convolved(height: usize, width: usize, filter: &[f64], x: &[f64]) -> Vec<f64> {
    let entry = |p: usize, q: usize| {
        let s = (p / width + height - q / width) % height;
        let t = (p % width + width - q % width) % width;
        filter[s * width + t]
    };
    (0..height * width)
        .map(|p| (0..height * width).map(|q| entry(p, q) * x[q]).sum())
        .collect()
}

fn check_transform<T: Scalar>(n: usize) {
    let x: Vec<T> = rounded(&noise(n as u64, n));
    let mut roots = zeros(RealTransform::<T>::roots_len(n));
    let transform = RealTransform::new(n, &mut roots).expect("a length");
    let mut scratch = vec![Complex::new(T::of(f64::NAN), T::zero()); transform.scratch_len()];
    let mut half = zeros(transform.bins());
    transform
        .forward(&x, &mut half, &mut scratch)
        .expect("fits");
    let scale = tolerance::<T>() * norm(&wide(&x)) * (n as f64).sqrt();
    for (k, value) in half.iter().enumerate() {
        let by_definition: Complex<f64> = (0..n).map(|t| root(-1.0, k * t, n) * x[t].wide()).sum();
        let error = (Complex::new(value.re.wide(), value.im.wide()) - by_definition).norm();
        assert!(
            error <= scale,
            "length {n}, bin {k}: {value:?} for {by_definition}"
        );
    }
    let mut back = vec![T::zero(); n];
    scratch.fill(Complex::new(T::of(f64::NAN), T::zero()));
    transform
        .inverse(&half, &mut back, &mut scratch)
        .expect("fits");
    let error = distance(&wide(&back), &wide(&x));
    assert!(
        error <= tolerance::<T>() * norm(&wide(&x)),
        "length {n}: {error:e}"
    );
}

#[test]
fn a_transform_is_the_sum_by_definition_and_comes_back() {
    for n in LENGTHS {
        check_transform::<f32>(n);
        check_transform::<f64>(n);
    }
}

/// In their own memory transforms are what they are elsewhere.
#[test]
fn transforms_in_place_are_transforms() {
    for n in LENGTHS {
        let mut roots = zeros(n / 2 + 1);
        let transform = RealTransform::<f64>::new(n, &mut roots).expect("a length");
        let mut scratch = zeros(transform.scratch_len());
        let x = noise(4, n);
        let (mut expected, mut half) = (zeros(n / 2 + 1), zeros(n / 2 + 1));
        transform
            .forward(&x, &mut expected, &mut scratch)
            .expect("fits");
        for (pair, x) in scratch.iter_mut().zip(x.chunks(2)) {
            *pair = Complex::new(x[0], x[x.len() - 1]);
        }
        for count in [1, (n / 2 + 1).min(5), n / 2 + 1] {
            let mut bins = zeros(count);
            let pairs = &scratch[..n.div_ceil(2)];
            transform.first_bins(pairs, &mut bins).expect("fits");
            for (found, expected) in bins.iter().zip(&expected) {
                let error = (found - expected).norm();
                assert!(error < 1e-14 * (n * n) as f64, "length {n}: {error:e}");
            }
        }
        transform
            .forward_in_place(&mut half, &mut scratch)
            .expect("fits");
        assert_eq!(half, expected, "length {n}");
        transform
            .inverse_in_place(&mut half, &mut scratch)
            .expect("fits");
        for (t, x) in x.iter().enumerate() {
            let pair = scratch[t / 2];
            let found = if t % 2 == 0 { pair.re } else { pair.im } / n as f64;
            assert!(
                (found - x).abs() < 1e-13 * (n as f64).sqrt(),
                "{n} {t}: {found} {x}"
            );
        }
    }
}

#[test]
fn a_cosine_has_one_bin() {
    let n = 12;
    let mut roots = zeros(7);
    let transform = RealTransform::<f64>::new(n, &mut roots).expect("a length");
    let mut scratch = zeros(transform.scratch_len());
    for k in 0..=n / 2 {
        let x: Vec<f64> = (0..n).map(|t| root(1.0, k * t, n).re).collect();
        let mut half = zeros(7);
        transform
            .forward(&x, &mut half, &mut scratch)
            .expect("fits");
        for (bin, value) in half.iter().enumerate() {
            let energy = if k == 0 || 2 * k == n { 12.0 } else { 6.0 };
            let expected = if bin == k { energy } else { 0.0 };
            assert!((value - expected).norm() < 1e-14, "{k} {bin} {value}");
        }
    }
}

#[test]
fn imaginary_parts_of_self_conjugate_bins_are_ignored() {
    for n in [1, 2, 5, 8] {
        let mut roots = zeros(n / 2 + 1);
        let transform = RealTransform::<f64>::new(n, &mut roots).expect("a length");
        let mut scratch = zeros(transform.scratch_len());
        let mut half: Vec<_> = noise(1, n / 2 + 1)
            .iter()
            .map(|&a| Complex::new(a, 0.0))
            .collect();
        let mut signals = [vec![0.0; n], vec![0.0; n]];
        transform
            .inverse(&half, &mut signals[0], &mut scratch)
            .expect("fits");
        half[0].im = 3.0;
        if n % 2 == 0 {
            half[n / 2].im = 5.0;
        }
        transform
            .inverse(&half, &mut signals[1], &mut scratch)
            .expect("fits");
        assert_eq!(signals[0], signals[1]);
    }
}

fn check_circulant<T: Scalar>(layout: HalfSpectrum) {
    let d = layout.length();
    let mut roots = zeros(CirculantOperator::<T>::roots_len(&layout));
    let operator = CirculantOperator::new(layout, &mut roots).expect("a length");
    let mut scratch = zeros(operator.scratch_len());
    let a: Vec<T> = rounded(&noise(1, layout.coordinates()));
    let x: Vec<T> = rounded(&noise(2, d));
    let full: Vec<_> = layout
        .full()
        .map(|bin| bin.value(|i| a[i].wide()))
        .collect();
    let plain = convolved(1, d, &filter(1, d, &full), &wide(&x));
    for bias in [0, 1, d] {
        let bias: Vec<T> = rounded(&noise(3, bias));
        let mut y = vec![T::zero(); d];
        let given = (!bias.is_empty()).then_some(&bias[..]);
        operator
            .forward(&a, given, &x, &mut y, &mut scratch)
            .expect("fits");
        let added = |t: usize| bias.get(t % bias.len().max(1)).map_or(0.0, |b| b.wide());
        let expected: Vec<f64> = plain
            .iter()
            .enumerate()
            .map(|(t, y)| y + added(t))
            .collect();
        let scale = norm(&expected) + norm(&wide(&x));
        let error = distance(&wide(&y), &expected);
        assert!(error <= tolerance::<T>() * scale, "{layout:?}: {error:e}");
    }
}

#[test]
fn a_signal_goes_through_a_dense_circulant_matrix() {
    for d in LENGTHS.into_iter().filter(|&d| d < 200) {
        for modes in [1, d / 4 + 1, d / 2 + 1] {
            let layout = HalfSpectrum::with_modes(d, modes).expect("in range");
            check_circulant::<f32>(layout);
            check_circulant::<f64>(layout);
        }
    }
}

fn check_bccb<T: Scalar>(plane: &HalfPlane, [inputs, outputs]: [usize; 2]) {
    let (height, width) = (plane.height(), plane.width());
    let pixels = height * width;
    let pairs = inputs * outputs;
    let mut roots = zeros(BccbOperator::<T>::roots_len(plane));
    let operator = BccbOperator::new(plane, [inputs, outputs], &mut roots).expect("sizes");
    let mut scratch = zeros(operator.scratch_len());
    assert_eq!(operator.coordinates(), plane.coordinates() * pairs);
    let a: Vec<T> = rounded(&noise(1, operator.coordinates()));
    let x: Vec<T> = rounded(&noise(2, inputs * pixels));
    let bias: Vec<T> = rounded(&noise(3, outputs));
    let mut expected = Vec::new();
    for output in 0..outputs {
        let mut image = vec![bias[output].wide(); pixels];
        for (input, x) in wide(&x).chunks(pixels).enumerate() {
            let at = |i: usize| a[i * pairs + input * outputs + output].wide();
            let full: Vec<_> = plane.full().map(|bin| bin.value(at)).collect();
            let part = convolved(height, width, &filter(height, width, &full), x);
            image.iter_mut().zip(part).for_each(|(y, part)| *y += part);
        }
        expected.extend(image);
    }
    let mut y = vec![T::zero(); outputs * pixels];
    operator
        .forward(&a, Some(&bias), &x, &mut y, &mut scratch)
        .expect("fits");
    let error = distance(&wide(&y), &expected);
    let scale = norm(&expected) + norm(&wide(&x));
    assert!(error <= tolerance::<T>() * scale, "{plane:?}: {error:e}");
}

#[test]
fn an_image_goes_through_dense_block_circulant_matrices() {
    for (height, width) in [
        (1, 1),
        (1, 7),
        (7, 1),
        (2, 2),
        (3, 4),
        (4, 3),
        (5, 5),
        (6, 8),
        (11, 2),
    ] {
        for cutoff in [0.4, 1.0] {
            let plane = HalfPlane::with_radius(height, width, cutoff).expect("in range");
            for channels in [[1, 1], [2, 3], [3, 1]] {
                check_bccb::<f32>(&plane, channels);
                check_bccb::<f64>(&plane, channels);
            }
        }
    }
}

#[test]
fn wrong_lengths_and_sizes_are_errors_that_say_what_was_expected() {
    let layout = HalfSpectrum::new(6).expect("a length");
    let length = |what, expected, got| SizeError::Length {
        what,
        expected,
        got,
    };
    let mut roots = zeros::<f32>(4);
    let short = CirculantOperator::new(layout, &mut roots[..3]).unwrap_err();
    assert_eq!(short, length("roots", 4, 3));
    let operator = CirculantOperator::new(layout, &mut roots).expect("fits");
    let mut scratch = zeros(operator.scratch_len());
    let (six, mut y) = ([0.0; 6], [0.0; 6]);
    let scratch_len = scratch.len();
    let mut run = |a: &[f32], bias: &[f32], x: &[f32], missing: usize| {
        let scratch = &mut scratch[..scratch_len - missing];
        operator.forward(a, Some(bias), x, &mut y, scratch)
    };
    assert_eq!(run(&six, &six, &six, 0), Ok(()));
    assert_eq!(
        run(&six[1..], &six, &six, 0),
        Err(length("coordinates", 6, 5))
    );
    assert_eq!(run(&six, &six[..2], &six, 0), Err(length("bias", 1, 2)));
    assert_eq!(run(&six, &six, &six[1..], 0), Err(length("x", 6, 5)));
    let missing = length("scratch", scratch_len, scratch_len - 1);
    assert_eq!(run(&six, &six, &six, 1), Err(missing));

    let plane = HalfPlane::new(4, 4).expect("a grid");
    let mut roots = zeros::<f32>(6);
    let zero = BccbOperator::new(&plane, [0, 2], &mut roots).unwrap_err();
    assert_eq!(zero, SizeError::Zero { what: "C_in" });
    for channels in [[usize::MAX, 1], [1, usize::MAX], [1 << 40, 1 << 40]] {
        let error = BccbOperator::new(&plane, channels, &mut roots).unwrap_err();
        assert!(matches!(error, SizeError::TooLarge { .. }), "{error}");
    }
    let error = RealTransform::<f32>::new(usize::MAX, &mut roots).unwrap_err();
    assert!(matches!(error, SizeError::TooLarge { .. }), "{error}");
    for channels in [0, usize::MAX] {
        assert!(plane.unpack(&[0.0_f32; 4], channels, &mut roots).is_err());
    }
    assert_eq!(plane.unpack::<f32>(&[], 0, &mut []), Ok(()));
}

/// A signal length with its mask.
fn signals() -> impl Strategy<Value = HalfSpectrum> {
    (1usize..120).prop_flat_map(|d| {
        (1..=d / 2 + 1).prop_map(move |k| HalfSpectrum::with_modes(d, k).expect("in range"))
    })
}

/// A grid with its mask.
fn images() -> impl Strategy<Value = HalfPlane> {
    (1usize..14, 1usize..14, 0.0..=1.0f64).prop_map(|(height, width, cutoff)| {
        // A third of the masks keep everything.
        HalfPlane::with_radius(height, width, (cutoff * 1.5).min(1.0)).expect("in range")
    })
}

fn complex_noise(seed: u64, len: usize) -> Vec<Complex<f64>> {
    let parts = noise(seed, 2 * len);
    parts.chunks(2).map(|c| Complex::new(c[0], c[1])).collect()
}

/// `<T a, b> = <a, T^t b>`.
fn adjoint_holds(a: &[f64], bins: &[Complex<f64>], b: &[Complex<f64>], adjoint: &[f64]) -> bool {
    let left: f64 = bins
        .iter()
        .zip(b)
        .map(|(x, y)| x.re * y.re + x.im * y.im)
        .sum();
    (left - dot(a, adjoint)).abs() <= 1e-12 * (1.0 + norm(a) * norm(adjoint))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn packing_inverts_unpacking_and_self_conjugate_bins_are_real(layout in signals()) {
        let a = noise(1, layout.coordinates());
        let mut bins = vec![Complex::new(9.0, 9.0); layout.bins()];
        layout.unpack(&a, &mut bins).expect("fits");
        let mut back = vec![9.0; a.len()];
        layout.pack(&bins, &mut back).expect("fits");
        prop_assert_eq!(&a, &back);
        for (k, bin) in bins.iter().enumerate() {
            match layout.bin(k) {
                Bin::Real { .. } => prop_assert_eq!(bin.im, 0.0),
                Bin::Masked => prop_assert_eq!(*bin, Complex::new(0.0, 0.0)),
                _ => {}
            }
        }
        let b = complex_noise(2, bins.len());
        let mut adjoint = vec![0.0; a.len()];
        layout.adjoint(&b, &mut adjoint).expect("fits");
        prop_assert!(adjoint_holds(&a, &bins, &b, &adjoint));
    }

    #[test]
    fn planes_are_hermitian_where_they_pair_with_themselves(layout in images(), channels in 1usize..4) {
        let a = noise(1, layout.coordinates() * channels);
        let mut bins = vec![Complex::new(9.0, 9.0); layout.bins() * channels];
        layout.unpack(&a, channels, &mut bins).expect("fits");
        let mut back = vec![9.0; a.len()];
        layout.pack(&bins, channels, &mut back).expect("fits");
        prop_assert_eq!(&a, &back);
        for u in 0..layout.height() {
            for v in (0..layout.columns()).filter(|&v| v == 0 || 2 * v == layout.width()) {
                let partner = (layout.height() - u) % layout.height();
                for c in 0..channels {
                    let at = |u: usize| bins[(u * layout.columns() + v) * channels + c];
                    prop_assert_eq!(at(u), at(partner).conj());
                }
            }
        }
        let b = complex_noise(2, bins.len());
        let mut adjoint = vec![0.0; a.len()];
        layout.adjoint(&b, channels, &mut adjoint).expect("fits");
        prop_assert!(adjoint_holds(&a, &bins, &b, &adjoint));
    }

    #[test]
    fn the_energy_of_a_signal_is_that_of_its_spectrum(n in 1usize..300, seed in 0u64..1000) {
        let x = noise(seed, n);
        let layout = HalfSpectrum::new(n).expect("a length");
        let mut roots = zeros(n / 2 + 1);
        let transform = RealTransform::<f64>::new(n, &mut roots).expect("a length");
        let mut scratch = zeros(transform.scratch_len());
        let mut half = zeros(n / 2 + 1);
        transform.forward(&x, &mut half, &mut scratch).expect("fits");
        let energy: f64 = (0..half.len())
            .map(|k| layout.multiplicity(k) as f64 * half[k].norm_sqr())
            .sum();
        prop_assert!((energy / n as f64 - dot(&x, &x)).abs() <= 1e-12 * dot(&x, &x));
    }

    #[test]
    fn an_operator_with_conjugate_bins_is_the_adjoint(layout in signals()) {
        let d = layout.length();
        let mut roots = zeros(d / 2 + 1);
        let operator = CirculantOperator::new(layout, &mut roots).expect("a length");
        let mut scratch = zeros(operator.scratch_len());
        let (x, g) = (noise(1, d), noise(2, d));
        let a = noise(3, layout.coordinates());
        let mut bins = zeros(layout.bins());
        layout.unpack(&a, &mut bins).expect("fits");
        bins.iter_mut().for_each(|bin| *bin = bin.conj());
        let mut conjugate = a.clone();
        layout.pack(&bins, &mut conjugate).expect("fits");
        let (mut y, mut back) = (vec![0.0; d], vec![0.0; d]);
        operator.forward(&a, None, &x, &mut y, &mut scratch).expect("fits");
        operator.forward(&conjugate, None, &g, &mut back, &mut scratch).expect("fits");
        prop_assert!((dot(&y, &g) - dot(&x, &back)).abs() <= 1e-12 * (1.0 + norm(&x) * norm(&g)));
    }
}
