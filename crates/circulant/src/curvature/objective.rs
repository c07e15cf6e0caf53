//! What is differentiated: a loss of a module, or the mean softmax cross-entropy of its logits.

use std::fmt;
use std::ops::Range;

use burn::module::Module;
use burn::tensor::{DType, Tensor, TensorData};

use super::CurvatureError;
use super::parameters::Parameters;
use crate::nn::to_host;
use crate::task::Classifier;

type LossFunction<'a, M> = Box<dyn Fn(&M) -> Tensor<1> + 'a>;
type LogitsFunction<'a, M> = Box<dyn Fn(&M, Range<usize>) -> Tensor<2> + 'a>;

/// A function of the parameters of `M` and of a fixed batch.
pub struct Objective<'a, M>(Kind<'a, M>);

enum Kind<'a, M> {
    Loss(LossFunction<'a, M>),
    CrossEntropy {
        labels: Vec<usize>,
        /// How many examples go through the module at once.
        chunk: usize,
        logits: LogitsFunction<'a, M>,
    },
}

impl<M> fmt::Debug for Objective<'_, M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Loss(_) => write!(formatter, "Objective::loss(..)"),
            Kind::CrossEntropy { labels, chunk, .. } => write!(
                formatter,
                "Objective::cross_entropy({} examples, {chunk} at once)",
                labels.len()
            ),
        }
    }
}

/// Some examples on their way through the module.
pub(super) struct TrackedLogits {
    pub(super) tensor: Tensor<2>,
    /// Row by row.
    pub(super) values: Vec<f64>,
    pub(super) classes: usize,
}

impl<'a, M: Module> Objective<'a, M> {
    /// Any scalar loss, `[1]`. It has a Hessian, but no Gauss-Newton matrix.
    pub fn loss(loss: impl Fn(&M) -> Tensor<1> + 'a) -> Self {
        Self(Kind::Loss(Box::new(loss)))
    }

    /// The mean over the examples of `-log softmax(logits)[label]`. The function gives the logits `[examples, classes]`
    /// of a range of the examples.
    pub fn cross_entropy(
        labels: impl Into<Vec<usize>>,
        logits: impl Fn(&M, Range<usize>) -> Tensor<2> + 'a,
    ) -> Self {
        Self(Kind::CrossEntropy {
            labels: labels.into(),
            chunk: usize::MAX,
            logits: Box::new(logits),
        })
    }

    /// [`Self::cross_entropy`] of a classifier, without dropout, on inputs `[examples, ...]`.
    pub fn classifier<const D: usize>(inputs: Tensor<D>, labels: impl Into<Vec<usize>>) -> Self
    where
        M: Classifier<D>,
    {
        Self::cross_entropy(labels, move |module: &M, range| {
            module.logits(inputs.clone().slice(range))
        })
    }

    /// How many examples go through the module at once; all of them unless given. Memory grows with it, results
    /// differ by roundings only. Without effect on a plain loss.
    pub fn with_chunk(mut self, examples: usize) -> Self {
        if let Kind::CrossEntropy { chunk, .. } = &mut self.0 {
            *chunk = examples.max(1);
        }
        self
    }

    /// The number of examples, and the ranges in which they go through the module.
    pub(super) fn chunks(&self) -> Result<(usize, Vec<Range<usize>>), CurvatureError> {
        let Kind::CrossEntropy { labels, chunk, .. } = &self.0 else {
            return Err(CurvatureError::NoLogits);
        };
        let (count, chunk) = (labels.len(), *chunk);
        if count == 0 {
            return Err(CurvatureError::Shape {
                what: "the number of examples",
                expected: "one at least".into(),
                got: "0".into(),
            });
        }
        let starts = (0..count).step_by(chunk.min(count));
        let ranges = starts.map(|start| start..start.saturating_add(chunk).min(count));
        Ok((count, ranges.collect()))
    }

