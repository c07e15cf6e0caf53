"""The cases that are timed, their names and what each of them must reach.

A layer's name is `layer/shape/work`. 1D shapes are `batch x length`; 2D shapes are
`batch x C_in-C_out x H x W`; a layer of circulant blocks is `batch x d_in-d_out b BLOCK`. A case of variational inference is `svi/model/batch`,
`predictive/model/SAMPLESxINPUTS`, or, in a fresh process, `memory/` or `start/` before
the name of an SVI case. Only the standard library, because `compare.py` reads this
before the virtual environment exists.
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
    # the same for every layer; see Inference
    suite, work, unit, pieces, rate = "layers", "layer", "ms", 1, None


@dataclass(frozen=True)
class Norm:
    """The exact operator norm of a layer."""

    name: str
    channels_in: int
    channels_out: int
    # (d,) in 1D, (H, W) in 2D
    grid: tuple
    suite, work, unit, pieces, rate = "norms", "norm", "ms", 1, None


@dataclass(frozen=True)
class Inference:
    """A case of variational inference."""

    name: str
    # svi, predictive, memory or start
    work: str
    model: str
    # of a prediction: how many inputs
    batch: int
    # posterior samples of a prediction
    samples: int = 1
    suite = "svi"

    @property
    def pieces(self):
        """Steps per timed call: a loop of them is one call for JAX."""
        return 10 if self.work == "svi" else 1

    @property
    def unit(self):
        return {"memory": "MiB", "start": "s"}.get(self.work, "ms")

    @property
    def rate(self):
        """(What is done, how many of it in one timed piece of work), if that is of interest."""
        return {"svi": ("steps", 1), "predictive": ("inputs", self.batch)}.get(self.work)


@dataclass(frozen=True)
class Transformer:
    """Training steps of the vision transformer."""

    name: str
    # dense or spectral: what the peers train. Ours trains what the name says; for blocks the peers have their dense model.
    model: str
    batch: int
    suite, work, unit, pieces = "vit", "step", "ms", 1

    @property
    def rate(self):
        return "images", self.batch


# The six models, and how many times faster than the best peer a step must at least be.
MODELS = {
    "spectral-circulant": 2.0,
    "spectral-bccb": 2.0,
    "circulant": 2.0,
    "bccb": 2.0,
    "conv2d": 1.0,
    "dense": 1.0,
}


def parse_inference(name):
    """The case of variational inference that a name stands for; None if it is none."""
    models = "|".join(MODELS)
    step = re.fullmatch(rf"(?:(memory|start)/)?svi/({models})/(\d+)", name)
    if step:
        return Inference(name, step[1] or "svi", step[2], int(step[3]))
    prediction = re.fullmatch(r"predictive/(spectral-\w+)/(\d+)x(\d+)", name)
    if prediction:
        return Inference(name, "predictive", prediction[1], int(prediction[3]), int(prediction[2]))
    return None


def parse(name):
    """The case that a name stands for; ValueError says what a name looks like."""
    inference = parse_inference(name)
    if inference:
        return inference
    transformer = re.fullmatch(r"vit/(dense|spectral|[a-z]+(?:-\d+)?\+block-\d+)/(\d+)", name)
    if transformer:
        return Transformer(name, "spectral" if transformer[1] == "spectral" else "dense", int(transformer[2]))
    line = re.fullmatch(r"norm1d/(\d+)/exact", name)
    if line:
        return Norm(name, 1, 1, (int(line[1]),))
    plane = re.fullmatch(r"norm2d/(\d+)x(\d+)x(\d+)x(\d+)/exact", name)
    if plane:
        c_in, c_out, height, width = map(int, plane.groups())
        return Norm(name, c_in, c_out, (height, width))
    layer, shape, work = (name.split("/") + ["", ""])[:3]
    blocks = re.fullmatch(r"(\d+)x(\d+)-(\d+)b(\d+)", shape)
    one = re.fullmatch(r"(\d+)x(\d+)", shape)
    two = re.fullmatch(r"(\d+)x(\d+)-(\d+)x(\d+)x(\d+)", shape)
    if work in ("forward", "forward_backward"):
        backward = work == "forward_backward"
        if layer == "circulant1d" and one:
            batch, length = map(int, one.groups())
            return Case(name, batch, 1, 1, (length,), backward)
        if layer == "block" and blocks:
            batch, d_in, d_out, block = map(int, blocks.groups())
            if block and d_in % block == d_out % block == 0:
                # Channels of images of one row.
                return Case(name, batch, d_in // block, d_out // block, (1, block), backward)
        if layer == "bccb2d" and two:
            batch, c_in, c_out, height, width = map(int, two.groups())
            return Case(name, batch, c_in, c_out, (height, width), backward)
    raise ValueError(
        f"case {name!r}: expected circulant1d/BxD/WORK, bccb2d/BxI-OxHxW/WORK or block/BxI-ObL/WORK, "
        "WORK being forward or forward_backward; or svi/MODEL/B, memory/svi/MODEL/B, "
        "start/svi/MODEL/B, predictive/MODEL/SAMPLESxINPUTS; or vit/dense/B, vit/spectral/B, vit/ATTENTION+block-N/B; or "
        "norm1d/D/exact, norm2d/IxOxHxW/exact"
    )


# Case name -> how many times faster (or smaller) than the best peer we must at least be.
# None: measured for information only.
LAYERS = {
    "circulant1d/512x784/forward_backward": 1.5,
    "circulant1d/8320x128/forward_backward": 1.5,
    "circulant1d/512x2048/forward_backward": 1.5,
    "circulant1d/64x16384/forward_backward": 1.2,
    "circulant1d/512x784/forward": None,
    "circulant1d/8320x128/forward": None,
    "circulant1d/512x2048/forward": None,
    "circulant1d/64x16384/forward": None,
    "circulant1d/1x784/forward": 4.0,
    "bccb2d/512x1-1x28x28/forward_backward": 1.7,
    "bccb2d/64x16-16x32x32/forward_backward": 2.5,
    "bccb2d/32x64-64x32x32/forward_backward": 2.5,
    "bccb2d/512x1-1x28x28/forward": None,
    "bccb2d/64x16-16x32x32/forward": None,
    "bccb2d/32x64-64x32x32/forward": None,
    **{
        f"block/{shape}/{work}": 2.0
        for shape in (
            "8320x128-512b8",
            "8320x128-512b16",
            "8320x128-512b32",
            "8320x512-128b8",
            "8320x512-128b16",
            "8320x512-128b32",
            "512x2048-512b64",
            "32x4096-4096b64",
            "32x4096-4096b512",
        )
        for work in ("forward_backward", "forward")
    },
    # Where a dense layer becomes the quicker one.
    **{
        f"block/8320x128-512b{block}/{work}": None
        for block in (2, 4)
        for work in ("forward_backward", "forward")
    },
}

INFERENCE = {
    **{
        f"svi/{model}/{batch}": least
        for model, least in MODELS.items()
        for batch in (128, 512, 4096)
    },
    "predictive/spectral-circulant/50x10000": 2.0,
    "memory/svi/spectral-circulant/512": None,
    "start/svi/spectral-circulant/512": None,
}

TRANSFORMER = {"vit/dense/128": 1.0, "vit/spectral/128": 1.3, "vit/block-8+block-8/128": 2.0, "vit/dense+block-4/128": 2.0}

NORMS = {
    "norm1d/16384/exact": 1.2,
    "norm2d/8x8x28x28/exact": 1.2,
    "norm2d/64x64x32x32/exact": 1.2,
}

# Suite -> its cases; each suite has its own benchmark on our side.
SUITES = {"layers": LAYERS, "svi": INFERENCE, "vit": TRANSFORMER, "norms": NORMS}

# Small shapes for `--check`: even and odd lengths, even and odd sides of a grid,
# and channel counts that differ so that a transposed mixing matrix is caught.
LAYER_CHECKS = [
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
        "block/3x8-12b4",
        "block/3x10-5b5",
    )
    for work in ("forward", "forward_backward")
]

INFERENCE_CHECKS = [
    "svi/spectral-circulant/7",
    "svi/spectral-bccb/7",
    "svi/circulant/7",
    "svi/bccb/7",
    "svi/conv2d/7",
    "svi/dense/7",
    "predictive/spectral-circulant/3x8",
    "predictive/spectral-bccb/3x8",
]

TRANSFORMER_CHECKS = ["vit/dense/3", "vit/spectral/3"]

NORM_CHECKS = [
    "norm1d/7/exact",
    "norm1d/8/exact",
    "norm2d/2x3x4x6/exact",
    "norm2d/3x2x5x7/exact",
    "norm2d/2x2x4x7/exact",
]

CHECKS = {
    "layers": LAYER_CHECKS,
    "svi": INFERENCE_CHECKS,
    "vit": TRANSFORMER_CHECKS,
    "norms": NORM_CHECKS,
}
