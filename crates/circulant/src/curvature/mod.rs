//! The curvature of a loss around the parameters of a module: products with the Hessian and the Gauss-Newton matrix, and their
//! dominant eigenvalues, over all parameters or over some of them (table 10 of the paper: all, or attention only).
//!
//! Formulas and the step of the differences: `docs/mathematics.md`, section 10. Everything is in f64, and [`Stencil`] says how large the
//! error is. Activations with kinks (ReLU) have no Hessian at the kinks: there a product is that of the smooth pieces, plus a jump
//! if the step crosses a kink.
//!
//! ```
//! use burn::tensor::{DType, Tensor};
//! use circulant::curvature::{Curvature, EigenvalueConfig, Objective, CurvatureMatrix, Subspace};
//! use circulant::models::{ProjectionKind, VisionTransformerConfig};
//!
//! let device = circulant::cpu().autodiff();
//! let model = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Spectral)
//!     .with_d(8).with_depth(1).with_heads(2).init(&device);
//! let images = Tensor::<4>::ones([4, 3, 8, 8], (&device, DType::F64));
//! let objective = Objective::classifier(images, [0, 1, 2, 0]);
//! // Two examples at once: the memory of a large batch is bounded.
//! let objective = objective.with_chunk(2);
//! let curvature = Curvature::new(model, objective, &Subspace::attention())?;
//! let sharpest = curvature.dominant_eigenvalue(CurvatureMatrix::Hessian, &EigenvalueConfig::default())?;
//! println!("{} +- {}", sharpest.value, sharpest.residual);
//! # Ok::<(), circulant::curvature::CurvatureError>(())
//! ```

mod eigen;
mod error;
mod objective;
mod parameters;
mod products;
mod step;
mod subspace;

pub use eigen::{Eigenvalue, EigenvalueConfig, Method};
pub use error::CurvatureError;
pub use objective::Objective;
pub use products::{Curvature, CurvatureMatrix};
pub use step::Stencil;
pub use subspace::Subspace;
