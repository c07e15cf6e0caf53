"""The training problem of the SVI cases: data, priors, and the shape of every posterior.

    x [B,1,28,28] -> hidden layer -> tanh -> linear to 10 classes -> cross-entropy
    loss = -(1/B) sum log p(y|x,theta) + sum KL / N          (negative ELBO per example)

A model has the sites hidden, hidden_bias, weight and bias. The hidden site of a spectral
layer has a low-rank Gaussian over its coordinates, that of a spatial one a filter; every other site a mean-field Gaussian
with prior N(0,1). numpy only, so that all peers share it.
"""

import numpy as np

EXAMPLES, PIXELS, SIDE, CLASSES = 60_000, 784, 28, 10
RANK, JITTER, LEARNING_RATE = 8, 1e-6, 1e-2
BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8
CHANNELS, KERNEL = 8, 3

# Grid of the filter: one row is a circulant layer.
SPECTRAL_GRIDS = {"spectral-circulant": (1, PIXELS), "spectral-bccb": (SIDE, SIDE)}
SPATIAL_GRIDS = {"circulant": (1, PIXELS), "bccb": (SIDE, SIDE)}
GRIDS = {**SPECTRAL_GRIDS, **SPATIAL_GRIDS}

# Model -> site -> shape, in the order in which the sites are kept.
SITES = {
    **{
        model: {
            "hidden": (PIXELS,),
            "hidden_bias": (1,),
            "weight": (PIXELS, CLASSES),
            "bias": (CLASSES,),
        }
        for model in GRIDS
    },
    "conv2d": {
        "hidden": (CHANNELS, 1, KERNEL, KERNEL),
        "hidden_bias": (CHANNELS,),
        "weight": (CHANNELS * PIXELS, CLASSES),
        "bias": (CLASSES,),
    },
    "dense": {
        "hidden": (PIXELS, PIXELS),
        "hidden_bias": (PIXELS,),
        "weight": (PIXELS, CLASSES),
        "bias": (CLASSES,),
    },
}


def data(examples=EXAMPLES, dtype=np.float32):
    """Pixels [examples, 784] and labels, by a fixed formula: bytes (`np.uint8`), or these divided by 255.

    A table of prime length repeats, so that rows differ and nothing beyond the result is
    allocated. Aligned to 64 bytes, because JAX copies what is not.
    """
    prime, size = 65_521, examples * PIXELS
    table = (np.arange(prime) * 40_503 % prime % 256).astype(np.uint8)
    if dtype != np.uint8:
        table = table.astype(dtype) / 255
    spare = 64 // table.itemsize
    memory = np.empty(size + spare, table.dtype)
    skipped = -memory.ctypes.data % 64 // memory.itemsize
    inputs = memory[skipped : skipped + size]
    for start in range(0, size, prime):
        part = inputs[start : start + prime]
        part[:] = table[: len(part)]
    labels = np.arange(examples) * 7 % CLASSES
    return inputs.reshape(examples, PIXELS), labels


def batches(examples, batch):
    """The rows of every minibatch of an epoch, [batches, batch]: shuffled, as training is."""
    order = np.random.default_rng(1).permutation(examples)
    return order[: examples // batch * batch].reshape(-1, batch)


def prior_variance(height, width):
    """Per coordinate, in their order: S at a real bin, S/2 for Re and Im; S = 1/(1 + rho)."""
    variances = []
    for u in range(height):
        for v in range(width // 2 + 1):
            rows, columns = min(u, height - u), min(v, width - v)
            rho = np.hypot(rows / max(1, height // 2), columns / max(1, width // 2))
            density = 1 / (1 + rho)
            paired_column = v == 0 or 2 * v == width
            if paired_column and 2 * u > height:
                continue  # filled by conjugation
            if paired_column and (u == 0 or 2 * u == height):
                variances.append(density)
            else:
                variances += [density / 2, density / 2]
    return np.array(variances)


def parameter_shapes(model):
    """Name -> shape of every posterior parameter."""
    shapes = {}
    for site, shape in SITES[model].items():
        shapes[f"{site}.mean"] = shapes[f"{site}.log_deviation"] = shape
        if site == "hidden" and model in SPECTRAL_GRIDS:
            shapes["hidden.factor"] = (*shape, RANK)
            shapes["hidden.scale"] = (RANK,)
    return shapes


def noise_shapes(model):
    """Name -> shape of the standard normal values of one sample."""
    shapes = dict(SITES[model])
    if model in SPECTRAL_GRIDS:
        shapes["hidden.low_rank"] = (RANK,)
    return shapes


def initial_parameters(model):
    random = np.random.default_rng(20)
    made = {}
    for name, shape in parameter_shapes(model).items():
        centre = {"log_deviation": -3.0, "scale": 0.1}.get(name.partition(".")[2], 0.0)
        made[name] = (centre + 0.05 * random.standard_normal(shape)).astype(np.float32)
    return made


def draw_noise(model, seed):
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape) for name, shape in noise_shapes(model).items()}
