"""What a worker does for the cases of the vision transformer: timed steps and checks."""

import importlib

import numpy as np

import reference
import vit_problem


def implementation(peer):
    """`vit_torch` for `peer_torch`, and so on."""
    return importlib.import_module(peer.__name__.replace("peer_", "vit_"))


def variants(peer, case):
    return implementation(peer).variants(case.model, case.batch)


def check(peer, case):
    """Variant -> error against the reference in f64, in f32 and in f64."""
    # Here, because it brings torch, which must not weigh on a timed JAX.
    import vit_reference

    images, labels = vit_problem.data(case.batch)
    parameters = vit_problem.initial_parameters(case.model)
    arguments = case.model, parameters
    expected = flat(vit_reference.loss_and_gradients(*arguments, images, labels))
    errors = {}
    for name, call in implementation(peer).checks().items():
        errors[name] = {}
        for dtype in ("float32", "float64"):
            found = flat(call(*arguments, images.astype(dtype), labels))
            errors[name][dtype] = reference.relative_error(found, expected)
    return errors


def flat(result):
    """The loss, and all gradients as one vector: a bias of keys has no gradient but rounding."""
    loss, gradients = result
    arrays = [np.asarray(gradients[name], np.float64).reshape(-1) for name in sorted(gradients)]
    return [np.asarray(loss), np.concatenate(arrays)]
