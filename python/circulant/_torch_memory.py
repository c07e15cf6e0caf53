"""Memory for large tensors, kept for the next one of the same size.

A training step makes outputs and gradients of the same sizes as the step before. Fresh from the system their pages cost as
much as the kernels that write them, so memory of tensors that are gone is kept, 256 MiB at most.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
import torch

#: Smaller tensors come from torch's own allocator, which reuses memory of that size.
_LEAST_BYTES = 1 << 17
_MOST_KEPT_BYTES = 1 << 28


class _Shelf:
    """Blocks by their size, the size that was used last at the end.

    Tensors end in any thread, and within collections of garbage; every operation on the dictionary and its stacks is one step
    of the interpreter, so no lock is needed, which a fork could leave locked.
    """

    def __init__(self) -> None:
        self.blocks: dict[int, deque[np.ndarray]] = {}

    def take(self, size: int) -> np.ndarray | None:
        try:
            return self.blocks[size].pop()
        except (KeyError, IndexError):
            return None

    def put(self, block: np.ndarray) -> None:
        blocks = self.blocks
        stack = blocks.pop(block.nbytes, None) or deque()
        stack.append(block)
        blocks[block.nbytes] = stack
        # What was not used for the longest time goes first.
        kept = 0
        for size, stack in reversed(list(blocks.items())):
            surplus = len(stack) - (_MOST_KEPT_BYTES - kept) // size
            for _ in range(min(surplus, len(stack))):
                self.take(size)
            kept += len(stack) * size
            if not stack:
                blocks.pop(size, None)


_shelf = _Shelf()


class _Lent(np.ndarray):
    """A block while a tensor lies on it; torch drops this array with the tensor's storage."""

    block: np.ndarray

    def __del__(self, put: Any = _shelf.put) -> None:
        # Views that numpy makes of it have no block of their own.
        block = self.__dict__.get("block")
        if block is not None:
            put(block)


def empty(shape: tuple[int, ...] | torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """``torch.empty`` on the CPU."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LEAST_BYTES:
        return torch.empty(shape, dtype=dtype)
    block = _shelf.take(size)
    if block is None:
        block = torch.empty(size, dtype=torch.uint8).numpy()
    lent = block.view(_Lent)
    lent.block = block
    return torch.from_numpy(lent).view(dtype).view(shape)
