"""The loss of the SVI cases in the slowest and most obvious way, torch f64 with autograd.

A spectral layer is a dense matrix made from the definition (`reference.py`), its posterior
a dense covariance, and every KL that of `torch.distributions`.
"""

from functools import cache

import numpy as np
import torch
from torch import distributions

import reference
from svi_problem import (
    EXAMPLES,
    GRIDS,
    JITTER,
    SIDE,
    SITES,
    SPECTRAL_GRIDS,
    parameter_shapes,
    prior_variance,
)


@cache
def filters_of_coordinates(height, width):
    """[pixels, coordinates]: the filter is linear in the coordinates."""
    units = np.eye(height * width)
    spectra = [reference.full_spectrum(unit, height, width) for unit in units]
    return torch.from_numpy(np.fft.ifft2(spectra).real.reshape(len(units), -1).T.copy())


@cache
def offsets(height, width):
    """[pixels, pixels]: entry (t, s) is the place of t - s on the torus."""
    t, s = np.meshgrid(np.arange(height * width), np.arange(height * width), indexing="ij")
    rows, columns = (t // width - s // width) % height, (t % width - s % width) % width
    return torch.from_numpy(rows * width + columns)


def hidden_layer(model, x, weight, bias):
    if model == "conv2d":
        y = torch.nn.functional.conv2d(x.view(-1, 1, SIDE, SIDE), weight, bias, padding=1)
        return y.flatten(1)
    if model == "dense":
        return x @ weight + bias
    grid = GRIDS[model]
    spectral = model in SPECTRAL_GRIDS
    filter_ = filters_of_coordinates(*grid) @ weight if spectral else weight
    matrix = filter_[offsets(*grid)]
    return x @ matrix.T + bias


def posteriors(model, parameters):
    """Site -> (q, prior), flat."""
    found = {}
    for site in SITES[model]:
        mean = parameters[f"{site}.mean"].reshape(-1)
        deviation = parameters[f"{site}.log_deviation"].reshape(-1).exp()
        q = distributions.Normal(mean, deviation)
        prior = distributions.Normal(torch.zeros_like(mean), 1.0)
        if site == "hidden" and model in SPECTRAL_GRIDS:
            factor = parameters["hidden.factor"] * parameters["hidden.scale"]
            covariance = factor @ factor.T + torch.diag(deviation**2 + JITTER)
            variance = torch.from_numpy(prior_variance(*SPECTRAL_GRIDS[model]))
            q = distributions.MultivariateNormal(mean, covariance)
            prior = distributions.MultivariateNormal(torch.zeros_like(mean), torch.diag(variance))
        found[site] = q, prior
    return found


def sample(model, parameters, noise):
    """Site -> value at the given standard normal values."""
    values = {}
    for site, shape in SITES[model].items():
        deviation = parameters[f"{site}.log_deviation"].reshape(shape).exp()
        low_rank = 0.0
        if site == "hidden" and model in SPECTRAL_GRIDS:
            deviation = (deviation**2 + JITTER).sqrt()
            scaled = parameters["hidden.scale"] * noise["hidden.low_rank"]
            low_rank = parameters["hidden.factor"] @ scaled
        mean = parameters[f"{site}.mean"].reshape(shape)
        values[site] = mean + low_rank + deviation * noise[site].reshape(shape)
    return values


def logits(model, values, x):
    hidden = hidden_layer(model, x, values["hidden"], values["hidden_bias"]).tanh()
    return hidden @ values["weight"] + values["bias"]


def exact(arrays, shapes):
    return {
        name: torch.from_numpy(np.asarray(arrays[name], np.float64)).reshape(shape)
        for name, shape in shapes.items()
    }


def loss_and_gradients(model, parameters, noise, inputs, labels):
    """Loss, KL and gradients; the arguments are numpy arrays."""
    with torch.inference_mode(False), torch.enable_grad():
        parameters = exact(parameters, parameter_shapes(model))
        for value in parameters.values():
            value.requires_grad_()
        noise = exact(noise, {name: np.shape(v) for name, v in noise.items()})
        x = torch.from_numpy(np.asarray(inputs, np.float64)).reshape(len(labels), -1)
        kl = sum(
            distributions.kl_divergence(q, prior).sum()
            for q, prior in posteriors(model, parameters).values()
        )
        found = logits(model, sample(model, parameters, noise), x)
        loss = torch.nn.functional.cross_entropy(found, torch.from_numpy(np.asarray(labels)))
        loss = loss + kl / EXAMPLES
        gradients = torch.autograd.grad(loss, list(parameters.values()))
    names = zip(parameters, gradients)
    return loss.item(), kl.item(), {name: gradient.numpy() for name, gradient in names}


def prediction(model, parameters, noises, inputs):
    """Mean probabilities, their entropy, and the mean entropy; one noise per sample."""
    parameters = exact(parameters, parameter_shapes(model))
    x = torch.from_numpy(np.asarray(inputs, np.float64))
    probabilities = []
    for noise in noises:
        noise = exact(noise, {name: np.shape(v) for name, v in noise.items()})
        probabilities.append(logits(model, sample(model, parameters, noise), x).softmax(1))
    mean = sum(probabilities) / len(probabilities)
    entropies = [-(p * p.log()).sum(1) for p in probabilities]
    predictive = -(mean * mean.log()).sum(1)
    return [v.numpy() for v in (mean, predictive, sum(entropies) / len(entropies))]
