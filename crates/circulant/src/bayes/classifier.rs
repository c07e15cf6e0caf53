//! Networks that give logits, alone or as an ensemble of posterior samples.

use burn::tensor::Tensor;

use super::Network;

/// A network with one logit per class.
pub trait Classifier<const D: usize>: Network {
    /// The logits of a batch.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, ...]`
    /// - output: `[batch, classes]`
    fn logits(&self, inputs: Tensor<D>) -> Tensor<2>;

    /// The logits of the same batch by several networks of the same structure. A model whose first layer can share work
    /// between them (a circulant layer transforms its input once) has its own version.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, ...]`
    /// - output: `[members, batch, classes]`
    fn logits_of_members(members: &[Self], inputs: Tensor<D>) -> Tensor<3> {
        let logits = members.iter().map(|member| member.logits(inputs.clone()));
        Tensor::stack(logits.collect(), 0)
    }
}
