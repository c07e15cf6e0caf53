//! Classification: a network with one logit per class.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;

use crate::data::Examples;
use crate::functional::cross_entropy;
use crate::noise::NoiseKey;

/// From a batch of inputs `[batch, ...]` to the logits of every member, `[members, batch, classes]`.
pub type Ensemble<const D: usize> = Box<dyn Fn(Tensor<D>) -> Tensor<3> + Send>;

/// A network with one logit per class.
pub trait Classifier<const D: usize>: Module + ModuleDisplay + 'static {
    /// The logits of a batch.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, ...]`
    /// - output: `[batch, classes]`
    fn logits(&self, inputs: Tensor<D>) -> Tensor<2>;

    /// The logits of a batch in training; a network with dropout has its own version. The masks are functions of the key, whose
    /// `seed` is that of the run and whose `stream` is the step.
    fn training_logits(&self, inputs: Tensor<D>, dropout: NoiseKey) -> Tensor<2> {
        let _ = dropout;
        self.logits(inputs)
    }

    /// The cross-entropy of the logits with the classes, summed over the batch: `[1]`. A model that makes it and its
    /// gradients in one pass has its own version.
    fn cross_entropy(&self, examples: Examples<D>) -> Tensor<1> {
        cross_entropy(self.logits(examples.batch()), examples.labels)
    }

    /// Whether [`Self::cross_entropy`] reads the inputs where they lie. If not, training copies the next batch out of the data
    /// while the optimiser works.
    fn reads_in_place(&self) -> bool {
        false
    }

    /// Several networks of the same structure as one map. A model whose layers can share work between them (a circulant
    /// layer transforms its input once for all) has its own version.
    ///
    /// # Panics
    ///
    /// Panics if there are no members.
    fn ensemble(members: Vec<Self>) -> Ensemble<D> {
        assert!(!members.is_empty(), "an ensemble has at least one member");
        Box::new(move |inputs: Tensor<D>| {
            let logits = members.iter().map(|member| member.logits(inputs.clone()));
            Tensor::stack(logits.collect(), 0)
        })
    }
}
