//! Isometries against matrices that are built one by one, their norms, and their gradients by central differences.

use circulant_core::Bin;
use circulant_kernels::{Complex, HalfPlane, Isometries, operator_norm_2d};

use crate::oracle::{dot, noise, relative_error};

type Matrix = Vec<Vec<Complex<f64>>>;

const GRIDS: [[usize; 2]; 7] = [[1, 1], [1, 2], [1, 7], [2, 3], [4, 4], [5, 7], [8, 6]];
const CHANNELS: [[usize; 2]; 8] = [
    [1, 1],
    [2, 2],
    [3, 3],
    [1, 3],
    [3, 1],
    [4, 2],
    [2, 5],
    [6, 7],
];
/// More pivots than an inverse takes at a time: of one real bin, and of bins in lanes.
const LARGE: [([usize; 2], [usize; 2]); 5] = [
    ([1, 1], [18, 18]),
    ([1, 1], [35, 17]),
    ([1, 1], [16, 33]),
    ([2, 2], [9, 9]),
    ([1, 3], [8, 13]),
];

fn zeros(rows: usize, columns: usize) -> Matrix {
    vec![vec![Complex::default(); columns]; rows]
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = zeros(a.len(), b.first().map_or(0, Vec::len));
    for (i, row) in out.iter_mut().enumerate() {
        for (j, entry) in row.iter_mut().enumerate() {
            *entry = (0..b.len()).map(|k| a[i][k] * b[k][j]).sum();
        }
    }
    out
}

fn adjoint(a: &Matrix, columns: usize) -> Matrix {
    let mut out = zeros(columns, a.len());
    for (i, row) in a.iter().enumerate() {
        for (j, entry) in row.iter().enumerate() {
            out[j][i] = entry.conj();
        }
    }
    out
}

/// `B^-1`, by elimination with pivots.
fn inverse(b: &Matrix) -> Matrix {
    let n = b.len();
    let mut rows: Matrix = (b.iter().enumerate())
        .map(|(i, row)| {
            let unit = (0..n).map(|j| Complex::from(f64::from(u8::from(i == j))));
            row.iter().copied().chain(unit).collect()
        })
        .collect();
    for k in 0..n {
        let best = (k..n).max_by(|&i, &j| rows[i][k].norm().total_cmp(&rows[j][k].norm()));
        rows.swap(k, best.expect("not empty"));
        let pivot = rows[k][k];
        rows[k].iter_mut().for_each(|entry| *entry /= pivot);
        let own = rows[k].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = row[k];
            for (entry, own) in row.iter_mut().zip(&own) {
                *entry -= factor * own;
            }
        }
    }
    rows.into_iter().map(|row| row[n..].to_vec()).collect()
}

/// `[(I + A)^-1 (I - A); -2 V (I + A)^-1]` of one bin.
fn cayley(s: &Matrix, v: &Matrix, q: usize) -> Matrix {
    let square = product(&adjoint(v, q), v);
    let (mut plus, mut minus) = (zeros(q, q), zeros(q, q));
    for i in 0..q {
        for j in 0..q {
            let a = s[i][j]
                + if v.is_empty() {
                    Complex::default()
                } else {
                    square[i][j]
                };
            let one = Complex::from(f64::from(u8::from(i == j)));
            (plus[i][j], minus[i][j]) = (one + a, one - a);
        }
    }
    let m = inverse(&plus);
    let mut rows = product(&m, &minus);
    rows.extend(
        product(v, &m)
            .into_iter()
            .map(|row| row.iter().map(|e| e * -2.0).collect()),
    );
    rows
}

/// The coordinates of all bins, one matrix after the other.
fn expected(plane: &HalfPlane, [inputs, outputs]: [usize; 2], parameters: &[f64]) -> Vec<f64> {
    let (n, q) = (inputs.max(outputs), inputs.min(outputs));
    let mut values = parameters.iter().copied();
    let mut next = || values.next().expect("one for each part");
    let mut coordinates = Vec::new();
    for bin in plane.iter() {
        let complex = match bin {
            Bin::Real { .. } => false,
            Bin::Complex { .. } => true,
            Bin::Conjugate { .. } | Bin::Masked => continue,
        };
        let (mut s, mut v) = (zeros(q, q), zeros(n - q, q));
        for (i, j) in (0..q).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let entry = match (complex, i == j) {
                (true, false) => Complex::new(next(), next()),
                (false, false) => Complex::from(next()),
                (true, true) => Complex::new(0.0, next()),
                (false, true) => Complex::default(),
            };
            (s[j][i], s[i][j]) = (-entry.conj(), entry);
        }
        for entry in v.iter_mut().flatten() {
            let re = next();
            *entry = Complex::new(re, if complex { next() } else { 0.0 });
        }
        let columns = cayley(&s, &v, q);
        let entry = |c: usize, o: usize| match inputs > outputs {
            true => columns[c][o],
            false => columns[o][c],
        };
        let pairs = || (0..inputs).flat_map(|c| (0..outputs).map(move |o| (c, o)));
        coordinates.extend(pairs().map(|(c, o)| entry(c, o).re));
        if complex {
            coordinates.extend(pairs().map(|(c, o)| entry(c, o).im));
        }
    }
    assert!(values.next().is_none(), "all parameters are used");
    coordinates
}

