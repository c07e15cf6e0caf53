"""SVI steps and posterior predictions in PyTorch, every gradient written by hand.

All parameters are slices of one vector, [mean-field means, their log deviations, low rank],
so that sampling, the mean-field KL and Adam are a few calls whatever the number of sites.
The gradient is taken of the loss, that is of the negative ELBO divided by N.
"""

import sys
from functools import partial

import numpy as np
import torch

from cases import Case
from peer_torch import Line, Plane
from svi_problem import (
    ADAM_EPSILON,
    BETAS,
    CHANNELS,
    CLASSES,
    EXAMPLES,
    GRIDS,
    JITTER,
    KERNEL,
    LEARNING_RATE,
    PIXELS,
    RANK,
    SIDE,
    SITES,
    SPECTRAL_GRIDS,
    batches,
    initial_parameters,
    prior_variance,
)

functional = torch.nn.functional
# Inputs per block of a prediction: one block's hidden layer stays in cache.
PREDICTION_BLOCK = 500


def tanh_(y):
    """2 sigmoid(2y) - 1 in place: twice as fast as `tanh_`, and off by 1e-7 at most."""
    y.add_(y).sigmoid_()
    return torch.add(torch.tensor(-1.0, dtype=y.dtype), y, alpha=2, out=y)


def one_hot(labels, dtype):
    """[classes, batch]"""
    return functional.one_hot(torch.from_numpy(labels), CLASSES).T.to(dtype).contiguous()


class Slices:
    """One vector, and a view of it for each named shape."""

    def __init__(self, shapes, dtype):
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.flat = torch.zeros(sum(sizes), dtype=dtype)
        parts = self.flat.split(sizes)
        self.of = {name: part.view(s) for (name, s), part in zip(shapes.items(), parts)}

    def fill(self, arrays):
        for name, view in self.of.items():
            view.copy_(torch.from_numpy(np.asarray(arrays[name])).view(view.shape))


class MeanField:
    """Gaussians with prior N(0,1), all sites together as flat vectors."""

    def __init__(self, mean, log_deviation, mean_gradient, log_deviation_gradient, noise):
        self.mean, self.log_deviation, self.noise = mean, log_deviation, noise
        self.mean_gradient, self.log_deviation_gradient = mean_gradient, log_deviation_gradient

    def sample(self, out):
        self.deviation = self.log_deviation.exp()
        torch.addcmul(self.mean, self.deviation, self.noise, out=out)

    def kl(self):
        squares = torch.dot(self.deviation, self.deviation) + torch.dot(self.mean, self.mean)
        return 0.5 * (squares - len(self.mean)) - self.log_deviation.sum()

    def backward(self):
        """From the gradient of the sample, which `mean_gradient` holds."""
        gradient = torch.mul(self.mean_gradient, self.noise, out=self.log_deviation_gradient)
        gradient.add_(self.deviation, alpha=1 / EXAMPLES).mul_(self.deviation).sub_(1 / EXAMPLES)
        self.mean_gradient.add_(self.mean, alpha=1 / EXAMPLES)


