//! Inputs with their classes, as a data set holds them.

use crate::elements::gather::ByteScale;

/// Inputs, one after the other: `[n, C_in, ...]`.
#[derive(Debug, Clone, Copy)]
pub enum Inputs<'a, T> {
    /// As they are.
    Numbers(&'a [T]),
    /// As bytes, which become values block by block.
    Bytes(&'a [u8], &'a ByteScale),
}

impl<T> Inputs<'_, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Bytes(bytes, _) => bytes.len(),
        }
    }
}

/// Inputs with their classes.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a, T> {
    /// Those of the batch, and others.
    pub inputs: Inputs<'a, T>,
    /// Which of the inputs make up the batch; all of them when absent.
    pub rows: Option<&'a [usize]>,
    /// The class of every input of the batch.
    pub labels: &'a [i64],
}
