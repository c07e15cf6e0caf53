"""The same training with NumPyro: its model, guide, mean-field ELBO, Adam and `SVI.update`."""

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist
from numpyro.distributions import kl_divergence
from numpyro.infer import SVI, TraceMeanField_ELBO

import svi_jax
from svi_problem import (
    ADAM_EPSILON,
    BETAS,
    EXAMPLES,
    JITTER,
    LEARNING_RATE,
    SITES,
    SPECTRAL_GRIDS,
    initial_parameters,
    prior_variance,
)


class SpectralPrior(dist.Independent):
    """Independent normal coordinates; a type of its own, so that a KL can be registered."""

    def __init__(self, variance):
        super().__init__(dist.Normal(0.0, jnp.sqrt(variance)), 1)


@kl_divergence.register(dist.LowRankMultivariateNormal, SpectralPrior)
def low_rank_to_prior(q, prior):
    return svi_jax.low_rank_kl(q.loc, q.cov_factor, q.cov_diag, prior.base_dist.variance)


def make_model(model, dtype):
    layer, shapes = svi_jax.hidden_layer(model, dtype), dict(SITES[model])
    shapes["weight"] = shapes["weight"][::-1]

    def prior(site, shape):
        if site == "hidden" and model in SPECTRAL_GRIDS:
            return SpectralPrior(prior_variance(*SPECTRAL_GRIDS[model]).astype(dtype))
        return dist.Normal(jnp.zeros(shape, dtype), 1.0).to_event(len(shape))

    def program(x, labels):
        values = {site: numpyro.sample(site, prior(site, s)) for site, s in shapes.items()}
        hidden = jnp.tanh(layer(x, values["hidden"], values["hidden_bias"]))
        logits = svi_jax.class_log_probabilities(hidden, values).T
        with numpyro.handlers.scale(scale=EXAMPLES / len(x)):
            numpyro.sample("labels", dist.Categorical(logits=logits).to_event(1), obs=labels)

    return program


def make_guide(model, start):
    def program(x, labels):
        of = {name: numpyro.param(name, value) for name, value in start.items()}
        for site in SITES[model]:
            mean, deviation = of[f"{site}.mean"], jnp.exp(of[f"{site}.log_deviation"])
            if site == "hidden" and model in SPECTRAL_GRIDS:
                factor = of["hidden.factor"] * of["hidden.scale"]
                q = dist.LowRankMultivariateNormal(mean, factor, deviation**2 + JITTER)
            else:
                q = dist.Normal(mean, deviation).to_event(mean.ndim)
            numpyro.sample(site, q)

    return program


class Training(svi_jax.Training):
    def start(self, model):
        parameters = svi_jax.linear_transposed(initial_parameters(model))
        parameters = {k: jnp.asarray(v) for k, v in parameters.items()}
        optimizer = numpyro.optim.Adam(LEARNING_RATE, *BETAS, ADAM_EPSILON)
        programs = make_model(model, jnp.float32), make_guide(model, parameters)
        svi = SVI(*programs, optimizer, TraceMeanField_ELBO())
        example = jnp.zeros((1, 784)), jnp.zeros(1, jnp.int32)
        state = svi.init(jax.random.key(20), *example)

        def update(state, key, step, x, labels):
            state, value = svi.update(state, x, labels)
            return state, value / EXAMPLES

        return state, update


def loss_and_gradients(model, parameters, noise, inputs, labels):
    """Loss, KL and gradients at the given noise, in the precision of the inputs."""
    parameters, noise = (
        svi_jax.linear_transposed({k: jnp.asarray(v, inputs.dtype) for k, v in arrays.items()})
        for arrays in (parameters, noise)
    )
    program, guide = make_model(model, inputs.dtype), make_guide(model, parameters)
    data = jnp.asarray(inputs), jnp.asarray(labels)

    def loss(parameters):
        values, kl = svi_jax.sample(model, parameters, noise)
        at_values = numpyro.handlers.substitute(guide, values)
        elbo = TraceMeanField_ELBO().loss(jax.random.key(0), parameters, program, at_values, *data)
        return elbo / EXAMPLES, kl

    (value, kl), gradients = jax.value_and_grad(loss, has_aux=True)(parameters)
    return float(value), float(kl), svi_jax.linear_transposed(gradients)
