"""The cases that are timed, their names and what each of them must reach.

A name is `layer/shape/work`. 1D shapes are `batch x length`; 2D shapes are
`batch x C_in-C_out x H x W`. Only the standard library, because `compare.py`
reads this before the virtual environment exists.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    batch: int
    channels_in: int
    channels_out: int
    # (d,) in 1D, (H, W) in 2D
    grid: tuple
    backward: bool


def parse(name):
    """The case that a name stands for; ValueError says what a name looks like."""
    layer, shape, work = (name.split("/") + ["", ""])[:3]
    one = re.fullmatch(r"(\d+)x(\d+)", shape)
    two = re.fullmatch(r"(\d+)x(\d+)-(\d+)x(\d+)x(\d+)", shape)
    if work in ("forward", "forward_backward"):
        backward = work == "forward_backward"
        if layer == "circulant1d" and one:
            batch, length = map(int, one.groups())
            return Case(name, batch, 1, 1, (length,), backward)
        if layer == "bccb2d" and two:
            batch, c_in, c_out, height, width = map(int, two.groups())
            return Case(name, batch, c_in, c_out, (height, width), backward)
    raise ValueError(
        f"case {name!r}: expected circulant1d/BxD/WORK or bccb2d/BxI-OxHxW/WORK, "
        "WORK being forward or forward_backward"
    )


# Case name -> how many times faster than the best peer we must at least be.
# None: measured for information only.
TARGETS = {
    "circulant1d/512x784/forward_backward": 1.5,
    "circulant1d/8320x128/forward_backward": 1.5,
    "circulant1d/512x2048/forward_backward": 1.5,
    "circulant1d/64x16384/forward_backward": 1.2,
    "circulant1d/512x784/forward": None,
    "circulant1d/1x784/forward": 4.0,
    "bccb2d/512x1-1x28x28/forward_backward": 1.7,
    "bccb2d/64x16-16x32x32/forward_backward": 2.5,
    "bccb2d/32x64-64x32x32/forward_backward": 2.5,
}

# Small shapes for `--check`: even and odd lengths, even and odd sides of a grid,
# and channel counts that differ so that a transposed mixing matrix is caught.
CHECKS = [
    f"{shape}/{work}"
    for shape in (
        "circulant1d/3x7",
        "circulant1d/3x8",
        "bccb2d/2x2-3x4x6",
        "bccb2d/2x2-3x5x7",
        "bccb2d/2x2-3x4x7",
        "bccb2d/2x2-3x5x6",
        "bccb2d/3x1-1x4x6",
        "bccb2d/3x1-1x5x7",
    )
    for work in ("forward", "forward_backward")
]
