"""Exact operator norms in PyTorch, f64."""

import torch

from peer_torch import Line, Plane


def matrices(case, a):
    """[bins, C_in, C_out], from the coordinates each time, as a certificate must."""
    a = torch.from_numpy(a)
    operator = Line(case.grid[0], a.view(-1)) if len(case.grid) == 1 else Plane(case, a)
    return operator.filter


def variants(case, a):
    """Name -> function without arguments that returns the norm."""
    filters = matrices(case, a)
    if len(case.grid) == 1:
        return {"largest": lambda: filters().abs().max().item()}

    def gram():
        h = filters()
        product = h.mH @ h if case.channels_out <= case.channels_in else h @ h.mH
        return torch.linalg.eigvalsh(product)[:, -1].max().sqrt().item()

    return {
        "singular values": lambda: torch.linalg.svdvals(filters()).max().item(),
        "Gram": gram,
    }
