//! The backward pass, for any backend that can differentiate the operator.
//!
//! The operator is one node of the graph. Its state is the spectrum of the input, so that the
//! backward pass transforms the output gradient forth and back and nothing else; gradients of
//! parents that are not tracked are not computed.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};
use burn::tensor::Shape;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind, unary};

use circulant_kernels::Isometries;

use super::{CirculantBackend, CirculantOps, Operator, Saved, Wanted, isometries};

#[derive(Debug)]
struct Circulant;

/// Parents are x, the coordinates and, when `N = 3`, the bias.
impl<B: CirculantBackend, const N: usize> Backward<B, N> for Circulant {
    type State = Saved<B>;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let parent = |index: usize| ops.parents.get(index).cloned().flatten();
        let (x, coordinates, bias) = (parent(0), parent(1), parent(2));
        let wanted = Wanted {
            x: x.is_some(),
            coordinates: coordinates.is_some(),
            bias: bias.is_some(),
        };
        let grad = grads.consume::<B>(&ops.node);
        let gradients = B::circulant_backward(ops.state, grad, wanted);
        let pairs = [
            (x, gradients.x),
            (coordinates, gradients.coordinates),
            (bias, gradients.bias),
        ];
        for (node, gradient) in pairs {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<B>(node.id, gradient);
            }
        }
    }
}

fn record<B: CirculantBackend, C: CheckpointStrategy, const N: usize>(
    guards: [NodeGuard; N],
    x: FloatTensor<B>,
    coordinates: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    operator: Operator,
    shape: Shape,
) -> FloatTensor<Autodiff<B, C>> {
    match Circulant.prepare::<C>(guards).compute_bound().stateful() {
        OpsKind::Tracked(node) => {
            let (y, saved) = B::circulant_keeping(x, coordinates, bias, operator, shape);
            node.finish(saved, y)
        }
        OpsKind::UnTracked(node) => node.finish(match bias {
            None => B::circulant(x, coordinates, operator, shape),
            Some(bias) => B::circulant_biased(x, coordinates, bias, operator, shape),
        }),
    }
}

#[derive(Debug)]
struct Analyse;

impl<B: CirculantBackend> Backward<B, 1> for Analyse {
    type State = (Operator, Shape);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (operator, shape) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            B::coordinates_of_filters_adjoint(grad, operator, shape)
        });
    }
}

#[derive(Debug)]
struct IsometryCoordinates;

impl<B: CirculantBackend> Backward<B, 1> for IsometryCoordinates {
    type State = (FloatTensor<B>, Arc<Isometries>);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (generators, isometries) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| {
            isometries::gradient::<B>(generators, grad, &isometries)
        });
    }
}

impl<B: CirculantBackend, C: CheckpointStrategy> CirculantOps for Autodiff<B, C> {
    fn circulant(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let (x, x_guard) = x.into_parts();
        let (coordinates, guard) = coordinates.into_parts();
        record::<B, C, 2>([x_guard, guard], x, coordinates, None, operator, shape)
    }

    fn circulant_biased(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let (x, x_guard) = x.into_parts();
        let (coordinates, guard) = coordinates.into_parts();
        let (bias, bias_guard) = bias.into_parts();
        record::<B, C, 3>(
            [x_guard, guard, bias_guard],
            x,
            coordinates,
            Some(bias),
            operator,
            shape,
        )
    }

    fn coordinates_of_filters(
        filters: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let (filters, guard) = filters.into_parts();
        let state = (operator.clone(), filters.shape());
        let coordinates = B::coordinates_of_filters(filters, operator, shape);
        match Analyse.prepare::<C>([guard]).compute_bound().stateful() {
            OpsKind::Tracked(node) => node.finish(state, coordinates),
            OpsKind::UnTracked(node) => node.finish(coordinates),
        }
    }

    fn isometry_coordinates(
        generators: FloatTensor<Self>,
        isometries: Arc<Isometries>,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let (generators, guard) = generators.into_parts();
        let state = (generators.clone(), isometries.clone());
        let coordinates = B::isometry_coordinates(generators, isometries, shape);
        let node = IsometryCoordinates.prepare::<C>([guard]);
        match node.compute_bound().stateful() {
            OpsKind::Tracked(node) => node.finish(state, coordinates),
            OpsKind::UnTracked(node) => node.finish(coordinates),
        }
    }
}