class LowRank:
    """N(mu, V V^T + diag(D)) with V = U diag(lambda), D = sigma^2 + jitter, against diag(tau^2)."""

    def __init__(self, parameters, gradients, noise, noise_low_rank, variance):
        names = ("mean", "factor", "scale", "log_deviation")
        self.mean, self.factor, self.scale, self.log_deviation = (
            parameters[f"hidden.{name}"] for name in names
        )
        self.gradients = [gradients[f"hidden.{name}"] for name in names]
        self.noise, self.noise_low_rank = noise, noise_low_rank
        self.precision = 1 / variance
        self.constant = (variance.log().sum() - len(variance)).item()
        self.identity = torch.eye(RANK, dtype=variance.dtype)
        self.ones = torch.ones(RANK, dtype=variance.dtype)

    def sample(self, out):
        self.variance = (2 * self.log_deviation).exp_()
        self.diagonal = self.variance + JITTER
        self.root = self.diagonal.sqrt()
        self.v = self.factor * self.scale
        torch.addcmul(self.mean, self.root, self.noise, out=out)
        out.addmv_(self.v, self.noise_low_rank)

    def kl(self):
        self.scaled = self.v / self.diagonal[:, None]
        lower = torch.linalg.cholesky_ex(torch.addmm(self.identity, self.scaled.T, self.v))[0]
        self.inverse = torch.cholesky_inverse(lower)
        self.weighted = self.v * self.precision[:, None]
        second_moment = torch.addcmul(self.diagonal, self.mean, self.mean)
        trace = torch.dot(second_moment, self.precision)
        trace += torch.dot(self.weighted.view(-1), self.v.view(-1))
        log_determinant = self.diagonal.log().sum() + 2 * lower.diagonal().log().sum()
        return 0.5 * (trace - log_determinant + self.constant)

    def backward(self, gradient):
        """From the gradient of the sample."""
        mean, factor, scale, log_deviation = self.gradients
        torch.addcmul(gradient, self.mean, self.precision, value=1 / EXAMPLES, out=mean)
        solved = self.scaled @ self.inverse
        v = torch.outer(gradient, self.noise_low_rank)
        v.add_(self.weighted.sub_(solved), alpha=1 / EXAMPLES)
        torch.mul(v, self.scale, out=factor)
        torch.sum(v.mul_(self.factor), 0, out=scale)
        diagonal = self.precision - self.diagonal.reciprocal()
        # The sum over the rank as a product: a sum of eight is slow.
        diagonal.addmv_(solved.mul_(self.scaled), self.ones)
        slope = (gradient * self.noise).div_(self.root).add_(diagonal, alpha=1 / EXAMPLES)
        torch.mul(slope, self.variance, out=log_deviation)


class Spectral:
    """Every layer maps [batch, pixels] to [channels, batch, pixels]."""

    def __init__(self, model, weight, bias):
        self.weight, self.bias = weight, bias
        height, width = GRIDS[model]
        self.grid = (width,) if height == 1 else (height, width)
        if height == 1:
            self.op = Line(width, weight)
        else:
            self.op = Plane(Case("", 1, 1, 1, self.grid, True), weight.view(-1, 1, 1))

    def forward(self, x):
        self.spectrum = self.op.rfft(x.view(-1, *self.grid))
        product = self.spectrum * self.filter()
        product[:, 0] += self.bias * PIXELS
        return self.op.irfft(product).view(1, -1, PIXELS)

    def filter(self):
        return self.op.filter()

    def adjoint(self, gradient):
        return self.op.adjoint(gradient)

    def backward(self, g, weight_gradient, bias_gradient):
        gradient = self.op.rfft(g.view(-1, *self.grid))
        torch.sum(gradient[:, 0].real, 0, keepdim=True, out=bias_gradient)
        summed = self.spectrum.conj_physical_().mul_(gradient).sum(0)
        weight_gradient.copy_(self.adjoint(summed).view(-1))


class Spatial(Spectral):
    """The weights are the filter itself."""

    def filter(self):
        return self.op.rfft(self.weight.view(self.grid))

    def adjoint(self, gradient):
        return self.op.irfft(gradient)


