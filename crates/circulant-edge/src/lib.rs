//! Bayesian circulant networks on a device: a model in one slice of bytes (in flash), memory of the caller, and for every
//! input class probabilities with what is not known about them.
//!
//! No standard library, no allocation, no unsafe code. [`Model::read`] checks a file whole and never panics, whatever it
//! holds; [`Model::memory_len`] says how much memory a model needs; [`Runtime::predict`] transforms an input once and draws
//! as many networks from the posterior as it is asked for. `circulant export RUN --to edge` writes models.
//!
//! ```
//! use circulant_edge::write::{ModelWriter, WrittenGaussian};
//! use circulant_edge::{Complex, Format, Input, Model, Runtime, Sampling};
//!
//! // A network of two inputs: a circulant layer, tanh, and a read-out of two classes.
//! let mut writer = ModelWriter::new([1, 1, 2], 2, Format::F32);
//! writer.circulant(2, 2, &WrittenGaussian::point(vec![0.0, 2.0]), &WrittenGaussian::point(vec![0.0]));
//! writer.read_out(2, &WrittenGaussian::point(vec![1.0, 0.0, 0.0, 1.0]), &WrittenGaussian::point(vec![0.0; 2]));
//! let bytes = writer.finish();
//!
//! let model = Model::read(&bytes)?;
//! let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
//! let mut runtime = Runtime::new(model, &mut memory)?;
//! let prediction = runtime.predict(Input::Floats(&[1.0, 0.0]), &Sampling::new(1))?;
//! assert_eq!(prediction.class, 0);
//! # Ok::<(), circulant_edge::EdgeError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "write", test))]
extern crate std;

mod bytes;
mod dense;
mod error;
mod fixed;
mod gaussian;
mod integers;
mod layer;
mod layers;
mod memory;
pub mod model;
pub mod moments;
mod number;
mod outcomes;
mod pixels;
mod prediction;
mod runtime;
mod sums;
mod values;
#[cfg(feature = "write")]
pub mod write;

/// The version of the format that this crate writes and reads.
pub const VERSION: u16 = 3;
/// The oldest version that it reads, too.
pub const OLDEST_VERSION: u16 = 2;

/// Whether weights can be drawn as the desktop draws them.
pub(crate) const WEIGHTS: bool = cfg!(feature = "weights");
/// Whether models may have other numbers than integers.
pub(crate) const FLOATS: bool = cfg!(feature = "floats");
/// Whether layers may have padding.
pub(crate) const PADDING: bool = cfg!(feature = "padding");
/// Whether outputs may be something else than classes.
pub(crate) const VALUES: bool = cfg!(feature = "values");

pub use circulant_core::random::QUANTILES;
pub use circulant_core::{Complex, Fixed};
pub use error::EdgeError;
pub use integers::bits as sum_bits;
pub use layer::Activation;
pub use model::{Model, Task};
pub use number::Number;
pub use pixels::Input;
pub use prediction::{Prediction, Radius};
pub use runtime::{Draws, Runtime, Sampling};
pub use values::Format;
