//! Choosing by held-out rows: every size is trained on the others; of numbers, the best one once more with noise that depends on the inputs.

use std::path::Path;

use circulant::bayes::{Bayesian, Network, Stop, Svi};
use circulant::data::{BatchOrder, ExamplesError};
use circulant::models::Likelihood;
use circulant::task::TrainingSet;

use super::super::config::RunConfig;
use super::super::training::{Watch, fit};
use super::calibration::Calibration;
use super::{Choice, Chosen, Fitted};

/// Width and number of hidden layers of the three sizes.
const SIZES: [(usize, usize); 3] = [(32, 1), (64, 1), (64, 2)];
/// The same for this many rows and more.
pub(super) const MANY: usize = 5000;
const SIZES_OF_MANY: [(usize, usize); 3] = [(64, 1), (64, 2), (128, 2)];
/// With fewer rows nothing is held out, and the second size is taken.
const FEW: usize = 25;
/// The share that is held out, one of so many, and the most rows.
const HELD: usize = 5;
const MOST_HELD: usize = 1000;
/// Noise that depends on the row takes weight from rows that are hard to predict, and their errors grow: it must be worth it, by so many standard
/// errors, which chance alone gives once in twenty times.
const SURE: f64 = 1.645;

/// How many models are trained before the one that stays.
pub(super) fn trials(config: &RunConfig, likelihood: Option<Likelihood>) -> u64 {
    SIZES.len() as u64 + u64::from(tries_noise(config, likelihood))
}

fn tries_noise(config: &RunConfig, likelihood: Option<Likelihood>) -> bool {
    likelihood == Some(Likelihood::Gaussian) && !config.posterior.noise_per_input
}

/// Some of the examples of a set.
struct Part<'a, T> {
    data: &'a T,
    rows: Vec<usize>,
}

impl<M: Network, T: TrainingSet<M>> TrainingSet<M> for Part<'_, T> {
    type Batch = T::Batch;

    fn examples(&self) -> usize {
        self.rows.len()
    }

    fn fingerprint(&self) -> u64 {
        self.data.fingerprint()
    }

    fn reads_in_place(model: &M) -> bool {
        T::reads_in_place(model)
    }

    fn batch(&self, indices: &[usize], in_place: bool) -> Result<T::Batch, ExamplesError> {
        let rows: Vec<usize> = indices.iter().map(|&index| self.rows[index]).collect();
        self.data.batch(&rows, in_place)
    }

    fn into_autodiff(batch: T::Batch) -> T::Batch {
        T::into_autodiff(batch)
    }

    fn negative_log_likelihood(&self, model: &M, batch: T::Batch) -> burn::tensor::Tensor<1> {
        self.data.negative_log_likelihood(model, batch)
    }
}

/// What is known of a model that was tried.
struct Tried {
    /// `-log p` of every held-out row.
    losses: Vec<f64>,
    chosen: Chosen,
}

impl Tried {
    fn loss(&self) -> f64 {
        self.losses.iter().sum::<f64>() / self.losses.len() as f64
    }

    /// Whether the mean loss is smaller than the other's by more than [`SURE`] standard errors of the difference.
    fn is_surely_better_than(&self, other: &Self) -> bool {
        let rows = self.losses.len() as f64;
        let gains = self.losses.iter().zip(&other.losses);
        let gains: Vec<f64> = gains.map(|(own, other)| other - own).collect();
        let mean = gains.iter().sum::<f64>() / rows;
        let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
        mean > SURE * squares.sqrt() / rows
    }
}

