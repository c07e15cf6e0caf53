"""The model that the classifier chooses for digits, in PyTorch and in NumPyro: a lift, a circulant layer in the spectrum, a read-out,
each followed by tanh but the last; a mean-field posterior, Adam, as many steps and rows per step.
"""

import math

import numpy as np

RATE, DEVIATION, KL_WEIGHT = 1e-2, 0.02, 0.3


def fit_torch(X, y, classes, width, steps, batch, seed=0):
    """Returns a function from rows to probabilities."""
    import torch

    torch.manual_seed(seed)
    X, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    columns = X.shape[1]
    shapes = {"lift": (columns, width), "lift_bias": (width,), "real": (width // 2 + 1,), "imaginary": (width // 2 + 1,)}
    shapes |= {"bias": (width,), "output": (width, classes), "output_bias": (classes,)}
    scale = {"lift": columns**-0.5, "real": 1.0, "imaginary": 1.0, "output": width**-0.5}
    mean = {name: torch.nn.Parameter(scale.get(name, 0.0) * torch.randn(shape)) for name, shape in shapes.items()}
    spread = {name: torch.nn.Parameter(torch.full(shape, math.log(DEVIATION))) for name, shape in shapes.items()}

    def draw():
        return {name: mean[name] + spread[name].exp() * torch.randn_like(mean[name]) for name in mean}

    def logits(p, x):
        h = torch.tanh(x @ p["lift"] + p["lift_bias"])
        h = torch.fft.irfft(torch.fft.rfft(h) * torch.complex(p["real"], p["imaginary"]), n=width)
        return torch.tanh(h + p["bias"]) @ p["output"] + p["output_bias"]

    def kl():
        terms = (0.5 * (mean[n] ** 2 + (2 * spread[n]).exp() - 1) - spread[n] for n in mean)
        return sum(term.sum() for term in terms)

    optimiser = torch.optim.Adam([*mean.values(), *spread.values()], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(0, len(X), (min(batch, len(X)),))
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits(draw(), X[rows]), y[rows]) + KL_WEIGHT * kl() / len(X)
        loss.backward()
        optimiser.step()
        schedule.step()

    def predict(new):
        with torch.no_grad():
            x = torch.as_tensor(new, dtype=torch.float32)
            return torch.stack([logits(draw(), x).softmax(-1) for _ in range(50)]).mean(0).double().numpy()

    return predict


def fit_numpyro(X, y, classes, width, steps, batch, seed=0):
    """Returns a function from rows to probabilities."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Predictive, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    X, y = jnp.asarray(X, dtype=jnp.float32), jnp.asarray(y)
    columns, rows = X.shape[1], X.shape[0]

    def normal(name, *shape, deviation=1.0):
        return numpyro.sample(name, dist.Normal(0.0, deviation).expand(shape).to_event(len(shape)))

    def logits(x):
        h = jnp.tanh(x @ normal("lift", columns, width, deviation=columns**-0.5) + normal("lift_bias", width))
        spectrum = normal("real", width // 2 + 1) + 1j * normal("imaginary", width // 2 + 1)
        h = jnp.fft.irfft(jnp.fft.rfft(h) * spectrum, n=width)
        output = normal("output", width, classes, deviation=width**-0.5)
        return jnp.tanh(h + normal("bias", width)) @ output + normal("output_bias", classes)

    def model(x, y=None):
        out = numpyro.deterministic("logits", logits(x))
        with numpyro.handlers.scale(scale=rows / x.shape[0]):
            numpyro.sample("y", dist.Categorical(logits=out).to_event(1), obs=y)

    guide = AutoNormal(model, init_scale=DEVIATION)
    svi = SVI(model, guide, numpyro.optim.Adam(RATE), Trace_ELBO())
    state = svi.init(jax.random.key(seed), X[:batch], y[:batch])

    @jax.jit
    def step(state, key):
        chosen = jax.random.randint(key, (min(batch, rows),), 0, rows)
        return svi.update(state, X[chosen], y[chosen])[0]

    for key in jax.random.split(jax.random.key(seed + 1), steps):
        state = step(state, key)
    posterior = Predictive(guide, params=svi.get_params(state), num_samples=50)(jax.random.key(seed + 2), X[:1])
    predictive = Predictive(model, posterior, return_sites=["logits"])

    def predict(new):
        found = predictive(jax.random.key(seed + 3), jnp.asarray(new, dtype=jnp.float32))["logits"]
        return np.asarray(jax.nn.softmax(found, axis=-1).mean(0), dtype=np.float64)

    return predict