    pub(super) fn logits(
        &self,
        module: &M,
        range: Range<usize>,
    ) -> Result<TrackedLogits, CurvatureError> {
        let Kind::CrossEntropy { logits, .. } = &self.0 else {
            return Err(CurvatureError::NoLogits);
        };
        let tensor = logits(module, range.clone());
        let [rows, classes] = tensor.dims();
        if rows != range.len() {
            return Err(CurvatureError::Shape {
                what: "the rows of the logits",
                expected: format!("{}, the examples {range:?}", range.len()),
                got: rows.to_string(),
            });
        }
        check_double("the logits", tensor.dtype())?;
        let values = to_host(tensor.clone());
        if !values.iter().all(|value| value.is_finite()) {
            return Err(CurvatureError::NotFinite {
                what: "a logit".into(),
            });
        }
        Ok(TrackedLogits {
            tensor,
            values,
            classes,
        })
    }

    /// The value of the objective.
    pub(super) fn value(&self, module: &M) -> Result<f64, CurvatureError> {
        let value = match &self.0 {
            Kind::Loss(loss) => {
                let loss = loss(module);
                check_double("the loss", loss.dtype())?;
                to_host(loss).iter().sum()
            }
            Kind::CrossEntropy { labels, .. } => {
                let (count, ranges) = self.chunks()?;
                let mut sum = 0.0;
                for range in ranges {
                    let logits = self.logits(module, range.clone())?;
                    check_labels(&labels[range.clone()], range.start, logits.classes)?;
                    let rows = logits.values.chunks_exact(logits.classes);
                    for (row, &label) in rows.zip(&labels[range]) {
                        sum -= softmax(row)[label].ln();
                    }
                }
                sum / count as f64
            }
        };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(CurvatureError::NotFinite {
                what: "the loss".into(),
            })
        }
    }

    /// The gradient by the parameters of the subspace, which must require gradients in `module`.
    pub(super) fn gradient(
        &self,
        module: &M,
        parameters: &Parameters,
    ) -> Result<Vec<f64>, CurvatureError> {
        let mut sum = vec![0.0; parameters.values.len()];
        match &self.0 {
            Kind::Loss(loss) => {
                let loss = loss(module);
                check_double("the loss", loss.dtype())?;
                if loss.is_tracked() {
                    parameters.add_gradients(module, &loss.backward(), &mut sum)?;
                }
            }
            Kind::CrossEntropy { labels, .. } => {
                let (count, ranges) = self.chunks()?;
                for range in ranges {
                    let logits = self.logits(module, range.clone())?;
                    // By a logit: softmax - one-hot.
                    let rows = logits.values.chunks_exact(logits.classes);
                    let mut weights = Vec::with_capacity(logits.values.len());
                    for (row, &label) in rows.zip(&labels[range]) {
                        let start = weights.len();
                        weights.extend(softmax(row));
                        weights[start + label] -= 1.0;
                    }
                    weights.iter_mut().for_each(|w| *w /= count as f64);
                    pull_back(&logits, weights, module, parameters, &mut sum)?;
                }
            }
        }
        Ok(sum)
    }
}

/// Adds `J^t w`, with `J` the Jacobian of the logits by the subspace: the gradient of `sum(logits * w)`.
pub(super) fn pull_back<M: Module>(
    logits: &TrackedLogits,
    weights: Vec<f64>,
    module: &M,
    parameters: &Parameters,
    sum: &mut [f64],
) -> Result<(), CurvatureError> {
    if !logits.tensor.is_tracked() {
        return Ok(());
    }
    let data = TensorData::new(weights, logits.tensor.shape());
    let weights = Tensor::from_data(data, (&logits.tensor.device(), DType::F64));
    let gradients = (logits.tensor.clone() * weights).sum().backward();
    parameters.add_gradients(module, &gradients, sum)
}

/// `exp(z_i)/sum_j exp(z_j)`.
pub(super) fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = logits.iter().map(|z| (z - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

fn check_labels(labels: &[usize], start: usize, classes: usize) -> Result<(), CurvatureError> {
    let wrong = labels.iter().position(|&label| label >= classes);
    wrong.map_or(Ok(()), |position| {
        Err(CurvatureError::Label {
            example: start + position,
            label: labels[position],
            classes,
        })
    })
}

fn check_double(what: &'static str, got: DType) -> Result<(), CurvatureError> {
    if got == DType::F64 {
        Ok(())
    } else {
        Err(CurvatureError::NumberType { what, got })
    }
}
