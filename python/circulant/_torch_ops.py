"""Circulant operators as custom operators of PyTorch.

On the CPU, float32 and float64 tensors are read and written where they lie; everything else is composed of operations of
torch. An operator is named by numbers, so that graphs can be exported: ``(height, width, channels_in, channels_out, radius)``
of images, with a height of 0 for signals of one channel, whose number of coordinates says which bins are kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError("circulant.torch needs PyTorch 2.5 or later: pip install 'circulant[torch]'") from error

from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _engine
from ._torch_memory import empty
from .functional import _image, _signal


#: What names an operator.
Key = tuple[int, int, int, int, float]


def engine_operator(height: int, width: int, channels_in: int, channels_out: int, radius: float, own: int) -> Any:
    """The operator of the engine; ``own`` is the number of coordinates per channel pair."""
    if height == 0:
        return _signal(width, own)
    return _image(height, width, channels_in, channels_out, radius)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().numpy()


def _fits(*tensors: Tensor | None) -> bool:
    """Whether the engine can read all of them where they lie."""
    present = [tensor for tensor in tensors if tensor is not None]
    first = present[0]
    return first.dtype in (torch.float32, torch.float64) and all(
        tensor.device.type == "cpu" and tensor.dtype == first.dtype for tensor in present
    )


@torch.library.custom_op("circulant::apply", mutates_args=())
def apply(
    x: Tensor,
    coordinates: Tensor,
    bias: Tensor | None,
    height: int,
    width: int,
    channels_in: int,
    channels_out: int,
    radius: float,
) -> Tensor:
    """``[n, C_in * H * W]`` to ``[n, C_out * H * W]``; the bias has one value per channel or per output."""
    return _forward(x, coordinates, bias, (height, width, channels_in, channels_out, radius))


def _forward(x: Tensor, coordinates: Tensor, bias: Tensor | None, key: Key) -> Tensor:
    height, width, channels_in, channels_out, radius = key
    if not _fits(x, coordinates, bias):
        return composed(x, coordinates, bias, height, width, channels_in, channels_out, radius)
    y = empty((x.shape[0], channels_out * max(height, 1) * width), x.dtype)
    if x.shape[0] == 0:
        return y
    operator = engine_operator(height, width, channels_in, channels_out, radius, coordinates.shape[0])
    own = None if bias is None else _array(bias.contiguous())
    operator.forward(_array(x.contiguous()), _array(coordinates.contiguous()), own, False, y.numpy())
    return y


@apply.register_fake
def _(
    x: Tensor,
    coordinates: Tensor,
    bias: Tensor | None,
    height: int,
    width: int,
    channels_in: int,
    channels_out: int,
    radius: float,
) -> Tensor:
    return x.new_empty((x.shape[0], channels_out * max(height, 1) * width))


@torch.library.custom_op("circulant::apply_backward", mutates_args=())
def apply_backward(
    x: Tensor,
    coordinates: Tensor,
    bias: Tensor | None,
    grad: Tensor,
    height: int,
    width: int,
    channels_in: int,
    channels_out: int,
    radius: float,
    wants_x: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the input (empty unless it is wanted), the coordinates and the bias (empty if there is none)."""
    return _gradients(x, coordinates, bias, grad, (height, width, channels_in, channels_out, radius), wants_x)


