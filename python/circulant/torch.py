"""Circulant layers for PyTorch, on the kernels of the engine.

===============================  ====================================================================
:class:`SpectralCirculant1d`     takes the place of a square ``Linear``
:class:`BlockCirculant1d`        takes the place of any ``Linear``: a matrix of circulant blocks
:class:`SpectralBccb2d`          takes the place of a ``Conv2d`` on images of one size
:class:`Circulant1d`             a circulant layer with a spatial filter
:class:`Bccb2d`                  the same for images
:func:`surgery`                  block-circulant layers in the place of the dense ones of a model
:func:`lipschitz_bound`          an upper bound of a model's Lipschitz constant
:func:`bayesian`                 a posterior in the place of every parameter
===============================  ====================================================================

>>> import torch
>>> from circulant.torch import SpectralCirculant1d
>>> layer = SpectralCirculant1d(784, modes=100)
>>> y = layer(torch.ones(32, 784))
>>> y.sum().backward()
>>> sum(p.numel() for p in layer.parameters())
200
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._torch_ops import apply_now, engine_operator, gaussian_kl, places, torch
from .functional import NormEnclosure, prior_variances

# isort: split
from torch import Tensor, nn

__all__ = [
    "Bayesian",
    "Bccb2d",
    "BlockCirculant1d",
    "Circulant1d",
    "SpectralBccb2d",
    "SpectralCirculant1d",
    "bayesian",
    "lipschitz_bound",
    "surgery",
]


class _Layer(nn.Module):
    """An operator ``(height, width, channels_in, channels_out, radius)`` with coordinates ``[own, C_in, C_out]``."""

    def __init__(self, height: int, width: int, channels_in: int, channels_out: int, radius: float, own: int) -> None:
        super().__init__()
        self._key = (int(height), int(width), int(channels_in), int(channels_out), float(radius))
        engine_operator(*self._key, own)  # refuses impossible sizes

    def _coordinates(self) -> Tensor:
        raise NotImplementedError

    def _apply_to(self, x: Tensor, bias: Tensor | None) -> Tensor:
        return apply_now(x, self._coordinates(), bias, self._key)

    def operator_norm(self) -> NormEnclosure:
        """The largest singular value of the layer as it is, enclosed."""
        coordinates = self._coordinates().detach().cpu().double().contiguous()
        operator = engine_operator(*self._key, coordinates.shape[0])
        return NormEnclosure(*operator.norm(coordinates.numpy()))


def _expect(x: Tensor, shape: tuple[int, ...], name: str) -> None:
    if x.dim() < len(shape) or tuple(x.shape[x.dim() - len(shape) :]) != shape:
        raise ValueError(f"{name}: expected an input [..., {', '.join(map(str, shape))}], got {tuple(x.shape)}")


def _initial(own: int, variances: np.ndarray, fan: int, factory: dict[str, Any], shape: tuple[int, ...]) -> nn.Parameter:
    """Coordinates that keep the size of an input: eigenvalues of mean square ``1 / fan``."""
    deviation = torch.as_tensor(np.sqrt(variances / fan), **factory).reshape(own, *[1] * (len(shape) - 1))
    return nn.Parameter(torch.randn(shape, **factory) * deviation)


class SpectralCirculant1d(_Layer):
    """``y = irfft(h * rfft(x)) + b``; the parameters are the free real coordinates of ``h``.

    Parameters
    ----------
    features : int
    modes : int, optional
        The lowest bins alone.
    bias : bool
        One number for all outputs.

    Shapes: ``[..., features]`` to ``[..., features]``.
    """

    def __init__(
        self, features: int, modes: int | None = None, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        variances = prior_variances(features, modes=modes, alpha=0.0, deviation=math.sqrt(2.0))
        super().__init__(0, features, 1, 1, 1.0, len(variances))
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        self.features, self.modes = features, modes
        self.coordinates = _initial(len(variances), variances, 1, factory, (len(variances),))
        self.bias = nn.Parameter(torch.zeros(1, **factory)) if bias else None

    def _coordinates(self) -> Tensor:
        return self.coordinates

    def forward(self, x: Tensor) -> Tensor:
        _expect(x, (self.features,), "SpectralCirculant1d")
        return self._apply_to(x.reshape(-1, self.features), self.bias).reshape(x.shape)

    def extra_repr(self) -> str:
        return f"{self.features}, modes={self.modes}, bias={self.bias is not None}"


class BlockCirculant1d(_Layer):
    """A matrix of circulant blocks, for any number of inputs and outputs: ``1 / block`` of a dense layer's weights.

    Sizes that ``block`` does not divide are filled up with zeros.

    Parameters
    ----------
    in_features, out_features : int
    block : int
    bias : bool

    Shapes: ``[..., in_features]`` to ``[..., out_features]``.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        block: int = 16,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        for name, size in (("in_features", in_features), ("out_features", out_features), ("block", block)):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"{name}: expected a whole number of at least 1, got {size!r}")
        blocks_in, blocks_out = -(-in_features // block), -(-out_features // block)
        super().__init__(1, block, blocks_in, blocks_out, 1.0, block)
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        self.in_features, self.out_features, self.block = in_features, out_features, block
        variances = prior_variances((1, block), alpha=0.0, deviation=math.sqrt(2.0)).reshape(-1)
        self.coordinates = _initial(block, variances, blocks_in, factory, (block, blocks_in, blocks_out))
        self.bias = nn.Parameter(torch.zeros(out_features, **factory)) if bias else None

    @classmethod
    def of_linear(cls, linear: nn.Linear, block: int = 16) -> BlockCirculant1d:
        """The block-circulant layer nearest to a dense one, in the Frobenius norm."""
        weight = linear.weight.detach()
        layer = cls(
            linear.in_features, linear.out_features, block, linear.bias is not None, weight.device, weight.dtype
        )
        blocks_in, blocks_out = layer._key[2:4]
        padded = weight.new_zeros(blocks_out * block, blocks_in * block)
        padded[: linear.out_features, : linear.in_features] = weight
        blocks = padded.reshape(blocks_out, block, blocks_in, block)
        # Means along the diagonals of every block that goes round.
        column = torch.arange(block, device=weight.device)
        shifts = (column[:, None] + column[None, :]) % block
        filters = blocks[:, shifts, :, column[None, :].expand_as(shifts)].mean(dim=1)
        with torch.no_grad():
            layer.coordinates.copy_(_coordinates_of(filters, block))
            if layer.bias is not None:
                layer.bias.copy_(linear.bias)
        return layer

    def _coordinates(self) -> Tensor:
        return self.coordinates

    def forward(self, x: Tensor) -> Tensor:
        _expect(x, (self.in_features,), "BlockCirculant1d")
        _, block, blocks_in, blocks_out, _ = self._key
        rows = x.reshape(-1, self.in_features)
        if blocks_in * block != self.in_features:
            rows = nn.functional.pad(rows, (0, blocks_in * block - self.in_features))
        bias = self.bias
        outputs = blocks_out * block
        if bias is not None and outputs != self.out_features:
            bias = nn.functional.pad(bias, (0, outputs - self.out_features))
        if bias is not None and blocks_out == outputs:
            # With blocks of one value both kinds of bias are the same.
            bias = bias.reshape(outputs)
        y = self._apply_to(rows, bias)
        if outputs != self.out_features:
            # Only then: the gradient of a part is copied into zeros.
            y = y[:, : self.out_features]
        return y.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, block={self.block}, bias={self.bias is not None}"


class SpectralBccb2d(_Layer):
    """``Y[o] = irfft2(sum_c K[o,c] * rfft2(X[c])) + b[o]``: a convolution of any reach on a torus.

    Parameters
    ----------
    in_channels, out_channels : int
    size : (int, int)
        Height and width of the images.
    radius : float
        Only bins within this share of the largest radius.
    bias : bool
        One number per output channel.

    Shapes: ``[..., in_channels, height, width]`` to ``[..., out_channels, height, width]``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        size: tuple[int, int],
        radius: float = 1.0,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        height, width = size
        variances = prior_variances((height, width), radius=radius, alpha=0.0, deviation=math.sqrt(2.0)).reshape(-1)
        super().__init__(height, width, in_channels, out_channels, radius, len(variances))
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        self.shape_in, self.shape_out = (in_channels, height, width), (out_channels, height, width)
        shape = (len(variances), in_channels, out_channels)
        self.coordinates = _initial(len(variances), variances, in_channels, factory, shape)
        self.bias = nn.Parameter(torch.zeros(out_channels, **factory)) if bias else None

    def _coordinates(self) -> Tensor:
        return self.coordinates

    def forward(self, x: Tensor) -> Tensor:
        _expect(x, self.shape_in, type(self).__name__)
        y = self._apply_to(x.reshape(-1, math.prod(self.shape_in)), self.bias)
        return y.reshape(*x.shape[:-3], *self.shape_out)

    def extra_repr(self) -> str:
        return f"{self.shape_in} -> {self.shape_out}, radius={self._key[4]}, bias={self.bias is not None}"


class Circulant1d(SpectralCirculant1d):
    """A circulant layer whose parameter is the spatial filter ``[features]``: ``y = w (*) x + b``."""

    def __init__(self, features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(features, None, bias, device, dtype)
        shape = self.coordinates.shape
        del self.coordinates
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        self.filter = nn.Parameter(torch.randn(shape, **factory) / math.sqrt(features))

    def _coordinates(self) -> Tensor:
        return _pack(torch.fft.rfft(self.filter), places(0, self.features, 1.0, self.features))


class Bccb2d(SpectralBccb2d):
    """The same for images: filters ``[out_channels, in_channels, height, width]``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        size: tuple[int, int],
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, size, 1.0, bias, device, dtype)
        del self.coordinates
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        shape = (out_channels, in_channels, *size)
        self.filter = nn.Parameter(torch.randn(shape, **factory) / math.sqrt(in_channels * math.prod(size)))

    def _coordinates(self) -> Tensor:
        height, width, *_ = self._key
        bins = torch.fft.rfft2(self.filter).permute(2, 3, 1, 0).flatten(0, 1)
        return _pack(bins, places(height, width, 1.0, height * width))


