"""Circulant operators, their gradients and norms, the spectral prior and Gaussian posteriors on NumPy arrays.

A circulant operator is ``y = irfft(h * rfft(x)) + b``. Its parameters are the free real *coordinates* of the half
spectrum ``h``: the real part of bin 0, then real and imaginary part of every further bin, and for an even length the real
part of the last one. The lowest ``K`` bins alone have ``2 K - 1`` coordinates; how many there are says which bins are kept.

===================================================  ====================================================
:func:`circulant`, :func:`circulant_gradients`       signals ``[..., d]``
:func:`block_circulant`, ``..._gradients``           signals ``[..., inputs]`` in blocks of circulant matrices
:func:`bccb`, :func:`bccb_gradients`                 images ``[..., C_in, H, W]``
:func:`half_spectrum`, :func:`filter_coordinates`    between coordinates, spectra and spatial filters
:func:`operator_norm`, :func:`singular_values`       what an operator does at most
:func:`prior_variances`, :func:`draw_prior`          the stationary Gaussian process over filters
:func:`gaussian_kl`, :func:`sample_gaussian`         low-rank and mean-field posteriors
===================================================  ====================================================

All functions take float32 and float64 (a mixture is computed in float64), release Python's lock and run on
:func:`circulant.num_threads` threads.

>>> import numpy as np
>>> from circulant import functional
>>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
>>> functional.circulant(x, [1.0, 1.0, 0.0, 1.0], bias=0.5)  # h = (1, 1, 1): the identity
array([[1.5, 2.5, 3.5, 4.5]])
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _engine
from ._arrays import Float64Array, FloatArray, contiguous, count, double, floats, seed_of

__all__ = [
    "Gradients",
    "KlGradients",
    "NormEnclosure",
    "bccb",
    "bccb_gradients",
    "block_circulant",
    "block_circulant_gradients",
    "circulant",
    "circulant_gradients",
    "clip_norm",
    "draw_filters",
    "draw_prior",
    "filter_coordinates",
    "gaussian_kl",
    "gaussian_kl_gradients",
    "half_spectrum",
    "operator_norm",
    "prior_variances",
    "sample_gaussian",
    "singular_values",
    "spatial_filter",
]


class Gradients(NamedTuple):
    """The gradients of an operator; ``bias`` is None where there is none."""

    x: FloatArray
    coordinates: FloatArray
    bias: FloatArray | None


class NormEnclosure(NamedTuple):
    """Two numbers with the norm between them, rounded outward."""

    lower: float
    upper: float


class KlGradients(NamedTuple):
    """A KL divergence and its gradients; those of factor and scale are None for a mean-field posterior."""

    value: float
    mean: FloatArray
    log_deviation: FloatArray
    factor: FloatArray | None
    scale: FloatArray | None


@lru_cache(maxsize=64)
def _signal(length: int, coordinates: int) -> _engine.Operator:
    """The operator on signals that has so many coordinates."""
    whole = coordinates == length
    if not whole and (coordinates % 2 == 0 or not 0 < coordinates < length):
        raise ValueError(
            f"coordinates: expected {length} for all bins of a signal of length {length}, or 2 K - 1 for its lowest K "
            f"bins, got {coordinates}"
        )
    return _engine.Operator.signal(length, None if whole else (coordinates + 1) // 2)


@lru_cache(maxsize=64)
def _image(height: int, width: int, channels_in: int, channels_out: int, radius: float) -> _engine.Operator:
    return _engine.Operator.image(height, width, channels_in, channels_out, radius)


def _tanh(activation: str | None) -> bool:
    if activation not in (None, "tanh"):
        raise ValueError(f"activation: expected None or 'tanh', got {activation!r}")
    return activation == "tanh"


def _rank(name: str, array: FloatArray, least: int, shape: str) -> None:
    if array.ndim < least or 0 in array.shape:
        raise ValueError(f"{name}: expected a filled array {shape}, got the shape {array.shape}")


def _forward(
    operator: _engine.Operator,
    x: FloatArray,
    coordinates: FloatArray,
    bias: FloatArray | None,
    shape: tuple[int, ...],
    activation: str | None,
) -> FloatArray:
    y = np.empty(shape, x.dtype)
    operator.forward(x, coordinates, bias, _tanh(activation), y)
    return y


def _gradients(
    operator: _engine.Operator,
    x: FloatArray,
    coordinates: FloatArray,
    bias: FloatArray | None,
    grad_y: FloatArray,
    shape: tuple[int, ...],
    activation: str | None,
) -> Gradients:
    if grad_y.shape != shape:
        raise ValueError(f"grad_y: expected the shape of the output, {shape}, got {grad_y.shape}")
    tanh = _tanh(activation)
    y = _forward(operator, x, coordinates, bias, shape, activation) if tanh else None
    gradients = Gradients(np.empty_like(x), np.empty_like(coordinates), None if bias is None else np.empty_like(bias))
    operator.backward(x, coordinates, bias, tanh, y, grad_y, *gradients)
    return gradients


def _signal_arguments(
    x: FloatArray, coordinates: FloatArray, bias: FloatArray | None
) -> tuple[_engine.Operator, tuple[int, ...]]:
    _rank("x", x, 1, "[..., d]")
    _rank("coordinates", coordinates, 1, "[d_eff] or [filters, d_eff]")
    if coordinates.ndim > 2:
        raise ValueError(f"coordinates: expected [d_eff] or [filters, d_eff], got the shape {coordinates.shape}")
    filters = coordinates.shape[:-1]
    length = x.shape[-1]
    _check_bias(bias, filters, (), (length,))
    return _signal(length, coordinates.shape[-1]), filters + x.shape


def _check_bias(
    bias: FloatArray | None, filters: tuple[int, ...], each: tuple[int, ...], all_of_them: tuple[int, ...]
) -> None:
    """A bias is one number per output channel, or one per output element; for every filter."""
    if bias is None:
        return
    expected = [filters + each, filters + all_of_them]
    if bias.shape not in expected:
        raise ValueError(f"bias: expected the shape {expected[0]} or {expected[1]}, got {bias.shape}")


def circulant(
    x: npt.ArrayLike,
    coordinates: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    activation: str | None = None,
) -> FloatArray:
    """Apply a circulant operator: ``y = irfft(h * rfft(x)) + b``.

    Parameters
    ----------
    x : array, [..., d]
    coordinates : array, [d_eff] or [filters, d_eff]
        Of the half spectrum. Several filters share one transform of the input.
    bias : number or array, [] or [d], optional
        With several filters, ``[filters]`` or ``[filters, d]``.
    activation : None or 'tanh'
        What follows the bias.

    Returns
    -------
    array, [..., d] or [filters, ..., d]

    Examples
    --------
    >>> delay = [1.0, 0.0, -1.0, -1.0]  # h = (1, -i, -1)
    >>> circulant(np.array([1.0, 2.0, 3.0, 4.0]), delay)
    array([4., 1., 2., 3.])
    """
    x, coordinates, bias = floats(x=x, coordinates=coordinates, bias=bias)
    operator, shape = _signal_arguments(x, coordinates, bias)
    return _forward(operator, x, coordinates, bias, shape, activation)


def circulant_gradients(
    x: npt.ArrayLike,
    coordinates: npt.ArrayLike,
    grad_y: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    activation: str | None = None,
) -> Gradients:
    """The gradients of :func:`circulant` from that of its output.

    Parameters
    ----------
    x, coordinates, bias, activation
        As in :func:`circulant`.
    grad_y : array
        Of the shape of the output.

    Returns
    -------
    Gradients
        ``(x, coordinates, bias)``, of the shapes of the arguments.
    """
    x, coordinates, grad_y, bias = floats(x=x, coordinates=coordinates, grad_y=grad_y, bias=bias)
    operator, shape = _signal_arguments(x, coordinates, bias)
    return _gradients(operator, x, coordinates, bias, grad_y, shape, activation)


def _block_arguments(
    x: FloatArray, coordinates: FloatArray, bias: FloatArray | None
) -> tuple[_engine.Operator, tuple[int, ...]]:
    _rank("x", x, 1, "[..., inputs]")
    if coordinates.ndim != 3 or 0 in coordinates.shape:
        raise ValueError(
            f"coordinates: expected an array [block, inputs / block, outputs / block], got the shape {coordinates.shape}"
        )
    block, blocks_in, blocks_out = coordinates.shape
    if x.shape[-1] != block * blocks_in:
        raise ValueError(
            f"x: expected {blocks_in} blocks of {block} values as the last dimension, got the shape {x.shape}"
        )
    _check_bias(bias, (), (block * blocks_out,), (block * blocks_out,))
    return _image(1, block, blocks_in, blocks_out, 1.0), (*x.shape[:-1], block * blocks_out)


def block_circulant(
    x: npt.ArrayLike,
    coordinates: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    activation: str | None = None,
) -> FloatArray:
    """Apply a matrix of circulant blocks: any number of inputs and outputs that ``block`` divides.

    Parameters
    ----------
    x : array, [..., inputs]
    coordinates : array, [block, inputs / block, outputs / block]
    bias : array, [outputs], optional
    activation : None or 'tanh'

    Returns
    -------
    array, [..., outputs]
    """
    x, coordinates, bias = floats(x=x, coordinates=coordinates, bias=bias)
    operator, shape = _block_arguments(x, coordinates, bias)
    return _forward(operator, x, coordinates, bias, shape, activation)


def block_circulant_gradients(
    x: npt.ArrayLike,
    coordinates: npt.ArrayLike,
    grad_y: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    activation: str | None = None,
) -> Gradients:
    """The gradients of :func:`block_circulant` from that of its output."""
    x, coordinates, grad_y, bias = floats(x=x, coordinates=coordinates, grad_y=grad_y, bias=bias)
    operator, shape = _block_arguments(x, coordinates, bias)
    return _gradients(operator, x, coordinates, bias, grad_y, shape, activation)


def _image_arguments(
    x: FloatArray, coordinates: FloatArray, bias: FloatArray | None, radius: float
) -> tuple[_engine.Operator, tuple[int, ...]]:
    _rank("x", x, 3, "[..., C_in, H, W]")
    if coordinates.ndim not in (3, 4) or 0 in coordinates.shape:
        raise ValueError(
            "coordinates: expected an array [coordinates, C_in, C_out] or [filters, coordinates, C_in, C_out], "
            f"got the shape {coordinates.shape}"
        )
    *filters, own, channels_in, channels_out = coordinates.shape
    *batch, channels, height, width = x.shape
    if channels != channels_in:
        raise ValueError(f"x: expected {channels_in} channels as the coordinates have, got the shape {x.shape}")
    operator = _image(height, width, channels_in, channels_out, float(radius))
    expected = operator.coordinates // (channels_in * channels_out)
    if own != expected:
        raise ValueError(
            f"coordinates: expected {expected} per channel pair for images of {height} x {width} within the radius "
            f"{radius}, got {own}"
        )
    _check_bias(bias, tuple(filters), (channels_out,), (channels_out, height, width))
    return operator, (*filters, *batch, channels_out, height, width)


def bccb(
    x: npt.ArrayLike,
    coordinates: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    radius: float = 1.0,
    activation: str | None = None,
) -> FloatArray:
    """Apply a block-circulant operator with circulant blocks: ``Y[o] = irfft2(sum_c K[o,c] * rfft2(X[c])) + b[o]``.

    Parameters
    ----------
    x : array, [..., C_in, H, W]
    coordinates : array, [coordinates, C_in, C_out]
        Of the half plane; with several filters one dimension more, at the front.
    bias : array, [C_out] or [C_out, H, W], optional
    radius : float
        Only bins within this share of the largest radius are kept.
    activation : None or 'tanh'

    Returns
    -------
    array, [..., C_out, H, W]
    """
    x, coordinates, bias = floats(x=x, coordinates=coordinates, bias=bias)
    operator, shape = _image_arguments(x, coordinates, bias, radius)
    return _forward(operator, x, coordinates, bias, shape, activation)


def bccb_gradients(
    x: npt.ArrayLike,
    coordinates: npt.ArrayLike,
    grad_y: npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    radius: float = 1.0,
    activation: str | None = None,
) -> Gradients:
    """The gradients of :func:`bccb` from that of its output."""
    x, coordinates, grad_y, bias = floats(x=x, coordinates=coordinates, grad_y=grad_y, bias=bias)
    operator, shape = _image_arguments(x, coordinates, bias, radius)
    return _gradients(operator, x, coordinates, bias, grad_y, shape, activation)


#: ``d`` of a signal, or ``(H, W)`` of an image.
Size = int | tuple[int, int]


def _layout(size: Any, radius: float = 1.0, channels: tuple[int, int] = (1, 1)) -> tuple[int, int, int, int, float]:
    height, width = size
    channels_in, channels_out = channels
    return (
        count("the height", height),
        count("the width", width),
        count("the input channels", channels_in),
        count("the output channels", channels_out),
        float(radius),
    )


def _operator_of(coordinates: FloatArray, size: Any, radius: float) -> _engine.Operator:
    """The operator whose coordinates these are: of a signal, or of an image."""
    if isinstance(size, tuple | list):
        if coordinates.ndim != 3 or 0 in coordinates.shape:
            raise ValueError(
                f"coordinates: expected an array [coordinates, C_in, C_out], got the shape {coordinates.shape}"
            )
        operator = _image(*_layout(size, radius, coordinates.shape[1:]))
        if operator.coordinates != coordinates.size:
            pairs = coordinates.shape[1] * coordinates.shape[2]
            raise ValueError(
                f"coordinates: expected {operator.coordinates // pairs} per channel pair, got {coordinates.shape[0]}"
            )
        return operator
    if coordinates.ndim != 1 or coordinates.size == 0:
        raise ValueError(f"coordinates: expected an array [d_eff], got the shape {coordinates.shape}")
    return _signal(count("size", size), coordinates.size)


def half_spectrum(coordinates: npt.ArrayLike, size: Size, *, radius: float = 1.0) -> npt.NDArray[Any]:
    """The half spectrum of coordinates, zero where a bin is not kept.

    Parameters
    ----------
    coordinates : array, [d_eff] or [coordinates, C_in, C_out]
    size : int or (int, int)
        The length of the signal, or height and width of the image.
    radius : float
        Of the bins that are kept, for images.

    Returns
    -------
    complex array, [d // 2 + 1] or [H, W // 2 + 1, C_in, C_out]

    Examples
    --------
    >>> half_spectrum([1.0, 0.0, -1.0, -1.0], 4)
    array([ 1.+0.j,  0.-1.j, -1.+0.j])
    """
    (array,) = floats(coordinates=coordinates)
    operator = _operator_of(array, size, radius)
    bins = operator.half_spectrum(array)
    if array.ndim == 1:
        return bins
    height, width = size  # type: ignore[misc]
    return bins.reshape(height, width // 2 + 1, *array.shape[1:])


def filter_coordinates(filters: npt.ArrayLike, *, radius: float = 1.0) -> FloatArray:
    """The coordinates of the spectrum of a spatial filter.

    Parameters
    ----------
    filters : array, [d] or [C_out, C_in, H, W]
        ``y = w (*) x``, a circular convolution.
    radius : float
        Of the bins that are kept, for images.

    Returns
    -------
    array, [d] or [coordinates, C_in, C_out]
    """
    (array,) = floats(filters=filters)
    if array.ndim == 1 and array.size:
        operator = _signal(array.size, array.size)
        coordinates = np.empty_like(array)
    elif array.ndim == 4 and array.size:
        channels_out, channels_in, height, width = array.shape
        operator = _image(height, width, channels_in, channels_out, float(radius))
        own = operator.coordinates // (channels_in * channels_out)
        coordinates = np.empty((own, channels_in, channels_out), array.dtype)
    else:
        raise ValueError(f"filters: expected a filled array [d] or [C_out, C_in, H, W], got the shape {array.shape}")
    operator.analyse(array, coordinates)
    return coordinates


def spatial_filter(coordinates: npt.ArrayLike, size: Size, *, radius: float = 1.0) -> FloatArray:
    """The spatial filter of coordinates: the inverse of :func:`filter_coordinates` on all bins.

    Examples
    --------
    >>> spatial_filter([1.0, 0.0, -1.0, -1.0], 4)  # a delay by one
    array([0., 1., 0., 0.])
    """
    (array,) = floats(coordinates=coordinates)
    operator = _operator_of(array, size, radius)
    shape = (size,) if array.ndim == 1 else (array.shape[2], array.shape[1], *size)  # type: ignore[misc]
    filters = np.empty(shape, array.dtype)
    operator.synthesise(array, filters)
    return filters


def operator_norm(coordinates: npt.ArrayLike, size: Size, *, radius: float = 1.0) -> NormEnclosure:
    """The largest singular value of an operator, enclosed: ``max |h_k|`` for a signal.

    Parameters
    ----------
    coordinates : array, [d_eff] or [coordinates, C_in, C_out]
    size : int or (int, int)
        The length of the signal, or height and width of the image.

    Examples
    --------
    >>> norm = operator_norm([1.0, 3.0, 4.0, -2.0], 4)
    >>> norm.lower <= 5.0 <= norm.upper, norm.upper - norm.lower < 1e-14
    (True, True)
    """
    array = double("coordinates", coordinates)
    return NormEnclosure(*_operator_of(array, size, radius).norm(array))


def singular_values(coordinates: npt.ArrayLike, size: Size, *, radius: float = 1.0) -> Float64Array:
    """All singular values of an operator in falling order: estimates, not bounds."""
    array = double("coordinates", coordinates)
    return _operator_of(array, size, radius).singular_values(array)


def clip_norm(coordinates: npt.ArrayLike, size: Size, limit: float, *, radius: float = 1.0) -> Float64Array:
    """The coordinates of the nearest operator whose norm is at most ``limit``."""
    array = double("coordinates", coordinates)
    operator = _operator_of(array, size, radius)
    clipped = array.copy()
    operator.clip(clipped, float(limit))
    return clipped


def _prior_operator(size: Any, modes: int | None, radius: float, channels: tuple[int, int]) -> _engine.Operator:
    if isinstance(size, tuple | list):
        return _image(*_layout(size, radius, channels))
    return _engine.Operator.signal(count("size", size, most=1 << 26), None if modes is None else count("modes", modes))


def _coordinate_shape(operator: _engine.Operator, size: Any, channels: tuple[int, int]) -> tuple[int, ...]:
    if isinstance(size, tuple | list):
        return (operator.coordinates // (channels[0] * channels[1]), *channels)
    return (operator.coordinates,)


def prior_variances(
    size: Size,
    *,
    spectrum: str = "slope",
    deviation: float = 1.0,
    alpha: float = 1.0,
    length_scale: float = 0.1,
    nu: float = 1.5,
    modes: int | None = None,
    radius: float = 1.0,
    channels: tuple[int, int] = (1, 1),
) -> Float64Array:
    """The variances of coordinates under a spectral prior: a stationary Gaussian process over filters.

    Parameters
    ----------
    size : int or (int, int)
        The length of a signal, or height and width of an image.
    spectrum : 'slope', 'squared-exponential' or 'matern'
        ``sigma0**2 / (1 + rho**alpha)`` with the radius ``rho`` of a bin, or the spectrum of a kernel.
    deviation : float
        ``sigma0``; for kernels the standard deviation of the filter.
    alpha : float
        How fast the slope falls with frequency; 0 is flat.
    length_scale : float
        Of kernels, as a share of the period.
    nu : float
        The smoothness of 'matern'.
    modes : int, optional
        The lowest bins of a signal, if not all.
    radius, channels
        Bins that are kept and ``(C_in, C_out)``, for images.

    Examples
    --------
    >>> prior_variances(4, alpha=0.0)  # the parts of a complex bin have half of it
    array([0.5 , 0.25, 0.25, 0.5 ])
    """
    operator = _prior_operator(size, modes, radius, channels)
    variances = operator.prior_variances(spectrum, float(deviation), float(alpha), float(length_scale), float(nu))
    return variances.reshape(_coordinate_shape(operator, size, channels))


def draw_prior(
    size: Size,
    draws: int = 1,
    *,
    random_state: Any = None,
    spectrum: str = "slope",
    deviation: float = 1.0,
    alpha: float = 1.0,
    length_scale: float = 0.1,
    nu: float = 1.5,
    modes: int | None = None,
    radius: float = 1.0,
    channels: tuple[int, int] = (1, 1),
) -> Float64Array:
    """Coordinates drawn from a spectral prior.

    Parameters
    ----------
    size, spectrum, deviation, alpha, length_scale, nu, modes, radius, channels
        As in :func:`prior_variances`.
    draws : int
    random_state : None, int or generator
        The same number gives the same bytes.

    Returns
    -------
    array, [draws, d_eff] or [draws, coordinates, C_in, C_out]
    """
    operator = _prior_operator(size, modes, radius, channels)
    values = operator.prior_draws(
        spectrum,
        float(deviation),
        float(alpha),
        float(length_scale),
        float(nu),
        seed_of(random_state),
        count("draws", draws, most=2**40),
        False,
    )
    return values.reshape(draws, *_coordinate_shape(operator, size, channels))


def draw_filters(
    size: Size,
    draws: int = 1,
    *,
    random_state: Any = None,
    spectrum: str = "slope",
    deviation: float = 1.0,
    alpha: float = 1.0,
    length_scale: float = 0.1,
    nu: float = 1.5,
    modes: int | None = None,
    radius: float = 1.0,
    channels: tuple[int, int] = (1, 1),
) -> Float64Array:
    """Spatial filters of the process behind a spectral prior, ``[draws, d]`` or ``[draws, C_out, C_in, H, W]``.

    The covariance at distance ``t`` is ``(1/d) sum_k S(k) exp(2 pi i k t / d)``; the filter of the layer is ``w / sqrt(d)``.
    """
    operator = _prior_operator(size, modes, radius, channels)
    values = operator.prior_draws(
        spectrum,
        float(deviation),
        float(alpha),
        float(length_scale),
        float(nu),
        seed_of(random_state),
        count("draws", draws, most=2**40),
        True,
    )
    if isinstance(size, tuple | list):
        return values.reshape(draws, channels[1], channels[0], *size)
    return values.reshape(draws, size)


def _posterior(
    mean: npt.ArrayLike,
    log_deviation: npt.ArrayLike,
    factor: npt.ArrayLike | None,
    scale: npt.ArrayLike | None,
    prior_variance: npt.ArrayLike | None,
) -> tuple[list[FloatArray], FloatArray | None]:
    mean, log_deviation, factor, scale, prior_variance = floats(
        mean=mean, log_deviation=log_deviation, factor=factor, scale=scale, prior_variance=prior_variance
    )
    if (factor is None) != (scale is None):
        raise ValueError("factor and scale: expected both or none of them")
    if factor is None:
        factor, scale = np.empty((mean.size, 0), mean.dtype), np.empty(0, mean.dtype)
    if factor.shape != (mean.size, scale.size) or mean.shape != log_deviation.shape or scale.ndim != 1:
        raise ValueError(
            "expected mean and log_deviation of one shape, a factor [d, rank] and a scale [rank], got the shapes "
            f"{mean.shape}, {log_deviation.shape}, {factor.shape} and {scale.shape}"
        )
    if prior_variance is not None:
        if prior_variance.shape not in ((), (1,), mean.shape):
            raise ValueError(
                f"prior_variance: expected one number or the shape {mean.shape}, got {prior_variance.shape}"
            )
        if not (prior_variance > 0).all():
            raise ValueError("prior_variance: expected positive numbers")
        prior_variance = contiguous(prior_variance.reshape(-1), mean.dtype)
    return [mean, factor, scale, log_deviation], prior_variance


def gaussian_kl(
    mean: npt.ArrayLike,
    log_deviation: npt.ArrayLike,
    prior_variance: npt.ArrayLike = 1.0,
    *,
    factor: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    jitter: float = 0.0,
) -> float:
    """The KL divergence of a Gaussian posterior from ``N(0, diag(prior_variance))``.

    The posterior is ``N(mean, U diag(scale**2) U.T + diag(exp(2 log_deviation)) + jitter I)``; without factor and scale
    it is mean-field. No ``d x d`` matrix is made.

    Parameters
    ----------
    mean, log_deviation : array, [d]
    prior_variance : number or array, [d]
    factor : array, [d, rank], optional
    scale : array, [rank], optional
    jitter : float

    Examples
    --------
    >>> gaussian_kl(np.zeros(3), np.zeros(3))
    0.0
    """
    arrays, prior = _posterior(mean, log_deviation, factor, scale, prior_variance)
    return _engine.gaussian_kl(*arrays, float(jitter), prior)


def gaussian_kl_gradients(
    mean: npt.ArrayLike,
    log_deviation: npt.ArrayLike,
    prior_variance: npt.ArrayLike = 1.0,
    *,
    factor: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    jitter: float = 0.0,
) -> KlGradients:
    """:func:`gaussian_kl` with its gradients."""
    arrays, prior = _posterior(mean, log_deviation, factor, scale, prior_variance)
    value, gradients = _engine.gaussian_kl_gradients(*arrays, float(jitter), prior)
    of_mean, of_factor, of_scale, of_deviation = (g.reshape(a.shape) for g, a in zip(gradients, arrays))
    low_rank = factor is not None
    return KlGradients(
        value, of_mean, of_deviation, of_factor if low_rank else None, of_scale if low_rank else None
    )


def sample_gaussian(
    mean: npt.ArrayLike,
    log_deviation: npt.ArrayLike,
    draws: int = 1,
    *,
    factor: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    jitter: float = 0.0,
    random_state: Any = None,
) -> FloatArray:
    """Draws from a Gaussian posterior as in :func:`gaussian_kl`, ``[draws, d]``; the same seed gives the same bytes."""
    arrays, _ = _posterior(mean, log_deviation, factor, scale, None)
    draws = count("draws", draws, most=2**40)
    samples = _engine.gaussian_sample(*arrays, float(jitter), seed_of(random_state), draws)
    return samples.reshape(draws, *arrays[0].shape)
