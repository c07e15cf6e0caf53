//! Training runs and the paper's experiments, on top of the library.
//!
//! | file | what |
//! | --- | --- |
//! | `config.rs` | all settings of a run, as a TOML file has them |
//! | `model.rs` | from settings to a Bayesian network |
//! | `table.rs`, `auto.rs` | tables of columns; the model that held-out rows choose for one |
//! | `regression.rs` | tables whose target is a number |
//! | `source.rs` | images by name or path |
//! | `picture_list.rs` | a pattern, or a list on stdin, as files |
//! | `features.rs` | images through a frozen encoder into a file |
//! | `folder.rs`, `lines.rs` | the folder of a run: settings, facts, steps, checkpoint; files of JSON lines |
//! | `training.rs` | trains in a folder, from the start or from its checkpoint |
//! | `evaluation.rs` | predictions of a set, with their progress |
//! | `ood_score.rs` | scores that are high for inputs unlike the training data |
//! | `conformal.rs`, `intervals.rs` | sets of classes, and intervals of numbers, with a promised coverage |
//! | `certification.rs`, `inspection.rs` | norms and radii; what was learned, as a page |
//! | `loaded.rs`, `exported.rs` | a trained run, used on other data; the same in two files of the library |
//! | `exporting/` | a run for a device, as C, Rust, ONNX, dense layers or a page |
//! | `metrics.rs`, `baseline.rs` | `metrics.json`; whether anything was learned |
//! | `figures.rs`, `geometry.rs`, `gallery.rs` | figures, certificates and pictures of reports |
//! | `layer_figures.rs` | spectra, filters and singular values of a network beside its prior |
//! | `progress.rs`, `interrupt.rs` | bars or lines; Ctrl-C |
//! | `variant.rs`, `values.rs` | a model trained with several seeds; a number of several seeds |
//! | `version.rs` | the version of everything that is written |
//! | `facts.rs` | versions, commit, machine |
//! | `mnist/` | the paper's first experiment and its report |
//! | `tables/` | tables with given splits |
//! | `heads/` | the second one: heads on frozen features |
//! | `vit/` | the third one: vision transformers, dense and spectral |
//! | `certified/` | networks of Lipschitz constant one, trained for a radius |

pub mod auto;
pub mod baseline;
pub mod certification;
pub mod certified;
pub mod config;
pub mod conformal;
pub mod evaluation;
pub mod exported;
pub mod exporting;
pub mod facts;
pub mod features;
pub mod figures;
pub mod folder;
pub mod gallery;
pub mod geometry;
pub mod heads;
pub mod inspection;
pub mod interrupt;
pub mod intervals;
pub mod layer_figures;
pub mod lines;
pub mod loaded;
pub mod metrics;
pub mod mnist;
pub mod model;
pub mod ood_score;
pub mod picture_list;
pub mod progress;
pub mod regression;
pub mod source;
pub mod table;
pub mod tables;
pub mod training;
pub mod values;
pub mod variant;
pub mod version;
pub mod vit;

pub use source::Held;