def _pack(bins: Tensor, parts: tuple[np.ndarray, np.ndarray]) -> Tensor:
    """The coordinates of stored bins ``[bins, ...]``: every one from the first place where it stands with its own sign."""
    own = max(int(np.abs(part).max()) for part in parts)
    real, imaginary = parts
    index = np.full(own, -1)
    of_imaginary = np.zeros(own, dtype=bool)
    for part, is_imaginary in ((real, False), (imaginary, True)):
        for place in np.flatnonzero(part > 0)[::-1]:
            index[part[place] - 1] = place
            of_imaginary[part[place] - 1] = is_imaginary
    picked = bins[torch.as_tensor(index, device=bins.device)]
    choose = torch.as_tensor(of_imaginary, device=bins.device).reshape(-1, *[1] * (bins.dim() - 1))
    return torch.where(choose, picked.imag, picked.real)


def _coordinates_of(filters: Tensor, block: int) -> Tensor:
    """Of the filters of blocks ``[block, blocks_out, blocks_in]``, as ``[block, blocks_in, blocks_out]``."""
    bins = torch.fft.rfft(filters, dim=0).permute(0, 2, 1)
    return _pack(bins, places(1, block, 1.0, block))


def surgery(model: nn.Module, block: int = 16, *, skip: Callable[[str, nn.Linear], bool] | None = None) -> nn.Module:
    """Put the nearest block-circulant layer in the place of every ``Linear`` of a model, in place.

    Parameters
    ----------
    model : Module
        A ``Linear`` itself is returned as a layer.
    block : int
        Layers with fewer inputs or outputs stay as they are.
    skip : function of path and layer, optional
        Which layers stay as they are, for example the last one.

    Returns
    -------
    Module
        The same model.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    >>> surgery(model, block=16)[0]
    BlockCirculant1d(64, 32, block=16, bias=True)
    """
    if type(model) is nn.Linear:
        return BlockCirculant1d.of_linear(model, block)
    for path, module in list(model.named_modules()):
        for name, child in list(module.named_children()):
            own = f"{path}.{name}" if path else name
            small = type(child) is nn.Linear and min(child.in_features, child.out_features) < block
            if type(child) is nn.Linear and not small and not (skip is not None and skip(own, child)):
                setattr(module, name, BlockCirculant1d.of_linear(child, block))
    return model


