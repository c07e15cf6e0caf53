//! The Lipschitz bound of a whole network, from a plain description of it.
//!
//! | built by | map | bound |
//! | --- | --- | --- |
//! | [`NetworkBound::layer`] | `A x + b` | operator norm of `A` |
//! | [`NetworkBound::activation`] | an activation of every number | its largest slope |
//! | [`NetworkBound::sequence`] | `f_n(...f_1(x))` | product (equation 16 of the paper) |
//! | [`NetworkBound::residual`] | `x + f(x)` | `1 + L` |
//! | [`NetworkBound::sum`] | `f_1(x) + f_2(x) + ...` | sum |
//! | [`NetworkBound::concatenation`] | `(f_1(x), f_2(x), ...)` | root of the sum of squares |
//! | [`NetworkBound::known`] | a map whose constant you know | that constant; no certificates |
//!
//! Reshaping and flattening change no norm and need no entry. Biases are translations: they change no bound, only the
//! rounding errors.

use std::sync::Arc;

use burn::tensor::DType;

use super::norms::OperatorNorm;
use super::rounding::{LinearRounding, Values};
use super::{GeometryError, LipschitzActivation, NormBounds, UpperBound};

/// A network with a Lipschitz bound.
///
/// ```
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use circulant::geometry::{LipschitzActivation, GeometryError, Lipschitz, NetworkBound};
/// use circulant::nn::{SpectralCirculant1d, SpectralCirculant1dConfig};
///
/// #[derive(Module, Debug)]
/// struct Head {
///     mix: SpectralCirculant1d,
///     output: Linear,
/// }
///
/// impl Lipschitz for Head {
///     fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
///         Ok(NetworkBound::sequence([
///             NetworkBound::residual(NetworkBound::sequence([
///                 NetworkBound::layer("mix", &self.mix)?,
///                 NetworkBound::activation(LipschitzActivation::Relu),
///             ])),
///             NetworkBound::layer("output", &self.output)?,
///         ]))
///     }
/// }
///
/// let device = circulant::cpu();
/// let head = Head { mix: SpectralCirculant1dConfig::new(64).init(&device), output: LinearConfig::new(64, 3).init(&device) };
/// let bound = head.network_bound()?;
/// let layers: Vec<_> = bound.layers().iter().map(|layer| layer.name().to_owned()).collect();
/// assert_eq!(layers, ["mix", "output"]);
/// let product = (1.0 + bound.layers()[0].norm().upper().get()) * bound.layers()[1].norm().upper().get();
/// assert!((bound.upper().get() - product).abs() < 1e-12 * product);
/// # Ok::<(), GeometryError>(())
/// ```
pub trait Lipschitz {
    /// The description of the network with its parameters as they are.
    fn network_bound(&self) -> Result<NetworkBound, GeometryError>;
}

/// One linear layer of a network.
#[derive(Debug, Clone)]
pub struct LayerBound {
    name: String,
    norm: NormBounds,
    bias: UpperBound,
    inputs: usize,
    outputs: usize,
    rounding: LinearRounding,
    /// Of the weights.
    dtype: DType,
    /// `[inputs, outputs]` of a dense layer.
    weights: Option<Arc<Vec<f64>>>,
}

impl LayerBound {
    pub(super) fn new(
        name: &str,
        norm: NormBounds,
        bias: UpperBound,
        [inputs, outputs]: [usize; 2],
        rounding: LinearRounding,
        dtype: DType,
    ) -> Self {
        Self {
            name: name.to_owned(),
            norm,
            bias,
            inputs,
            outputs,
            rounding,
            dtype,
            weights: None,
        }
    }

    pub(super) fn set_weights(&mut self, weights: Arc<Vec<f64>>) {
        self.weights = Some(weights);
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its operator norm.
    pub fn norm(&self) -> NormBounds {
        self.norm
    }

    pub(super) fn rounding(&self) -> &LinearRounding {
        &self.rounding
    }

    /// The 2-norm of its bias over all outputs.
    pub fn bias_norm(&self) -> UpperBound {
        self.bias
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }
}

/// A network as far as its geometry goes. See the table at the head of this page.
#[derive(Debug, Clone)]
pub struct NetworkBound {
    part: Part,
    upper: UpperBound,
}

#[derive(Debug, Clone)]
enum Part {
    Layer(Box<LayerBound>),
    LipschitzActivation(LipschitzActivation),
    Known(String),
    Sequence(Vec<NetworkBound>),
    Residual(Box<NetworkBound>),
    Sum(Vec<NetworkBound>),
    Concatenation(Vec<NetworkBound>),
}

/// The last layer when it is dense, and the bound of everything before it.
pub(super) struct ReadOut<'a> {
    /// `[inputs, outputs]`.
    pub(super) weights: &'a [f64],
    pub(super) outputs: usize,
    pub(super) body: UpperBound,
}

