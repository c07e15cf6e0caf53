"""The layers in the slowest and most obvious way, numpy f64.

The coordinates become the full spectrum, the spectrum becomes the filter by the
defining sum, the filter becomes an explicit dense matrix. The output is linear
in the coordinates, so each entry of their gradient is the output at a unit
vector times g: exact, without a step size.
1D is the grid with one row and one channel.
"""

import numpy as np


def full_spectrum(a, height, width):
    """[H*W] coordinates to the full H x W spectrum, bin by bin."""
    spectrum = np.full((height, width), np.nan, complex)
    rest = iter(a)
    for u in range(height):
        for v in range(width // 2 + 1):
            mirror = (-u % height, -v % width)
            if not np.isnan(spectrum[mirror]):
                continue
            if mirror == (u, v):
                spectrum[u, v] = next(rest)
            else:
                spectrum[u, v] = next(rest) + 1j * next(rest)
                spectrum[mirror] = np.conj(spectrum[u, v])
    assert next(rest, None) is None and not np.isnan(spectrum).any()
    return spectrum


def dense_matrix(a, height, width):
    """The (block-)circulant matrix with circulant blocks of one channel pair."""
    spectrum = full_spectrum(a, height, width)
    u, v = np.arange(height), np.arange(width)
    wave_h = np.exp(2j * np.pi * np.outer(u, u) / height)
    wave_w = np.exp(2j * np.pi * np.outer(v, v) / width)
    filter_ = wave_h @ spectrum @ wave_w / (height * width)
    assert np.abs(filter_.imag).max() < 1e-12 * max(1, np.abs(filter_).max())
    matrix = np.empty((height, width, height, width))
    for p, q, r, s in np.ndindex(matrix.shape):
        matrix[p, q, r, s] = filter_.real[(p - r) % height, (q - s) % width]
    return matrix.reshape(height * width, height * width)


def layer(x, a, b, g):
    """(y, gx, ga, gb) for x [B, I, H, W], a [H*W, I, O], b [O], g [B, O, H, W]."""
    batch, c_in, height, width = x.shape
    c_out, size = len(b), height * width
    flat_x, flat_g = x.reshape(batch, c_in, size), g.reshape(batch, c_out, size)
    y = np.tile(b[None, :, None], (batch, 1, size)).astype(float)
    gx, ga = np.zeros_like(flat_x), np.zeros_like(a)
    units = [dense_matrix(unit, height, width) for unit in np.eye(size)]
    for i, o in np.ndindex(c_in, c_out):
        matrix = dense_matrix(a[:, i, o], height, width)
        y[:, o] += flat_x[:, i] @ matrix.T
        gx[:, i] += flat_g[:, o] @ matrix
        for j, unit in enumerate(units):
            ga[j, i, o] = np.sum(flat_g[:, o] * (flat_x[:, i] @ unit.T))
    return y.reshape(g.shape), gx.reshape(x.shape), ga, flat_g.sum(axis=(0, 2))


def relative_error(found, expected):
    """Largest difference over the largest expected value; worst of all outputs."""
    errors = []
    for f, e in zip(found, expected, strict=True):
        if f.shape != e.shape:
            raise ValueError(f"expected shape {e.shape}, found {f.shape}")
        difference = np.abs(f.astype(float) - e.astype(float)).max()
        errors.append(float(difference / np.abs(e).max()))
    return max(errors)