#: What is at most 1-Lipschitz in evaluation mode.
_AT_MOST_ONE = (
    nn.Identity, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.ELU, nn.LogSigmoid, nn.Hardtanh, nn.ReLU6,
    nn.Softsign, nn.Tanhshrink, nn.Flatten, nn.Unflatten, nn.MaxPool1d, nn.AvgPool1d, nn.Softmax,
)  # fmt: skip


def lipschitz_bound(model: nn.Module) -> float:
    """An upper bound of the Lipschitz constant (2-norm) of a layer or a ``Sequential`` of layers, in evaluation mode.

    Norms are enclosed in float64; the rounding of the forward pass itself is not part of the promise. A layer whose norm is
    not known is a :class:`TypeError` that names it.
    """
    if isinstance(model, nn.Sequential):
        bound = 1.0
        for layer in model:
            bound = math.nextafter(bound * lipschitz_bound(layer), math.inf)
        return bound
    if isinstance(model, _Layer):
        return float(model.operator_norm().upper)
    if type(model) is nn.Linear:
        weight = model.weight.detach().cpu().double()
        operator = engine_operator(1, 1, model.in_features, model.out_features, 1.0, 1)
        return float(operator.norm(weight.T.contiguous().reshape(1, *weight.T.shape).numpy())[1])
    if isinstance(model, nn.Dropout | nn.Dropout1d | nn.Dropout2d) and not model.training:
        return 1.0
    # Kernels of pooling that overlap count a value several times.
    if isinstance(model, nn.MaxPool1d | nn.AvgPool1d) and model.kernel_size != model.stride:
        raise TypeError(f"{type(model).__name__}: a bound is known only where stride and kernel are the same")
    if isinstance(model, _AT_MOST_ONE) and getattr(model, "alpha", 1.0) <= 1.0:
        return 1.0
    if isinstance(model, nn.LeakyReLU):
        return max(1.0, abs(model.negative_slope))
    if isinstance(model, nn.GELU):
        return 1.13
    if isinstance(model, nn.SiLU):
        return 1.1
    raise TypeError(
        f"no Lipschitz bound is known for {type(model).__name__}; use a Sequential of linear, circulant and activation "
        "layers in evaluation mode"
    )