/// Tries everything and takes the best.
pub(super) fn choose<M: Network, T: TrainingSet<M>>(
    config: &RunConfig,
    data: &T,
    likelihood: Option<Likelihood>,
    svi: impl Fn(&RunConfig, usize) -> anyhow::Result<Svi<M>>,
    score: impl Fn(&Bayesian<M>, &[usize]) -> anyhow::Result<(Calibration, Vec<f64>)>,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Choice<M>> {
    let rows = data.examples();
    let sizes = if rows >= MANY { SIZES_OF_MANY } else { SIZES };
    let sized = |(width, depth): (usize, usize)| {
        let mut own = config.clone();
        own.model.lift = Some(width);
        own.model.depth = depth;
        let layers = if depth == 1 { "layer" } else { "layers" };
        let title = config.model.kind.title();
        (own, format!("{depth} {title} {layers} of width {width}"))
    };
    if rows < FEW {
        let (config, name) = sized(sizes[1]);
        let line = format!("model: {name}; {rows} rows are too few to choose by");
        return Ok(Choice::Chosen(Chosen { config, name, line }));
    }
    let mut order = BatchOrder::new(config.training.seed, rows, rows)?;
    let (held, kept) = order.at(0).split_at((rows / HELD).min(MOST_HELD));
    let kept = Part {
        data,
        rows: kept.to_vec(),
    };
    let mut attempt = |mut config: RunConfig, name: String| {
        let trained = fit(
            svi(&config, kept.rows.len())?,
            &kept,
            checkpoint,
            &mut *watch,
        )?;
        if trained.stop == Stop::Asked {
            let line = format!("model: {name}, whose trial was stopped");
            let chosen = Chosen { config, name, line };
            return anyhow::Ok(Err(Fitted { chosen, trained }));
        }
        let (calibration, losses) = score(&trained.network, held)?;
        calibration.apply(&mut config.posterior);
        let line = String::new();
        let chosen = Chosen { config, name, line };
        Ok(Ok(Tried { losses, chosen }))
    };
    let mut tried: Vec<Tried> = Vec::new();
    for size in sizes {
        let (config, name) = sized(size);
        match attempt(config, name)? {
            Ok(one) => tried.push(one),
            Err(stopped) => return Ok(Choice::Stopped(stopped)),
        }
    }
    let line = |one: &Tried| format!("{}: {:.3}", one.chosen.name, -one.loss());
    let mut lines: Vec<String> = tried.iter().map(line).collect();
    let best = tried
        .into_iter()
        .min_by(|one, other| one.loss().total_cmp(&other.loss()));
    let mut best = best.expect("there are three sizes");
    if tries_noise(config, likelihood) {
        let mut config = best.chosen.config.clone();
        config.posterior.noise_per_input = true;
        let name = format!("{}, noise that depends on the row", best.chosen.name);
        match attempt(config, name)? {
            Ok(one) => {
                lines.push(line(&one));
                if one.is_surely_better_than(&best) {
                    best = one;
                }
            }
            Err(stopped) => return Ok(Choice::Stopped(stopped)),
        }
    }
    let mut best = best.chosen;
    best.line = format!(
        "model: {}, by the log likelihood of {} held-out rows ({})",
        best.name,
        held.len(),
        lines.join(", ")
    );
    Ok(Choice::Chosen(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_must_be_larger_than_chance() {
        let tried = |losses: Vec<f64>| Tried {
            losses,
            chosen: Chosen {
                config: RunConfig::default(),
                name: String::new(),
                line: String::new(),
            },
        };
        let other = tried((0..100).map(|i| f64::from(i % 10)).collect());
        let moved = |by: f64, noise: f64| {
            let losses = other.losses.iter().enumerate();
            let sign = |i: usize| if i.is_multiple_of(2) { noise } else { -noise };
            tried(losses.map(|(i, loss)| loss - by + sign(i)).collect())
        };
        // The standard error is a tenth of the noise.
        assert!(moved(0.17, 1.0).is_surely_better_than(&other));
        assert!(!moved(0.16, 1.0).is_surely_better_than(&other));
        assert!(moved(0.01, 0.0).is_surely_better_than(&other));
        assert!(!moved(-0.5, 0.0).is_surely_better_than(&other));
        assert!(!other.is_surely_better_than(&other));
    }
}