class Convolution:
    """By shifted copies of the images and one matrix product; oneDNN's backward is slower."""

    def __init__(self, weight, bias):
        self.weight, self.bias = weight.view(CHANNELS, -1), bias

    def forward(self, x):
        padded = functional.pad(x.view(-1, SIDE, SIDE), (KERNEL // 2,) * 4)
        windows = padded.unfold(1, SIDE, 1).unfold(2, SIDE, 1)
        self.shifted = windows.permute(1, 2, 0, 3, 4).reshape(KERNEL**2, -1)
        y = torch.addmm(self.bias[:, None], self.weight, self.shifted)
        return y.view(CHANNELS, -1, PIXELS)

    def backward(self, g, weight_gradient, bias_gradient):
        rows = g.view(CHANNELS, -1)
        torch.mm(rows, self.shifted.T, out=weight_gradient.view(CHANNELS, -1))
        torch.sum(rows, 1, out=bias_gradient)


class Dense:
    def __init__(self, weight, bias):
        self.weight, self.bias = weight, bias

    def forward(self, x):
        self.x = x
        return torch.addmm(self.bias, x, self.weight)[None]

    def backward(self, g, weight_gradient, bias_gradient):
        torch.mm(self.x.T, g[0], out=weight_gradient)
        torch.sum(g[0], 0, out=bias_gradient)


class Posterior:
    def __init__(self, model, parameters, dtype):
        sites, spectral = SITES[model], model in SPECTRAL_GRIDS
        gaussian = {name: s for name, s in sites.items() if not (spectral and name == "hidden")}
        low_rank = {}
        if spectral:
            low_rank = {"mean": (PIXELS,), "factor": (PIXELS, RANK), "scale": (RANK,)}
            low_rank["log_deviation"] = (PIXELS,)
        shapes = {
            **{f"{name}.mean": shape for name, shape in gaussian.items()},
            **{f"{name}.log_deviation": shape for name, shape in gaussian.items()},
            **{f"hidden.{name}": shape for name, shape in low_rank.items()},
        }
        self.parameters, self.gradients = Slices(shapes, dtype), Slices(shapes, dtype)
        self.parameters.fill(parameters)
        extra = {"hidden": (PIXELS,), "hidden.low_rank": (RANK,)} if spectral else {}
        self.noise = Slices({**gaussian, **extra}, dtype)
        self.sample = Slices(gaussian, dtype)
        size = len(self.sample.flat)
        flat, gradients = self.parameters.flat, self.gradients.flat
        self.mean_field = MeanField(
            flat[:size], flat[size : 2 * size], gradients[:size], gradients[size : 2 * size],
            self.noise.flat[:size],
        )
        values = self.sample.of
        # [channels, pixels, classes]
        self.weight = values["weight"].view(-1, PIXELS, CLASSES)
        self.low_rank = None
        if spectral:
            variance = torch.from_numpy(prior_variance(*SPECTRAL_GRIDS[model])).to(dtype)
            noise = self.noise.of["hidden"], self.noise.of["hidden.low_rank"]
            of = self.parameters.of, self.gradients.of
            self.low_rank = LowRank(*of, *noise, variance)
            self.coordinates, self.coordinate_gradient = torch.zeros(2, PIXELS, dtype=dtype)
            self.layer = Spectral(model, self.coordinates, values["hidden_bias"])
        else:
            kinds = {"conv2d": Convolution, "dense": Dense}
            kind = kinds.get(model) or partial(Spatial, model)
            self.layer = kind(values["hidden"], values["hidden_bias"])

    def draw(self):
        self.mean_field.sample(self.sample.flat)
        if self.low_rank:
            self.low_rank.sample(self.coordinates)

    def logits(self, x):
        """[classes, batch]: as [batch, classes] the product takes three times as long."""
        self.hidden = tanh_(self.layer.forward(x))
        logits = torch.bmm(self.weight.mT, self.hidden.mT).sum(0)
        return logits.add_(self.sample.of["bias"][:, None])

    def kl(self):
        kl = self.mean_field.kl()
        return kl + self.low_rank.kl() if self.low_rank else kl

    def step(self, x, targets):
        """The loss and the KL at the noise as it is; fills the gradients. Targets are one-hot,
        [classes, batch]."""
        self.draw()
        log_probability = self.logits(x).log_softmax(0)
        likelihood = torch.dot(log_probability.view(-1), targets.view(-1))
        kl = self.kl()
        gradient = log_probability.exp_().sub_(targets).div_(len(x))
        gradients = self.gradients.of
        channels = gradient.expand(len(self.hidden), -1, -1)
        weight = gradients["weight.mean"].view(self.weight.shape)
        weight.copy_(torch.bmm(channels, self.hidden).mT)
        torch.sum(gradient, 1, out=gradients["bias.mean"])
        back = torch.bmm(channels.mT, self.weight.mT)
        back = torch.ops.aten.tanh_backward(back, self.hidden)
        weight = self.coordinate_gradient if self.low_rank else gradients["hidden.mean"]
        self.layer.backward(back, weight, gradients["hidden_bias.mean"])
        self.mean_field.backward()
        if self.low_rank:
            self.low_rank.backward(self.coordinate_gradient)
        return kl / EXAMPLES - likelihood / len(x), kl


class Training:
    def __init__(self, model, batch, inputs, labels):
        rows = batches(len(inputs), batch)
        self.inputs = torch.from_numpy(inputs)
        self.rows = torch.from_numpy(rows)
        self.x = torch.empty(batch, inputs.shape[1])
        self.bytes = torch.empty_like(self.x, dtype=torch.uint8) if inputs.dtype == np.uint8 else None
        self.targets = [one_hot(labels[part], torch.float32) for part in rows]
        self.posterior = Posterior(model, initial_parameters(model), torch.float32)
        self.moments = [torch.zeros_like(self.posterior.parameters.flat) for _ in range(2)]
        self.steps = torch.zeros(())
        self.done = 0

    def gather(self, rows):
        if self.bytes is None:
            torch.index_select(self.inputs, 0, rows, out=self.x)
        else:
            torch.index_select(self.inputs, 0, rows, out=self.bytes)
            torch.div(self.bytes, 255, out=self.x)

    def run(self, steps):
        """The loss of the last step."""
        posterior, flat = self.posterior, self.posterior.parameters.flat
        mean, square = self.moments
        for _ in range(steps):
            turn = self.done % len(self.rows)
            self.done += 1
            self.gather(self.rows[turn])
            posterior.noise.flat.normal_()
            loss, _ = posterior.step(self.x, self.targets[turn])
            self.steps += 1
            # What torch.optim.Adam(fused=True) calls, without its bookkeeping.
            torch._fused_adam_(
                [flat], [posterior.gradients.flat], [mean], [square], [], [self.steps],
                lr=LEARNING_RATE, beta1=BETAS[0], beta2=BETAS[1], weight_decay=0.0,
                eps=ADAM_EPSILON, amsgrad=False, maximize=False,
            )
        return loss.item()


def loss_and_gradients(model, parameters, noise, inputs, labels):
    """Loss, KL and gradients at the given noise, in the precision of the inputs."""
    x = torch.from_numpy(inputs)
    posterior = Posterior(model, parameters, x.dtype)
    posterior.noise.fill(noise)
    loss, kl = posterior.step(x, one_hot(labels, x.dtype))
    return loss.item(), kl.item(), {k: v.numpy() for k, v in posterior.gradients.of.items()}


class Prediction:
    """Class probabilities, their entropy and the expected entropy over posterior samples."""

    def __init__(self, model, samples, inputs, parameters=None):
        self.inputs, self.samples = torch.from_numpy(inputs), samples
        parameters = parameters or initial_parameters(model)
        self.posterior = Posterior(model, parameters, self.inputs.dtype)

    def run(self, noise=None):
        layer, posterior = self.posterior.layer, self.posterior
        filters, weights, biases = [], [], []
        for s in range(self.samples):
            if noise is None:
                posterior.noise.flat.normal_()
            else:
                posterior.noise.fill(noise[s])
            posterior.draw()
            spectrum = layer.op.filter().clone()
            filters.append(spectrum)
            offsets = torch.zeros_like(spectrum)
            offsets[0] = layer.bias[0] * PIXELS
            weights.append((offsets, posterior.sample.of["weight"].clone()))
            biases.append(posterior.sample.of["bias"].clone())
        bias = torch.stack(biases)[:, :, None]
        parts = [self.block(x, filters, weights, bias) for x in self.inputs.split(PREDICTION_BLOCK)]
        return [torch.cat(part) for part in zip(*parts)]

    def block(self, x, filters, weights, bias):
        op, grid = self.posterior.layer.op, self.posterior.layer.grid
        spectrum = op.rfft(x.view(-1, *grid))
        logits = x.new_empty(self.samples, CLASSES, len(x))
        for s, (offset, weight) in enumerate(weights):
            product = torch.addcmul(offset, spectrum, filters[s])
            hidden = tanh_(op.irfft(product).view(-1, PIXELS))
            torch.mm(weight.T, hidden.T, out=logits[s])
        log_probability = logits.add_(bias).log_softmax(1)
        probability = log_probability.exp()
        expected = log_probability.mul_(probability).sum(1).mean(0).neg_()
        mean = probability.mean(0)
        return mean.T, torch.special.entr(mean).sum(0), expected


def variants():
    """Name -> module with a `Training` and `loss_and_gradients`."""
    return {"by hand": sys.modules[__name__]}