impl NetworkBound {
    /// A linear layer; the name is for reports and errors.
    pub fn layer(name: &str, layer: &impl OperatorNorm) -> Result<Self, GeometryError> {
        let bound = layer.layer_bound(name)?;
        Ok(Self {
            upper: bound.norm.upper(),
            part: Part::Layer(Box::new(bound)),
        })
    }

    /// An activation.
    pub fn activation(activation: LipschitzActivation) -> Self {
        Self {
            upper: activation.lipschitz(),
            part: Part::LipschitzActivation(activation),
        }
    }

    /// A map of your own with a known Lipschitz constant. Its rounding is not known, so that
    /// a network with it has a bound but no certificates.
    pub fn known(name: &str, lipschitz: UpperBound) -> Self {
        Self {
            upper: lipschitz,
            part: Part::Known(name.to_owned()),
        }
    }

    /// One part after the other. None at all is the identity.
    pub fn sequence(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: Vec<Self> = parts.into_iter().collect();
        Self {
            upper: parts.iter().map(Self::upper).product(),
            part: Part::Sequence(parts),
        }
    }

    /// `x + inner(x)`.
    pub fn residual(inner: Self) -> Self {
        Self {
            upper: UpperBound::ONE + inner.upper,
            part: Part::Residual(Box::new(inner)),
        }
    }

    /// Branches whose outputs are added. None at all is the constant zero.
    pub fn sum(branches: impl IntoIterator<Item = Self>) -> Self {
        let branches: Vec<Self> = branches.into_iter().collect();
        Self {
            upper: branches.iter().map(Self::upper).sum(),
            part: Part::Sum(branches),
        }
    }

    /// Branches whose outputs are joined into one vector.
    pub fn concatenation(branches: impl IntoIterator<Item = Self>) -> Self {
        let branches: Vec<Self> = branches.into_iter().collect();
        let squares: UpperBound = branches.iter().map(|branch| branch.upper.square()).sum();
        Self {
            upper: squares.sqrt(),
            part: Part::Concatenation(branches),
        }
    }

    /// The Lipschitz constant of the network in the 2-norm is at most this.
    pub fn upper(&self) -> UpperBound {
        self.upper
    }

    /// All linear layers, in the order of the description.
    pub fn layers(&self) -> Vec<&LayerBound> {
        match &self.part {
            Part::Layer(layer) => vec![layer],
            Part::LipschitzActivation(_) | Part::Known(_) => Vec::new(),
            Part::Residual(inner) => inner.layers(),
            Part::Sequence(parts) | Part::Sum(parts) | Part::Concatenation(parts) => {
                parts.iter().flat_map(Self::layers).collect()
            }
        }
    }

