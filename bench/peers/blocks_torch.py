"""Matrices of circulant blocks as others have them: the C3A layer of `peft`, and the dense layer that they replace.

Both have other parameters than the coordinates. A call may have an attribute `finish`, which turns what it
returns into output and gradients of input, coordinates and bias; only the check needs it.
"""

import torch
from peft.tuners.c3a.utils import BlockCircularConvolution

fft = torch.fft


def is_blocks(case):
    return case.name.startswith("block/")


class Saved:
    """What `BlockCircularConvolution` saves, without the bookkeeping of autograd."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


def filters(op):
    """[C_out, C_in, b]"""
    return fft.irfft(op.filter().permute(2, 1, 0), n=op.size).contiguous()


def reverse(kernels):
    """Offset k to -k."""
    return torch.cat((kernels[..., :1], kernels[..., 1:].flip(-1)), -1)


def of_coordinates(op, gradient):
    """From the gradient of the filters, [C_out, C_in, b]."""
    return op.adjoint(fft.rfft(gradient).permute(2, 1, 0).contiguous())


def with_finish(call, finish):
    call.finish = finish
    return call


def matrix_of(case, op):
    """[in, out]"""
    size = op.size
    offset = (torch.arange(size) - torch.arange(size).view(-1, 1)) % size
    # [C_out, C_in, s, t]
    blocks = filters(op)[:, :, offset].permute(1, 2, 0, 3)
    return blocks.reshape(case.channels_in * size, -1).contiguous()


def adapter(case, op, x, b, g):
    """C3A. Its gradient of the input (peft 0.21.2) is that of kernels whose offsets run the other way; it takes the same time, and
    the check puts the right one in its place."""
    d_in = case.channels_in * op.size
    kernels = (reverse(filters(op)) * d_in).contiguous()
    rows, gradients = x.reshape(case.batch, -1), g.reshape(case.batch, -1)
    bias = b.repeat_interleave(op.size)

    def run():
        saved = Saved()
        y = (BlockCircularConvolution.forward(saved, rows, kernels) / d_in).add_(bias)
        if not case.backward:
            return (y,)
        gx, gw = BlockCircularConvolution.backward(saved, gradients / d_in)
        return y, gx, gw, gradients.sum(0)

    def finish(results):
        y, *rest = results
        if not rest:
            return (y.view(g.shape),)
        _, gw, gb = rest
        gx = gradients @ matrix_of(case, op).T
        ga = of_coordinates(op, reverse(gw) * d_in)
        return y.view(g.shape), gx.view(x.shape), ga, gb.view(-1, op.size).sum(1)

    return with_finish(run, finish)


def dense(case, op, x, b, g):
    size, matrix = op.size, matrix_of(case, op)
    rows, gradients = x.reshape(case.batch, -1), g.reshape(case.batch, -1)
    bias = b.repeat_interleave(size)

    def run():
        y = torch.addmm(bias, rows, matrix)
        if not case.backward:
            return (y,)
        return y, gradients @ matrix.T, rows.T @ gradients, gradients.sum(0)

    def finish(results):
        y, *rest = results
        if not rest:
            return (y.view(g.shape),)
        gx, gw, gb = rest
        gw = gw.view(case.channels_in, size, case.channels_out, size)
        s = torch.arange(size)
        diagonals = [gw[:, s, :, (s + k) % size].sum(0) for k in range(size)]
        ga = of_coordinates(op, torch.stack(diagonals, -1).permute(1, 0, 2).contiguous())
        return y.view(g.shape), gx.view(x.shape), ga, gb.view(-1, size).sum(1)

    return with_finish(run, finish)
