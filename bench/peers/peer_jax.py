"""The layers in JAX, jitted as one function; the worker keeps the quickest way.

Transforms are unnormalised, so that no pass over the data is spent on scaling;
1/N moves into the weights of the coordinate gradient.
"""

import importlib.metadata
from contextlib import nullcontext

import equinox
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from layout import half_plane

# Inline dispatch: a call returns when it is done. Handing each call to another
# thread costs about 50 us, which would double the time of the smallest case.
jax.config.update("jax_cpu_enable_async_dispatch", False)


def info():
    return {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "equinox": equinox.__version__,
        "numpyro": importlib.metadata.version("numpyro"),
    }


def set_threads(threads):
    """XLA reads its thread count from the environment, before the import."""


def scope():
    return nullcontext()


def to_numpy(results):
    return [np.asarray(r) for r in results]


def variants(case, x, a, b, g):
    """Name -> function without arguments that does the whole work once."""
    arguments = [jnp.asarray(v) for v in (x, a, b, g)]
    op = Operator(case, arguments[1].dtype)
    ready = jax.block_until_ready
    made = {}
    for name, work in functions(case, op).items():
        work = jax.jit(work)
        if case.backward:
            made[name] = lambda work=work: ready(work(*arguments))
        else:
            made[name] = lambda work=work: (ready(work(*arguments[:3])),)
    return made