def _gradients(
    x: Tensor, coordinates: Tensor, bias: Tensor | None, grad: Tensor, key: Key, wants_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    if not _fits(x, coordinates, bias, grad):
        return _composed_gradients(x, coordinates, bias, grad, key, wants_x)
    grad_x = empty(x.shape if wants_x else (0,), x.dtype)
    grad_coordinates = empty(coordinates.shape, x.dtype)
    grad_bias = torch.empty((0,) if bias is None else bias.shape, dtype=x.dtype)
    if x.shape[0] == 0:
        return grad_x.zero_(), grad_coordinates.zero_(), grad_bias.zero_()
    operator = engine_operator(*key, coordinates.shape[0])
    operator.backward(
        _array(x.contiguous()),
        _array(coordinates.contiguous()),
        None if bias is None else _array(bias.contiguous()),
        False,
        None,
        _array(grad.contiguous()),
        grad_x.numpy() if wants_x else None,
        grad_coordinates.numpy(),
        None if bias is None else grad_bias.numpy(),
    )
    return grad_x, grad_coordinates, grad_bias


@apply_backward.register_fake
def _(
    x: Tensor,
    coordinates: Tensor,
    bias: Tensor | None,
    grad: Tensor,
    height: int,
    width: int,
    channels_in: int,
    channels_out: int,
    radius: float,
    wants_x: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        x.new_empty(x.shape if wants_x else (0,)),
        coordinates.new_empty(coordinates.shape),
        x.new_empty((0,) if bias is None else bias.shape),
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, coordinates, bias, *ctx.arguments = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, coordinates, *([bias] if ctx.has_bias else []))


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, coordinates, *bias = ctx.saved_tensors
    wants_x = ctx.needs_input_grad[0]
    grad_x, grad_coordinates, grad_bias = apply_backward(
        x, coordinates, bias[0] if bias else None, grad, *ctx.arguments, wants_x
    )
    return (grad_x if wants_x else None, grad_coordinates, grad_bias if bias else None, *[None] * 5)


apply.register_autograd(_backward, setup_context=_setup)


class _Now(torch.autograd.Function):
    """The operator at once: the way through the dispatcher costs a tenth of a millisecond, a fifth of a layer of 512 x 784."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, coordinates: Tensor, bias: Tensor | None, key: Key) -> Tensor:
        ctx.key, ctx.has_bias = key, bias is not None
        ctx.save_for_backward(x, coordinates, *([] if bias is None else [bias]))
        return _forward(x, coordinates, bias, key)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, coordinates, *bias = ctx.saved_tensors
        wants_x = ctx.needs_input_grad[0]
        of_x, of_coordinates, of_bias = _gradients(x, coordinates, bias[0] if bias else None, grad, ctx.key, wants_x)
        return of_x if wants_x else None, of_coordinates, of_bias if bias else None, None


def apply_now(x: Tensor, coordinates: Tensor, bias: Tensor | None, key: Key) -> Tensor:
    """:func:`apply`, without the dispatcher where nothing but autograd listens: no compiler, transform, mode or subclass."""
    given = (x, coordinates) if bias is None else (x, coordinates, bias)
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in given) and _fits(*given)
    if not plain or _somebody_listens():
        return apply(x, coordinates, bias, *key)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given):
        return _Now.apply(x, coordinates, bias, key)  # type: ignore[no-any-return,no-untyped-call]
    return _forward(x, coordinates, bias, key)


def _somebody_listens() -> bool:
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
    )


def _vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
    x, coordinates, bias, *arguments = inputs
    x_dim, coordinates_dim, bias_dim = in_dims[:3]
    if coordinates_dim is None and bias_dim is None:
        x = x.movedim(x_dim, 0)
        y = apply(x.flatten(0, 1), coordinates, bias, *arguments)
        return y.unflatten(0, x.shape[:2]), 0
    pick = lambda tensor, dim, index: tensor if dim is None or tensor is None else tensor.select(dim, index)
    members = [
        apply(
            pick(x, x_dim, index),
            pick(coordinates, coordinates_dim, index),
            pick(bias, bias_dim, index),
            *arguments,
        )
        for index in range(info.batch_size)
    ]
    return torch.stack(members), 0


apply.register_vmap(_vmap)


@lru_cache(maxsize=64)
def places(height: int, width: int, radius: float, own: int) -> tuple[np.ndarray, np.ndarray]:
    """Which coordinate is the real and which the imaginary part of every stored bin: signed, counted from 1, 0 for none."""
    operator = engine_operator(height, width, 1, 1, radius, own)
    numbered = np.arange(1.0, own + 1.0)
    bins = operator.half_spectrum(numbered)
    return bins.real.astype(np.int64), bins.imag.astype(np.int64)


def _part(coordinates: Tensor, signed: np.ndarray) -> Tensor:
    """``[own, ...]`` to the bins ``[bins, ...]``."""
    index = torch.as_tensor(np.abs(signed), device=coordinates.device)
    sign = torch.as_tensor(np.sign(signed), dtype=coordinates.dtype, device=coordinates.device)
    padded = torch.cat([torch.zeros_like(coordinates[:1]), coordinates])
    return padded[index] * sign.reshape(-1, *[1] * (coordinates.dim() - 1))


def composed(
    x: Tensor,
    coordinates: Tensor,
    bias: Tensor | None,
    height: int,
    width: int,
    channels_in: int,
    channels_out: int,
    radius: float,
) -> Tensor:
    """:func:`apply` of operations of torch: for other devices, and as an oracle."""
    real, imaginary = places(height, width, radius, coordinates.shape[0])
    pairs = coordinates.reshape(coordinates.shape[0], channels_in, channels_out)
    rows = max(height, 1)
    spectrum = torch.complex(_part(pairs, real), _part(pairs, imaginary))
    spectrum = spectrum.reshape(rows, width // 2 + 1, channels_in, channels_out)
    images = torch.fft.rfft2(x.reshape(-1, channels_in, rows, width))
    mixed = torch.einsum("nchw,hwco->nohw", images, spectrum)
    y = torch.fft.irfft2(mixed, s=(rows, width)).flatten(1)
    if bias is None:
        return y
    return y + (bias.repeat_interleave(rows * width) if bias.shape[0] == channels_out else bias)


def _composed_gradients(
    x: Tensor, coordinates: Tensor, bias: Tensor | None, grad: Tensor, arguments: tuple[Any, ...], wants_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    inputs = [tensor.detach().requires_grad_() for tensor in (x, coordinates, bias) if tensor is not None]
    with torch.enable_grad():
        y = composed(inputs[0], inputs[1], inputs[2] if bias is not None else None, *arguments)
    grad_x, grad_coordinates, *grad_bias = torch.autograd.grad(y, inputs, grad)
    none = x.new_empty((0,))
    return (grad_x if wants_x else none), grad_coordinates, (grad_bias[0] if grad_bias else none.clone())


@torch.library.custom_op("circulant::gaussian_kl", mutates_args=())
def gaussian_kl(
    mean: Tensor, factor: Tensor, scale: Tensor, log_deviation: Tensor, prior_variance: Tensor, jitter: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The KL of a low-rank Gaussian from the prior, and its gradients (of mean, factor, scale, log_deviation)."""
    arrays = [_array(tensor.contiguous()) for tensor in (mean, factor, scale, log_deviation)]
    value, gradients = _engine.gaussian_kl_gradients(*arrays, jitter, _array(prior_variance.contiguous()))
    of_mean, of_factor, of_scale, of_deviation = (torch.from_numpy(gradient) for gradient in gradients)
    return (
        torch.tensor(value, dtype=mean.dtype),
        of_mean,
        of_factor.reshape(factor.shape),
        of_scale,
        of_deviation,
    )


@gaussian_kl.register_fake
def _(
    mean: Tensor, factor: Tensor, scale: Tensor, log_deviation: Tensor, prior_variance: Tensor, jitter: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    like = torch.empty_like
    return mean.new_empty(()), like(mean), like(factor), like(scale), like(log_deviation)


def _kl_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:])


def _kl_backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    gradients = [grad * gradient for gradient in ctx.saved_tensors]
    return (*gradients, None, None)


gaussian_kl.register_autograd(_kl_backward, setup_context=_kl_setup)
