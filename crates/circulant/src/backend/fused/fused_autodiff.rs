//! The backward passes of the fused operations. Parents come in the order of the arguments.

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Flex};
use burn::tensor::Shape;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind, unary};
use burn_flex::FlexTensor;
use circulant_kernels::{Activation, Convolution, NoiseKey};

use super::dense::{Conv, Linear};
use super::fused_flex::{cross_entropy_keeping, scalar_like, tanh_gradient};
use super::gaussian::{Gaussian, KeptNoise, Samples, kl_keeping, sample, sample_backward};
use super::readout::{self, Kept, ReadoutLayer};
use super::{FusedOps, Labels, Selection, max_min};
use crate::operator::Operator;

#[derive(Debug)]
struct Sample;

impl<const N: usize> Backward<Flex, N> for Sample {
    type State = (Gaussian, KeptNoise);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let grad = grads.consume::<Flex>(&ops.node);
        let (q, noise) = &ops.state;
        let (log_deviation, low_rank) = sample_backward(q, noise, &grad);
        let mut gradients = vec![grad];
        gradients.extend(
            low_rank
                .into_iter()
                .flat_map(|(factor, scale)| [factor, scale]),
        );
        gradients.push(log_deviation);
        for (parent, gradient) in ops.parents.iter().zip(gradients) {
            if let Some(node) = parent {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

/// A `[1]` output whose gradients were computed with it: the backward pass scales them.
#[derive(Debug)]
struct Scalar;

impl<const N: usize> Backward<Flex, N> for Scalar {
    /// One gradient per parent; parents at the end that are not tracked may have none.
    type State = Vec<FlexTensor>;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let upstream = grads.consume::<Flex>(&ops.node).into_data();
        let factor = upstream.iter::<f64>().next().expect("one number");
        for (parent, gradient) in ops.parents.iter().zip(ops.state) {
            if let Some(node) = parent {
                let gradient = match factor {
                    1.0 => gradient,
                    _ => Flex::float_mul_scalar(gradient, factor.into()),
                };
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

/// A layer with an input, a weight and a bias.
#[derive(Debug)]
struct Dense;

/// Which layer.
#[derive(Debug, Clone)]
enum Layer {
    Linear(Linear),
    Convolution(Conv),
}

impl Backward<Flex, 3> for Dense {
    /// The layer and its output.
    type State = (Layer, FlexTensor);

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let grad = grads.consume::<Flex>(&ops.node);
        let (layer, y) = &ops.state;
        let wanted = std::array::from_fn(|i| ops.parents[i].is_some());
        let gradients = match layer {
            Layer::Linear(layer) => layer.backward(y, &grad, wanted),
            Layer::Convolution(layer) => layer.backward(y, &grad, wanted),
        };
        for (parent, gradient) in ops.parents.iter().zip(gradients) {
            if let (Some(node), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

#[derive(Debug)]
struct Readout;

impl Backward<Flex, 5> for Readout {
    type State = (ReadoutLayer, Kept);

    fn backward(
        self,
        ops: Ops<Self::State, 5>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let grad = grads.consume::<Flex>(&ops.node);
        let (layer, kept) = &ops.state;
        let wanted = std::array::from_fn(|i| ops.parents[i].is_some());
        let gradients = layer.backward(kept, &grad, wanted);
        for (parent, gradient) in ops.parents.iter().zip(gradients) {
            if let (Some(node), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

#[derive(Debug)]
struct Tanh;

impl Backward<Flex, 1> for Tanh {
    /// The output.
    type State = FlexTensor;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let y = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| tanh_gradient(&y, grad));
    }
}

#[derive(Debug)]
struct MaxMin;

impl Backward<Flex, 1> for MaxMin {
    /// The input, and the axis of the pairs.
    type State = (FlexTensor, usize);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (x, axis) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| {
            max_min::gradient(&x, grad, axis)
        });
    }
}

fn record_sample<C: CheckpointStrategy, const N: usize>(
    guards: [NodeGuard; N],
    q: Gaussian,
    key: NoiseKey,
) -> FloatTensor<Autodiff<Flex, C>> {
    let (a, noise) = sample(&q, key);
    match Sample.prepare::<C>(guards).compute_bound().stateful() {
        OpsKind::Tracked(node) => node.finish((q, noise), a),
        OpsKind::UnTracked(node) => node.finish(a),
    }
}

fn record_kl<C: CheckpointStrategy, const N: usize>(
    guards: [NodeGuard; N],
    q: &Gaussian,
    prior: FlexTensor,
    weight: f64,
    of_prior: bool,
) -> FloatTensor<Autodiff<Flex, C>> {
    let (value, kept) = kl_keeping(q, prior, weight, of_prior, &Samples::default());
    let value = scalar_like(&q.mean, value);
    match Scalar.prepare::<C>(guards).compute_bound().stateful() {
        OpsKind::Tracked(node) => {
            let mut gradients = vec![kept.mean];
            let low_rank = kept.low_rank.into_iter();
            gradients.extend(low_rank.flat_map(|(factor, scale)| [factor, scale]));
            gradients.push(kept.log_deviation);
            gradients.extend(kept.prior_variance);
            node.finish(gradients, value)
        }
        OpsKind::UnTracked(node) => node.finish(value),
    }
}

fn record_layer<C: CheckpointStrategy>(
    guards: [NodeGuard; 3],
    layer: Layer,
    y: FlexTensor,
) -> FloatTensor<Autodiff<Flex, C>> {
    match Dense.prepare::<C>(guards).compute_bound().stateful() {
        OpsKind::Tracked(node) => node.finish((layer, y.clone()), y),
        OpsKind::UnTracked(node) => node.finish(y),
    }
}

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    fn low_rank_sample(
        mean: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        key: NoiseKey,
        jitter: f64,
    ) -> FloatTensor<Self> {
        let (mean, mean_guard) = mean.into_parts();
        let (factor, factor_guard) = factor.into_parts();
        let (scale, scale_guard) = scale.into_parts();
        let (log_deviation, guard) = log_deviation.into_parts();
        let q = Gaussian::new(mean, Some((factor, scale)), log_deviation, jitter);
        record_sample::<C, 4>([mean_guard, factor_guard, scale_guard, guard], q, key)
    }

    fn mean_field_sample(
        mean: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        key: NoiseKey,
    ) -> FloatTensor<Self> {
        let (mean, mean_guard) = mean.into_parts();
        let (log_deviation, guard) = log_deviation.into_parts();
        let q = Gaussian::new(mean, None, log_deviation, 0.0);
        record_sample::<C, 2>([mean_guard, guard], q, key)
    }

    fn low_rank_kl(
        mean: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        prior_variance: FloatTensor<Self>,
        jitter: f64,
        weight: f64,
    ) -> FloatTensor<Self> {
        let (mean, mean_guard) = mean.into_parts();
        let (factor, factor_guard) = factor.into_parts();
        let (scale, scale_guard) = scale.into_parts();
        let (log_deviation, guard) = log_deviation.into_parts();
        let of_prior = prior_variance.is_tracked();
        let (prior, prior_guard) = prior_variance.into_parts();
        let q = Gaussian::new(mean, Some((factor, scale)), log_deviation, jitter);
        let guards = [mean_guard, factor_guard, scale_guard, guard, prior_guard];
        record_kl::<C, 5>(guards, &q, prior, weight, of_prior)
    }

    fn mean_field_kl(
        mean: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        prior_variance: FloatTensor<Self>,
        weight: f64,
    ) -> FloatTensor<Self> {
        let (mean, mean_guard) = mean.into_parts();
        let (log_deviation, guard) = log_deviation.into_parts();
        let of_prior = prior_variance.is_tracked();
        let (prior, prior_guard) = prior_variance.into_parts();
        let q = Gaussian::new(mean, None, log_deviation, 0.0);
        record_kl::<C, 3>(
            [mean_guard, guard, prior_guard],
            &q,
            prior,
            weight,
            of_prior,
        )
    }

    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        let (x, x_guard) = x.into_parts();
        let (weight, weight_guard) = weight.into_parts();
        let (bias, bias_guard) = bias.into_parts();
        let layer = Linear::new(x, weight, bias, activation);
        let y = layer.forward();
        record_layer::<C>([x_guard, weight_guard, bias_guard], Layer::Linear(layer), y)
    }

    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        convolution: Convolution,
        activation: Activation,
    ) -> FloatTensor<Self> {
        let (x, x_guard) = x.into_parts();
        let (weight, weight_guard) = weight.into_parts();
        let (bias, bias_guard) = bias.into_parts();
        let layer = Conv::new(x, weight, bias, convolution, activation);
        let y = layer.forward();
        let guards = [x_guard, weight_guard, bias_guard];
        record_layer::<C>(guards, Layer::Convolution(layer), y)
    }

    fn circulant_readout(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        constant: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let parts = [x, coordinates, bias, weight, constant].map(|tensor| tensor.into_parts());
        let layer = ReadoutLayer::new(parts.each_ref().map(|(t, _)| t.clone()), operator, shape);
        let guards = parts.map(|(_, guard)| guard);
        match Readout.prepare::<C>(guards).compute_bound().stateful() {
            OpsKind::Tracked(node) => {
                let (z, kept) = layer.forward(true);
                node.finish((layer, kept), z)
            }
            OpsKind::UnTracked(node) => node.finish(layer.forward(false).0),
        }
    }

    fn circulant_cross_entropy(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        constant: FloatTensor<Self>,
        operator: Operator,
        selection: Selection,
    ) -> FloatTensor<Self> {
        let parameters = [coordinates, bias, weight, constant].map(|tensor| tensor.into_parts());
        let [a, b, w, c] = parameters.each_ref().map(|(tensor, _)| tensor.clone());
        let tensors = [x.into_parts().0, a, b, w, c];
        let guards = parameters.map(|(_, guard)| guard);
        match Scalar.prepare::<C>(guards).compute_bound().stateful() {
            OpsKind::Tracked(node) => {
                let (loss, gradients) = readout::cross_entropy(tensors, operator, &selection, true);
                node.finish(gradients, loss)
            }
            OpsKind::UnTracked(node) => {
                node.finish(readout::cross_entropy(tensors, operator, &selection, false).0)
            }
        }
    }

    fn tanh_saving(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let (x, guard) = x.into_parts();
        let y = Flex::tanh_saving(x);
        match Tanh.prepare::<C>([guard]).compute_bound().stateful() {
            OpsKind::Tracked(node) => node.finish(y.clone(), y),
            OpsKind::UnTracked(node) => node.finish(y),
        }
    }

    fn max_min(x: FloatTensor<Self>, axis: usize) -> FloatTensor<Self> {
        let (x, guard) = x.into_parts();
        let x = x.to_contiguous();
        let y = max_min::sorted(&x, axis);
        match MaxMin.prepare::<C>([guard]).compute_bound().stateful() {
            OpsKind::Tracked(node) => node.finish((x, axis), y),
            OpsKind::UnTracked(node) => node.finish(y),
        }
    }

    fn select_rows(x: FloatTensor<Self>, rows: Labels) -> FloatTensor<Self> {
        // The caller takes the inner tensor; this only completes the trait.
        Self::from_inner(Flex::select_rows(x.into_parts().0, rows))
    }

    fn cross_entropy_sum(logits: FloatTensor<Self>, labels: Labels) -> FloatTensor<Self> {
        let (logits, guard) = logits.into_parts();
        match Scalar.prepare::<C>([guard]).compute_bound().stateful() {
            OpsKind::Tracked(node) => {
                let (value, gradient) = cross_entropy_keeping(logits, &labels, true);
                node.finish(gradient.into_iter().collect(), value)
            }
            OpsKind::UnTracked(node) => {
                node.finish(cross_entropy_keeping(logits, &labels, false).0)
            }
        }
    }
}
