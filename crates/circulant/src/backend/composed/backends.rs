//! The backends without a kernel of their own: one implementation each, by the composed operations.

use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::{ComplexPair, analyse_adjoint, apply_keeping, backward_saved};
use crate::backend::{CirculantBackend, CirculantOps, OperatorGradients, Saved, Wanted};
use crate::operator::Operator;

macro_rules! composed_on {
    ($backend:ty) => {
        impl CirculantOps for $backend {}

        impl CirculantBackend for $backend {
            type Kept = ComplexPair<Self>;

            fn circulant_keeping(
                x: FloatTensor<Self>,
                coordinates: FloatTensor<Self>,
                bias: Option<FloatTensor<Self>>,
                operator: Operator,
                shape: Shape,
            ) -> (FloatTensor<Self>, Saved<Self>) {
                apply_keeping::<Self>(x, coordinates, bias, operator, shape)
            }

            fn circulant_backward(
                saved: Saved<Self>,
                grad: FloatTensor<Self>,
                wanted: Wanted,
            ) -> OperatorGradients<Self> {
                backward_saved::<Self>(saved, grad, wanted)
            }

            fn coordinates_of_filters_adjoint(
                grad: FloatTensor<Self>,
                operator: Operator,
                shape: Shape,
            ) -> FloatTensor<Self> {
                analyse_adjoint::<Self>(grad, &operator, shape)
            }
        }
    };
}

#[cfg(any(feature = "cpu", feature = "cuda", feature = "rocm", feature = "wgpu"))]
composed_on!(burn::backend::Cube);
#[cfg(feature = "ndarray")]
composed_on!(burn::backend::NdArray);
#[cfg(feature = "tch")]
composed_on!(burn::backend::LibTorch);