    /// The dense last layer of a sequence, if there is one.
    pub(super) fn read_out(&self) -> Option<ReadOut<'_>> {
        match &self.part {
            Part::Layer(layer) => layer.weights.as_ref().map(|weights| ReadOut {
                weights,
                outputs: layer.outputs,
                body: UpperBound::ONE,
            }),
            Part::Sequence(parts) => {
                let (last, before) = parts.split_last()?;
                let inner = last.read_out()?;
                let before: UpperBound = before.iter().map(Self::upper).product();
                Some(ReadOut {
                    body: [before, inner.body].into_iter().product(),
                    ..inner
                })
            }
            _ => None,
        }
    }

    /// What rounding does to the inputs of the dense last layer of a sequence, and what the layer adds to its outputs.
    pub(super) fn read_out_rounding(
        &self,
        start: Values,
    ) -> Result<Option<[UpperBound; 2]>, GeometryError> {
        match &self.part {
            Part::Layer(layer) if layer.weights.is_some() => {
                let exact = Values {
                    norm: start.norm + start.error,
                    error: 0.0,
                    size: start.size,
                };
                let own = self.values(exact)?.error;
                Ok(Some([start.error, own].map(UpperBound::new)))
            }
            Part::Sequence(parts) => match parts.split_last() {
                None => Ok(None),
                Some((last, before)) => {
                    let through = |values, part: &Self| part.values(values);
                    let start = before.iter().try_fold(start, through)?;
                    last.read_out_rounding(start)
                }
            },
            _ => Ok(None),
        }
    }

    /// The outputs of the last layer of a sequence, if it is linear.
    pub(super) fn outputs(&self) -> Option<usize> {
        match &self.part {
            Part::Layer(layer) => Some(layer.outputs),
            Part::Sequence(parts) => parts.last()?.outputs(),
            _ => None,
        }
    }

    /// The same bounds without the weights of dense layers, which take most of the memory.
    pub(super) fn without_weights(mut self) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(Self::without_weights).collect();
        self.part = match self.part {
            Part::Layer(mut layer) => {
                layer.weights = None;
                Part::Layer(layer)
            }
            Part::Residual(inner) => Part::Residual(Box::new(inner.without_weights())),
            Part::Sequence(parts) => Part::Sequence(all(parts)),
            Part::Sum(parts) => Part::Sum(all(parts)),
            Part::Concatenation(parts) => Part::Concatenation(all(parts)),
            other => other,
        };
        self
    }

    /// Whether the rounding error of every part is proven: no activation's is only sampled
    /// ([`LipschitzActivation::is_proven`]), and there is no part of unknown rounding.
    pub fn is_proven(&self) -> bool {
        match &self.part {
            Part::Layer(_) => true,
            Part::LipschitzActivation(activation) => activation.is_proven(),
            Part::Known(_) => false,
            Part::Residual(inner) => inner.is_proven(),
            Part::Sequence(parts) | Part::Sum(parts) | Part::Concatenation(parts) => {
                parts.iter().all(Self::is_proven)
            }
        }
    }

    /// The bounds of values and errors at the output.
    pub(super) fn values(&self, start: Values) -> Result<Values, GeometryError> {
        let all = |parts: &[Self]| -> Result<Vec<Values>, GeometryError> {
            parts.iter().map(|part| part.values(start)).collect()
        };
        Ok(match &self.part {
            // A layer that is applied to many rows at once has other errors than the one that was described.
            Part::Layer(layer) if start.size.is_some_and(|size| size != layer.inputs) => {
                return Err(GeometryError::LayerInputs {
                    layer: layer.name.clone(),
                    expected: layer.inputs,
                    got: start.size.unwrap_or(0),
                });
            }
            Part::Layer(layer) if layer.dtype != DType::F32 => {
                return Err(GeometryError::NumberType {
                    what: layer.name.clone(),
                    got: layer.dtype,
                });
            }
            Part::Layer(layer) => start.linear(
                layer.norm.upper(),
                layer.bias,
                &layer.rounding,
                layer.outputs,
            ),
            Part::LipschitzActivation(activation) => start.activation(*activation),
            Part::Known(name) => {
                let layer = name.clone();
                return Err(GeometryError::NoRounding { layer });
            }
            Part::Sequence(parts) => parts
                .iter()
                .try_fold(start, |values, part| part.values(values))?,
            Part::Residual(inner) => Values::sum(&[start, inner.values(start)?]),
            Part::Sum(branches) => Values::sum(&all(branches)?),
            Part::Concatenation(branches) => Values::concatenation(&all(branches)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::nn::Linear;
    use burn::tensor::Tensor;

    use super::*;

    fn known(value: f64) -> NetworkBound {
        NetworkBound::known("part", UpperBound::new(value))
    }

    #[test]
    fn bounds_follow_the_structure() {
        let close = |bound: NetworkBound, expected: f64| {
            let upper = bound.upper().get();
            assert!(
                upper >= expected && upper < expected * (1.0 + 1e-14),
                "{upper} {expected}"
            );
        };
        close(NetworkBound::sequence([known(2.0), known(3.0)]), 6.0);
        close(NetworkBound::sequence([]), 1.0);
        close(NetworkBound::residual(known(2.0)), 3.0);
        close(NetworkBound::sum([known(2.0), known(3.0)]), 5.0);
        close(NetworkBound::concatenation([known(3.0), known(4.0)]), 5.0);
        close(NetworkBound::activation(LipschitzActivation::Sigmoid), 0.25);
    }

    /// The two parts of the error at a read-out: that of its inputs, which the layer passes on, and its own.
    #[test]
    fn the_error_of_the_features_and_that_of_the_read_out_make_all_of_it() {
        let device = crate::cpu();
        let layer = |inputs, outputs| {
            let weight = Tensor::<2>::ones([inputs, outputs], &device) * 0.3;
            let bias = Some(Param::from_tensor(Tensor::ones([outputs], &device)));
            let weight = Param::from_tensor(weight);
            NetworkBound::layer("layer", &Linear { weight, bias }).expect("a norm")
        };
        let last = layer(5, 3);
        let norm = last.upper();
        let network = NetworkBound::sequence([
            NetworkBound::sequence([layer(4, 5)]),
            NetworkBound::activation(LipschitzActivation::Relu),
            NetworkBound::sequence([last]),
        ]);
        let start = Values::of_inputs(UpperBound::new(7.0), 4);
        let [features, own] = network
            .read_out_rounding(start)
            .unwrap()
            .expect("it is dense");
        let all = network.rounding_error(UpperBound::new(7.0)).unwrap().get();
        let sum = norm.get() * features.get() + own.get();
        assert!(features.get() > 0.0 && own.get() > 0.0);
        assert!((sum / all - 1.0).abs() < 1e-6, "{sum} {all}");
        let start = Values::of_inputs(UpperBound::new(7.0), 4);
        let alone = NetworkBound::sequence([NetworkBound::activation(LipschitzActivation::Relu)]);
        assert!(alone.read_out_rounding(start).unwrap().is_none());
    }

    #[test]
    fn a_part_of_unknown_rounding_is_named() {
        let network = NetworkBound::sequence([NetworkBound::known("my part", UpperBound::ONE)]);
        let error = network.rounding_error(UpperBound::ONE).unwrap_err();
        assert!(error.to_string().contains("my part"), "{error}");
    }
}
