//! Deterministic training of a classifier: the mean of a loss ([`TrainingLoss`]), Adan with decoupled weight decay, and a learning rate that
//! warms up linearly and falls to zero along a cosine.
//!
//! Dropout follows from seed and step, so a run that resumes from a checkpoint gives the same values, to the last bit, as
//! one that never stopped, if it sees the same batches ([`crate::data::BatchOrder`] is a function of seed and step too).
//!
//! A pretrained transformer with circulant projections in the place of dense ones, fine-tuned:
//!
//! ```
//! use burn::tensor::Tensor;
//! use circulant::models::{ProjectionKind, VisionTransformerConfig};
//! use circulant::nn::BiasKind;
//! use circulant::surgery::to_spectral_projections;
//! use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};
//!
//! let device = circulant::cpu().autodiff();
//! let config = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense).with_d(8).with_depth(2).with_heads(2);
//! let dense = config.init(&device); // circulant::pretrained::load_vision_transformer(&mut dense, "model.pt")?;
//! let (model, changes) = to_spectral_projections(dense, BiasKind::Vector)?;
//! println!("{}: {:.2} of the matrix is lost", changes[0].path, changes[0].relative_error);
//!
//! # let folder = tempfile::tempdir()?;
//! let schedule = WarmUpCosine { peak: 1e-3, warm_up: 2, steps: 10 };
//! let mut trainer = Trainer::new(model, TrainerConfig { seed: 0, schedule, spectral_rate: 1.0, length_power: 0.0, weight_decay: 1e-4, loss: TrainingLoss::CrossEntropy })?;
//! let images = Tensor::<4>::ones([2, 3, 8, 8], &device); // yours
//! let first = trainer.step(images.clone(), &[0, 2])?;
//! trainer.save(folder.path().join("checkpoint.safetensors"), &Default::default())?;
//! println!("step {}: loss {:.3}, {} of 2 right", first.step, first.loss, first.correct);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adam;
mod adan;
mod atomic;
pub(crate) mod checkpoint;
mod checkpoint_error;
mod error;
mod loss;
mod not_finite;
mod schedule;
mod trainer;
mod trainer_checkpoint;

pub use self::adam::FusedAdam;
pub use self::adan::FusedAdan;
pub use self::atomic::{UNFINISHED, write_atomically};
pub use self::checkpoint_error::CheckpointError;
pub use self::error::TrainingError;
pub use self::loss::TrainingLoss;
pub(crate) use self::not_finite::find_not_finite;
pub use self::schedule::WarmUpCosine;
pub use self::trainer::{Trainer, TrainerConfig, TrainingStep, count_correct};
pub use self::trainer_checkpoint::load_checkpoint;
