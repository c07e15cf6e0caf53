//! Classes, or rows, as indices on the host.

use std::sync::Arc;

/// Indices on the host: the classes of a batch, or rows.
#[derive(Debug, Clone)]
pub struct Labels(pub Arc<[usize]>);

impl Labels {
    pub(crate) fn as_i64(&self) -> Vec<i64> {
        self.0.iter().map(|&label| label as i64).collect()
    }
}

impl From<Vec<usize>> for Labels {
    fn from(labels: Vec<usize>) -> Self {
        Self(labels.into())
    }
}

impl<const N: usize> From<[usize; N]> for Labels {
    fn from(labels: [usize; N]) -> Self {
        Self(Arc::from(labels))
    }
}
