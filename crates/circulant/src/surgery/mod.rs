//! Structured layers in the place of dense ones, and back: pretrained weights as a start for fine-tuning.
//!
//! | what | function |
//! | --- | --- |
//! | which dense layers are near a circulant one | [`linear_report`] |
//! | the nearest circulant layer of a `Linear` | [`nearest_circulant`] |
//! | the nearest matrix of circulant blocks, and its error for every length of block | [`nearest_blocks`], [`block_table`] |
//! | the nearest layer of BCCB blocks | [`nearest_bccb`] |
//! | the dense layer of a structured one | [`to_dense`] |
//! | any module from a dense one with the same paths | [`transfer`] |
//! | all projections of a vision transformer | [`to_spectral_projections`], [`to_dense_projections`] |
//!
//! "Nearest" is in the Frobenius norm of the matrix: the mean of every wrapped diagonal.

mod bccb;
mod blocks;
mod circulant;
mod error;
mod projection;
mod report;
mod transfer;
mod vision_transformer;

pub use bccb::nearest_bccb;
pub use blocks::{BlockPoint, BlockReport, BlockTable, block_table};
pub use circulant::{Nearest, Structured, nearest_blocks, nearest_circulant, to_dense};
pub use error::SurgeryError;
pub use report::{LinearReport, linear_report};
pub use transfer::{TransferredLayer, transfer};
pub use vision_transformer::{to_dense_projections, to_spectral_projections};
