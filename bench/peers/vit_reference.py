"""The vision transformer in f64, slow and obvious: dense circulant matrices, softmax written out, autograd."""

import numpy as np
import torch

from vit_problem import DEPTH, HEADS, NORM_EPSILON, PATCH, PATCHES, SIDE, WIDTH, parameter_shapes


def circulant_matrix(coordinates):
    """[in, out] from `Re h_0, Re h_1, Im h_1, ...`: w_t = (1/n) sum_k h_k exp(2 pi i k t/n)."""
    length = len(coordinates)
    units = np.eye(length)
    bins = np.zeros((length, length // 2 + 1), complex)
    bins[:, 0] = units[:, 0]
    bins[:, 1:-1] = units[:, 1:-1:2] + 1j * units[:, 2::2]
    bins[:, -1] = units[:, -1]
    filters = torch.from_numpy(np.fft.irfft(bins, n=length).T.copy()) @ coordinates
    t, s = np.meshgrid(np.arange(length), np.arange(length))
    return filters[torch.from_numpy((t - s) % length)]


def norm(p, name, x):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (variance + NORM_EPSILON).sqrt() * p[f"{name}.gamma"] + p[f"{name}.beta"]


def project(p, name, x):
    weight = p.get(f"{name}.weight")
    if weight is None:
        weight = circulant_matrix(p[f"{name}.coordinates"])
    return x @ weight + p[f"{name}.bias"]


def attention(p, name, x):
    query, key, value = (project(p, f"{name}.{part}", x) for part in ("query", "key", "value"))
    size = WIDTH // HEADS
    heads = []
    for h in range(HEADS):
        own = slice(h * size, (h + 1) * size)
        weights = (query[..., own] @ key[..., own].mT / size**0.5).exp()
        heads.append(weights / weights.sum(-1, keepdim=True) @ value[..., own])
    return project(p, f"{name}.output", torch.cat(heads, -1))


def logits(p, images):
    cells = images.unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH)
    patches = cells.permute(0, 2, 3, 1, 4, 5).reshape(len(images), PATCHES, -1)
    patches = project(p, "patch_embedding", patches)
    x = torch.cat((p["class_token"].repeat(len(images), 1, 1), patches), 1) + p["positions"]
    for i in range(DEPTH):
        block = f"blocks.{i}"
        x = x + attention(p, f"{block}.attention", norm(p, f"{block}.attention_norm", x))
        hidden = project(p, f"{block}.expand", norm(p, f"{block}.mlp_norm", x))
        hidden = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2
        x = x + project(p, f"{block}.contract", hidden)
    return project(p, "head", norm(p, "norm", x)[:, 0])


def loss_and_gradients(model, parameters, images, labels):
    """Without dropout; numpy in and out."""
    with torch.inference_mode(False), torch.enable_grad():
        p = {
            name: torch.from_numpy(np.asarray(parameters[name], np.float64)).reshape(shape).requires_grad_()
            for name, shape in parameter_shapes(model).items()
        }
        found = logits(p, torch.from_numpy(np.asarray(images, np.float64)))
        chosen = found.log_softmax(1)[torch.arange(len(labels)), torch.from_numpy(np.asarray(labels))]
        loss = -chosen.mean()
        gradients = torch.autograd.grad(loss, list(p.values()))
    return loss.item(), {name: g.numpy() for name, g in zip(p, gradients)}
