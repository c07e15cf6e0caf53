//! What the four layers have in common, and what follows from it: a layer and the linear read-out
//! behind it in one pass, `z = act(layer(x)) W + c`.
//!
//! A hidden circulant layer is far larger than the logits that are read out of it. On the CPU the
//! two run as one operation that never writes the hidden rows to memory: a training step needs
//! them once more, in the order in which they were made, and a posterior sample not at all.

use burn::nn::Linear;
use burn::tensor::Tensor;
use circulant_kernels::Activation;

use crate::data::Examples;
use crate::functional::{
    self, circulant_cross_entropy, circulant_readout, circulant_readout_filters, cross_entropy,
};
use crate::operator::Operator;

/// A layer whose map is one circulant operator; `D` is the rank of its input.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::Tensor;
/// use circulant::operator::Activation;
/// use circulant::nn::{CirculantLayer, SpectralCirculant1dConfig};
///
/// let device = circulant::cpu();
/// let layer = SpectralCirculant1dConfig::new(784).init(&device);
/// let output = LinearConfig::new(784, 10).init(&device);
/// let x = Tensor::<2>::ones([16, 784], &device);
/// let z = layer.forward_readout(x.clone(), &output, Activation::Tanh);
/// let two_steps = output.forward(layer.forward_tanh(x));
/// z.into_data().assert_approx_eq::<f32>(&two_steps.into_data(), Default::default());
/// ```
pub trait CirculantLayer<const D: usize>: Sized {
    /// The operator, unless the input is padded or the output cropped.
    fn exact_operator(&self) -> Option<&Operator>;

    /// The coordinates of the spectrum, `[d_eff]`.
    fn spectrum_coordinates(&self) -> Tensor<1>;

    /// One number per output channel or per output element.
    fn bias(&self) -> Option<Tensor<1>>;

    /// `act(layer(input))` as rows.
    ///
    /// # Shapes
    ///
    /// - input: as the layer's `forward` takes it
    /// - output: `[batch, features]`
    fn features(&self, input: Tensor<D>, activation: Activation) -> Tensor<2>;

    /// [`Self::features`] of several layers that differ in their numbers only, `[members, batch, features]`.
    fn features_of_members(
        members: &[&Self],
        activation: Activation,
    ) -> Box<dyn Fn(Tensor<D>) -> Tensor<3> + Send>;

    /// `act(layer(input)) W + c` with the parameters of `output`.
    ///
    /// # Shapes
    ///
    /// - input: as the layer's `forward` takes it
    /// - output: `[batch, classes]`
    ///
    /// # Panics
    ///
    /// Panics if the input does not fit the layer, or `output` its features.
    fn forward_readout(
        &self,
        input: Tensor<D>,
        output: &Linear,
        activation: Activation,
    ) -> Tensor<2> {
        match (self.exact_operator(), self.bias(), &output.bias) {
            (Some(operator), Some(bias), Some(constant)) => circulant_readout(
                input,
                self.spectrum_coordinates(),
                bias,
                output.weight.val(),
                constant.val(),
                &operator.with_activation(activation),
            ),
            _ => {
                let features = self.features(input, activation);
                functional::linear(output, features, Activation::Identity)
            }
        }
    }

    /// The cross-entropy of [`Self::forward_readout`], summed over the batch, `[1]`; see [`circulant_cross_entropy`].
    ///
    /// # Panics
    ///
    /// Panics if the inputs do not fit the layer, or `output` its features, or if a row or a class does not exist.
    fn readout_cross_entropy(
        &self,
        examples: Examples<D>,
        output: &Linear,
        activation: Activation,
    ) -> Tensor<1> {
        match (self.exact_operator(), self.bias(), &output.bias) {
            (Some(operator), Some(bias), Some(constant)) => circulant_cross_entropy(
                examples,
                self.spectrum_coordinates(),
                bias,
                output.weight.val(),
                constant.val(),
                &operator.with_activation(activation),
            ),
            _ => {
                let logits = self.forward_readout(examples.batch(), output, activation);
                cross_entropy(logits, examples.labels)
            }
        }
    }

    /// [`Self::forward_readout`] of several layers that differ in their values only (posterior samples), each with its
    /// read-out, as one map that transforms its input once: `[members, batch, classes]`.
    ///
    /// # Panics
    ///
    /// Panics unless there is one read-out per layer and one layer at least.
    fn readout_of_members(
        members: &[&Self],
        outputs: &[&Linear],
        activation: Activation,
    ) -> Box<dyn Fn(Tensor<D>) -> Tensor<3> + Send> {
        assert!(
            members.len() == outputs.len() && !members.is_empty(),
            "expected a read-out for each of {} layers, got {}",
            members.len(),
            outputs.len()
        );
        let stack = |tensors: Option<Vec<Tensor<1>>>| tensors.map(|t| Tensor::stack::<2>(t, 0));
        let weights = outputs.iter().map(|output| output.weight.val()).collect();
        let weights = Tensor::stack::<3>(weights, 0);
        let constants = outputs
            .iter()
            .map(|output| output.bias.as_ref().map(|bias| bias.val()));
        let constants = stack(constants.collect());
        let biases = stack(members.iter().map(|member| member.bias()).collect());
        if let (Some(operator), Some(biases), Some(constants)) =
            (members[0].exact_operator(), biases, constants.clone())
        {
            let operator = operator.with_activation(activation);
            let coordinates = members.iter().map(|member| member.spectrum_coordinates());
            let coordinates = Tensor::stack::<2>(coordinates.collect(), 0);
            return Box::new(move |input| {
                circulant_readout_filters(
                    input,
                    coordinates.clone(),
                    biases.clone(),
                    weights.clone(),
                    constants.clone(),
                    &operator,
                )
            });
        }
        let features = Self::features_of_members(members, activation);
        Box::new(move |input| {
            let logits = features(input).matmul(weights.clone());
            match &constants {
                None => logits,
                Some(constants) => logits + constants.clone().unsqueeze_dim(1),
            }
        })
    }
}
