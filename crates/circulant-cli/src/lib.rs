//! The parts of the `circulant` program.

#![forbid(unsafe_code)]

pub mod commands;
mod experiments;
mod files;
pub mod program;
mod ranks;
mod report;

/// What the tests and the fuzz targets look at.
#[doc(hidden)]
pub mod parts {
    pub use crate::experiments::config::{
        DataConfig, Draw, Inference, ModelKind, PosteriorConfig, RunConfig,
    };
    pub use crate::experiments::layer_figures::hidden_layers;
    pub use crate::experiments::loaded::LoadedRun;
    pub use crate::experiments::model::network;
    pub use crate::experiments::source::{Held, images};
    pub use crate::experiments::vit::folder::VitFolder;
}

/// What the Python package builds on.
#[doc(hidden)]
pub mod bindings {
    pub use crate::experiments::auto::{
        Fitted, all_steps, class_settings, classifier_of, fit_classifier, fit_regression,
        regression_of, table_settings,
    };
    pub use crate::experiments::config::{ModelConfig, RunConfig};
    pub use crate::experiments::exported::describe;
    pub use crate::experiments::facts::Facts;
    pub use crate::experiments::figures::reliability;
    pub use crate::experiments::folder::{DataFacts, RunFacts, RunFolder};
    pub use crate::experiments::inspection::Inspected;
    pub use crate::experiments::loaded::{LoadedRun, TrainedRun};
    pub use crate::experiments::regression::LoadedRegression;
    pub use crate::experiments::training::{
        Trained, Watch, classifier_svi, fit_further, target_svi,
    };
    pub use crate::experiments::version::VERSION;
}
