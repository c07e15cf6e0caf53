//! What can be wrong with the values that a caller hands over.

/// A size or a slice that does not fit. Every variant says what was expected and what was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// A layout cannot have such sizes, or a slice does not fit it.
    #[error(transparent)]
    Size(#[from] circulant_core::SizeError),
    /// A length, a grid side or a channel count is zero.
    #[error("{what} must be at least 1, got 0")]
    ZeroSize {
        /// The size in question.
        what: &'static str,
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
    /// A slice cannot be cut into whole rows or filters.
    #[error("{what}: expected a positive multiple of {unit} values, got {got}")]
    Multiple {
        /// Which slice.
        what: &'static str,
        /// The size of one row or filter.
        unit: usize,
        /// The number of elements found.
        got: usize,
    },
    /// A product of sizes is more than any memory holds.
    #[error(
        "{what}: expected at most {most} values, got {sizes:?} multiplied; choose smaller sizes"
    )]
    TooLarge {
        /// What would have so many values.
        what: &'static str,
        /// The sizes that were multiplied.
        sizes: Vec<usize>,
        /// The most values there may be.
        most: usize,
    },
    /// What a forward pass kept does not fit the plan that reads it.
    #[error(
        "the kept spectrum belongs to another plan or pass: expected {expected}, got {got}; \
         transform the input with the plan that uses it"
    )]
    ForeignSpectrum {
        /// What this plan reads.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// The jitter of a covariance is negative or infinite.
    #[error("the jitter must be finite and at least 0, got {got}; 1e-6 is a usual choice")]
    Jitter {
        /// The requested jitter.
        got: f64,
    },
    /// The limit of a norm is negative or not finite.
    #[error("the limit of a norm must be finite and at least 0, got {got}")]
    Limit {
        /// The requested limit.
        got: f64,
    },
    /// The rate of a dropout is outside `[0, 1)`.
    #[error("the rate of a dropout must be in [0, 1), got {got}")]
    Rate {
        /// The requested rate.
        got: f64,
    },
    /// A label is not a class.
    #[error("label {label} of row {row}: expected a class in 0..{classes}")]
    Label {
        /// The row of the label.
        row: usize,
        /// The label found.
        label: i64,
        /// The number of classes.
        classes: usize,
    },
    /// Bytes would not become finite values.
    #[error(
        "expected a positive divisor and for every channel a finite mean and a positive deviation, got {divisor} and {channels:?}"
    )]
    ByteScale {
        /// The divisor given.
        divisor: f32,
        /// Mean and deviation of every channel.
        channels: Vec<(f32, f32)>,
    },
    /// A row of a matrix does not exist.
    #[error("row {row}: expected a row in 0..{rows}")]
    Row {
        /// The row asked for.
        row: usize,
        /// The rows there are.
        rows: usize,
    },
    /// The pool of threads exists already.
    #[error(
        "the pool of threads is already in use or could not be started; join it once, first thing in `main`"
    )]
    PoolInUse,
    /// A matrix holds a value that is not finite.
    #[error("{what} holds a value that is not finite (NaN or infinity)")]
    NotFinite {
        /// Which values.
        what: &'static str,
    },
}

/// `Ok` when `got == expected`.
pub(crate) fn expect_len(
    what: &'static str,
    got: usize,
    expected: usize,
) -> Result<(), KernelError> {
    if got == expected {
        Ok(())
    } else {
        Err(KernelError::Length {
            what,
            expected,
            got,
        })
    }
}

/// The most values that sizes may stand for: more than any memory holds, and few enough that what kernels add (rows rounded up
/// to whole vectors, blocks of lanes that are not full, gaps) does not overflow either.
const MOST_VALUES: usize = isize::MAX as usize / 64;

/// The product of sizes. Every size that a caller hands over is multiplied here and nowhere else: a product that wraps would
/// pass the check of a slice's length, and pointers would leave the slice.
pub fn volume(what: &'static str, sizes: &[usize]) -> Result<usize, KernelError> {
    let product = sizes
        .iter()
        .try_fold(1_usize, |all, &size| all.checked_mul(size));
    match product {
        Some(values) if values <= MOST_VALUES => Ok(values),
        _ => Err(KernelError::TooLarge {
            what,
            sizes: sizes.to_vec(),
            most: MOST_VALUES,
        }),
    }
}

/// `Ok` when a slice has as many values as its sizes multiplied.
pub(crate) fn expect_volume(
    what: &'static str,
    got: usize,
    sizes: &[usize],
) -> Result<(), KernelError> {
    expect_len(what, got, volume(what, sizes)?)
}

/// `Ok` when every size is at least 1.
pub(crate) fn expect_positive(sizes: &[(&'static str, usize)]) -> Result<(), KernelError> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some(&(what, _)) => Err(KernelError::ZeroSize { what }),
        None => Ok(()),
    }
}

/// How many rows of `unit` values there are.
pub(crate) fn rows_of(what: &'static str, got: usize, unit: usize) -> Result<usize, KernelError> {
    if unit == 0 {
        return Err(KernelError::ZeroSize {
            what: "the length of a row",
        });
    }
    if !got.is_multiple_of(unit) {
        return Err(KernelError::Multiple { what, unit, got });
    }
    Ok(got / unit)
}
