"""The layers in PyTorch, each in a few ways; the worker keeps the quickest.

Backward passes are written by hand. Tried and left out because slower: autograd
(1.6 to 2 times), torch.compile (leaves the transforms alone and adds its own cost
per call), splitting the batch into blocks that fit in cache.
Transforms are unnormalised (MKL scales for free), so 1/N moves into the weights
of the coordinate gradient; the result is the same as with unitary ones.
Bin 0 carries the sum over the grid, so adding N*b there adds b everywhere.
"""

import numpy as np
import torch

import blocks_torch
from layout import half_plane

fft = torch.fft


def info():
    return {
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        "torch_uses_mkl": torch.backends.mkl.is_available(),
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def set_threads(threads):
    torch.set_num_threads(threads)


def to_numpy(results):
    return [r.numpy() for r in results]


def variants(case, x, a, b, g):
    """Name -> function without arguments that does the whole work once."""
    x, a, b, g = (torch.from_numpy(np.asarray(v)) for v in (x, a, b, g))
    if len(case.grid) == 1:
        return elementwise(case, Line(case.grid[0], a), x, b, g)
    if case.channels_in == case.channels_out == 1:
        return elementwise(case, Plane(case, a), x, b, g)
    calls = mixing(case, Plane(case, a), x, b, g)
    if blocks_torch.is_blocks(case):
        calls["C3A of peft"] = blocks_torch.adapter(case, Plane(case, a), x, b, g)
    return calls


def contrasts(case, x, a, b, g):
    """The same for layers of another kind, which are timed but do not compete."""
    if not blocks_torch.is_blocks(case):
        return {}
    x, a, b, g = (torch.from_numpy(np.asarray(v)) for v in (x, a, b, g))
    return {"dense": blocks_torch.dense(case, Plane(case, a), x, b, g)}


def scope():
    """Entered once around everything: no call pays for autograd's bookkeeping."""
    return torch.inference_mode()


class Line:
    """Transforms and coordinates of a 1D layer."""

    def __init__(self, length, a):
        self.size, self.bins = length, length // 2 + 1
        # (Re, Im) pairs that stay allocated; the imaginary parts of bin 0 and
        # of bin d/2 are never written and stay zero.
        buffer = a.new_zeros(2 * self.bins)
        self.copies = [(buffer[:1], a[:1]), (buffer[2 : length + 1], a[1:])]
        self.spectrum = torch.view_as_complex(buffer.view(-1, 2))
        self.weight = torch.from_numpy(half_plane(1, length).weight / length).to(a.dtype)

    def rfft(self, x):
        return fft.rfft(x)

    def irfft(self, spectrum):
        return fft.irfft(spectrum, n=self.size)

    def filter(self):
        for target, source in self.copies:
            target.copy_(source)
        return self.spectrum

    def adjoint(self, gradient):
        pairs = torch.view_as_real(gradient).view(-1)
        return torch.cat((pairs[:1], pairs[2 : self.size + 1])).mul_(self.weight)


class Plane:
    """Transforms and coordinates of a 2D layer; bins are one flat axis."""

    def __init__(self, case, a):
        self.shape = height, width = case.grid
        self.size, self.bins = height * width, height * (width // 2 + 1)
        self.a = a
        layout = half_plane(height, width)
        self.real, self.imag, self.bin, self.part = map(
            torch.from_numpy, (layout.real, layout.imag, layout.slot // 2, layout.slot % 2)
        )
        self.sign, self.weight = (
            torch.from_numpy(v).to(a.dtype).view(-1, 1, 1)
            for v in (layout.sign, layout.weight / self.size)
        )

    def rfft(self, x):
        return fft.rfft(x).squeeze(-2) if self.shape[0] == 1 else fft.rfft2(x).flatten(-2)

    def irfft(self, spectrum):
        if self.shape[0] == 1:
            return fft.irfft(spectrum.unsqueeze(-2), n=self.size)
        half = spectrum.unflatten(-1, (self.shape[0], -1))
        return fft.irfft2(half, s=self.shape)

    def filter(self):
        """[bins, C_in, C_out], or [bins] when there is one channel pair."""
        real = self.a.index_select(0, self.real)
        imag = self.a.index_select(0, self.imag).mul_(self.sign)
        spectrum = torch.complex(real, imag)
        return spectrum.view(-1) if self.a[0].numel() == 1 else spectrum

    def adjoint(self, gradient):
        pairs = torch.view_as_real(gradient.view(self.bins, *self.a.shape[1:]))
        return pairs.permute(0, 3, 1, 2)[self.bin, self.part].mul_(self.weight)


def elementwise(case, op, x, b, g):
    """One filter for every row: the spectra are multiplied entry by entry."""

    def plain():
        h = op.filter()
        spectrum = op.rfft(x)
        y = op.irfft(spectrum * h) + b
        if not case.backward:
            return (y,)
        gradient = op.rfft(g)
        gx = op.irfft(gradient * h.conj())
        gh = (spectrum.conj() * gradient).flatten(0, -2).sum(0)
        return y, gx, op.adjoint(gh), g.sum().view(b.shape)

    def with_sum(summed_product):
        def in_place():
            h = op.filter()
            spectrum = op.rfft(x)
            product = spectrum * h
            product[..., 0] += b * op.size
            y = op.irfft(product)
            gradient = op.rfft(g)
            gb = gradient[..., 0].real.sum().view(b.shape)
            gh = summed_product(spectrum.flatten(0, -2), gradient.flatten(0, -2))
            gx = op.irfft(gradient.mul_(h.conj_physical()))
            return y, gx, op.adjoint(gh), gb

        return in_place

    def overwrite(spectrum, gradient):
        return spectrum.conj_physical_().mul_(gradient).sum(0)

    def vecdot(spectrum, gradient):
        return torch.linalg.vecdot(spectrum, gradient, dim=0)

    def forward_in_place():
        return (op.irfft(op.rfft(x).mul_(op.filter())).add_(b),)

    if not case.backward:
        return {"plain": plain, "in place": forward_in_place}
    return {"plain": plain, "in place": with_sum(overwrite), "vecdot": with_sum(vecdot)}


def mixing(case, op, x, b, g):
    """Channels are mixed at every frequency by a complex matrix."""

    def einsum():
        k = op.filter()
        spectrum = op.rfft(x)
        y = op.irfft(torch.einsum("bif,fio->bof", spectrum, k)) + b.view(-1, 1, 1)
        if not case.backward:
            return (y,)
        gradient = op.rfft(g)
        gx = op.irfft(torch.einsum("bof,fio->bif", gradient, k.conj()))
        gk = torch.einsum("bif,bof->fio", spectrum.conj(), gradient)
        return y, gx, op.adjoint(gk.contiguous()), g.sum((0, 2, 3))

    def bins_first(spectrum):
        return spectrum.permute(2, 0, 1).contiguous()

    def bins_last(spectrum):
        return spectrum.permute(1, 2, 0).contiguous()

    def bmm():
        k = op.filter()
        spectrum = bins_first(op.rfft(x))
        product = torch.bmm(spectrum, k)
        product[0] += b * op.size
        y = op.irfft(bins_last(product))
        if not case.backward:
            return (y,)
        gradient = bins_first(op.rfft(g))
        gb = gradient[0].real.sum(0)
        # Neither is needed again, so conjugate in place instead of by copy.
        gk = torch.bmm(spectrum.conj_physical_().mT, gradient)
        gx = op.irfft(bins_last(torch.bmm(gradient, k.conj_physical_().mT)))
        return y, gx, op.adjoint(gk), gb

    return {"einsum": einsum, "bmm": bmm}
