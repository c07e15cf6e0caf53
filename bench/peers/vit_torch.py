"""The vision transformer in PyTorch: fused layer norm and attention, spectral projections by torch.fft.

Variants: `eager`; `projection by hand`, whose spectral projections have a backward pass of their own, one transform for
queries, keys and values together; `compiled`, if torch.compile works on this machine.
Adan is by hand on one vector of all parameters: a dozen calls a step.
"""

import sys

import numpy as np
import torch
from torch.nn import functional

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
    parameter_shapes,
)


def spectrum(coordinates):
    """[..., 128] to [..., 65] complex bins."""
    zero = torch.zeros_like(coordinates[..., :1])
    pairs = torch.cat((coordinates[..., :1], zero, coordinates[..., 1:], zero), -1)
    return torch.view_as_complex(pairs.unflatten(-1, (-1, 2)))


class Circulant(torch.autograd.Function):
    """y[i] = IRFFT(h[i] RFFT(x)) + b[i]; x [rows, d], coordinates [filters, d], bias [filters, 1]."""

    @staticmethod
    def forward(ctx, x, coordinates, bias):
        bins, filters = torch.fft.rfft(x), spectrum(coordinates)
        product = bins * filters[:, None]
        product[..., 0] += bias * x.shape[-1]
        ctx.save_for_backward(bins, filters)
        return torch.fft.irfft(product, n=x.shape[-1])

    @staticmethod
    def backward(ctx, grad):
        bins, filters = ctx.saved_tensors
        length = grad.shape[-1]
        back = torch.fft.rfft(grad)
        x = torch.fft.irfft((back * filters.conj()[:, None]).sum(0), n=length)
        summed = (back * bins.conj()).sum(1)
        pairs = torch.view_as_real(summed).flatten(1)
        weight = torch.full((length,), 2 / length, dtype=grad.dtype)
        weight[0] = weight[-1] = 1 / length
        coordinates = torch.cat((pairs[:, :1], pairs[:, 2 : length + 1]), 1) * weight
        return x, coordinates, back[..., 0].real.sum(1, keepdim=True)


def circulant(x, coordinates, bias, by_hand):
    if by_hand:
        return Circulant.apply(x, coordinates, bias)
    product = torch.fft.rfft(x) * spectrum(coordinates)[:, None]
    return torch.fft.irfft(product, n=x.shape[-1]) + bias[:, None]


def norm(p, name, x):
    return functional.layer_norm(x, (WIDTH,), p[f"{name}.gamma"], p[f"{name}.beta"], NORM_EPSILON)


