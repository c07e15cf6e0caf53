"""Operators against dense matrices, gradients against central differences, KL against the formula of dense Gaussians."""

import numpy as np
import pytest
from circulant import functional as F

LENGTHS = [1, 2, 7, 8, 12, 61]


def rng(seed=0):
    return np.random.default_rng(seed)


def dense_signal(coordinates, length):
    """The matrix of a circulant operator: its filter, shifted."""
    spectrum = F.half_spectrum(coordinates, length)
    w = np.fft.irfft(spectrum, length) if length > 1 else spectrum.real
    return np.stack([np.roll(w, shift) for shift in range(length)], axis=1)


def central(f, x, step=1e-6):
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / (2 * step)
    return gradient


@pytest.mark.parametrize("length", LENGTHS)
def test_circulant_is_its_matrix(length):
    for modes in {1, (length // 2 + 1) // 2 or 1, length // 2 + 1}:
        d_eff = length if modes == length // 2 + 1 else 2 * modes - 1
        a, x = rng().normal(size=d_eff), rng(1).normal(size=(5, 3, length))
        matrix = dense_signal(a, length)
        np.testing.assert_allclose(F.circulant(x, a, 0.5), x @ matrix.T + 0.5, atol=1e-12)
        bias = rng(2).normal(size=length)
        expected = np.tanh(x @ matrix.T + bias)
        np.testing.assert_allclose(F.circulant(x, a, bias, activation="tanh"), expected, atol=1e-12)
        single = F.circulant(x.astype(np.float32), a.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, x @ matrix.T, atol=1e-4)
        svd = np.linalg.svd(matrix, compute_uv=False)
        np.testing.assert_allclose(F.singular_values(a, length), svd, atol=1e-12)
        lower, upper = F.operator_norm(a, length)
        assert lower <= svd[0] * (1 + 1e-12) and svd[0] * (1 - 1e-12) <= upper
        assert F.operator_norm(F.clip_norm(a, length, 0.25), length).upper <= 0.25 * (1 + 1e-12)


def test_several_filters_share_an_input():
    a, x, bias = rng().normal(size=(3, 8)), rng(1).normal(size=(4, 8)), rng(2).normal(size=3)
    y = F.circulant(x, a, bias)
    assert y.shape == (3, 4, 8)
    for one in range(3):
        np.testing.assert_allclose(y[one], F.circulant(x, a[one], bias[one]), atol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("activation", [None, "tanh"])
def test_gradients_of_circulant(length, activation):
    x, a, bias = rng(1).normal(size=(3, length)), rng(2).normal(size=length), rng(3).normal(size=length)
    g = rng(4).normal(size=(3, length))

    def loss(x, a, bias):
        return (F.circulant(x, a, bias, activation=activation) * g).sum()

    gradients = F.circulant_gradients(x, a, g, bias, activation=activation)
    np.testing.assert_allclose(gradients.x, central(lambda v: loss(v, a, bias), x), atol=1e-7)
    np.testing.assert_allclose(gradients.coordinates, central(lambda v: loss(x, v, bias), a), atol=1e-7)
    np.testing.assert_allclose(gradients.bias, central(lambda v: loss(x, a, v), bias), atol=1e-7)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 4), (5, 7)])
def test_bccb_is_a_convolution_on_the_torus(size):
    height, width = size
    w = rng().normal(size=(2, 3, height, width))
    a = F.filter_coordinates(w)
    assert a.shape == (height * width, 3, 2)
    np.testing.assert_allclose(F.spatial_filter(a, size), w, atol=1e-12)
    x, bias = rng(1).normal(size=(4, 3, height, width)), rng(2).normal(size=2)
    expected = np.zeros((4, 2, height, width))
    for o in range(2):
        for c in range(3):
            for u in range(height):
                for v in range(width):
                    expected[:, o] += w[o, c, u, v] * np.roll(x[:, c], (u, v), axis=(1, 2))
    np.testing.assert_allclose(F.bccb(x, a, bias), expected + bias[None, :, None, None], atol=1e-11)

    g = rng(3).normal(size=expected.shape)

    def loss(x, a, bias):
        return (F.bccb(x, a, bias, activation="tanh") * g).sum()

    gradients = F.bccb_gradients(x, a, g, bias, activation="tanh")
    np.testing.assert_allclose(gradients.x, central(lambda v: loss(v, a, bias), x), atol=1e-6)
    np.testing.assert_allclose(gradients.coordinates, central(lambda v: loss(x, v, bias), a), atol=1e-6)
    np.testing.assert_allclose(gradients.bias, central(lambda v: loss(x, a, v), bias), atol=1e-6)


