//! Layer normalisation on the CPU.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{
    LayerNorm, LayerNormGradients, RowStatistics, layer_norm_backward, layer_norm_into,
};

use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::backend::fused::fused_flex::{finish, like};

/// The tensors of a layer, contiguous.
#[derive(Debug, Clone)]
pub(super) struct Norm {
    pub(super) x: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
    epsilon: f64,
}

/// The mean and the inverse deviation of every row.
#[derive(Debug, Clone)]
pub(super) struct Statistics([FlexTensor; 2]);

impl Norm {
    pub(super) fn new([x, gamma, beta]: [FlexTensor; 3], epsilon: f64) -> Self {
        Self {
            x: x.to_contiguous(),
            gamma: gamma.to_contiguous(),
            beta: beta.to_contiguous(),
            epsilon,
        }
    }

    pub(super) fn forward(&self) -> (FlexTensor, Statistics) {
        with_native!(self.x.dtype(), forward_typed(self))
    }

    /// Gradients of `x`, to which `residual` is added, gamma and beta.
    pub(super) fn backward(
        &self,
        statistics: &Statistics,
        grad: &FlexTensor,
        residual: Option<&FlexTensor>,
    ) -> [FlexTensor; 3] {
        with_native!(
            self.x.dtype(),
            backward_typed(self, statistics, grad, residual)
        )
    }

    fn layer<T: Native>(&self) -> LayerNorm<'_, T> {
        LayerNorm {
            gamma: numbers(&self.gamma, "gamma"),
            beta: numbers(&self.beta, "beta"),
            epsilon: self.epsilon,
        }
    }

    fn rows(&self) -> usize {
        self.x.shape().num_elements() / self.gamma.shape().num_elements().max(1)
    }
}

/// Room for the statistics of `rows` rows.
struct Room<T: Native>([Buffer<T>; 2], usize);

impl<T: Native> Room<T> {
    fn new(rows: usize) -> Self {
        Self([Buffer::any(rows), Buffer::any(rows)], rows)
    }

    fn as_mut(&mut self) -> RowStatistics<&mut [T]> {
        let [mean, inverse_deviation] = self.0.each_mut().map(|buffer| buffer.as_mut());
        RowStatistics {
            mean,
            inverse_deviation,
        }
    }

    fn finish(self) -> Statistics {
        let shape = Shape::from(vec![self.1]);
        Statistics(self.0.map(|buffer| buffer.into_tensor(shape.clone())))
    }
}

fn forward_typed<T: Native>(norm: &Norm) -> (FlexTensor, Statistics) {
    let (mut y, mut room) = (like::<T>(&norm.x), Room::<T>::new(norm.rows()));
    let x = numbers(&norm.x, "x");
    valid(layer_norm_into(
        x,
        norm.layer(),
        y.0.as_mut(),
        room.as_mut(),
    ));
    (finish(y), room.finish())
}

fn backward_typed<T: Native>(
    norm: &Norm,
    statistics: &Statistics,
    grad: &FlexTensor,
    residual: Option<&FlexTensor>,
) -> [FlexTensor; 3] {
    let mut out = [&norm.x, &norm.gamma, &norm.beta].map(like::<T>);
    let [x, gamma, beta] = out.each_mut().map(|(buffer, _)| buffer.as_mut());
    let [mean, inverse_deviation] = &statistics.0;
    valid(layer_norm_backward(
        numbers(&norm.x, "x"),
        numbers(&norm.gamma, "gamma"),
        RowStatistics {
            mean: numbers(mean, "the means"),
            inverse_deviation: numbers(inverse_deviation, "the inverse deviations"),
        },
        numbers(grad, "the gradient"),
        residual.map(|residual| numbers(residual, "the residual gradient")),
        LayerNormGradients { x, gamma, beta },
    ));
    out.map(finish)
}
