//! What an attacker finds who knows the network: projected gradient ascent in a ball of the 2-norm. The share of inputs that withstand it lies
//! between the certified accuracy, which holds for every attack, and the accuracy.
//!
//! From `x` itself, then from random places of the ball,
//!
//! ```text
//! d <- project(d + step g/norm(g)),  g the gradient of max_{k != y} z_k - z_y at x + d
//! ```
//!
//! where `project` shortens `d` to the radius and keeps `x + d` in the range of pixels. An input falls when any of the points on the way is
//! given another class.

use burn::config::Config;
use burn::tensor::{Int, Tensor, TensorData};

use super::certificate::MeasuredInputs;
use super::radii::ModelLogits;
use super::{GeometryError, Target};
use crate::nn::{InitialNumbers, to_host};
use crate::task::Classifier;
use crate::train::{TrainingLoss, count_correct};

/// A projected gradient attack.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::geometry::AttackConfig;
/// use circulant::models::OrthogonalNetworkConfig;
///
/// let device = circulant::cpu();
/// let model = OrthogonalNetworkConfig::new(vec![4]).with_image([1, 8, 8]).init(&device);
/// let images = Tensor::<4>::ones([2, 1, 8, 8], &device);
/// let found = AttackConfig::new(0.5).with_steps(10).attack(&model, images.clone(), &[0, 1])?;
/// assert!(found.robust_accuracy() <= found.accuracy());
/// // A radius that is no radius is an error.
/// assert!(AttackConfig::new(0.0).attack(&model, images, &[0, 1]).is_err());
/// # Ok::<(), circulant::geometry::GeometryError>(())
/// ```
#[derive(Config, Debug)]
pub struct AttackConfig {
    /// How far an input may be moved.
    pub radius: f64,
    /// Gradient steps from every start.
    #[config(default = 100)]
    pub steps: usize,
    /// Starts: the input itself, and random places.
    #[config(default = 5)]
    pub restarts: usize,
    /// The length of a step; 2.5 radii over all steps without it.
    pub step: Option<f64>,
    /// The smallest and the largest value of a pixel, if moved inputs have to keep to them.
    pub range: Option<[f64; 2]>,
    /// The seed of the random places.
    #[config(default = 0)]
    pub seed: u64,
    /// Inputs at a time.
    #[config(default = 256)]
    pub batch: usize,
}

/// What an attack found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attacked {
    /// Which inputs are classified right where they are.
    pub right: Vec<bool>,
    /// Which of them withstood.
    pub robust: Vec<bool>,
}

impl Attacked {
    /// The share of inputs that are classified right.
    pub fn accuracy(&self) -> f64 {
        share(&self.right)
    }

    /// The share of inputs that are classified right and withstood.
    pub fn robust_accuracy(&self) -> f64 {
        share(&self.robust)
    }
}

fn share(which: &[bool]) -> f64 {
    which.iter().filter(|yes| **yes).count() as f64 / which.len() as f64
}

/// A margin that no logits reach, so that the gradient of the hinge is that of `max_{k != y} z_k - z_y`.
const FAR: f64 = 1e6;
/// Keeps moved inputs inside the ball in spite of the rounding of their norm.
const INSIDE: f64 = 1.0 - 1e-6;

/// Some inputs under attack.
struct Attackers<'a, const D: usize, M> {
    /// On the tape, with frozen parameters.
    model: &'a M,
    inputs: Tensor<D>,
    labels: Vec<usize>,
}

impl AttackConfig {
    /// Attacks a network at inputs `[n, ...]` with their classes.
    pub fn attack<const D: usize, M: Classifier<D>>(
        &self,
        model: &M,
        inputs: Tensor<D>,
        labels: &[usize],
    ) -> Result<Attacked, GeometryError> {
        self.attack_with_progress(model, inputs, labels, |_, _| {})
    }

