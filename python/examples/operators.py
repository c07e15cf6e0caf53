"""Circulant operators on arrays: outputs, gradients, norms, draws from the prior and KL.

python examples/operators.py
"""

import numpy as np
from circulant import functional


def main() -> float:
    """Returns how much longer than itself a row can become."""
    rng = np.random.default_rng(0)
    coordinates = functional.draw_prior(64, draws=1, alpha=1.0, random_state=0)[0]
    x = rng.normal(size=(8, 64))
    y = functional.circulant(x, coordinates, 0.1, activation="tanh")
    gradients = functional.circulant_gradients(x, coordinates, y, 0.1, activation="tanh")
    lower, upper = functional.operator_norm(coordinates, 64)
    kl = functional.gaussian_kl(coordinates, np.full(64, -2.0))
    print(f"norm in [{lower:.6f}, {upper:.6f}], KL {kl:.2f} nats, gradient {gradients.coordinates.shape}")
    return upper


if __name__ == "__main__":
    assert main() > 0.0