class Operator:
    """Transforms and coordinates; bins are one flat axis."""

    def __init__(self, case, dtype):
        self.grid, self.size = case.grid, int(np.prod(case.grid))
        self.axes = tuple(range(-len(case.grid), 0))
        height, width = (1, *case.grid)[-2:]
        self.half = (*case.grid[:-1], width // 2 + 1)
        self.layout = half_plane(height, width)
        self.sign = self.layout.sign.astype(dtype)
        self.weight = (self.layout.weight / self.size).astype(dtype)

    def rfft(self, x):
        spectrum = jnp.fft.rfftn(x, axes=self.axes)
        return spectrum.reshape(*x.shape[: -len(self.grid)], -1)

    def irfft(self, spectrum):
        half = spectrum.reshape(*spectrum.shape[:-1], *self.half)
        return jnp.fft.irfftn(half, s=self.grid, axes=self.axes)

    def parts(self, a):
        """Real and imaginary part of the filter, bins first."""
        if len(self.grid) == 1:
            # Slices: a gather of single values is slow in XLA.
            zero = jnp.zeros(1, a.dtype)
            pairs = jnp.concatenate([a[:1], zero, a[1:], zero])
            pairs = pairs[: 2 * self.half[0]].reshape(-1, 2)
            return pairs[:, 0], pairs[:, 1]
        column = self.sign.reshape(-1, *(1,) * (a.ndim - 1))
        return a[self.layout.real], a[self.layout.imag] * column

    def filter(self, a):
        return jax.lax.complex(*self.parts(a))

    def adjoint(self, real, imag):
        """Bins first, like `parts`; returns the gradient of the coordinates."""
        pairs = jnp.stack([real, imag], 1).reshape(-1, *real.shape[1:])
        if len(self.grid) == 1:
            kept = jnp.concatenate([pairs[:1], pairs[2 : self.size + 1]])
        else:
            kept = pairs[self.layout.slot]
        return kept * self.weight.reshape(-1, *(1,) * (real.ndim - 1))


def functions(case, op):
    if case.channels_in == case.channels_out == 1:
        forward, by_hand = elementwise(op)
    else:
        forward, by_hand = mixing(op)

    class Layer(equinox.Module):
        a: jax.Array
        b: jax.Array

        def __call__(self, x):
            return forward(x, self.a, self.b)

    if not case.backward:
        # The same without what only the gradients need, which XLA leaves out.
        g = np.zeros((case.batch, *([case.channels_out] if len(case.grid) == 2 else []), *case.grid))
        first = {
            name: lambda x, a, b, work=work: work(x, a, b, jnp.asarray(g, x.dtype))[0]
            for name, work in by_hand.items()
        }
        return {"jit": forward, "equinox": lambda x, a, b: Layer(a, b)(x), **first}

    def by_vjp(x, a, b, g):
        y, pull = jax.vjp(forward, x, a, b)
        return y, *pull(g)

    def by_equinox(x, a, b, g):
        y, pull = equinox.filter_vjp(lambda layer, x: layer(x), Layer(a, b), x)
        layer, gx = pull(g)
        return y, gx, layer.a, layer.b

    return {"vjp": by_vjp, "equinox": by_equinox, **by_hand}


def elementwise(op):
    def forward(x, a, b):
        h = op.filter(a.reshape(-1))
        return op.irfft(op.rfft(x) * h) + b.reshape(())

    def by_hand(x, a, b, g):
        h = op.filter(a.reshape(-1))
        spectrum = op.rfft(x)
        y = op.irfft((spectrum * h).at[..., 0].add(b.reshape(()) * op.size))
        gradient = op.rfft(g)
        gx = op.irfft(gradient * jnp.conj(h))
        rows = tuple(range(spectrum.ndim - 1))
        gh = (jnp.conj(spectrum) * gradient).sum(rows)
        gb = gradient[..., 0].real.sum().reshape(b.shape)
        return y, gx, op.adjoint(gh.real, gh.imag).reshape(a.shape), gb

    return forward, {"by hand": by_hand}


def mixing(op):
    def forward(x, a, b):
        product = jnp.einsum("bif,fio->bof", op.rfft(x), op.filter(a))
        return op.irfft(product) + b[:, None, None]

    def einsum(x, a, b, g):
        k, spectrum = op.filter(a), op.rfft(x)
        product = jnp.einsum("bif,fio->bof", spectrum, k)
        y = op.irfft(product.at[..., 0].add(b * op.size))
        gradient = op.rfft(g)
        gx = op.irfft(jnp.einsum("bof,fio->bif", gradient, jnp.conj(k)))
        gk = jnp.einsum("bif,bof->fio", jnp.conj(spectrum), gradient)
        gb = gradient[..., 0].real.sum(0)
        return y, gx, op.adjoint(gk.real, gk.imag), gb

    def bins_first(x, a, b, g):
        k, spectrum = op.filter(a), op.rfft(x).transpose(2, 0, 1)
        product = (spectrum @ k).at[0].add(b * op.size)
        y = op.irfft(product.transpose(1, 2, 0))
        gradient = op.rfft(g).transpose(2, 0, 1)
        gx = gradient @ jnp.conj(k).transpose(0, 2, 1)
        gk = jnp.conj(spectrum).transpose(0, 2, 1) @ gradient
        ga = op.adjoint(gk.real, gk.imag)
        return y, op.irfft(gx.transpose(1, 2, 0)), ga, gradient[0].real.sum(0)

    def real_parts(x, a, b, g):
        kr, ki = op.parts(a)
        spectrum = op.rfft(x).transpose(2, 0, 1)
        xr, xi = spectrum.real, spectrum.imag
        product = jax.lax.complex(xr @ kr - xi @ ki, xr @ ki + xi @ kr)
        y = op.irfft(product.at[0].add(b * op.size).transpose(1, 2, 0))
        gradient = op.rfft(g).transpose(2, 0, 1)
        gr, gi = gradient.real, gradient.imag
        krt, kit = kr.transpose(0, 2, 1), ki.transpose(0, 2, 1)
        gx = jax.lax.complex(gr @ krt + gi @ kit, gi @ krt - gr @ kit)
        xrt, xit = xr.transpose(0, 2, 1), xi.transpose(0, 2, 1)
        ga = op.adjoint(xrt @ gr + xit @ gi, xrt @ gi - xit @ gr)
        return y, op.irfft(gx.transpose(1, 2, 0)), ga, gradient[0].real.sum(0)

    return forward, {"einsum": einsum, "bins first": bins_first, "real parts": real_parts}
