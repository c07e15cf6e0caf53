//! Sizes and slices that do not fit.

/// A size or a slice that does not fit. Every variant says what was expected and what was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// A length, a grid side or a channel count is zero.
    #[error("{what} must be at least 1, got 0")]
    Zero {
        /// The size in question.
        what: &'static str,
    },
    /// A product of sizes does not fit into memory.
    #[error("{what} of {sizes:?} is larger than memory can be; make one of them smaller")]
    TooLarge {
        /// What would have that size.
        what: &'static str,
        /// The sizes that were multiplied.
        sizes: [usize; 2],
    },
    /// The number of kept bins is outside `1..=d/2 + 1`.
    #[error(
        "K must be in 1..={max} for length {length}, got {got}; K = {max} keeps the whole spectrum"
    )]
    Modes {
        /// The requested number of bins.
        got: usize,
        /// The largest allowed number, `length/2 + 1`.
        max: usize,
        /// The length of the transform.
        length: usize,
    },
    /// The radial cut-off is outside `[0, 1]` or not a number.
    #[error("K_rad must be in [0, 1], got {got}; 1 keeps the whole half-plane, 0 only the mean")]
    Radius {
        /// The requested cut-off.
        got: f64,
    },
    /// A slice has the wrong number of elements.
    #[error("{what}: expected {expected} values, got {got}")]
    Length {
        /// Which slice.
        what: &'static str,
        /// The expected number of elements.
        expected: usize,
        /// The number of elements found.
        got: usize,
    },
}

/// `Ok` when `got == expected`.
pub(crate) fn expect_len(what: &'static str, got: usize, expected: usize) -> Result<(), SizeError> {
    if got == expected {
        Ok(())
    } else {
        Err(SizeError::Length {
            what,
            expected,
            got,
        })
    }
}

/// `Ok` when every size is at least 1.
pub(crate) fn expect_positive(sizes: &[(&'static str, usize)]) -> Result<(), SizeError> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some(&(what, _)) => Err(SizeError::Zero { what }),
        None => Ok(()),
    }
}

/// `a*b` values, if a slice can have so many of 16 bytes each.
pub(crate) fn product(what: &'static str, a: usize, b: usize) -> Result<usize, SizeError> {
    /// A complex f64, the largest element of any slice.
    const BYTES: usize = 16;
    a.checked_mul(b)
        .filter(|&values| values <= isize::MAX as usize / BYTES)
        .ok_or(SizeError::TooLarge {
            what,
            sizes: [a, b],
        })
}
