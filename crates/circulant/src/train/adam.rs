//! Adam and Adan in one pass over memory.
//!
//! Burn's Adam is a dozen tensor operations per parameter; on the CPU each of them makes a new tensor. [`FusedAdam`]
//! computes the same values in one fused operation, and its state is that of Burn's Adam, so that records of one are read
//! by the other. On other devices it is Burn's own. [`FusedAdan`] is the same for Adan.

use burn::backend::Dispatch;
use burn::optim::{
    Adam, AdamConfig, AdamState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer,
};
use burn::tensor::{Device, Tensor};
use circulant_kernels::AdamSettings;

use crate::backend::fused::is_native;
use crate::backend::optimizers::OptimizerOps;

/// Adam without weight decay and AMSGrad.
///
/// ```
/// use circulant::train::FusedAdam;
///
/// // Takes the place of `AdamConfig::new().init()`.
/// let optimizer = FusedAdam::default().init();
/// # let _ = optimizer;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusedAdam {
    /// The decay of the first moment.
    pub beta_1: f32,
    /// The decay of the second moment.
    pub beta_2: f32,
    /// Keeps the divisor away from zero.
    pub epsilon: f32,
}

impl Default for FusedAdam {
    /// The usual values; Burn's default epsilon is 1e-5.
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
        }
    }
}

impl FusedAdam {
    /// The optimiser of a whole module.
    pub fn init(self) -> ModuleOptimizer {
        ModuleOptimizer::from(self)
    }

    /// The settings of step `time`, from 1.
    pub(crate) fn settings(&self, learning_rate: f64, time: usize) -> AdamSettings {
        AdamSettings {
            learning_rate,
            beta_1: self.beta_1,
            beta_2: self.beta_2,
            epsilon: self.epsilon,
            time,
        }
    }

    fn burn(&self) -> Adam {
        AdamConfig::new()
            .with_beta_1(self.beta_1)
            .with_beta_2(self.beta_2)
            .with_epsilon(self.epsilon)
            .build()
    }
}

impl Optimizer for FusedAdam {
    type State<const D: usize> = AdamState<D>;

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
        let (time, moment_1, moment_2) = match state {
            Some(state) => {
                let momentum = state.momentum;
                (momentum.time + 1, momentum.moment_1, momentum.moment_2)
            }
            None => (1, grad.zeros_like(), grad.zeros_like()),
        };
        let settings = self.settings(learning_rate, time);
        let (tensor, moment_1, moment_2) = Dispatch::adam(
            tensor.into_dispatch(),
            grad.into_dispatch(),
            moment_1.into_dispatch(),
            moment_2.into_dispatch(),
            settings,
        );
        let [tensor, moment_1, moment_2] = [tensor, moment_1, moment_2].map(Tensor::from_dispatch);
        let momentum = AdaptiveMomentumState::new(time, moment_1, moment_2);
        (tensor, Some(AdamState::new(momentum)))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        Adam::to_device(state, device)
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
        // Small, and large enough for several threads and pooled memory.
        for count in [3, 70_000] {
            let tensor = |seed: usize| {
                Tensor::<1>::from_data(TensorData::new(numbers(seed, count), [count]), &device)
            };
            let fused = FusedAdam::default();
            let (mut ours, mut theirs) = (tensor(0), tensor(0));
            let (mut our_state, mut their_state) = (None, None);
            for step in 1..=5 {
                let grad = tensor(step);
                (ours, our_state) = fused.step(1e-2, ours, grad.clone(), our_state);
                (theirs, their_state) = fused.burn().step(1e-2, theirs, grad, their_state);
            }
            let gap: f32 = (ours - theirs).abs().max().into_scalar();
            // Five steps of 1e-2, each rounded once or twice.
            assert!(gap < 1e-7, "{count}: {gap}");
        }
    }
}
