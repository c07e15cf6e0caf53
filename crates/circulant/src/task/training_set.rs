//! What training needs to know about data: how to get a batch, and what a network pays for it.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::{Classifier, Regressor};
use crate::data::{
    Examples, ExamplesError, LabelledData, RegressionData, RegressionExamples, StoredData,
};
use crate::functional::weighted_cross_entropy;

/// Data that networks `M` can learn from. Which examples belong to a step follows from its number and the seed
/// ([`BatchOrder`](crate::data::BatchOrder)), so training can resume at any step.
pub trait TrainingSet<M>: Sync {
    /// Some of the examples.
    type Batch: Clone + Send;

    /// The number of examples, `N`.
    fn examples(&self) -> usize;

    /// A number that changes when the data do; it ties a checkpoint to them.
    fn fingerprint(&self) -> u64;

    /// Whether such a network reads the inputs of a batch where they lie.
    fn reads_in_place(_model: &M) -> bool {
        false
    }

    /// The examples at `indices`, on a device without autodiff: left where they lie if `in_place`, else copied. It runs while
    /// the optimiser works.
    fn batch(&self, indices: &[usize], in_place: bool) -> Result<Self::Batch, ExamplesError>;

    /// The same batch for a network on a device with autodiff.
    fn into_autodiff(batch: Self::Batch) -> Self::Batch;

    /// `-log p(y|x)` of the batch, summed: `[1]`.
    fn negative_log_likelihood(&self, model: &M, batch: Self::Batch) -> Tensor<1>;
}

/// Examples of a batch with what each counts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WeightedBatch<E> {
    /// The examples.
    pub examples: E,
    /// One per example; each counts once when absent.
    pub weights: Option<Arc<[f32]>>,
}

impl<M: Classifier<D>, const D: usize> TrainingSet<M> for LabelledData<D> {
    type Batch = WeightedBatch<Examples<D>>;

    fn examples(&self) -> usize {
        self.examples()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn reads_in_place(model: &M) -> bool {
        model.reads_in_place()
    }

    fn batch(&self, indices: &[usize], in_place: bool) -> Result<Self::Batch, ExamplesError> {
        let examples = if in_place {
            self.select(indices)
        } else {
            self.batch(indices)
        };
        let weights = at(self.weights(), indices);
        Ok(WeightedBatch { examples, weights })
    }

    fn into_autodiff(batch: Self::Batch) -> Self::Batch {
        WeightedBatch {
            examples: batch.examples.into_autodiff(),
            weights: batch.weights,
        }
    }

    fn negative_log_likelihood(&self, model: &M, batch: Self::Batch) -> Tensor<1> {
        let WeightedBatch { examples, weights } = batch;
        match weights {
            None => model.cross_entropy(examples),
            Some(weights) => {
                let logits = model.logits(examples.batch());
                weighted_cross_entropy(logits, examples.labels, &weights)
            }
        }
    }
}

impl<M: Regressor<D>, const D: usize> TrainingSet<M> for RegressionData<D> {
    type Batch = WeightedBatch<RegressionExamples<D>>;

    fn examples(&self) -> usize {
        self.examples()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn batch(&self, indices: &[usize], _: bool) -> Result<Self::Batch, ExamplesError> {
        Ok(WeightedBatch {
            examples: self.batch(indices),
            weights: at(self.weights(), indices),
        })
    }

    fn into_autodiff(batch: Self::Batch) -> Self::Batch {
        WeightedBatch {
            examples: batch.examples.into_autodiff(),
            weights: batch.weights,
        }
    }

    fn negative_log_likelihood(&self, model: &M, batch: Self::Batch) -> Tensor<1> {
        let WeightedBatch { examples, weights } = batch;
        match weights {
            None => model.negative_log_likelihood(examples),
            Some(weights) => model
                .distribution(examples.inputs.batch(None))
                .weighted_negative_log_likelihood(&examples.targets, &weights),
        }
    }
}

fn at(weights: Option<&[f32]>, indices: &[usize]) -> Option<Arc<[f32]>> {
    weights.map(|weights| indices.iter().map(|&index| weights[index]).collect())
}

impl<M: Classifier<D>, const D: usize> TrainingSet<M> for StoredData<D> {
    type Batch = Examples<D>;

    fn examples(&self) -> usize {
        self.examples()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn batch(&self, indices: &[usize], _: bool) -> Result<Examples<D>, ExamplesError> {
        self.batch(indices)
    }

    fn into_autodiff(batch: Examples<D>) -> Examples<D> {
        batch.into_autodiff()
    }

    fn negative_log_likelihood(&self, model: &M, batch: Examples<D>) -> Tensor<1> {
        model.cross_entropy(batch)
    }
}
