"""What a worker does for the exact operator norms: f64, every side from the same coordinates.

A layer's norm is the largest singular value of its channel matrices over all frequencies; peers take all singular values, or the largest
eigenvalue of the smaller Gram matrix.
"""

import importlib

import numpy as np

import reference


def numbers(count):
    """Uniform numbers of variance 1, from the indices by SplitMix64, as our benchmark makes them."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    unit = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
    return (unit - 0.5) * np.sqrt(12.0)


def coordinates(case):
    """[H*W, C_in, C_out]"""
    shape = (int(np.prod(case.grid)), case.channels_in, case.channels_out)
    return numbers(int(np.prod(shape))).reshape(shape)


def implementation(peer):
    """`norms_torch` for `peer_torch`, and so on."""
    return importlib.import_module(peer.__name__.replace("peer_", "norms_"))


def variants(peer, case):
    return implementation(peer).variants(case, coordinates(case))


def check(peer, case):
    """Variant -> error against the norm of the dense matrix."""
    height, width = (1, *case.grid)[-2:]
    a = coordinates(case)
    rows = [
        [reference.dense_matrix(a[:, i, o], height, width) for i in range(case.channels_in)]
        for o in range(case.channels_out)
    ]
    expected = np.linalg.norm(np.block(rows), 2)
    errors = {}
    for name, call in variants(peer, case).items():
        error = abs(call() - expected) / expected
        # There is no f32 version.
        errors[name] = {"float32": error, "float64": error}
    return errors
