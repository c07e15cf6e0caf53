"""Is what our program exported right? `svi_check.py CASE FILE`, run in the environment of the peers.

The file (safetensors) holds one step of ours: `inputs`, `labels`, every `parameter.NAME` and
`noise.NAME`, and what ours made of them: `loss`, `kl` and every `gradient.NAME`. Loss, KL and
gradients are calculated again in f64 by `svi_reference.py`, prior variances included.
Exit codes: 0 right, 1 wrong, 2 could not run.
"""

import sys

import numpy as np
from safetensors.numpy import load_file

import cases
import svi_problem
import svi_reference

# Relative: of the loss and the KL to themselves, of a gradient to its largest entry.
TOLERANCES = {"loss": 1e-5, "kl": 1e-5, "gradient": 1e-4}


def expected_sizes(model, batch):
    """Tensor name -> how many values it must have."""
    parameters = svi_problem.parameter_shapes(model)
    shapes = {
        "inputs": (batch, svi_problem.PIXELS),
        "labels": (batch,),
        "loss": (1,),
        "kl": (1,),
        **{f"parameter.{name}": shape for name, shape in parameters.items()},
        **{f"gradient.{name}": shape for name, shape in parameters.items()},
        **{f"noise.{name}": s for name, s in svi_problem.noise_shapes(model).items()},
    }
    return {name: int(np.prod(shape)) for name, shape in shapes.items()}


def errors(case, tensors):
    """Tensor name -> relative error; ValueError if the file is not such a step."""
    sizes = expected_sizes(case.model, case.batch)
    found = {name: tensor.size for name, tensor in tensors.items()}
    for name, size in sizes.items():
        if found.get(name) != size:
            raise ValueError(f"{name}: expected {size} values, found {found.get(name, 'none')}")

    def part(prefix):
        return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    arguments = part("parameter."), part("noise."), tensors["inputs"]
    labels = tensors["labels"].astype(np.int64)
    loss, kl, gradients = svi_reference.loss_and_gradients(case.model, *arguments, labels)
    expected = {"loss": loss, "kl": kl}
    expected |= {f"gradient.{name}": gradient for name, gradient in gradients.items()}
    result = {}
    for name, value in expected.items():
        exact = np.asarray(value, np.float64).reshape(-1)
        difference = np.abs(tensors[name].reshape(-1) - exact).max()
        result[name] = float(difference / np.abs(exact).max())
    return result


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, path = sys.argv[1:]
    good = True
    try:
        case = cases.parse(name)
        if case.work != "svi":
            raise ValueError(f"{name}: expected svi/MODEL/BATCH")
        found = errors(case, load_file(path))
    except (OSError, ValueError) as error:
        print(f"error: {path}: {error}", file=sys.stderr)
        return 2
    for tensor, error in found.items():
        within = error <= TOLERANCES[tensor.partition(".")[0]]
        good &= within
        print(f"{name:38}{'ours':7}{tensor:32}{error:9.1e}{'' if within else '  WRONG'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
