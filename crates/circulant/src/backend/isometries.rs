//! Isometries per frequency from their parameters, on the host for any backend: they are as many as a layer has parameters, not as many as
//! a batch has numbers.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape, TensorData, read_sync};
use circulant_kernels::{Isometries, Real};

use super::buffers::Pooled;
use super::circulant_flex::valid;

/// The coordinates of the operator.
pub(super) fn coordinates<B: Backend>(
    generators: FloatTensor<B>,
    isometries: &Isometries,
    shape: Shape,
) -> FloatTensor<B> {
    let (device, dtype) = (generators.device(), generators.dtype());
    let generators = on_host::<B>(generators);
    let data = match dtype {
        DType::F64 => coordinates_of::<f64>(generators, isometries, shape),
        _ => coordinates_of::<f32>(generators, isometries, shape),
    };
    B::float_from_data(data, &device)
}

/// The gradient of the parameters, from that of the coordinates.
pub(super) fn gradient<B: Backend>(
    generators: FloatTensor<B>,
    gradient: FloatTensor<B>,
    isometries: &Isometries,
) -> FloatTensor<B> {
    let (device, dtype) = (generators.device(), generators.dtype());
    let (generators, gradient) = (on_host::<B>(generators), on_host::<B>(gradient));
    let data = match dtype {
        DType::F64 => gradient_of::<f64>(generators, gradient, isometries),
        _ => gradient_of::<f32>(generators, gradient, isometries),
    };
    B::float_from_data(data, &device)
}

fn coordinates_of<T: Real + Pooled>(
    generators: TensorData,
    isometries: &Isometries,
    shape: Shape,
) -> TensorData {
    let mut values = vec![T::of(0.0); isometries.coordinates()];
    valid(isometries.coordinates_into(&numbers::<T>(generators), &mut values));
    TensorData::new(values, shape)
}

fn gradient_of<T: Real + Pooled>(
    generators: TensorData,
    gradient: TensorData,
    isometries: &Isometries,
) -> TensorData {
    let shape = generators.shape().clone();
    let mut values = vec![T::of(0.0); isometries.parameters()];
    let (generators, gradient) = (numbers::<T>(generators), numbers::<T>(gradient));
    valid(isometries.gradient_into(&generators, &gradient, &mut values));
    TensorData::new(values, shape)
}

fn on_host<B: Backend>(tensor: FloatTensor<B>) -> TensorData {
    read_sync(B::float_into_data(tensor))
        .unwrap_or_else(|error| panic!("the parameters of isometries cannot be read: {error:?}"))
}

fn numbers<T: Real + Pooled>(data: TensorData) -> Vec<T> {
    data.try_into_vec().unwrap_or_else(|error| {
        panic!("isometries take F32 or F64 parameters, and gradients of the same type: {error:?}; cast the module")
    })
}