fn each(mut check: impl FnMut(&HalfPlane, [usize; 2], &Isometries)) {
    let pairs = GRIDS
        .into_iter()
        .flat_map(|grid| CHANNELS.map(|channels| (grid, channels)));
    for ([height, width], channels) in pairs.chain(LARGE) {
        let plane = HalfPlane::new(height, width).unwrap();
        let isometries = Isometries::new(&plane, channels[0], channels[1]).unwrap();
        check(&plane, channels, &isometries);
    }
}

#[test]
fn isometries_are_those_of_the_formula_and_have_norm_one() {
    each(|plane, channels @ [inputs, outputs], isometries| {
        let parameters = noise(3, isometries.parameters());
        let mut coordinates = vec![0.0; isometries.coordinates()];
        isometries
            .coordinates_into(&parameters, &mut coordinates)
            .unwrap();
        let wanted = expected(plane, channels, &parameters);
        assert!(
            relative_error(&coordinates, &wanted) < 1e-12,
            "{plane:?} {channels:?}"
        );
        let norm = operator_norm_2d(plane, inputs, outputs, &coordinates).unwrap();
        assert!((norm.upper - 1.0).abs() < 1e-12 && (norm.lower - 1.0).abs() < 1e-12);
    });
}

/// `|K x|^2 = |x|^2` where there are at least as many outputs as inputs: all singular values are one, not only the largest.
#[test]
fn the_sum_of_squares_is_that_of_an_isometry() {
    each(|plane, [inputs, outputs], isometries| {
        let parameters = noise(4, isometries.parameters());
        let mut coordinates = vec![0.0; isometries.coordinates()];
        isometries
            .coordinates_into(&parameters, &mut coordinates)
            .unwrap();
        let total = dot(&coordinates, &coordinates);
        let bins = plane
            .iter()
            .filter(|bin| matches!(bin, Bin::Real { .. } | Bin::Complex { .. }));
        let wanted = (bins.count() * inputs.min(outputs)) as f64;
        assert!((total - wanted).abs() < 1e-11 * wanted, "{total} {wanted}");
    });
}

#[test]
fn gradients_are_central_differences() {
    const STEP: f64 = 1e-5;
    each(|plane, channels, isometries| {
        let parameters = noise(5, isometries.parameters());
        let weights = noise(6, isometries.coordinates());
        let value = |parameters: &[f64]| {
            let mut coordinates = vec![0.0; weights.len()];
            isometries
                .coordinates_into(parameters, &mut coordinates)
                .unwrap();
            dot(&coordinates, &weights)
        };
        let mut gradient = vec![0.0; parameters.len()];
        isometries
            .gradient_into(&parameters, &weights, &mut gradient)
            .unwrap();
        for index in 0..parameters.len() {
            let moved = |by: f64| {
                let mut moved = parameters.clone();
                moved[index] += by;
                value(&moved)
            };
            let wanted = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let error = (gradient[index] - wanted).abs();
            assert!(
                error < 1e-7 * (1.0 + wanted.abs()),
                "{plane:?} {channels:?} {index}: {error}"
            );
        }
    });
}

#[test]
fn f32_is_within_its_rounding_of_f64() {
    let plane = HalfPlane::new(9, 12).unwrap();
    let isometries = Isometries::new(&plane, 24, 24).unwrap();
    let parameters = noise(7, isometries.parameters());
    let mut wanted = vec![0.0; isometries.coordinates()];
    isometries
        .coordinates_into(&parameters, &mut wanted)
        .unwrap();
    let single: Vec<f32> = parameters.iter().map(|&value| value as f32).collect();
    let mut found = vec![0.0_f32; wanted.len()];
    isometries.coordinates_into(&single, &mut found).unwrap();
    let found: Vec<f64> = found.into_iter().map(f64::from).collect();
    assert!(relative_error(&found, &wanted) < 1e-4);
    let norm = operator_norm_2d(&plane, 24, 24, &found).unwrap();
    assert!((norm.upper - 1.0).abs() < 1e-4, "{norm:?}");
}

#[test]
fn wrong_sizes_are_errors() {
    let plane = HalfPlane::new(4, 4).unwrap();
    assert!(Isometries::new(&plane, 0, 2).is_err());
    assert!(Isometries::new(&plane, usize::MAX, 2).is_err());
    let masked = HalfPlane::with_radius(4, 4, 0.5).unwrap();
    assert!(Isometries::new(&masked, 2, 2).is_err());
    let isometries = Isometries::new(&plane, 2, 2).unwrap();
    let [parameters, coordinates] = [isometries.parameters(), isometries.coordinates()];
    assert_eq!([parameters, coordinates], [6 * 4 + 4, 64]);
    let (mut short, mut out) = (vec![0.0; parameters - 1], vec![0.0; coordinates]);
    assert!(isometries.coordinates_into(&short, &mut out).is_err());
    let whole = vec![0.0; parameters];
    assert!(isometries.coordinates_into(&whole, &mut out[1..]).is_err());
    assert!(isometries.gradient_into(&whole, &out, &mut short).is_err());
    assert!(
        isometries
            .gradient_into(&whole, &out[1..], &mut short)
            .is_err()
    );
}