@pytest.mark.parametrize("block, blocks_in, blocks_out", [(1, 3, 2), (4, 2, 3), (5, 1, 2), (8, 16, 1)])
def test_block_circulant_is_its_matrix(block, blocks_in, blocks_out):
    a = rng().normal(size=(block, blocks_in, blocks_out))
    matrix = np.zeros((block * blocks_out, block * blocks_in))
    for i in range(blocks_in):
        for o in range(blocks_out):
            matrix[o * block : (o + 1) * block, i * block : (i + 1) * block] = dense_signal(
                np.ascontiguousarray(a[:, i, o]), block
            )
    bias = rng(2).normal(size=block * blocks_out)
    for batch in [(), (1,), (3, 11)]:
        x = rng(1).normal(size=(*batch, block * blocks_in))
        np.testing.assert_allclose(F.block_circulant(x, a, bias), x @ matrix.T + bias, atol=1e-11)
    x, g = rng(1).normal(size=(6, block * blocks_in)), rng(3).normal(size=(6, block * blocks_out))
    gradients = F.block_circulant_gradients(x, a, g, bias)
    np.testing.assert_allclose(gradients.x, g @ matrix, atol=1e-11)
    np.testing.assert_allclose(gradients.bias, g.sum(axis=0), atol=1e-11)
    of_a = central(lambda v: (F.block_circulant(x, v) * g).sum(), a)
    np.testing.assert_allclose(gradients.coordinates, of_a, atol=1e-6)
    lower, upper = F.operator_norm(a, (1, block))
    norm = np.linalg.norm(matrix, 2)
    assert lower <= norm * (1 + 1e-10) and norm * (1 - 1e-10) <= upper


def test_masked_images():
    size, radius = (6, 5), 0.5
    a = F.draw_prior(size, radius=radius, channels=(2, 1), random_state=3)[0]
    bins = F.half_spectrum(a, size, radius=radius)
    assert bins.shape == (6, 3, 2, 1) and (bins == 0).any()
    x = rng().normal(size=(3, 2, *size))
    spectrum = np.fft.rfft2(x)
    expected = np.fft.irfft2((spectrum * np.moveaxis(bins[..., 0], -1, 0)).sum(axis=1, keepdims=True), size)
    np.testing.assert_allclose(F.bccb(x, a, radius=radius), expected, atol=1e-12)


@pytest.mark.parametrize("spectrum", ["slope", "squared-exponential", "matern"])
def test_prior_draws_have_the_variances(spectrum):
    draws = F.draw_prior(16, 4000, spectrum=spectrum, random_state=5)
    variances = F.prior_variances(16, spectrum=spectrum)
    np.testing.assert_allclose(draws.var(axis=0), variances, rtol=0.15)
    again = F.draw_prior(16, 4000, spectrum=spectrum, random_state=5)
    assert draws.tobytes() == again.tobytes()
    filters = F.draw_filters(16, 4000, spectrum=spectrum, random_state=5)
    assert filters.shape == (4000, 16)
    # Stationary: all positions have the same variance, the mean of the spectrum.
    np.testing.assert_allclose(filters.var(axis=0), filters.var(), rtol=0.15)


def test_kl_is_that_of_dense_gaussians():
    d, rank = 7, 3
    mean, deviation = rng(1).normal(size=d), rng(2).normal(size=d)
    factor, scale = rng(3).normal(size=(d, rank)), rng(4).normal(size=rank)
    prior, jitter = rng(5).uniform(0.5, 2, size=d), 1e-3
    covariance = factor @ np.diag(scale**2) @ factor.T + np.diag(np.exp(2 * deviation)) + jitter * np.eye(d)

    def dense(covariance):
        terms = np.trace(covariance / prior[:, None]) + (mean**2 / prior).sum() - d + np.log(prior).sum()
        return 0.5 * (terms - np.linalg.slogdet(covariance)[1])

    kl = F.gaussian_kl(mean, deviation, prior, factor=factor, scale=scale, jitter=jitter)
    assert kl == pytest.approx(dense(covariance), rel=1e-12)
    value, *gradients = F.gaussian_kl_gradients(mean, deviation, prior, factor=factor, scale=scale, jitter=jitter)
    assert value == pytest.approx(kl)
    arguments = [mean, deviation, factor, scale]
    for position, gradient in enumerate(gradients):

        def loss(v):
            m, s, u, c = (v if position == i else a for i, a in enumerate(arguments))
            return F.gaussian_kl(m, s, prior, factor=u, scale=c, jitter=jitter)

        np.testing.assert_allclose(gradient, central(loss, arguments[position]), atol=1e-6)
    samples = F.sample_gaussian(mean, deviation, 200_000, factor=factor, scale=scale, jitter=jitter, random_state=1)
    scale_of = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((np.cov(samples.T) - covariance) / scale_of).max() < 0.02
    mean_field = F.gaussian_kl_gradients(mean, deviation, 2.0)
    assert mean_field.factor is None and mean_field.mean.shape == (d,)


def test_strided_and_mixed_input():
    a, x = rng().normal(size=8), rng(1).normal(size=(8, 6))
    expected = F.circulant(np.ascontiguousarray(x.T), a)
    np.testing.assert_array_equal(F.circulant(x.T, a), expected)
    np.testing.assert_array_equal(F.circulant(np.asfortranarray(x.T), a), expected)
    assert F.circulant(x.T.astype(np.float32), a).dtype == np.float64
    assert F.circulant([[1, 2, 3, 4]], [1, 1, 0, 1]).tolist() == [[1, 2, 3, 4]]
    swapped = x.T.astype(x.dtype.newbyteorder())
    np.testing.assert_array_equal(F.circulant(swapped, a), expected)


def test_memory_mapped_input(tmp_path):
    x = rng().normal(size=(100, 16))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(F.circulant(mapped, np.ones(16)), F.circulant(x, np.ones(16)))
