"""SVI steps and posterior predictions in JAX: many steps are one jitted loop, Adam by hand.

The linear layer is kept as [classes, features], because XLA's products with the transpose
take up to three times as long. Its convolution is slower than nine shifted copies.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import Case
from peer_jax import Operator
from svi_problem import (
    ADAM_EPSILON,
    BETAS,
    CHANNELS,
    EXAMPLES,
    GRIDS,
    JITTER,
    KERNEL,
    LEARNING_RATE,
    PIXELS,
    RANK,
    SIDE,
    SITES,
    SPATIAL_GRIDS,
    SPECTRAL_GRIDS,
    batches,
    initial_parameters,
    noise_shapes,
    prior_variance,
)

# Inputs per block of a prediction: one block's hidden layer stays in cache.
PREDICTION_BLOCK = 250


def linear_transposed(arrays):
    """Everything of the linear layer between [in, out] and [out, in]."""
    return {k: v.T if k.partition(".")[0] == "weight" else v for k, v in arrays.items()}


def operator(model, dtype):
    height, width = GRIDS[model]
    grid = (width,) if height == 1 else (height, width)
    return Operator(Case("", 1, 1, 1, grid, True), dtype)


def with_gradient(forward, backward):
    """A layer of `forward`, which also returns what `backward` needs; none for the input."""
    layer = jax.custom_vjp(lambda *arguments: forward(*arguments)[0])
    layer.defvjp(forward, backward)
    return layer


def circulant_layer(op, filter_, adjoint):
    """`filter_` makes the half spectrum of the weights, `adjoint` their gradient of its gradient."""

    def forward(x, weights, b):
        spectrum = op.rfft(x.reshape(-1, *op.grid))
        product = (spectrum * filter_(weights)).at[:, 0].add(b[0] * op.size)
        return op.irfft(product).reshape(-1, PIXELS), spectrum

    def backward(spectrum, g):
        gradient = op.rfft(g.reshape(-1, *op.grid))
        weights = adjoint((jnp.conj(spectrum) * gradient).sum(0))
        return None, weights, gradient[:, 0].real.sum(keepdims=True)

    return with_gradient(forward, backward)


def spectral_layer(op):
    return circulant_layer(op, op.filter, lambda g: op.adjoint(g.real, g.imag))


def spatial_layer(op):
    """The weights are the filter itself."""
    return circulant_layer(
        op, lambda w: op.rfft(w.reshape(op.grid)), lambda g: op.irfft(g).reshape(-1)
    )


def convolution_layer():
    def shifts(x):
        edges = ((0, 0), (KERNEL // 2, KERNEL // 2), (KERNEL // 2, KERNEL // 2))
        padded = jnp.pad(x.reshape(-1, SIDE, SIDE), edges)
        for i, j in np.ndindex(KERNEL, KERNEL):
            yield padded[:, i : i + SIDE, j : j + SIDE].reshape(-1, PIXELS)

    def forward(x, weight, bias):
        y = bias[:, None]
        for k, shifted in enumerate(shifts(x)):
            y = y + weight.reshape(CHANNELS, -1)[:, k, None] * shifted[:, None]
        return y.reshape(-1, CHANNELS * PIXELS), x

    def backward(x, g):
        g = g.reshape(-1, CHANNELS, PIXELS)
        # Summed over the batch last: as one contraction it takes twice as long.
        weight = [jnp.einsum("bcp,bp->bc", g, shifted).sum(0) for shifted in shifts(x)]
        return None, jnp.stack(weight, 1).reshape(CHANNELS, 1, KERNEL, KERNEL), g.sum((0, 2))

    return with_gradient(forward, backward)


def dense(x, weight, bias):
    return x @ weight + bias


def hidden_layer(model, dtype):
    if model in SPECTRAL_GRIDS:
        return spectral_layer(operator(model, dtype))
    if model in SPATIAL_GRIDS:
        return spatial_layer(operator(model, dtype))
    return convolution_layer() if model == "conv2d" else dense


def mean_field(mean, log_deviation, noise):
    deviation = jnp.exp(log_deviation)
    kl = 0.5 * (deviation**2 + mean**2 - 1).sum() - log_deviation.sum()
    return mean + deviation * noise, kl


def low_rank_kl(mean, v, diagonal, variance):
    m = jnp.eye(RANK, dtype=v.dtype) + (v / diagonal[:, None]).T @ v
    log_determinant = 2 * jnp.log(jnp.diag(jnp.linalg.cholesky(m))).sum()
    terms = (diagonal + (v**2).sum(1) + mean**2) / variance - 1 + jnp.log(variance / diagonal)
    return 0.5 * (terms.sum() - log_determinant)


def low_rank(parameters, noise, variance):
    mean, factor, scale, log_deviation = (
        parameters[f"hidden.{name}"] for name in ("mean", "factor", "scale", "log_deviation")
    )
    diagonal, v = jnp.exp(2 * log_deviation) + JITTER, factor * scale
    value = mean + v @ noise["hidden.low_rank"] + jnp.sqrt(diagonal) * noise["hidden"]
    return value, low_rank_kl(mean, v, diagonal, variance)


def sample(model, parameters, noise):
    """Site -> value, and the sum of the KLs."""
    values, kl = {}, 0.0
    for site in SITES[model]:
        if site == "hidden" and model in SPECTRAL_GRIDS:
            dtype = parameters["hidden.mean"].dtype
            variance = prior_variance(*SPECTRAL_GRIDS[model]).astype(dtype)
            values[site], part = low_rank(parameters, noise, variance)
        else:
            pair = parameters[f"{site}.mean"], parameters[f"{site}.log_deviation"]
            values[site], part = mean_field(*pair, noise[site])
        kl += part
    return values, kl


def class_log_probabilities(hidden, values):
    """[classes, batch]"""
    return jax.nn.log_softmax(values["weight"] @ hidden.T + values["bias"][:, None], 0)


def loss(parameters, noise, model, x, labels):
    values, kl = sample(model, parameters, noise)
    layer = hidden_layer(model, x.dtype)
    hidden = jnp.tanh(layer(x, values["hidden"], values["hidden_bias"]))
    chosen = jnp.take_along_axis(class_log_probabilities(hidden, values), labels[None], 0)
    return kl / EXAMPLES - chosen.mean(), kl


def draw(key, model, leading=()):
    shapes = linear_transposed({k: np.empty(s) for k, s in noise_shapes(model).items()})
    sizes = [v.size for v in shapes.values()]
    flat = jax.random.normal(key, (*leading, sum(sizes)))
    parts = jnp.split(flat, np.cumsum(sizes)[:-1], -1)
    return {k: p.reshape(*leading, *v.shape) for (k, v), p in zip(shapes.items(), parts)}


def adam(parameters, gradients, means, squares, step):
    first, second = BETAS
    means = jax.tree.map(lambda m, g: first * m + (1 - first) * g, means, gradients)
    squares = jax.tree.map(lambda v, g: second * v + (1 - second) * g * g, squares, gradients)
    rate, root = LEARNING_RATE / (1 - first**step), 1 / jnp.sqrt(1 - second**step)
    parameters = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) * root + ADAM_EPSILON),
        parameters, means, squares,
    )
    return parameters, means, squares


class Training:
    """`update(state, key, step, x, labels)` returns (state, loss)."""

    def __init__(self, model, batch, inputs, labels):
        self.state, self.update = self.start(model)
        arrays = inputs, labels.astype(np.int32)
        self.data = [jax.device_put(v, may_alias=True) for v in arrays]
        self.key, self.done = jax.random.key(20), 0
        rows = jnp.asarray(batches(len(inputs), batch).astype(np.int32))

        def steps(state, key, start, end, inputs, labels):
            def one(step, carry):
                x, y = (v[rows[step % len(rows)]] for v in (inputs, labels))
                if x.dtype == jnp.uint8:
                    x = x.astype(jnp.float32) / 255
                return self.update(carry[0], jax.random.fold_in(key, step), step, x, y)

            return lax.fori_loop(start, end, one, (state, jnp.zeros(())))

        self.steps = jax.jit(steps, donate_argnums=0)

    def start(self, model):
        parameters = linear_transposed(initial_parameters(model))
        parameters = {k: jnp.asarray(v) for k, v in parameters.items()}
        zeros = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)]

        def update(state, key, step, x, labels):
            gradient = jax.value_and_grad(loss, has_aux=True)
            (value, _), gradients = gradient(state[0], draw(key, model), model, x, labels)
            parameters, means, squares = state
            state = adam(parameters, gradients, means, squares, step + 1.0)
            return state, value

        return (parameters, *zeros), update

    def run(self, steps):
        """The loss of the last step."""
        end = self.done + steps
        self.state, value = self.steps(self.state, self.key, self.done, end, *self.data)
        self.done = end
        return float(value)


def loss_and_gradients(model, parameters, noise, inputs, labels):
    """Loss, KL and gradients at the given noise, in the precision of the inputs."""
    cast = [
        linear_transposed({k: jnp.asarray(v, inputs.dtype) for k, v in arrays.items()})
        for arrays in (parameters, noise)
    ]
    work = jax.jit(jax.value_and_grad(loss, has_aux=True), static_argnums=2)
    (value, kl), gradients = work(*cast, model, jnp.asarray(inputs), jnp.asarray(labels))
    return float(value), float(kl), jax.tree.map(np.asarray, linear_transposed(gradients))


class Prediction:
    """Class probabilities, their entropy and the expected entropy over posterior samples."""

    def __init__(self, model, samples, inputs, parameters=None):
        dtype = inputs.dtype
        parameters = linear_transposed(parameters or initial_parameters(model))
        self.parameters = {k: jnp.asarray(v, dtype) for k, v in parameters.items()}
        self.inputs, self.key = jnp.asarray(inputs), jax.random.key(20)
        self.dtype, self.model = dtype, model
        op = operator(model, dtype)

        def probabilities(spectrum, values):
            product = spectrum * op.filter(values["hidden"])
            product = product.at[:, 0].add(values["hidden_bias"][0] * op.size)
            hidden = jnp.tanh(op.irfft(product).reshape(-1, PIXELS))
            return class_log_probabilities(hidden, values)

        def block(x, values):
            spectrum = op.rfft(x.reshape(-1, *op.grid))
            logs = lax.map(lambda one: probabilities(spectrum, one), values)
            mean = jnp.exp(logs).mean(0)
            expected = -(jnp.exp(logs) * logs).sum(1).mean(0)
            return mean.T, -(mean * jnp.log(mean)).sum(0), expected

        def whole(parameters, noise, inputs):
            values = jax.vmap(lambda one: sample(model, parameters, one)[0])(noise)
            size = min(PREDICTION_BLOCK, len(inputs))
            blocks = inputs.reshape(-1, size, PIXELS)
            parts = lax.map(lambda x: block(x, values), blocks)
            return [part.reshape(len(inputs), *part.shape[2:]) for part in parts]

        def from_key(parameters, key, inputs):
            return whole(parameters, draw(key, model, (samples,)), inputs)

        self.whole, self.from_key = jax.jit(whole), jax.jit(from_key)

    def run(self, noise=None):
        if noise is None:
            return jax.block_until_ready(self.from_key(self.parameters, self.key, self.inputs))
        transposed = [linear_transposed(one) for one in noise]
        stacked = {k: jnp.asarray(np.stack([n[k] for n in transposed]), self.dtype) for k in transposed[0]}
        return self.whole(self.parameters, stacked, self.inputs)


def variants():
    """Name -> module with a `Training` and `loss_and_gradients`."""
    import svi_numpyro  # here, because it imports this module

    return {"by hand": sys.modules[__name__], "numpyro": svi_numpyro}
