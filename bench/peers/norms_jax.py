"""Exact operator norms in JAX, f64, jitted."""

import jax
import jax.numpy as jnp

from peer_jax import Operator


def variants(case, a):
    """Name -> function without arguments that returns the norm."""
    with jax.enable_x64(True):
        operator = Operator(case, jnp.float64)
        a = jnp.asarray(a)

    def matrices(a):
        """[bins, C_in, C_out], from the coordinates each time, as a certificate must."""
        flat = a.reshape(a.shape[0], -1)
        bins = jax.vmap(operator.filter, 1, 1)(flat)
        return bins.reshape(-1, *a.shape[1:])

    def singular_values(a):
        return jnp.linalg.svd(matrices(a), compute_uv=False).max()

    def gram(a):
        h = matrices(a)
        h = h if case.channels_out <= case.channels_in else jnp.swapaxes(h, 1, 2)
        product = jnp.conj(jnp.swapaxes(h, 1, 2)) @ h
        return jnp.sqrt(jnp.linalg.eigvalsh(product)[:, -1].max())

    def largest(a):
        return jnp.abs(matrices(a)).max()

    def call(work):
        work = jax.jit(work)

        def run():
            with jax.enable_x64(True):
                return float(work(a))

        return run

    if len(case.grid) == 1:
        return {"largest": call(largest)}
    return {"singular values": call(singular_values), "Gram": call(gram)}
