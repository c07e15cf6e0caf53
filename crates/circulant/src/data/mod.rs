//! What models are trained on: examples, and batches of them.
//!
//! | piece | what it is |
//! | --- | --- |
//! | [`LabelledData`] | inputs with a class each, as f32 values or as bytes with a [`ByteScale`] |
//! | [`RegressionData`], [`RegressionExamples`] | inputs with a number or a count each |
//! | [`StoredData`] | labelled examples that stay in files until a step asks for them |
//! | [`Augmentation`] | images mirrored and moved at random |
//! | [`BatchOrder`] | which examples a step sees, a function of seed and step |
//! | [`Examples`], [`Inputs`], [`Labels`] | a batch, copied out of the data or left where it lies |

mod augmentation;
mod error;
mod examples;
mod labelled;
mod labels;
mod order;
mod regression;
mod stored;

pub use circulant_kernels::ByteScale;

pub use self::augmentation::Augmentation;
pub use self::error::ExamplesError;
pub use self::examples::{ByteInputs, Examples, Inputs};
pub use self::labelled::LabelledData;
pub use self::labels::Labels;
pub use self::order::BatchOrder;
pub use self::regression::{RegressionData, RegressionExamples};
pub use self::stored::{StoredData, StoredRows};
