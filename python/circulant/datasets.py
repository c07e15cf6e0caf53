"""The data sets that the program knows by name: fetched and verified, or drawn.

>>> from circulant import datasets
>>> "mnist" in datasets.names()
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _engine
from ._arrays import seed_of

__all__ = ["Dataset", "load", "names"]


class Dataset(NamedTuple):
    """Images with their classes."""

    #: ``[n, channels, height, width]``, bytes or float32.
    images: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]
    #: Empty when unknown.
    class_names: list[str]

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The images as rows ``[n, channels * height * width]``, without a copy: what the estimators take."""
        return self.images.reshape(len(self.images), -1)


def names() -> list[str]:
    """What :func:`load` knows."""
    return _engine.dataset_names()


def load(name: str, split: str = "train", *, random_state: int = 0) -> Dataset:
    """Load a data set by name; the first time it is fetched into the cache of the program.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    split : 'train' or 'test'
    random_state : int
        Of data sets that are drawn.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split: expected 'train' or 'test', got {split!r}")
    if name not in names():
        raise ValueError(f"name: expected one of {', '.join(names())}, got {name!r}")
    values, shape, labels, class_names = _engine.load_dataset(name, split == "test", seed_of(random_state))
    return Dataset(values.reshape(shape), labels, class_names)
