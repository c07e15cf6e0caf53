//! The finite-sample quantile of calibration scores.

use super::ConformalError;

/// `ceil((n + 1) c)`. The product of a decimal such as 0.07 with 100 is 7.000000000000001 in f64, which does not mean the eighth score.
fn rank(examples: usize, coverage: f64) -> f64 {
    ((examples as f64 + 1.0) * coverage * (1.0 - 1e-12)).ceil()
}

/// The smallest number of calibration examples that can promise a coverage: the smallest `n` with `ceil((n + 1) c) <= n`.
///
/// ```
/// use circulant::conformal::smallest_calibration;
///
/// assert_eq!(smallest_calibration(0.9)?, 9);
/// assert_eq!(smallest_calibration(0.99)?, 99);
/// # Ok::<(), circulant::conformal::ConformalError>(())
/// ```
pub fn smallest_calibration(coverage: f64) -> Result<usize, ConformalError> {
    checked(coverage)?;
    // c/(1 - c), give or take one for rounding.
    let near = (coverage / (1.0 - coverage)).floor();
    let mut examples = if near < 1e15 {
        (near as usize).max(2) - 1
    } else {
        return Ok(usize::MAX);
    };
    while rank(examples, coverage) > examples as f64 {
        examples += 1;
    }
    Ok(examples)
}

fn checked(coverage: f64) -> Result<(), ConformalError> {
    if coverage > 0.0 && coverage < 1.0 {
        Ok(())
    } else {
        Err(ConformalError::Coverage { got: coverage })
    }
}

/// The `ceil((n + 1) c)`-th smallest of finite scores.
pub(super) fn threshold(mut scores: Vec<f64>, coverage: f64) -> Result<f64, ConformalError> {
    let needed = smallest_calibration(coverage)?;
    let got = scores.len();
    if got < needed {
        return Err(ConformalError::TooFew {
            coverage,
            needed,
            got,
        });
    }
    let at = rank(got, coverage) as usize - 1;
    let (_, found, _) = scores.select_nth_unstable_by(at, f64::total_cmp);
    Ok(*found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ceil((n + 1) c)` for `c = percent/100`, in whole numbers.
    fn exact_rank(examples: usize, percent: usize) -> usize {
        ((examples + 1) * percent).div_ceil(100)
    }

    #[test]
    fn ranks_are_those_of_whole_numbers() {
        for percent in 1..100 {
            let coverage = percent as f64 / 100.0;
            for examples in 1..2500 {
                assert_eq!(
                    rank(examples, coverage),
                    exact_rank(examples, percent) as f64
                );
            }
            let mut least = 1;
            while exact_rank(least, percent) > least {
                least += 1;
            }
            assert_eq!(smallest_calibration(coverage), Ok(least));
        }
    }

    #[test]
    fn the_order_of_scores_does_not_matter() {
        let scores = |from: f64| {
            (0..19)
                .map(|i| (from + f64::from(i) * 7.0) % 19.0)
                .collect::<Vec<_>>()
        };
        for from in [0.0, 3.0, 18.0] {
            assert_eq!(threshold(scores(from), 0.9), Ok(17.0));
            assert_eq!(threshold(scores(from), 0.95), Ok(18.0));
        }
        let error = threshold(scores(0.0), 0.96).unwrap_err();
        assert_eq!(
            error,
            ConformalError::TooFew {
                coverage: 0.96,
                needed: 24,
                got: 19
            }
        );
        for got in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                threshold(scores(0.0), got),
                Err(ConformalError::Coverage { .. })
            ));
        }
    }
}
