//! The engine of the Python package `circulant`: arrays in, arrays out, errors as Python's exceptions.
//!
//! Nothing is computed here. What is public in Python is in `circulant/*.py`, which checks and reshapes arguments; this
//! module (`circulant._engine`) takes contiguous arrays of one number type and calls the crates.
//!
//! | file | what |
//! | --- | --- |
//! | `arrays.rs` | NumPy arrays as slices |
//! | `errors.rs` | which exception an error becomes |
//! | `threads.rs` | pools that survive a fork, work that Ctrl-C stops |
//! | `operator.rs` | circulant operators, their gradients, norms and spectra |
//! | `prior.rs`, `gaussian.rs` | the spectral prior; the posterior's samples and KL |
//! | `metrics.rs` | the metrics |
//! | `table.rs`, `training.rs` | examples with weights; what training needs |
//! | `fit.rs`, `options.rs` | the fits, and what they are asked for |
//! | `classifier.rs`, `regressor.rs` | trained models |
//! | `drawn.rs` | networks of the last prediction, kept for the next |
//! | `familiar.rs` | the density of hidden features |
//! | `conformal.rs` | sets and intervals with a promised coverage |
//! | `program.rs` | the program, data sets by name |

mod arrays;
mod classifier;
mod conformal;
mod drawn;
mod errors;
mod familiar;
mod fit;
mod gaussian;
mod metrics;
mod operator;
mod options;
mod prior;
mod program;
mod regressor;
mod table;
mod threads;
mod training;

use pyo3::prelude::*;

/// The system's allocator gives large blocks back after every step and asks for them again at the next.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The compiled part of `circulant`.
#[pymodule(gil_used = true)]
mod _engine {
    use super::*;

    #[pymodule_export]
    use crate::classifier::Classifier;
    #[pymodule_export]
    use crate::conformal::{conformal_intervals, conformal_sets};
    #[pymodule_export]
    use crate::gaussian::{gaussian_kl, gaussian_kl_gradients, gaussian_sample};
    #[pymodule_export]
    use crate::metrics::{
        bootstrap_classification, bootstrap_mean, bootstrap_ood, classification_report, density,
        energies, mean_probabilities, mutual_information, ood_report, reliability_diagram,
        reliability_figure, row_scores,
    };
    #[pymodule_export]
    use crate::operator::Operator;
    #[pymodule_export]
    use crate::program::{dataset_names, load_dataset, program};
    #[pymodule_export]
    use crate::regressor::Regressor;
    #[pymodule_export]
    use crate::threads::{num_threads, set_num_threads};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
