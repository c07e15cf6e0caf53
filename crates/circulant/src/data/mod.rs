//! What models are trained on: labelled examples in memory, and batches of them.
//!
//! | piece | what it is |
//! | --- | --- |
//! | [`LabelledData`] | inputs with a class each, as f32 values or as bytes with a [`ByteScale`] |
//! | [`Augmentation`] | images mirrored and moved at random |
//! | [`BatchOrder`] | which examples a step sees, a function of seed and step |
//! | [`Examples`], [`Inputs`], [`Labels`] | a batch, copied out of the data or left where it lies |

mod augmentation;
mod error;
mod examples;
mod labelled;
mod labels;
mod order;

pub use circulant_kernels::ByteScale;

pub use self::augmentation::Augmentation;
pub use self::error::ExamplesError;
pub use self::examples::{ByteInputs, Examples, Inputs};
pub use self::labelled::LabelledData;
pub use self::labels::Labels;
pub use self::order::BatchOrder;
