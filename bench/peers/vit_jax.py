"""The vision transformer in JAX: a step is one jitted function, Adan by hand on the tree of parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from vit_problem import (
    ADAN_EPSILON,
    BETAS,
    CHANNELS,
    DECAY,
    DEPTH,
    DROPOUT,
    HEADS,
    LEARNING_RATE,
    NORM_EPSILON,
    PATCH,
    SIDE,
    TOKENS,
    WIDTH,
    data,
    initial_parameters,
)


def norm(p, name, x):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + NORM_EPSILON)
    return scaled * p[f"{name}.gamma"] + p[f"{name}.beta"]


def linear(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def spectrum(a):
    zero = jnp.zeros_like(a[..., :1])
    real = jnp.concatenate((a[..., :1], a[..., 1::2]), -1)
    imaginary = jnp.concatenate((zero, a[..., 2::2], zero), -1)
    return jax.lax.complex(real, imaginary)


def circulant(x, coordinates, bias):
    product = jnp.fft.rfft(x) * spectrum(coordinates)[:, None]
    return jnp.fft.irfft(product, n=x.shape[-1]) + bias[:, None]


def attention(model, p, name, x, drop):
    names = [f"{name}.{part}" for part in ("query", "key", "value")]
    if model == "dense":
        weight = jnp.concatenate([p[f"{n}.weight"] for n in names], 1)
        bias = jnp.concatenate([p[f"{n}.bias"] for n in names])
        qkv = (x @ weight + bias).reshape(-1, TOKENS, 3, HEADS, WIDTH // HEADS)
        query, key, value = qkv.transpose(2, 0, 3, 1, 4)
    else:
        coordinates = jnp.stack([p[f"{n}.coordinates"] for n in names])
        bias = jnp.stack([p[f"{n}.bias"] for n in names])
        qkv = circulant(x, coordinates, bias).reshape(3, -1, TOKENS, HEADS, WIDTH // HEADS)
        query, key, value = qkv.transpose(0, 1, 3, 2, 4)
    scores = (query @ key.swapaxes(-1, -2)) * (WIDTH // HEADS) ** -0.5
    mixed = drop(jax.nn.softmax(scores, -1)) @ value
    mixed = mixed.transpose(0, 2, 1, 3).reshape(-1, WIDTH)
    if model == "dense":
        return linear(p, f"{name}.output", mixed)
    output = p[f"{name}.output.coordinates"][None], p[f"{name}.output.bias"][None]
    return circulant(mixed, *output)[0]


def dropout(seed):
    """A function with new masks at every call; without a seed, one that does nothing."""
    if seed is None:
        return lambda x: x
    calls = iter(range(1 << 20))

    def drop(x):
        key = jax.random.fold_in(jax.random.key(seed, impl="rbg"), next(calls))
        # Eight bits a number: 26/256 is as near to 0.1 as it gets, and the cheapest mask.
        kept = jax.random.bits(key, x.shape, jnp.uint8) >= round(256 * DROPOUT)
        return jnp.where(kept, x * (256 / (256 - round(256 * DROPOUT))), 0)

    return drop


def loss(p, model, images, labels, seed):
    drop, side = dropout(seed), SIDE // PATCH
    patches = images.reshape(-1, CHANNELS, side, PATCH, side, PATCH).transpose(0, 2, 4, 1, 3, 5)
    patches = linear(p, "patch_embedding", patches.reshape(len(images), side * side, -1))
    classes = jnp.broadcast_to(p["class_token"], (len(images), 1, WIDTH))
    x = drop(jnp.concatenate((classes, patches), 1) + p["positions"]).reshape(-1, WIDTH)
    for i in range(DEPTH):
        block = f"blocks.{i}"
        normed = norm(p, f"{block}.attention_norm", x)
        x = x + drop(attention(model, p, f"{block}.attention", normed, drop))
        hidden = linear(p, f"{block}.expand", norm(p, f"{block}.mlp_norm", x))
        hidden = drop(jax.nn.gelu(hidden, approximate=False))
        x = x + drop(linear(p, f"{block}.contract", hidden))
    logits = linear(p, "head", norm(p, "norm", x.reshape(-1, TOKENS, WIDTH)[:, 0]))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


def adan(p, g, state):
    average, difference, square, before, time = state
    time = time + 1
    beta_1, beta_2, beta_3 = BETAS
    c_1, c_2, c_3 = (1 - jnp.float32(beta) ** time for beta in BETAS)
    tree = jax.tree.map
    change = tree(lambda g, b: jnp.where(time > 1, g - b, 0), g, before)
    average = tree(lambda m, g: beta_1 * m + (1 - beta_1) * g, average, g)
    difference = tree(lambda d, c: beta_2 * d + (1 - beta_2) * c, difference, change)
    square = tree(lambda v, g, c: beta_3 * v + (1 - beta_3) * (g + beta_2 * c) ** 2, square, g, change)

    def move(p, m, d, v):
        step = (m / c_1 + beta_2 * d / c_2) / (jnp.sqrt(v / c_3) + ADAN_EPSILON)
        return p * (1 - LEARNING_RATE * DECAY) - LEARNING_RATE * step

    return tree(move, p, average, difference, square), (average, difference, square, g, time)


class Training:
    def __init__(self, model, batch):
        images, labels = map(jnp.asarray, data(batch))
        self.p = {name: jnp.asarray(v) for name, v in initial_parameters(model).items()}
        zeros = {name: jnp.zeros_like(v) for name, v in self.p.items()}
        self.state = (zeros, zeros, zeros, zeros, jnp.int32(0))

        def step(p, state):
            g = jax.grad(loss)(p, model, images, labels, state[-1])
            return adan(p, g, state)

        self.step = jax.jit(step)

    def run(self):
        self.p, self.state = jax.block_until_ready(self.step(self.p, self.state))


def loss_and_gradients(model, parameters, images, labels):
    """Without dropout, in the precision of the images; numpy in and out."""
    p = {name: jnp.asarray(np.asarray(v, images.dtype)) for name, v in parameters.items()}
    arguments = model, jnp.asarray(images), jnp.asarray(labels), None
    value, gradients = jax.value_and_grad(loss)(p, *arguments)
    return float(value), {name: np.asarray(g) for name, g in gradients.items()}


def variants(model, batch):
    return {"jitted": Training(model, batch).run}


def checks():
    return {"jitted": loss_and_gradients}
