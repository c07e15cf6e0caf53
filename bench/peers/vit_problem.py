"""The vision transformer of the `vit` cases: sizes, names and shapes of its parameters, data.

    x [B,3,32,32] -> patches of 4 -> linear -> class token, positions -> 6 blocks -> norm -> linear
    block: x + attention(norm(x)), then x + mlp(norm(x)); 4 heads, GELU, dropout 0.1 in training

Names and shapes are those of our module: weights are [in, out], and a spectral projection has
128 coordinates `Re h_0, Re h_1, Im h_1, ..., Re h_64` and one bias. numpy only.
"""

import numpy as np

SIDE, CHANNELS, PATCH, WIDTH, DEPTH, HEADS, HIDDEN, CLASSES = 32, 3, 4, 128, 6, 4, 512, 10
PATCHES = (SIDE // PATCH) ** 2
TOKENS = PATCHES + 1
PIXELS = CHANNELS * PATCH * PATCH
DROPOUT, NORM_EPSILON = 0.1, 1e-5
LEARNING_RATE, BETAS, ADAN_EPSILON, DECAY = 1e-3, (0.98, 0.92, 0.99), 1e-8, 1e-4
PROJECTIONS = ("query", "key", "value", "output")


def parameter_shapes(model):
    """Name -> shape."""
    shapes = {
        "patch_embedding.weight": (PIXELS, WIDTH),
        "patch_embedding.bias": (WIDTH,),
        "class_token": (1, 1, WIDTH),
        "positions": (1, TOKENS, WIDTH),
    }
    for i in range(DEPTH):
        block = f"blocks.{i}"
        for norm in ("attention_norm", "mlp_norm"):
            shapes[f"{block}.{norm}.gamma"] = shapes[f"{block}.{norm}.beta"] = (WIDTH,)
        for name in PROJECTIONS:
            projection = f"{block}.attention.{name}"
            if model == "dense":
                shapes[f"{projection}.weight"] = (WIDTH, WIDTH)
                shapes[f"{projection}.bias"] = (WIDTH,)
            else:
                shapes[f"{projection}.coordinates"] = (WIDTH,)
                shapes[f"{projection}.bias"] = (1,)
        shapes[f"{block}.expand.weight"] = (WIDTH, HIDDEN)
        shapes[f"{block}.expand.bias"] = (HIDDEN,)
        shapes[f"{block}.contract.weight"] = (HIDDEN, WIDTH)
        shapes[f"{block}.contract.bias"] = (WIDTH,)
    return {
        **shapes,
        "norm.gamma": (WIDTH,),
        "norm.beta": (WIDTH,),
        "head.weight": (WIDTH, CLASSES),
        "head.bias": (CLASSES,),
    }


def initial_parameters(model):
    random = np.random.default_rng(20)
    made = {}
    for name, shape in parameter_shapes(model).items():
        kind = name.rpartition(".")[2]
        deviation = {"weight": shape[0] ** -0.5, "coordinates": 0.7}.get(kind, 0.02)
        centre = 1.0 if kind == "gamma" else 0.0
        made[name] = (centre + deviation * random.standard_normal(shape)).astype(np.float32)
    return made


def data(batch):
    """Images in [-1,1] and labels, by a fixed formula."""
    count = batch * CHANNELS * SIDE * SIDE
    images = (np.arange(count) * 7919 % 10_007 / 5003.5 - 1).astype(np.float32)
    return images.reshape(batch, CHANNELS, SIDE, SIDE), np.arange(batch) * 7 % CLASSES
