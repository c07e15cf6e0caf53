//! The order in which training sees the examples.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::ExamplesError;
use crate::noise::{Noise, Purpose, uniform_u64};

/// The order of the examples: every epoch a new permutation, cut into whole batches; what is left over at its end is
/// skipped in this epoch. The batch of a step depends on the seed and the step only.
#[derive(Debug, Clone)]
pub struct BatchOrder {
    seed: u64,
    examples: usize,
    batch: usize,
    epoch: Option<u64>,
    permutation: Vec<usize>,
}

impl BatchOrder {
    /// Batches of `batch` out of `examples`; a larger batch is the whole set.
    pub fn new(seed: u64, examples: usize, batch: usize) -> Result<Self, ExamplesError> {
        for (what, size) in [("the data set", examples), ("the batch", batch)] {
            if size == 0 {
                return Err(ExamplesError::Empty { what });
            }
        }
        Ok(Self {
            seed,
            examples,
            batch: batch.min(examples),
            epoch: None,
            permutation: Vec::new(),
        })
    }

    /// The size of a batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The indices of the batch of a step.
    pub fn at(&mut self, step: u64) -> &[usize] {
        let per_epoch = (self.examples / self.batch) as u64;
        let epoch = step / per_epoch;
        if self.epoch != Some(epoch) {
            self.permutation = (0..self.examples).collect();
            let key = Noise::new(self.seed, Purpose::Order, epoch, 0).next_key();
            let mut generator = StdRng::seed_from_u64(uniform_u64(key, 0));
            self.permutation.shuffle(&mut generator);
            self.epoch = Some(epoch);
        }
        let start = (step % per_epoch) as usize * self.batch;
        &self.permutation[start..start + self.batch]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_every_example_at_most_once() {
        let mut order = BatchOrder::new(3, 103, 10).expect("valid");
        let mut seen: Vec<usize> = (0..10).flat_map(|step| order.at(step).to_vec()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100);
        let first = order.at(0).to_vec();
        assert_ne!(first, order.at(10).to_vec(), "another epoch, another order");
        assert_eq!(first, order.at(0).to_vec(), "steps may come in any order");
        let mut other = BatchOrder::new(4, 103, 10).expect("valid");
        assert_ne!(first, other.at(0).to_vec());
        assert_eq!(BatchOrder::new(0, 5, 10).expect("valid").at(7).len(), 5);
    }
}
