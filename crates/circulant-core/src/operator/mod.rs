//! One input through a circulant layer (`docs/mathematics.md`, section 4).

mod bccb;
mod circulant;

pub use bccb::BccbOperator;
pub use circulant::CirculantOperator;

use crate::error::{SizeError, expect_len};

/// Checks that a bias has one value per channel, or one per output.
fn expect_bias<T>(bias: Option<&[T]>, channels: usize, outputs: usize) -> Result<(), SizeError> {
    match bias {
        Some(bias) if bias.len() != outputs => expect_len("bias", bias.len(), channels),
        _ => Ok(()),
    }
}
