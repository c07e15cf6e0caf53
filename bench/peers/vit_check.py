"""Is what our program exported right? `vit_check.py CASE FILE`, run in the environment of the peers.

The file (safetensors) holds `inputs`, `labels`, every `parameter.NAME`, and what ours made of them: `loss` and every
`gradient.NAME`, without dropout. They are calculated again in f64 by `vit_reference.py`.
Exit codes: 0 right, 1 wrong, 2 could not run.
"""

import sys

import numpy as np
from safetensors.numpy import load_file

import cases
import vit_problem
import vit_reference

# Relative: of the loss to itself, of a gradient to its largest entry and a thousandth of the largest of all. (The bias
# of the keys has a gradient of zero.)
TOLERANCES = {"loss": 1e-5, "gradient": 1e-4}


def errors(case, tensors):
    """Tensor name -> relative error; ValueError if the file is not such a step."""
    names = vit_problem.parameter_shapes(case.model)
    for name, shape in names.items():
        for part in ("parameter", "gradient"):
            found = tensors.get(f"{part}.{name}")
            if found is None or found.size != np.prod(shape):
                raise ValueError(f"{part}.{name}: expected {shape}, found {getattr(found, 'shape', 'none')}")
    parameters = {name: tensors[f"parameter.{name}"] for name in names}
    arguments = tensors["inputs"], tensors["labels"].astype(np.int64)
    loss, gradients = vit_reference.loss_and_gradients(case.model, parameters, *arguments)
    result = {"loss": abs(float(tensors["loss"][0]) - loss) / abs(loss)}
    largest = max(np.abs(g).max() for g in gradients.values())
    for name, exact in gradients.items():
        gap = np.abs(tensors[f"gradient.{name}"].reshape(-1) - exact.reshape(-1)).max()
        result[f"gradient.{name}"] = float(gap / (np.abs(exact).max() + 1e-3 * largest))
    return result


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, path = sys.argv[1:]
    try:
        case = cases.parse(name)
        if case.suite != "vit":
            raise ValueError(f"{name}: expected vit/MODEL/BATCH")
        found = errors(case, load_file(path))
    except (OSError, ValueError) as error:
        print(f"error: {path}: {error}", file=sys.stderr)
        return 2
    good = True
    worst = max(found, key=found.get)
    for tensor, error in found.items():
        within = error <= TOLERANCES[tensor.partition(".")[0]]
        good &= within
        if not within or tensor in ("loss", worst):
            print(f"{name:38}{'ours':7}{tensor:44}{error:9.1e}{'' if within else '  WRONG'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