class _Site(nn.Module):
    """The posterior of one parameter: low-rank for spectral coordinates, else mean-field."""

    prior_variance: Tensor

    def __init__(self, value: Tensor, variances: Tensor | None, rank: int, deviation: float) -> None:
        super().__init__()
        size = value.numel()
        if variances is None:
            rank, variances = 0, torch.ones(1)
        root = float(value.detach().double().square().mean().sqrt()) or 1.0 / math.sqrt(max(size, 1))
        make = value.detach().new_empty
        self.shape = value.shape
        self.mean = nn.Parameter(value.detach().clone().reshape(-1))
        self.log_deviation = nn.Parameter(make(size).fill_(math.log(deviation * root)))
        self.factor = nn.Parameter(make(size, rank).normal_() / math.sqrt(max(size, 1)))
        self.scale = nn.Parameter(make(rank).fill_(deviation * root))
        self.register_buffer("prior_variance", variances.to(value.dtype).reshape(-1))

    def sample(self) -> Tensor:
        noise = torch.randn_like(self.mean) * self.log_deviation.exp()
        low_rank = self.factor @ (self.scale * torch.randn_like(self.scale))
        return (self.mean + noise + low_rank).reshape(self.shape)

    def kl(self) -> Tensor:
        arguments = self.mean, self.factor, self.scale, self.log_deviation
        return gaussian_kl(*arguments, self.prior_variance, 0.0)[0]


