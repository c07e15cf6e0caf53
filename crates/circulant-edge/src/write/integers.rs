//! What becomes of numbers when they become integers: scales that suit sums, deviations that are shared.

use std::vec::Vec;

use circulant_core::{Bin, HalfPlane};

use crate::values::Groups;

/// How far deviations may be from shared ones: root mean square of the logarithms of their ratios.
const TOLERANCE: f64 = 0.2;
/// The same of biases, which are a small part of what is added up.
const TOLERANCE_OF_BIASES: f64 = 0.5;

/// What the values of a parameter are.
#[derive(Debug)]
pub(super) enum Places {
    /// Neighbours of which so many may have one deviation.
    Vector(usize),
    /// Coordinates of a layer of channels, so many values each.
    Coordinates { plane: HalfPlane, run: usize },
    /// A matrix of so many columns.
    Matrix(usize),
}

/// Scales of groups, and codes. Both coordinates of a bin get one scale, so that their products can be added up as integers.
pub(super) fn coded(values: &[f32], groups: Groups, places: &Places) -> (Vec<f32>, Vec<u8>) {
    let mut scales = std::vec![0.0_f32; groups.count(values.len())];
    for (index, value) in values.iter().enumerate() {
        let scale = &mut scales[groups.of(index)];
        *scale = scale.max(value.abs() / 127.0);
    }
    if let (Groups::Runs(_), Places::Coordinates { plane, .. }) = (groups, places) {
        for bin in plane.iter() {
            if let Bin::Complex { coordinate } = bin
                && let Some([one, two]) = scales.get_mut(coordinate..coordinate + 2)
            {
                let larger = one.max(*two);
                (*one, *two) = (larger, larger);
            }
        }
    }
    let code = |(index, value): (usize, &f32)| {
        let scale = scales[groups.of(index)];
        let code = if scale > 0.0 { value / scale } else { 0.0 };
        code.round().clamp(-127.0, 127.0) as i8 as u8
    };
    let codes = values.iter().enumerate().map(code).collect();
    (scales, codes)
}

/// The numbers that are stored where deviations are as good as shared: of a matrix one per row and one per column, of a vector one
/// per run. Sums of variances over rows, over columns and over runs stay what they are.
pub(super) fn shared(deviations: &[f32], places: &Places) -> Option<Vec<f32>> {
    let squares: Vec<f64> = deviations.iter().map(|s| f64::from(*s).powi(2)).collect();
    let (stored, near, tolerance): (Vec<f32>, Vec<f64>, f64) = match *places {
        Places::Matrix(columns) if columns > 0 => {
            let rows = squares.chunks_exact(columns).map(|row| row.iter().sum());
            let rows: Vec<f64> = rows.collect();
            let column = |k: usize| squares.iter().skip(k).step_by(columns).sum::<f64>();
            let columns: Vec<f64> = (0..columns).map(column).collect();
            let total: f64 = rows.iter().sum();
            let largest = columns.iter().copied().fold(0.0, f64::max);
            let near = rows.iter();
            let near = near.flat_map(|row| columns.iter().map(move |column| row * column / total));
            let near = near.collect();
            let own = rows.iter().map(|row| (row * largest / total).sqrt());
            // Shares of one; `deviations` divides by the largest number of all.
            let scale = own.clone().fold(0.0, f64::max);
            let shares = columns
                .iter()
                .map(|column| scale * (column / largest).sqrt());
            let stored = own.chain(shares).map(|x| x as f32).collect();
            (stored, near, TOLERANCE)
        }
        Places::Vector(positions) if positions > 1 && positions <= usize::from(u16::MAX) => {
            let runs = squares.chunks(positions);
            let means: Vec<f64> = runs
                .map(|run| run.iter().sum::<f64>() / run.len() as f64)
                .collect();
            let near = (0..squares.len()).map(|index| means[index / positions]);
            let near = near.collect();
            let stored = means.iter().map(|mean| mean.sqrt() as f32).collect();
            (stored, near, TOLERANCE_OF_BIASES)
        }
        _ => return None,
    };
    let pairs = squares.iter().zip(&near);
    let error: f64 = pairs
        .map(|(exact, near)| (0.5 * (exact / near).ln()).powi(2))
        .sum();
    let error = (error / squares.len() as f64).sqrt();
    // Not a number where a deviation is zero.
    (error <= tolerance).then_some(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_found_and_others_left_alone() {
        let (rows, columns) = ([0.1_f32, 0.2, 0.05], [1.0_f32, 0.5]);
        let product = rows
            .iter()
            .flat_map(|row| columns.map(|column| row * column));
        let mut product: Vec<f32> = product.collect();
        let stored = shared(&product, &Places::Matrix(2)).unwrap();
        let scale = stored.iter().copied().fold(0.0, f32::max);
        for (index, exact) in product.iter().enumerate() {
            let found = stored[index / 2] * stored[3 + index % 2] / scale;
            assert!(
                (found / exact - 1.0).abs() < 1e-6,
                "{index}: {found} {exact}"
            );
        }
        product[3] *= 3.0;
        assert!(shared(&product, &Places::Matrix(2)).is_none());
        product[3] = 0.0;
        assert!(shared(&product, &Places::Matrix(2)).is_none());
        let runs = shared(&[0.3, 0.3, 0.1, 0.1], &Places::Vector(2)).unwrap();
        assert!((runs[0] - 0.3).abs() < 1e-6 && runs.len() == 2);
        assert!(shared(&[0.3, 0.1], &Places::Vector(2)).is_none());
    }

    #[test]
    fn coordinates_of_a_bin_have_one_scale() {
        let plane = HalfPlane::new(1, 4).unwrap();
        let places = Places::Coordinates { plane, run: 2 };
        let values = [1.0, -2.0, 3.0, 0.5, 0.25, 0.5, 4.0, 0.0];
        let (scales, codes) = coded(&values, Groups::Runs(2), &places);
        assert_eq!(scales, [2.0, 3.0, 3.0, 4.0].map(|x: f32| x / 127.0));
        assert_eq!(codes[1] as i8, -127);
    }
}
