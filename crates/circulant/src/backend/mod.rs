//! The circulant operator as an operation of a Burn backend.
//!
//! Two traits, because Burn's dispatch routes tensors only. [`CirculantOps`] is what
//! [`functions`](crate::functional) call through `burn::backend::Dispatch`; its implementation for
//! `Autodiff` holds the backward pass. [`CirculantBackend`] is what that backward pass needs of
//! the backend below it: a forward pass that keeps the spectrum of its input, and the gradients.
//!
//! | backend | forward and gradients |
//! | --- | --- |
//! | Flex | the fused kernels of `circulant-kernels` (f32, f64) |
//! | CubeCL, NdArray, LibTorch (a feature each) | composed of matrix products and selections ([`composed`]) |
//! | Autodiff of one of them | recorded as one node |
//!
//! Tensors may have any rank: only their number of elements and the row-major order count. The
//! caller names the output shape, so no reshape has to be recorded around an operation.
#![cfg_attr(
    any(feature = "ndarray", feature = "tch"),
    allow(deprecated, reason = "Burn calls NdArray and LibTorch so")
)]

mod buffers;
mod circulant_autodiff;
mod circulant_flex;
#[cfg_attr(
    not(any(
        feature = "cpu",
        feature = "cuda",
        feature = "ndarray",
        feature = "rocm",
        feature = "tch",
        feature = "wgpu"
    )),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "only backends without a kernel of their own differentiate it"
    )
)]
pub mod composed;
pub mod fused;
mod isometries;
pub mod optimizers;
pub mod transformer;

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, DispatchDevice, backend_extension};
use burn::tensor::{Device, Shape};
use circulant_kernels::Isometries;

use crate::device::BackendKind;
use crate::operator::Operator;

/// Names what is missing on devices whose backend came into the build without the feature of this crate: an operation that is
/// routed there would only say that it is not supported.
///
/// # Panics
///
/// Panics on such devices.
pub(crate) fn ensure_supported(device: &Device) {
    let inner = device.clone().inner();
    match inner.as_dispatch() {
        DispatchDevice::Flex(_) => {}
        #[cfg(any(feature = "cpu", feature = "cuda", feature = "rocm", feature = "wgpu"))]
        DispatchDevice::Cube(_) => {}
        #[cfg(feature = "ndarray")]
        DispatchDevice::NdArray(_) => {}
        #[cfg(feature = "tch")]
        DispatchDevice::LibTorch(_) => {}
        #[allow(
            unreachable_patterns,
            reason = "other crates may have brought other backends into the build"
        )]
        other => panic!(
            "circulant layers do not run on {other:?}: this build of the crate `circulant` has {}; turn on its feature for that \
             backend (docs/backends.md has those there are), or move module and inputs to `circulant::cpu()`",
            BackendKind::names_of_compiled()
        ),
    }
}

/// Operations that are routed to the backend of their tensors.
#[backend_extension(
    Flex,
    Cube: cfg(any(feature = "cpu", feature = "cuda", feature = "rocm", feature = "wgpu")),
    NdArray: cfg(feature = "ndarray"),
    LibTorch: cfg(feature = "tch"),
    Autodiff
)]
pub trait CirculantOps: Backend {
    /// `act(K x)` for every filter.
    ///
    /// Elements: `x` is `[batch, C_in*H*W]`, `coordinates` `[filters, d_eff]`. The output
    /// `[filters, batch, C_out*H*W]` gets the shape `shape`.
    fn circulant(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        composed::apply::<Self>(x, coordinates, None, &operator, shape)
    }

    /// `act(K x + bias)` for every filter: [`Self::circulant`] with a bias of one number per filter and
    /// output channel or one per filter and output element. (A routed operation cannot have an
    /// optional tensor.)
    fn circulant_biased(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        composed::apply::<Self>(x, coordinates, Some(bias), &operator, shape)
    }

    /// The coordinates of spatial filters, by the unnormalised transform: `[filters, C_out, C_in, H, W]` to
    /// `[filters, coordinate, C_in, C_out]`, in the shape `shape`.
    fn coordinates_of_filters(
        filters: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        composed::analyse::<Self>(filters, &operator, shape)
    }

    /// The coordinates `[coordinate, C_in, C_out]` of isometries, in the shape `shape`.
    fn isometry_coordinates(
        generators: FloatTensor<Self>,
        isometries: Arc<Isometries>,
        shape: Shape,
    ) -> FloatTensor<Self> {
        isometries::coordinates::<Self>(generators, &isometries, shape)
    }
}

/// Which gradients a backward pass has to compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The gradient of the input.
    pub x: bool,
    /// The gradient of the coordinates.
    pub coordinates: bool,
    /// The gradient of the bias.
    pub bias: bool,
}

/// The gradients that were wanted, each in the shape of what it belongs to.
#[derive(Debug)]
pub struct OperatorGradients<B: Backend> {
    /// Of the input.
    pub x: Option<FloatTensor<B>>,
    /// Of the coordinates.
    pub coordinates: Option<FloatTensor<B>>,
    /// Of the bias.
    pub bias: Option<FloatTensor<B>>,
}

/// What a forward pass saves for the backward pass.
#[derive(Debug, Clone)]
pub struct Saved<B: CirculantBackend> {
    /// The spectrum of the input.
    pub kept: B::Kept,
    /// The shape of the input.
    pub x_shape: Shape,
    /// The coordinates.
    pub coordinates: FloatTensor<B>,
    /// The bias; its values are not read.
    pub bias: Option<FloatTensor<B>>,
    /// The output, only if an activation needs it.
    pub y: Option<FloatTensor<B>>,
    /// The operator.
    pub operator: Operator,
}

/// A backend that can differentiate the operator.
pub trait CirculantBackend: CirculantOps {
    /// The spectrum of a batch of inputs.
    type Kept: Clone + std::fmt::Debug + Send + Sync + 'static;

    /// [`CirculantOps::circulant_biased`] that also returns what the backward pass needs.
    fn circulant_keeping(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: Option<FloatTensor<Self>>,
        operator: Operator,
        shape: Shape,
    ) -> (FloatTensor<Self>, Saved<Self>);

    /// The wanted gradients from the gradient of the output.
    fn circulant_backward(
        saved: Saved<Self>,
        grad: FloatTensor<Self>,
        wanted: Wanted,
    ) -> OperatorGradients<Self>;

    /// The adjoint of [`CirculantOps::coordinates_of_filters`], in the shape `shape`.
    fn coordinates_of_filters_adjoint(
        grad: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self>;
}
