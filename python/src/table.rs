//! A table of examples as training sees it: examples that are the same are one example with a weight, in an order that does
//! not depend on that of the rows; columns are standardised.
//!
//! So a weight of 2 is the same as a row that is there twice, a weight of 0 the same as a row that is not there, and the order of
//! the rows does not matter: all three to the last bit.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use anyhow::{bail, ensure};
use burn::tensor::{Tensor, TensorData};
use circulant_data::table::{ColumnKind, ColumnRule, Missing, TableSchema, TableTask, nine_digits};
use pyo3::PyResult;
use rayon::prelude::*;

use crate::arrays::Number;
use crate::errors::value_error;

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

    fn weight(&self, example: usize) -> f64 {
        self.weights
            .as_ref()
            .map_or(1.0, |weights| weights[example])
    }
}

impl Examples {
    /// The targets of the examples.
    pub fn targets<'a, T: Copy>(&'a self, of_rows: &'a [T]) -> impl Iterator<Item = T> + 'a {
        self.rows.iter().map(|&row| of_rows[row])
    }

    /// Mean and deviation of the targets, to nine digits; a deviation of 1 where all are the same.
    pub fn moments(&self, of_rows: &[f64]) -> (f64, f64) {
        let weighted = (0..self.rows.len()).map(|i| (self.weight(i), of_rows[self.rows[i]]));
        moments(weighted)
    }
}
/// Mean and deviation of values with weights.
fn moments(weighted: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let total: f64 = weighted.clone().map(|(weight, _)| weight).sum();
    let mean_of = |value: &dyn Fn(f64) -> f64| {
        let terms = weighted.clone().map(|(weight, x)| weight * value(x));
        terms.sum::<f64>() / total
    };
    // The mean that is stored is the one that is subtracted.
    let mean = nine_digits(mean_of(&|x| x));
    let deviation = nine_digits(mean_of(&|x| (x - mean).powi(2)).sqrt());
    let flat = deviation <= 1e-6 * mean.abs() || !deviation.is_normal();
    (mean, if flat { 1.0 } else { deviation })
}

/// `(x - mean)/deviation`, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// One per column.
    pub mean: Vec<f64>,
    /// One per column, positive.
    pub deviation: Vec<f64>,
}

impl Columns {
    /// Columns as they are.
    pub fn identity(columns: usize) -> Self {
        Self {
            mean: vec![0.0; columns],
            deviation: vec![1.0; columns],
        }
    }

    /// Mean and deviation of the columns of examples; a column without spread is only shifted. Groups of `plane` columns, the pixels of
    /// a channel, have theirs together.
    pub fn of<T: Number>(rows: Rows<'_, T>, examples: &Examples, plane: usize) -> Self {
        let moments_of = |group: usize| {
            let of_row = |i: usize| {
                let values = &rows.row(examples.rows[i])[group * plane..][..plane];
                let weight = examples.weight(i);
                values.iter().map(move |x| (weight, x.double()))
            };
            moments((0..examples.rows.len()).flat_map(of_row))
        };
        let groups = (0..rows.columns / plane).into_par_iter().map(moments_of);
        let (mean, deviation): (Vec<f64>, Vec<f64>) = groups.unzip();
        Self::of_groups(&mean, &deviation, plane)
    }

    /// The same mean and deviation for all columns of a group.
    pub fn of_groups(mean: &[f64], deviation: &[f64], plane: usize) -> Self {
        let each = |values: &[f64]| {
            let groups = values.iter().map(|&x| std::iter::repeat_n(x, plane));
            groups.flatten().collect()
        };
        Self {
            mean: each(mean),
            deviation: each(deviation),
        }
    }

    /// Rounded to f32, as files keep what is done to channels.
    pub fn single(self) -> Self {
        let single = |values: Vec<f64>| values.iter().map(|&x| f64::from(x as f32)).collect();
        Self {
            mean: single(self.mean),
            deviation: single(self.deviation),
        }
    }

