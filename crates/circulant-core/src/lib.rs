//! What a device needs of a circulant layer: which real coordinates make up a half spectrum, a real
//! transform of any length, and the operator on one input. No standard library, no allocation, no
//! unsafe code: all memory is the caller's, and every size can be asked for beforehand.
//!
//! A circulant layer is `y = IRFFT(h * RFFT(x)) + b`; the 2D one mixes channels per frequency. The
//! parameters are free real coordinates `a` with `h = T(a)` (`docs/mathematics.md`, sections 1 to 4).
//!
//! | room | |
//! | --- | --- |
//! | [`Bin`], [`HalfSpectrum`], [`HalfPlane`] | the layout: T, its adjoint, its left inverse, masks |
//! | [`RealTransform`] | half spectra of real signals and back, any length |
//! | [`CirculantOperator`], [`BccbOperator`] | one input through a layer |
//! | [`Fixed`] | numbers for processors without a unit for floats |
//! | [`random`], [`elementary`] | normal values from a counter; `exp`, `ln`, `tanh` |
//! | [`SizeError`] | what does not fit: expected and found |
//!
//! ```
//! use circulant_core::{CirculantOperator, Complex, HalfSpectrum};
//!
//! let layout = HalfSpectrum::new(4)?;
//! let mut roots = [Complex::new(0.0_f32, 0.0); 3];
//! let operator = CirculantOperator::new(layout, &mut roots)?;
//! let mut scratch = [Complex::new(0.0, 0.0); 5];
//! assert_eq!(operator.scratch_len(), scratch.len());
//!
//! // h = (1, 1, 1) is the identity.
//! let mut y = [0.0; 4];
//! operator.forward(&[1.0, 1.0, 0.0, 1.0], Some(&[0.5]), &[1.0, 2.0, 3.0, 4.0], &mut y, &mut scratch)?;
//! assert_eq!(y, [1.5, 2.5, 3.5, 4.5]);
//! # Ok::<(), circulant_core::SizeError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod elementary;
mod error;
mod fixed;
mod layout;
mod operator;
pub mod random;
mod scalar;
mod transform;

pub use error::SizeError;
pub use fixed::Fixed;
pub use layout::{Bin, HalfPlane, HalfSpectrum};
pub use num_complex::Complex;
pub use operator::{BccbOperator, CirculantOperator};
pub use scalar::Scalar;
pub use transform::RealTransform;