    /// [`Self::attack`] that calls `progress(done, all)` after every batch.
    pub fn attack_with_progress<const D: usize, M: Classifier<D>>(
        &self,
        model: &M,
        inputs: Tensor<D>,
        labels: &[usize],
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Attacked, GeometryError> {
        self.check()?;
        let inputs = MeasuredInputs::new(inputs)?;
        let plain = model.valid();
        let logits = ModelLogits::new(&plain, &inputs, self.batch)?;
        let classes = logits.targets(Target::True(labels))?;
        let predicted = logits.targets(Target::Predicted)?;
        let right: Vec<bool> = predicted
            .iter()
            .zip(&classes)
            .map(|(a, b)| a == b)
            .collect();
        let model = plain.train().no_grad();
        let mut robust = right.clone();
        let batch = self.batch.max(1);
        let all = self.restarts * right.len();
        for restart in 0..self.restarts {
            let open: Vec<usize> = (0..robust.len()).filter(|&input| robust[input]).collect();
            for (index, rows) in open.chunks(batch).enumerate() {
                let places: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
                let places = TensorData::new(places, [rows.len()]);
                let places = Tensor::<1, Int>::from_data(places, &inputs.tensor.device());
                let attackers = Attackers {
                    model: &model,
                    inputs: inputs.tensor.clone().select(0, places),
                    labels: rows.iter().map(|&row| classes[row]).collect(),
                };
                let start = self.start(restart, index, [rows.len(), inputs.size]);
                for (row, fooled) in rows.iter().zip(attackers.climb(self, start)?) {
                    robust[*row] &= !fooled;
                }
                progress(restart * right.len() + index * batch + rows.len(), all);
            }
        }
        progress(all, all);
        Ok(Attacked { right, robust })
    }

    fn check(&self) -> Result<(), GeometryError> {
        let positive = |what, got: f64| match got > 0.0 && got.is_finite() {
            true => Ok(()),
            false => Err(GeometryError::Setting {
                what,
                expected: "positive and finite",
                got,
            }),
        };
        positive("the radius of an attack", self.radius)?;
        positive("the length of a step", self.step.unwrap_or(1.0))?;
        positive("the number of steps", self.steps as f64)?;
        positive("the number of starts", self.restarts as f64)?;
        match self.range {
            Some([low, high]) if low.is_nan() || high.is_nan() || low >= high => {
                Err(GeometryError::Setting {
                    what: "the smallest value of a pixel",
                    expected: "below the largest",
                    got: low,
                })
            }
            _ => Ok(()),
        }
    }

    /// Where a batch begins: nowhere else at first, then uniform in the ball.
    fn start(&self, restart: usize, batch: usize, [rows, size]: [usize; 2]) -> Vec<f64> {
        if restart == 0 {
            return vec![0.0; rows * size];
        }
        let mut seeds = InitialNumbers::new(self.seed);
        let own = (0..=restart).map(|_| seeds.seed()).fold(0, |_, seed| seed);
        let mut numbers = InitialNumbers::new(own ^ batch as u64);
        let mut values = numbers.normal(rows * size, 1.0);
        let lengths = numbers.uniform(rows, 0.5);
        for (row, length) in values.chunks_exact_mut(size).zip(lengths) {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            let wanted = self.radius * (length + 0.5).powf((size as f64).recip());
            row.iter_mut()
                .for_each(|x| *x *= wanted / norm.max(f64::MIN_POSITIVE));
        }
        values
    }
}

impl<const D: usize, M: Classifier<D>> Attackers<'_, D, M> {
    /// Which inputs fall on the way from this start.
    fn climb(&self, config: &AttackConfig, start: Vec<f64>) -> Result<Vec<bool>, GeometryError> {
        let (dims, rows) = (self.inputs.dims(), self.labels.len());
        let size = start.len() / rows;
        let device = self.inputs.device();
        let origin = self.inputs.clone().reshape([rows, size]);
        let dtype = origin.dtype();
        let mut moved =
            Tensor::<2>::from_data(TensorData::new(start, [rows, size]), (&device, dtype));
        let length = config
            .step
            .unwrap_or(2.5 * config.radius / config.steps as f64);
        let loss = TrainingLoss::Hinge { margin: FAR };
        let mut fooled = vec![false; rows];
        for step in 0..=config.steps {
            moved = inside(config, &origin, moved);
            let place = Tensor::<2>::from_inner(origin.clone() + moved.clone()).require_grad();
            let logits = self.model.logits(place.clone().reshape(dims));
            let values = to_host(logits.clone());
            let classes = values.len() / rows;
            for (row, label) in self.labels.iter().enumerate() {
                let own = &values[row * classes..][..classes];
                fooled[row] |= count_correct(own, &[*label]) == 0;
            }
            if step == config.steps || fooled.iter().all(|&fooled| fooled) {
                break;
            }
            let gradients = loss.sum(logits, &self.labels).backward();
            let Some(gradient) = place.grad(&gradients) else {
                return Err(GeometryError::NoBound {
                    layer: "the network".to_owned(),
                    reason: "its logits do not depend on the inputs, so there is nothing to attack"
                        .to_owned(),
                });
            };
            let norms = gradient.clone().square().sum_dim(1).sqrt();
            moved = moved + gradient / norms.clamp_min(1e-20) * length;
        }
        Ok(fooled)
    }
}

/// The nearest move of the ball, and of the range of pixels.
fn inside(config: &AttackConfig, origin: &Tensor<2>, moved: Tensor<2>) -> Tensor<2> {
    let norms = moved.clone().square().sum_dim(1).sqrt();
    let shorter = norms.clamp_min(1e-20).recip() * (config.radius * INSIDE);
    let moved = moved * shorter.clamp_max(1.0);
    match config.range {
        None => moved,
        Some([low, high]) => (origin.clone() + moved).clamp(low, high) - origin.clone(),
    }
}