    /// Of a table's schema, whose columns must all be numbers.
    pub fn of_schema(schema: &TableSchema) -> anyhow::Result<Self> {
        let (mut mean, mut deviations) = (Vec::new(), Vec::new());
        for rule in &schema.columns {
            let ColumnKind::Number {
                mean: own,
                deviation,
                ..
            } = rule.kind
            else {
                bail!(
                    "the column {:?} has words, which arrays have not; use `python -m circulant predict`",
                    rule.name
                );
            };
            mean.push(own);
            deviations.push(deviation);
        }
        Ok(Self {
            mean,
            deviation: deviations,
        })
    }

    /// As the program knows them.
    pub fn schema(&self, names: &[String], target: &str, task: TableTask) -> TableSchema {
        let scales = self.mean.iter().zip(&self.deviation);
        let rule = |(name, (&mean, &deviation)): (&String, (&f64, &f64))| ColumnRule {
            name: name.clone(),
            kind: ColumnKind::Number {
                mean,
                deviation,
                fill: None,
            },
        };
        TableSchema {
            columns: names.iter().zip(scales).map(rule).collect(),
            target: target.to_owned(),
            task,
            missing: Missing::Error,
        }
    }

    /// Values as rows, if they are.
    pub fn rows<'a, T: Number>(&self, values: &'a [T]) -> PyResult<Rows<'a, T>> {
        let columns = self.mean.len();
        if values.is_empty() || !values.len().is_multiple_of(columns) {
            return Err(value_error(format!(
                "x: expected rows of {columns} values, got {} values",
                values.len()
            )));
        }
        Ok(Rows { values, columns })
    }

    /// Rows as the network reads them.
    pub fn apply<T: Number>(
        &self,
        rows: Rows<'_, T>,
        chosen: impl Iterator<Item = usize>,
    ) -> Vec<f32> {
        let mut values = Vec::with_capacity(rows.columns * chosen.size_hint().0);
        for row in chosen {
            let scales = self.mean.iter().zip(&self.deviation);
            let standard = rows.row(row).iter().zip(scales);
            values.extend(
                standard.map(|(x, (mean, deviation))| ((x.double() - mean) / deviation) as f32),
            );
        }
        values
    }

    /// The same as a tensor; what f32 cannot hold is an error.
    pub fn tensor<T: Number>(
        &self,
        rows: Rows<'_, T>,
        chosen: &[usize],
    ) -> anyhow::Result<Tensor<2>> {
        let shape = [chosen.len(), rows.columns];
        let values = self.apply(rows, chosen.iter().copied());
        ensure!(
            values.iter().all(|x| x.is_finite()),
            "x: a value is too far from the training data to be computed with in float32"
        );
        let data = TensorData::new(values, shape);
        Ok(Tensor::from_data(data, &circulant::cpu()))
    }

    /// The smallest deviation: distances grow by no more than its inverse.
    pub fn smallest(&self) -> f64 {
        let deviations = self.deviation.iter().copied();
        deviations.fold(f64::INFINITY, f64::min)
    }

    /// Radii around rows in their own units, from those around standardised rows `[n, columns]`.
    pub fn radii(&self, inputs: Tensor<2>, radii: impl Iterator<Item = f64>) -> Vec<f64> {
        let norms = inputs.powf_scalar(2.0).sum_dim(1).sqrt();
        let norms = norms.into_data().convert::<f32>();
        let norms: Vec<f64> = norms.iter::<f32>().map(f64::from).collect();
        let smallest = self.smallest();
        // A row is rounded to f32 after it is standardised; so is the perturbed one. Both errors are below 2^-23 of the size,
        // with a factor of two to spare.
        let unit = 2.0_f64.powi(-22);
        let own = radii.zip(norms).map(|(radius, norm)| {
            let lost = unit * (2.0 * norm + radius);
            ((radius - lost) * smallest * (1.0 - 1e-12)).max(0.0)
        });
        own.collect()
    }

    /// A Lipschitz bound for rows in their own units, from one for standardised rows.
    pub fn lipschitz(&self, bound: f64) -> f64 {
        (bound / self.smallest()) * (1.0 + 1e-12)
    }
}
