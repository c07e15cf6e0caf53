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
    loss: f64,
    chosen: Chosen,
}

/// Tries everything and takes the best.
pub(super) fn choose<M: Network, T: TrainingSet<M>>(
    config: &RunConfig,
    data: &T,
    likelihood: Option<Likelihood>,
    svi: impl Fn(&RunConfig, usize) -> anyhow::Result<Svi<M>>,
    score: impl Fn(&Bayesian<M>, &[usize]) -> anyhow::Result<(Calibration, f64)>,
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
        let (calibration, loss) = score(&trained.network, held)?;
        calibration.apply(&mut config.posterior);
        let line = format!("{name}: {:.3}", -loss);
        let chosen = Chosen { config, name, line };
        Ok(Ok(Tried { loss, chosen }))
    };
    let mut tried: Vec<Tried> = Vec::new();
    for size in sizes {
        let (config, name) = sized(size);
        match attempt(config, name)? {
            Ok(one) => tried.push(one),
            Err(stopped) => return Ok(Choice::Stopped(stopped)),
        }
    }
    if tries_noise(config, likelihood) {
        let best = &tried[best_of(&tried)].chosen;
        let mut config = best.config.clone();
        config.posterior.noise_per_input = true;
        let name = format!("{} and noise that depends on the row", best.name);
        match attempt(config, name)? {
            Ok(one) => tried.push(one),
            Err(stopped) => return Ok(Choice::Stopped(stopped)),
        }
    }
    let lines: Vec<String> = tried.iter().map(|one| one.chosen.line.clone()).collect();
    let mut best = tried.swap_remove(best_of(&tried)).chosen;
    best.line = format!(
        "model: {}, by the log likelihood of {} held-out rows ({})",
        best.name,
        held.len(),
        lines.join(", ")
    );
    Ok(Choice::Chosen(best))
}

fn best_of(tried: &[Tried]) -> usize {
    let losses = tried.iter().map(|one| one.loss).enumerate();
    let best = losses.min_by(|one, other| one.1.total_cmp(&other.1));
    best.expect("something was tried").0
}
