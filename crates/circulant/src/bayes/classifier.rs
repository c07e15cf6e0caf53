//! Networks that give logits, alone or as an ensemble of posterior samples.

use burn::tensor::Tensor;

use super::Network;

/// From a batch of inputs `[batch, ...]` to the logits of every member, `[members, batch, classes]`.
pub type Ensemble<const D: usize> = Box<dyn Fn(Tensor<D>) -> Tensor<3>>;

/// A network with one logit per class.
pub trait Classifier<const D: usize>: Network + 'static {
    /// The logits of a batch.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, ...]`
    /// - output: `[batch, classes]`
    fn logits(&self, inputs: Tensor<D>) -> Tensor<2>;

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
