"""What a worker does for the cases of variational inference: timed calls and checks."""

import importlib

import numpy as np

import reference
import svi_problem

CHECK_SEED = 3


def implementation(peer):
    """`svi_torch` for `peer_torch`, and so on."""
    return importlib.import_module(peer.__name__.replace("peer_", "svi_"))


def variants(peer, case):
    """Name -> function without arguments that does the work `case.pieces` times."""
    module = implementation(peer)
    if case.work == "predictive":
        inputs, _ = svi_problem.data(case.batch)
        return {"by hand": module.Prediction(case.model, case.samples, inputs).run}
    made = {}
    for kind in (np.float32, np.uint8):
        data = svi_problem.data(dtype=kind)
        for name, variant in module.variants().items():
            if kind == np.uint8 and name != "by hand":
                continue
            training = variant.Training(case.model, case.batch, *data)
            made[f"{name}, {kind.__name__}"] = lambda t=training: t.run(case.pieces)
    return made


def check(peer, case):
    """Variant -> error against the dense f64 reference, in f32 and in f64."""
    # Here, because it brings torch, which must not weigh on a timed JAX.
    import svi_reference

    module, model = implementation(peer), case.model
    inputs, labels = svi_problem.data(case.batch)
    parameters = svi_problem.initial_parameters(model)
    noises = [svi_problem.draw_noise(model, CHECK_SEED + s) for s in range(case.samples)]
    if case.work == "predictive":
        expected = svi_reference.prediction(model, parameters, noises, inputs)

        def predict(x):
            return module.Prediction(model, case.samples, x, parameters).run(noises)

        calls = {"by hand": predict}
    else:
        arguments = model, parameters, noises[0]
        expected = flat(svi_reference.loss_and_gradients(*arguments, inputs, labels))

        def calculate(variant):
            return lambda x: flat(variant.loss_and_gradients(*arguments, x, labels))

        calls = {name: calculate(variant) for name, variant in module.variants().items()}
    errors = {name: {} for name in calls}
    for dtype in ("float32", "float64"):
        for name, call in calls.items():
            found = [np.asarray(v) for v in call(inputs.astype(dtype))]
            errors[name][dtype] = reference.relative_error(found, expected)
    return errors


def agree(peer, case, path):
    """How far a prediction is from the one that ours wrote to a file, with its inputs, parameters and noise."""
    from safetensors.numpy import load_file

    tensors = load_file(path)

    def part(prefix, shapes, leading=()):
        return {name: tensors[prefix + name].reshape(*leading, *shape) for name, shape in shapes.items()}

    parameters = part("parameter.", svi_problem.parameter_shapes(case.model))
    noise = part("noise.", svi_problem.noise_shapes(case.model), (case.samples,))
    noises = [{name: values[s] for name, values in noise.items()} for s in range(case.samples)]
    inputs = tensors["inputs"].reshape(case.batch, svi_problem.PIXELS)
    prediction = implementation(peer).Prediction(case.model, case.samples, inputs, parameters)
    names = ("probabilities", "predictive_entropy", "expected_entropy")
    found = [np.asarray(v) for v in prediction.run(noises)]
    return {"by hand": reference.relative_error(found, [tensors[name] for name in names])}


def flat(result):
    """Loss, KL and gradients. The one bias of a circulant layer goes with its weights: alone it may be near zero by chance."""
    loss, kl, gradients = result
    together = {}
    for name in sorted(gradients):
        array = np.asarray(gradients[name]).reshape(-1)
        together.setdefault(name.replace("hidden_bias", "hidden"), []).append(array)
    return [np.asarray(loss), np.asarray(kl), *map(np.concatenate, together.values())]