class Bayesian(nn.Module):
    """A distribution over the parameters of a model, made by :func:`bayesian`.

    Called, it runs the model with parameters that are drawn anew; :meth:`kl` is what a training loop adds to the loss.

    Examples
    --------
    >>> model = bayesian(torch.nn.Sequential(SpectralCirculant1d(16), torch.nn.Tanh(), torch.nn.Linear(16, 3)))
    >>> x, y = torch.randn(8, 16), torch.zeros(8, dtype=torch.long)
    >>> loss = torch.nn.functional.cross_entropy(model(x), y) + model.kl() / 1000
    >>> loss.backward()
    """

    def __init__(self, model: nn.Module, rank: int = 8, initial_deviation: float = 0.7, alpha: float = 1.0) -> None:
        super().__init__()
        # Not a submodule: its own parameters are not trained.
        self.__dict__["model"] = model
        self.sites = nn.ModuleDict()
        self._paths: dict[str, str] = {}
        layers = dict(model.named_modules())
        for path, value in model.named_parameters():
            if not value.requires_grad:
                continue
            owner, _, name = path.rpartition(".")
            layer = layers[owner]
            variances = None
            if name == "coordinates" and isinstance(layer, _Layer):
                variances = torch.as_tensor(_prior_of(layer, alpha))
            key = path.replace(".", "/")
            self.sites[key] = _Site(value, variances, rank, initial_deviation)
            self._paths[key] = path

    def draw(self) -> dict[str, Tensor]:
        """Parameters by their paths, drawn from the posterior; gradients flow through them."""
        return {path: self.sites[key].sample() for key, path in self._paths.items()}  # type: ignore[operator]

    def mean(self) -> dict[str, Tensor]:
        """Parameters by their paths, at the means of the posterior."""
        return {path: self.sites[key].mean.reshape(self.sites[key].shape) for key, path in self._paths.items()}

    def forward(self, *inputs: Any, **others: Any) -> Any:
        return torch.func.functional_call(self.model, self.draw(), inputs, others)

    def kl(self) -> Tensor:
        """The KL divergence of the posterior from the prior, in nats."""
        return torch.stack([site.kl() for site in self._sites()]).sum()

    def _sites(self) -> Iterator[_Site]:
        yield from self.sites.values()  # type: ignore[misc]


def _prior_of(layer: _Layer, alpha: float) -> np.ndarray:
    height, width, channels_in, channels_out, radius = layer._key
    if height == 0:
        return prior_variances(width, modes=getattr(layer, "modes", None), alpha=alpha)
    return prior_variances((height, width), radius=radius, channels=(channels_in, channels_out), alpha=alpha)


def bayesian(
    model: nn.Module, *, rank: int = 8, initial_deviation: float = 0.7, alpha: float = 1.0
) -> Bayesian:
    """Put a posterior in the place of every trained parameter of a model.

    Spectral coordinates get a low-rank Gaussian and the spectral prior (how fast it falls with frequency: ``alpha``),
    everything else a mean-field Gaussian and a standard normal prior.

    Parameters
    ----------
    model : Module
        Its values are the first means.
    rank : int
        Of the posterior of spectral coordinates.
    initial_deviation : float
        In units of the root mean square of a parameter.
    """
    return Bayesian(model, rank, initial_deviation, alpha)
