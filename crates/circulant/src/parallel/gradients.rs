//! Gradients on their way through one buffer: packed, summed over all ranks, unpacked.
//!
//! The buffer holds every gradient, one number per gradient that says how many ranks have it, and whatever numbers the caller adds.
//! Its layout follows from the parameters alone, so it is the same on all ranks even where one of them has no gradients at all.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Element, Tensor, TensorData};

use super::{CommunicationError, Communicator, Ranks};

/// The gradient of one parameter, without its shape.
#[derive(Debug)]
pub(crate) struct Part {
    count: usize,
    dtype: DType,
    device: Device,
    /// None where the loss does not depend on the parameter, or where there is no loss.
    pub(crate) gradient: Option<Tensor<1>>,
}

impl Part {
    /// Of a parameter, or of a value that was drawn for one.
    pub(crate) fn new<const D: usize>(of: &Tensor<D>, gradient: Option<Tensor<1>>) -> Self {
        Self {
            count: of.shape().num_elements(),
            dtype: of.dtype(),
            device: of.device().inner(),
            gradient,
        }
    }

    pub(crate) fn times(mut self, factor: f64) -> Self {
        self.gradient = self.gradient.map(|gradient| gradient.mul_scalar(factor));
        self
    }
}

/// A number that can be summed over all ranks.
trait Summed: Element + Copy {
    fn sum(communicator: &dyn Communicator, values: &mut [Self]) -> Result<(), CommunicationError>;
    fn of(number: f64) -> Self;
    fn number(self) -> f64;
}

impl Summed for f32 {
    fn sum(communicator: &dyn Communicator, values: &mut [Self]) -> Result<(), CommunicationError> {
        communicator.all_reduce_f32(values)
    }

    fn of(number: f64) -> Self {
        number as f32
    }

    fn number(self) -> f64 {
        self.into()
    }
}

impl Summed for f64 {
    fn sum(communicator: &dyn Communicator, values: &mut [Self]) -> Result<(), CommunicationError> {
        communicator.all_reduce_f64(values)
    }

    fn of(number: f64) -> Self {
        number
    }

    fn number(self) -> f64 {
        self
    }
}

/// Every gradient, and every one of `numbers`, becomes its sum over all ranks. The numbers travel in the precision of the gradients.
pub(crate) fn sum_parts(
    ranks: &Ranks,
    parts: &mut [Part],
    numbers: &mut [f64],
) -> Result<(), CommunicationError> {
    if parts.iter().any(|part| part.dtype == DType::F64) {
        sum_as::<f64>(ranks, parts, numbers)
    } else {
        sum_as::<f32>(ranks, parts, numbers)
    }
}

fn sum_as<T: Summed>(
    ranks: &Ranks,
    parts: &mut [Part],
    numbers: &mut [f64],
) -> Result<(), CommunicationError> {
    let values: usize = parts.iter().map(|part| part.count).sum();
    let mut buffer: Vec<T> = Vec::with_capacity(values + parts.len() + numbers.len());
    for part in parts.iter() {
        let after = buffer.len() + part.count;
        if let Some(gradient) = &part.gradient {
            let data = gradient.clone().into_data().convert::<T>();
            let own = data.as_slice::<T>().expect("converted just before");
            buffer.extend_from_slice(own);
        }
        buffer.resize(after, T::of(0.0));
    }
    let present = |part: &Part| T::of(f64::from(u8::from(part.gradient.is_some())));
    buffer.extend(parts.iter().map(present));
    buffer.extend(numbers.iter().map(|&number| T::of(number)));
    T::sum(ranks.communicator(), &mut buffer)?;
    let (mut values, rest) = buffer.split_at(values);
    let (present, sums) = rest.split_at(parts.len());
    for (part, &present) in parts.iter_mut().zip(present) {
        let own;
        (own, values) = values.split_at(part.count);
        part.gradient = (present.number() > 0.0).then(|| {
            let data = TensorData::new(own.to_vec(), [part.count]);
            Tensor::from_data(data, (&part.device, part.dtype))
        });
    }
    for (number, sum) in numbers.iter_mut().zip(sums) {
        *number = sum.number();
    }
    Ok(())
}

/// The gradients of the trained parameters of a module, in the order of visits; `is_left_out` says of which they are not wanted, by
/// position among all float parameters.
pub(crate) fn trained_parts<M: Module>(
    module: &M,
    gradients: &GradientsParams,
    is_left_out: impl Fn(usize) -> bool,
) -> Vec<Part> {
    let mut pack = Pack {
        gradients,
        visited: 0,
        is_left_out,
        parts: Vec::new(),
    };
    module.visit(&mut pack);
    pack.parts
}

struct Pack<'a, F> {
    gradients: &'a GradientsParams,
    visited: usize,
    is_left_out: F,
    parts: Vec<Part>,
}

impl<F: Fn(usize) -> bool> ModuleVisitor for Pack<'_, F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let position = self.visited;
        self.visited += 1;
        let tensor = param.val();
        if (self.is_left_out)(position) || !tensor.is_require_grad() {
            return;
        }
        let gradient = self.gradients.get::<D>(param.id);
        let flat = gradient.map(|gradient| gradient.flatten(0, D - 1));
        self.parts.push(Part::new(&tensor, flat));
    }
}

/// Puts the gradients back that [`trained_parts`] gave, with the same choice of parameters. `into` says where a parameter's belongs.
pub(crate) fn register<M: Module>(
    module: &M,
    parts: impl IntoIterator<Item = Part>,
    is_left_out: impl Fn(usize) -> bool,
    into: &mut GradientsParams,
) {
    module.visit(&mut Unpack {
        parts: parts.into_iter(),
        visited: 0,
        is_left_out,
        into,
    });
}

struct Unpack<'a, I, F> {
    parts: I,
    visited: usize,
    is_left_out: F,
    into: &'a mut GradientsParams,
}

impl<I: Iterator<Item = Part>, F: Fn(usize) -> bool> ModuleVisitor for Unpack<'_, I, F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let position = self.visited;
        self.visited += 1;
        let tensor = param.val();
        if (self.is_left_out)(position) || !tensor.is_require_grad() {
            return;
        }
        let part = self.parts.next().expect("one for every trained parameter");
        if let Some(gradient) = part.gradient {
            self.into
                .register(param.id, gradient.reshape(tensor.dims()));
        }
    }
}