def linear(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def dense(p, name, rows):
    return torch.addmm(p[f"{name}.bias"], rows, p[f"{name}.weight"])


def attention(model, p, name, x, rate, by_hand):
    """[rows, d] to [rows, d]."""
    names = [f"{name}.{part}" for part in ("query", "key", "value")]
    if model == "dense":
        weight = torch.cat([p[f"{n}.weight"] for n in names], 1)
        bias = torch.cat([p[f"{n}.bias"] for n in names])
        qkv = torch.addmm(bias, x, weight).view(-1, TOKENS, 3, HEADS, WIDTH // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
    else:
        coordinates = torch.stack([p[f"{n}.coordinates"] for n in names])
        bias = torch.stack([p[f"{n}.bias"] for n in names])
        qkv = circulant(x, coordinates, bias, by_hand)
        query, key, value = qkv.view(3, -1, TOKENS, HEADS, WIDTH // HEADS).transpose(2, 3)
    mixed = functional.scaled_dot_product_attention(query, key, value, dropout_p=rate)
    mixed = mixed.transpose(1, 2).reshape(-1, WIDTH)
    if model == "dense":
        return dense(p, f"{name}.output", mixed)
    output = p[f"{name}.output.coordinates"][None], p[f"{name}.output.bias"][None]
    return circulant(mixed, *output, by_hand)[0]


def logits(model, p, images, rate, by_hand=False):
    drop = (lambda x: functional.dropout(x, rate)) if rate else (lambda x: x)
    side = SIDE // PATCH
    patches = images.view(-1, CHANNELS, side, PATCH, side, PATCH).permute(0, 2, 4, 1, 3, 5)
    patches = linear(p, "patch_embedding", patches.reshape(len(images), side * side, -1))
    tokens = torch.cat((p["class_token"].expand(len(images), 1, WIDTH), patches), 1)
    x = drop(tokens + p["positions"]).view(-1, WIDTH)
    for i in range(DEPTH):
        block = f"blocks.{i}"
        normed = norm(p, f"{block}.attention_norm", x)
        x = x + drop(attention(model, p, f"{block}.attention", normed, rate, by_hand))
        hidden = dense(p, f"{block}.expand", norm(p, f"{block}.mlp_norm", x))
        hidden = drop(functional.gelu(hidden))
        x = x + drop(dense(p, f"{block}.contract", hidden))
    return linear(p, "head", norm(p, "norm", x.view(-1, TOKENS, WIDTH)[:, 0]))


class Training:
    """All parameters are views of one vector, and so are their gradients."""

    @torch.inference_mode(False)
    def __init__(self, model, batch, by_hand=False, compiled=False):
        images, labels = data(batch)
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)
        shapes = parameter_shapes(model)
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        values = initial_parameters(model)
        flat = torch.from_numpy(np.concatenate([v.reshape(-1) for v in values.values()]))
        self.flat, self.grad = flat, torch.zeros_like(flat)
        self.parameters = {}
        parts = zip(shapes.items(), flat.split(sizes), self.grad.split(sizes))
        for (name, shape), part, grad in parts:
            leaf = part.view(shape).requires_grad_()
            leaf.grad = grad.view(shape)
            self.parameters[name] = leaf
        self.average, self.difference, self.square = (torch.zeros_like(flat) for _ in range(3))
        self.before, self.time = torch.zeros_like(flat), 0
        self.call = lambda p, x: logits(model, p, x, DROPOUT, by_hand)
        if compiled:
            self.call = torch.compile(self.call)

    @torch.inference_mode(False)
    def run(self):
        with torch.enable_grad():
            self.grad.zero_()
            found = self.call(self.parameters, self.images)
            functional.cross_entropy(found, self.labels).backward()
        with torch.no_grad():
            self.step()

    def step(self):
        self.time += 1
        g = self.grad
        change = g - self.before if self.time > 1 else torch.zeros_like(g)
        self.before.copy_(g)
        beta_1, beta_2, beta_3 = BETAS
        self.average.lerp_(g, 1 - beta_1)
        self.difference.lerp_(change, 1 - beta_2)
        nesterov = torch.add(g, change, alpha=beta_2)
        self.square.mul_(beta_3).addcmul_(nesterov, nesterov, value=1 - beta_3)
        c_1, c_2, c_3 = (1 - beta**self.time for beta in BETAS)
        divisor = self.square.sqrt().mul_(c_3**-0.5).add_(ADAN_EPSILON)
        step = (self.average / c_1).add_(self.difference, alpha=beta_2 / c_2)
        self.flat.detach().mul_(1 - LEARNING_RATE * DECAY).addcdiv_(step, divisor, value=-LEARNING_RATE)


def loss_and_gradients(model, parameters, images, labels, by_hand=False):
    """Without dropout, in the precision of the images; numpy in and out."""
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.from_numpy(np.asarray(images))
        p = {
            name: torch.from_numpy(np.asarray(parameters[name], images.dtype)).reshape(shape).requires_grad_()
            for name, shape in parameter_shapes(model).items()
        }
        found = logits(model, p, x, 0.0, by_hand)
        loss = functional.cross_entropy(found, torch.from_numpy(np.asarray(labels)))
        gradients = torch.autograd.grad(loss, list(p.values()))
    return loss.item(), {name: g.numpy() for name, g in zip(p, gradients)}


def variants(model, batch):
    """Name -> function that takes one step."""
    made = {"eager": Training(model, batch).run}
    if model == "spectral":
        made["projection by hand"] = Training(model, batch, by_hand=True).run
    try:
        compiled = Training(model, batch, by_hand=model == "spectral", compiled=True).run
        compiled()
        made["compiled"] = compiled
    except Exception as error:  # no compiler, or something that it does not support
        print(f"torch.compile: {type(error).__name__}: {error}", file=sys.stderr)
    return made


def checks():
    """Variant -> loss_and_gradients."""
    def by_hand(*arguments):
        return loss_and_gradients(*arguments, by_hand=True)

    return {"eager": loss_and_gradients, "by hand": by_hand}
