//! A table of examples as training sees it: examples that are the same are one example with a weight, in an order that does
//! not depend on that of the rows; columns are standardised.
//!
//! So a weight of 2 is the same as a row that is there twice, a weight of 0 the same as a row that is not there, and the order of
//! the rows does not matter: all three to the last bit.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use crate::arrays::Number;
use rayon::prelude::*;

/// Rows of values, `[rows, columns]`.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// Row by row.
    pub values: &'a [T],
    /// Of a row.
    pub columns: usize,
}

impl<'a, T: Number> Rows<'a, T> {
    fn row(&self, index: usize) -> &'a [T] {
        &self.values[index * self.columns..][..self.columns]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    fn compare(&self, one: usize, other: usize) -> std::cmp::Ordering {
        let pairs = self.row(one).iter().zip(self.row(other));
        let mut orders = pairs.map(|(a, b)| a.double().total_cmp(&b.double()));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    }
}

/// Different examples: which rows they are, and how often they count.
pub struct Examples {
    /// One row of each.
    pub rows: Vec<usize>,
    /// None when every one counts once.
    pub weights: Option<Vec<f64>>,
}

/// Rows without their order: the indices of those that are wanted, so that equal ones are neighbours and what comes first depends on
/// their contents alone; beside each whether it is the same as the one before.
fn sorted<T: Number>(
    rows: Rows<'_, T>,
    target: impl Fn(usize) -> u64 + Sync,
    wanted: impl Fn(usize) -> bool + Sync + Send,
) -> Vec<(usize, bool)> {
    let hash = |row: usize| {
        // Keys are fixed: the same rows in every process.
        let mut hasher = DefaultHasher::new();
        for value in rows.row(row) {
            hasher.write_u64(value.double().to_bits());
        }
        hasher.write_u64(target(row));
        hasher.finish()
    };
    let mut keyed: Vec<(u64, usize)> = (0..rows.count())
        .into_par_iter()
        .filter(|&row| wanted(row))
        .map(|row| (hash(row), row))
        .collect();
    let compare = |one: &(u64, usize), other: &(u64, usize)| {
        let by_hash = one.0.cmp(&other.0);
        by_hash
            .then_with(|| rows.compare(one.1, other.1))
            .then_with(|| target(one.1).cmp(&target(other.1)))
    };
    keyed.par_sort_unstable_by(|one, other| compare(one, other).then(one.1.cmp(&other.1)));
    let same = |index: usize| index > 0 && compare(&keyed[index - 1], &keyed[index]).is_eq();
    (0..keyed.len())
        .map(|index| (keyed[index].1, same(index)))
        .collect()
}

/// Different rows, one of each, and for every row which of them it is.
pub fn different<T: Number>(rows: Rows<'_, T>) -> (Vec<usize>, Vec<usize>) {
    let (mut one_of_each, mut which) = (Vec::new(), vec![0; rows.count()]);
    for (row, is_same) in sorted(rows, |_| 0, |_| true) {
        if !is_same {
            one_of_each.push(row);
        }
        which[row] = one_of_each.len() - 1;
    }
    (one_of_each, which)
}

impl Examples {
    /// Finds the different pairs of row and target; `weights` are finite and at least 0.
    pub fn of<T: Number>(rows: Rows<'_, T>, targets: &[u64], weights: Option<&[f64]>) -> Self {
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let (mut found, mut sums): (Vec<usize>, Vec<f64>) = Default::default();
        for (row, is_same) in sorted(rows, |row| targets[row], |row| weight(row) > 0.0) {
            match sums.last_mut().filter(|_| is_same) {
                Some(sum) => *sum += weight(row),
                None => {
                    sums.push(weight(row));
                    found.push(row);
                }
            }
        }
        Self {
            rows: found,
            weights: sums.iter().any(|&sum| sum != 1.0).then_some(sums),
        }
    }

    /// A number that changes when the examples, as the network reads them, do.
    pub fn fingerprint(&self, values: &[f32], labels: &[i64]) -> u64 {
        let mut hasher = DefaultHasher::new();
        values
            .iter()
            .for_each(|value| hasher.write_u32(value.to_bits()));
        labels.iter().for_each(|&label| hasher.write_i64(label));
        let weights = self.weights.iter().flatten();
        weights.for_each(|weight| hasher.write_u64(weight.to_bits()));
        hasher.finish()
    }

    fn weight(&self, example: usize) -> f64 {
        self.weights
            .as_ref()
            .map_or(1.0, |weights| weights[example])
    }
}

/// `(x - mean)/std`, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// One per column.
    pub mean: Vec<f32>,
    /// One per column, positive.
    pub std: Vec<f32>,
}

impl Columns {
    /// Columns as they are.
    pub fn identity(columns: usize) -> Self {
        Self {
            mean: vec![0.0; columns],
            std: vec![1.0; columns],
        }
    }

    /// Mean and deviation of the columns of examples; a column without spread is only shifted.
    pub fn of<T: Number>(rows: Rows<'_, T>, examples: &Examples) -> Self {
        let total: f64 = (0..examples.rows.len()).map(|i| examples.weight(i)).sum();
        let moments = |column: usize| {
            let mean_of = |value: &dyn Fn(f64) -> f64| {
                let each = examples.rows.iter().enumerate();
                let sum: f64 = each
                    .map(|(i, &row)| examples.weight(i) * value(rows.row(row)[column].double()))
                    .sum();
                sum / total
            };
            // The mean that is stored is the one that is subtracted.
            let mean = mean_of(&|x| x) as f32;
            let center = f64::from(mean);
            let std = mean_of(&|x| (x - center).powi(2)).sqrt() as f32;
            let flat = f64::from(std) <= 1e-6 * center.abs() || !(std > 0.0 && std.is_finite());
            (mean, if flat { 1.0 } else { std })
        };
        let columns = (0..rows.columns).into_par_iter().map(moments);
        let (mean, std) = columns.unzip();
        Self { mean, std }
    }

    /// Rows as the network reads them.
    pub fn apply<T: Number>(
        &self,
        rows: Rows<'_, T>,
        chosen: impl Iterator<Item = usize>,
    ) -> Vec<f32> {
        let mut values = Vec::with_capacity(rows.columns * chosen.size_hint().0);
        for row in chosen {
            let scales = self.mean.iter().zip(&self.std);
            let standard = rows.row(row).iter().zip(scales);
            values.extend(standard.map(|(x, (&mean, &std))| {
                ((x.double() - f64::from(mean)) / f64::from(std)) as f32
            }));
        }
        values
    }

    /// The smallest deviation: distances grow by no more than its inverse.
    pub fn smallest(&self) -> f64 {
        let std = self.std.iter().copied();
        std.fold(f32::INFINITY, f32::min).into()
    }
}
