//! Structured layers in the place of dense ones, and back: pretrained weights as a start for fine-tuning.
//!
//! | what | function |
//! | --- | --- |
//! | which dense layers are near a circulant one | [`linear_report`] |
//! | the nearest circulant layer of a `Linear` | [`nearest_circulant`] |
//! | the nearest layer of BCCB blocks | [`nearest_bccb`] |
//! | the dense layer of a circulant one | [`to_dense`] |
//! | all projections of a vision transformer | [`to_spectral_projections`], [`to_dense_projections`] |
//!
//! "Nearest" is in the Frobenius norm of the matrix: the mean of every wrapped diagonal.

mod bccb;
mod circulant;
mod error;
mod report;
mod vision_transformer;

pub use bccb::nearest_bccb;
pub use circulant::{Nearest, nearest_circulant, to_dense};
pub use error::SurgeryError;
pub use report::{LinearReport, linear_report};
pub use vision_transformer::{to_dense_projections, to_spectral_projections};
