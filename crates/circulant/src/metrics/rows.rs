//! Work on many rows at once. The cuts are fixed and partial results are combined in order, so no
//! result depends on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::MetricError;
use super::probabilities::Real;

/// Rows per piece of work: small enough to share among threads, large enough to hide the sharing.
const CHUNK: usize = 4096;

/// The results for consecutive ranges of rows, in order.
pub(super) fn by_chunks<R: Send>(rows: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    (0..rows.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| work(range(chunk, rows)))
        .collect()
}

/// The first result in the order of rows.
pub(super) fn first<R: Send>(
    rows: usize,
    search: impl Fn(Range<usize>) -> Option<R> + Sync,
) -> Option<R> {
    (0..rows.div_ceil(CHUNK))
        .into_par_iter()
        .find_map_first(|chunk| search(range(chunk, rows)))
}

fn range(chunk: usize, rows: usize) -> Range<usize> {
    chunk * CHUNK..rows.min((chunk + 1) * CHUNK)
}

/// One number per row of a row-major matrix.
pub(super) fn per_row<T: Real>(
    values: &[T],
    columns: usize,
    of_row: impl Fn(&[T]) -> f64 + Sync,
) -> Vec<f64> {
    values
        .par_chunks_exact(columns)
        .with_min_len(CHUNK)
        .map(&of_row)
        .collect()
}

/// Finite numbers as f64. Zeros lose their sign, so that equal numbers have equal bits.
pub(crate) fn finite<T: Real>(what: &'static str, values: &[T]) -> Result<Vec<f64>, MetricError> {
    if values.is_empty() {
        return Err(MetricError::Empty { what });
    }
    let bad = first(values.len(), |range| {
        let start = range.start;
        let position = values[range].iter().position(|&x| !x.into().is_finite())?;
        Some(start + position)
    });
    match bad {
        None => Ok(per_row(values, 1, |x| x[0].into() + 0.0)),
        Some(index) => Err(MetricError::NotFinite {
            what,
            index,
            got: values[index].into(),
        }),
    }
}

/// Ascending, without NaN. As whole numbers in the order of `f64::total_cmp`, floats sort twice as fast, and on two
/// cores faster than in parallel.
pub(super) fn sort(values: &mut Vec<f64>) {
    // Turns the bits of negative numbers around; done twice it is undone.
    let turn = |bits: i64| bits ^ ((bits >> 63) as u64 >> 1) as i64;
    let mut keys: Vec<i64> = values.iter().map(|x| turn(x.to_bits() as i64)).collect();
    keys.sort_unstable();
    values.clear();
    values.extend(keys.into_iter().map(|key| f64::from_bits(turn(key) as u64)));
}

/// A sum with its rounding error beside it, so that the cut into batches does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    pub(super) fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let part = sum - self.high;
        self.low += (self.high - (sum - part)) + (x - part);
        self.high = sum;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.add(other.high);
        self.low += other.low;
    }

    pub(super) fn value(self) -> f64 {
        // Behind an infinite sum the error term is infinity minus infinity.
        if self.high.is_infinite() {
            self.high
        } else {
            self.high + self.low
        }
    }
}

/// The element at `position` of ascending values, between two of them by linear interpolation.
pub(super) fn interpolate(position: f64, at: impl Fn(usize) -> f64) -> f64 {
    let below = position.floor();
    let share = position - below;
    let a = at(below as usize);
    if share == 0.0 {
        return a;
    }
    let b = at(below as usize + 1);
    if a == b {
        return a;
    }
    let step = b - a;
    if !step.is_finite() {
        return a * (1.0 - share) + b * share;
    }
    // From the nearer end, as numpy does: the result is monotone and never passes `b`.
    if share < 0.5 {
        a + step * share
    } else {
        b - step * (1.0 - share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_plain_sums_lose() {
        let mut sum = Sum::default();
        for x in [1e16, 1.0, 1.0, -1e16] {
            sum.add(x);
        }
        assert_eq!(sum.value(), 2.0);
        let mut other = Sum::default();
        other.add(f64::INFINITY);
        sum.merge(other);
        sum.add(1.0);
        assert_eq!(sum.value(), f64::INFINITY);
    }

    #[test]
    fn sorting_is_that_of_total_order() {
        let mut values = vec![
            0.5,
            -1e300,
            3.0,
            -0.25,
            0.0,
            1e-310,
            -1e-310,
            3.0,
            f64::MAX,
            -7.0,
        ];
        let mut expected = values.clone();
        expected.sort_by(f64::total_cmp);
        sort(&mut values);
        assert_eq!(values, expected);
    }

    #[test]
    fn interpolation_is_exact_at_elements_and_survives_infinity() {
        let values = [1.0, 2.0, 4.0, f64::INFINITY, f64::INFINITY];
        let at = |position| interpolate(position, |i| values[i]);
        assert_eq!(at(1.0), 2.0);
        assert_eq!(at(1.25), 2.5);
        assert_eq!(at(1.75), 3.5);
        assert_eq!(at(2.5), f64::INFINITY);
        assert_eq!(at(3.5), f64::INFINITY);
        let wide = [-1e308, 1e308];
        assert_eq!(interpolate(0.5, |i| wide[i]), 0.0);
    }

    #[test]
    fn the_first_bad_number_is_named() {
        let mut values = vec![0.0_f32; 3 * CHUNK];
        values[2 * CHUNK] = f32::NAN;
        values[CHUNK + 5] = f32::INFINITY;
        let error = finite("the scores", &values).expect_err("not finite");
        let expected = MetricError::NotFinite {
            what: "the scores",
            index: CHUNK + 5,
            got: f64::INFINITY,
        };
        assert_eq!(error, expected);
    }
}
