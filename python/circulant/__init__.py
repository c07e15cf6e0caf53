"""Compact models that say how uncertain they are and come with a Lipschitz certificate.

A circulant layer has ``d`` parameters instead of ``d**2`` and runs as ``y = irfft(h * rfft(x)) + b``. This package is
the engine of the Rust crates ``circulant`` behind the interfaces of NumPy, scikit-learn and PyTorch.

=============================  ========================================================================
:class:`CirculantClassifier`   a Bayesian classifier with scikit-learn's interface
:class:`CirculantRegressor`    a Bayesian regression with scikit-learn's interface
:mod:`circulant.functional`    operators, gradients, norms, prior draws and KL on NumPy arrays
:mod:`circulant.metrics`       accuracy, calibration, out-of-distribution detection, intervals
:mod:`circulant.torch`         layers for PyTorch, and surgery on its models
:mod:`circulant.datasets`      data sets by name
:func:`reproduce`              the paper's experiments
=============================  ========================================================================

``python -m circulant`` is the program.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._engine import __version__, num_threads, set_num_threads

if TYPE_CHECKING:
    from . import datasets, functional, metrics, torch
    from ._classifier import Certificates, CirculantClassifier
    from ._estimators import Uncertainty
    from ._regressor import CirculantRegressor, TargetCertificates
    from ._reproduce import reproduce

__all__ = [
    "Certificates",
    "CirculantClassifier",
    "CirculantRegressor",
    "TargetCertificates",
    "Uncertainty",
    "__version__",
    "datasets",
    "functional",
    "metrics",
    "num_threads",
    "reproduce",
    "set_num_threads",
    "torch",
]

_MODULES = {"datasets", "functional", "metrics", "torch"}
_MEMBERS = {
    "Certificates": "_classifier",
    "CirculantClassifier": "_classifier",
    "CirculantRegressor": "_regressor",
    "TargetCertificates": "_regressor",
    "Uncertainty": "_estimators",
    "reproduce": "_reproduce",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: nothing but the engine is loaded at first."""
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _MEMBERS:
        member = getattr(importlib.import_module(f".{_MEMBERS[name]}", __name__), name)
        globals()[name] = member
        return member
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
