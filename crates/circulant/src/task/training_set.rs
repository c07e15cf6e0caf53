//! What training needs to know about data: how to get a batch, and what a network pays for it.

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

impl<M: Classifier<D>, const D: usize> TrainingSet<M> for LabelledData<D> {
    type Batch = Examples<D>;

    fn examples(&self) -> usize {
        self.examples()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn reads_in_place(model: &M) -> bool {
        model.reads_in_place()
    }

    fn batch(&self, indices: &[usize], in_place: bool) -> Result<Examples<D>, ExamplesError> {
        Ok(if in_place {
            self.select(indices)
        } else {
            self.batch(indices)
        })
    }

    fn into_autodiff(batch: Examples<D>) -> Examples<D> {
        batch.into_autodiff()
    }

    fn negative_log_likelihood(&self, model: &M, batch: Examples<D>) -> Tensor<1> {
        match self.class_weights() {
            None => model.cross_entropy(batch),
            Some(weights) => {
                weighted_cross_entropy(model.logits(batch.batch()), batch.labels, weights)
            }
        }
    }
}

impl<M: Regressor<D>, const D: usize> TrainingSet<M> for RegressionData<D> {
    type Batch = RegressionExamples<D>;

    fn examples(&self) -> usize {
        self.examples()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn batch(&self, indices: &[usize], _: bool) -> Result<RegressionExamples<D>, ExamplesError> {
        Ok(self.batch(indices))
    }

    fn into_autodiff(batch: RegressionExamples<D>) -> RegressionExamples<D> {
        batch.into_autodiff()
    }

    fn negative_log_likelihood(&self, model: &M, batch: RegressionExamples<D>) -> Tensor<1> {
        model.negative_log_likelihood(batch)
    }
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
