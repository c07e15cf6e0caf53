//! CubeCL backends (wgpu, CUDA, ROCm): the composed operations.

use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use burn_cubecl::CubeBackend;

use super::composed::{self, BackwardInputs, ComplexPair};
use super::{CirculantBackend, CirculantOps, Operator, OperatorGradients, Saved, Wanted};

impl CirculantOps for CubeBackend {}

impl CirculantBackend for CubeBackend {
    type Kept = ComplexPair<Self>;

    fn circulant_keeping(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: Option<FloatTensor<Self>>,
        operator: Operator,
        shape: Shape,
    ) -> (FloatTensor<Self>, Saved<Self>) {
        composed::apply_keeping::<Self>(x, coordinates, bias, operator, shape)
    }

    fn circulant_backward(
        saved: Saved<Self>,
        grad: FloatTensor<Self>,
        wanted: Wanted,
    ) -> OperatorGradients<Self> {
        let Saved {
            kept,
            x_shape,
            coordinates,
            bias,
            y,
            operator,
        } = saved;
        let inputs = BackwardInputs {
            spectrum: &kept,
            x_shape,
            coordinates,
            bias,
            y,
            grad,
        };
        composed::backward(&operator, inputs, wanted)
    }

    fn coordinates_of_filters_adjoint(
        grad: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        composed::analyse_adjoint::<Self>(grad, &operator, shape)
    }
}
