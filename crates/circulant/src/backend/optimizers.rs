//! Steps of optimisers in one pass over memory, on the CPU. Optimisers work on tensors without a history.

#![allow(
    clippy::too_many_arguments,
    clippy::type_complexity,
    reason = "a routed operation takes its tensors one by one, and gives them back as a tuple"
)]

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, backend_extension};
use burn::tensor::DType;
use burn_flex::FlexTensor;
use circulant_kernels::{AdamSettings, AdanSettings, adam_step, adan_step};

use super::circulant_flex::{Native, numbers, valid, with_native};
use super::fused::fused_flex::{finish, like};

/// The steps of optimisers.
#[backend_extension(Flex)]
pub trait OptimizerOps: Backend {
    /// One step of Adam: parameter, first and second moment afterwards.
    fn adam(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        settings: AdamSettings,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// One step of Adan: the parameter, the averages `m`, `d` and `v`, and the negative gradient afterwards.
    fn adan(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        average: FloatTensor<Self>,
        difference: FloatTensor<Self>,
        square: FloatTensor<Self>,
        negative_gradient: FloatTensor<Self>,
        settings: AdanSettings,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    );
}

fn adam_typed<T: Native>(
    [parameter, gradient, moment_1, moment_2]: [&FlexTensor; 4],
    settings: AdamSettings,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    let state = [parameter, moment_1, moment_2];
    let mut after = state.map(like::<T>);
    let before = state.map(|tensor| numbers(tensor, "the state of Adam"));
    let outputs = after.each_mut().map(|(buffer, _)| buffer.as_mut());
    let gradient = numbers(gradient, "the gradient");
    valid(adam_step(before, gradient, settings, outputs));
    after.map(finish).into()
}

/// A step of Adam: the parameter and both moments afterwards.
pub(super) fn adam(
    tensors: [&FlexTensor; 4],
    settings: AdamSettings,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    with_native!(tensors[0].dtype(), adam_typed(tensors, settings))
}

fn adan_typed<T: Native>(
    [parameter, gradient, average, difference, square, negative]: [&FlexTensor; 6],
    settings: AdanSettings,
) -> [FlexTensor; 5] {
    let state = [parameter, average, difference, square, negative];
    let mut after = state.map(like::<T>);
    let before = state.map(|tensor| numbers(tensor, "the state of Adan"));
    let outputs = after.each_mut().map(|(buffer, _)| buffer.as_mut());
    let gradient = numbers(gradient, "the gradient");
    valid(adan_step(before, gradient, settings, outputs));
    after.map(finish)
}

impl OptimizerOps for Flex {
    fn adam(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        settings: AdamSettings,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let tensors = [parameter, gradient, moment_1, moment_2].map(|t| t.to_contiguous());
        adam(tensors.each_ref(), settings)
    }

    fn adan(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        average: FloatTensor<Self>,
        difference: FloatTensor<Self>,
        square: FloatTensor<Self>,
        negative_gradient: FloatTensor<Self>,
        settings: AdanSettings,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    ) {
        let tensors = [
            parameter,
            gradient,
            average,
            difference,
            square,
            negative_gradient,
        ]
        .map(|tensor| tensor.to_contiguous());
        with_native!(tensors[0].dtype(), adan_typed(tensors.each_ref(), settings)).into()
    }
}
