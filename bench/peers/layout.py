"""Which coordinate feeds which bin, for the peers (numpy index arrays).

1D is the grid with one row: `half_plane(1, d)` gives Re h0, Re h1, Im h1, ...,
and Re h_{d/2} last when d is even.
`reference.py` walks the bins by itself, so that a slip here is caught.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HalfPlane:
    # per bin of the half-plane, row-major: K = a[real] + i * sign * a[imag];
    # sign is 0 at a real bin and -1 at a bin filled by conjugation
    real: np.ndarray
    imag: np.ndarray
    sign: np.ndarray
    # per coordinate: its slot in the bins seen as (Re, Im, Re, Im, ...)
    slot: np.ndarray
    # per coordinate: 2 at a complex bin (its mirror image counts too), else 1
    weight: np.ndarray


def half_plane(height, width):
    half = width // 2 + 1
    real = np.zeros(height * half, np.int64)
    imag = np.zeros(height * half, np.int64)
    sign = np.zeros(height * half)
    slot, weight = [], []
    for u in range(height):
        for v in range(half):
            f = u * half + v
            own_mirror_column = v == 0 or 2 * v == width
            if own_mirror_column and 2 * u > height:
                twin = (height - u) * half + v
                real[f], imag[f], sign[f] = real[twin], imag[twin], -1
            elif own_mirror_column and (u == 0 or 2 * u == height):
                real[f] = imag[f] = len(slot)
                slot.append(2 * f)
                weight.append(1)
            else:
                real[f], imag[f], sign[f] = len(slot), len(slot) + 1, 1
                slot += [2 * f, 2 * f + 1]
                weight += [2, 2]
    return HalfPlane(real, imag, sign, np.array(slot), np.array(weight, float))
