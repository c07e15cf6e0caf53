//! Adan in one pass, with the values and the state of Burn's.

use burn::backend::Dispatch;
use burn::optim::{
    Adan, AdanConfig, AdanState, AdaptiveNesterovMomentumState, LearningRate, ModuleOptimizer,
    Optimizer,
};
use burn::tensor::{Device, Tensor};
use circulant_kernels::AdanSettings;

use crate::backend::fused::is_native;
use crate::backend::optimizers::OptimizerOps;

/// Adan with decoupled weight decay.
///
/// ```
/// use circulant::train::FusedAdan;
///
/// // Takes the place of `AdanConfig::new().with_weight_decay(1e-4).with_no_prox(true).init()`.
/// let optimizer = FusedAdan {
///     weight_decay: 1e-4,
///     ..FusedAdan::default()
/// }
/// .init();
/// # let _ = optimizer;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusedAdan {
    /// The decay of the average gradient.
    pub beta_1: f32,
    /// The decay of the average difference of gradients.
    pub beta_2: f32,
    /// The decay of the average square.
    pub beta_3: f32,
    /// Keeps the divisor away from zero.
    pub epsilon: f32,
    /// The weight decay, times the learning rate.
    pub weight_decay: f32,
    /// Decays before the step (`no_prox`); otherwise the parameter is divided after it.
    pub decoupled: bool,
}

impl Default for FusedAdan {
    /// Burn's values, but for the form of the weight decay.
    fn default() -> Self {
        Self {
            beta_1: 0.98,
            beta_2: 0.92,
            beta_3: 0.99,
            epsilon: 1e-8,
            weight_decay: 0.0,
            decoupled: true,
        }
    }
}

impl FusedAdan {
    /// The optimiser of a whole module.
    pub fn init(self) -> ModuleOptimizer {
        ModuleOptimizer::from(self)
    }

    fn burn(&self) -> Adan {
        AdanConfig::new()
            .with_beta_1(self.beta_1)
            .with_beta_2(self.beta_2)
            .with_beta_3(self.beta_3)
            .with_epsilon(self.epsilon)
            .with_weight_decay(self.weight_decay)
            .with_no_prox(self.decoupled)
            .build()
    }
}

impl Optimizer for FusedAdan {
    type State<const D: usize> = AdanState<D>;

    fn step<const D: usize>(
        &self,
        learning_rate: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        if !is_native(&tensor.device()) {
            return self.burn().step(learning_rate, tensor, grad, state);
        }
        let momentum = match state {
            Some(state) => state.momentum,
            None => {
                let zeros = grad.zeros_like();
                AdaptiveNesterovMomentumState::new(
                    0,
                    zeros.clone(),
                    zeros.clone(),
                    zeros.clone(),
                    zeros,
                )
            }
        };
        let time = momentum.time + 1;
        let settings = AdanSettings {
            learning_rate,
            beta_1: self.beta_1,
            beta_2: self.beta_2,
            beta_3: self.beta_3,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled,
            time,
        };
        let (tensor, average, difference, square, negative) = Dispatch::adan(
            tensor.into_dispatch(),
            grad.into_dispatch(),
            momentum.exp_avg.into_dispatch(),
            momentum.exp_avg_diff.into_dispatch(),
            momentum.exp_avg_sq.into_dispatch(),
            momentum.neg_pre_grad.into_dispatch(),
            settings,
        );
        let [tensor, average, difference, square, negative] =
            [tensor, average, difference, square, negative].map(Tensor::from_dispatch);
        let momentum =
            AdaptiveNesterovMomentumState::new(time, average, square, difference, negative);
        (tensor, Some(AdanState::new(momentum)))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        Adan::to_device(state, device)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;

    use super::*;

    #[test]
    fn computes_what_burn_computes() {
        let device = crate::cpu();
        let numbers = |seed: usize, count: usize| -> Vec<f32> {
            let number = |i: usize| ((i * 7919 + seed * 31) % 1009) as f32 / 500.0 - 1.0;
            (0..count).map(number).collect()
        };
        // Small, and large enough for several threads and pooled memory; both forms of the decay.
        for (count, decoupled) in [(1, true), (3, false), (70_001, true), (70_001, false)] {
            let tensor = |seed: usize| {
                Tensor::<1>::from_data(TensorData::new(numbers(seed, count), [count]), &device)
            };
            let fused = FusedAdan {
                weight_decay: 0.1,
                decoupled,
                ..FusedAdan::default()
            };
            let (mut ours, mut theirs) = (tensor(0), tensor(0));
            let (mut our_state, mut their_state) = (None, None);
            for step in 1..=5 {
                let grad = tensor(step);
                (ours, our_state) = fused.step(1e-2, ours, grad.clone(), our_state);
                (theirs, their_state) = fused.burn().step(1e-2, theirs, grad, their_state);
            }
            let gap: f32 = (ours - theirs).abs().max().into_scalar();
            // Five steps of up to 1e-1, each rounded a few times.
            assert!(gap < 2e-7, "{count}: {gap}");
            let states = [our_state, their_state].map(|state| state.expect("made").momentum);
            let [ours, theirs] = states.map(|m| m.exp_avg_sq + m.exp_avg_diff + m.neg_pre_grad);
            let gap: f32 = (ours - theirs).abs().max().into_scalar();
            assert!(gap < 1e-6, "the state of {count}: {gap}");
        }
    }
}
