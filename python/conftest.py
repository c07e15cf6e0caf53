"""Modules whose extras are not installed are not collected; Ctrl-C reaches the tests; what only shows an interface trains briefly."""

import importlib.util
import json
import os
import signal

import pytest

#: scikit-learn's suite with sizes chosen too, all comparisons, and examples with all of their steps.
WHOLE = os.environ.get("CIRCULANT_SUITE") == "whole"

collect_ignore = []
if importlib.util.find_spec("torch") is None:
    collect_ignore += ["circulant/torch.py", "circulant/_torch_memory.py", "circulant/_torch_ops.py"]


@pytest.fixture(autouse=True)
def ctrl_c():
    """The workers of pytest-xdist ignore Ctrl-C, which some tests press."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def brief_examples(request, monkeypatch):
    """Examples and notebooks take a tenth of the steps, unless they say how many: the engine of tests is not optimised."""
    shows = isinstance(request.node, pytest.DoctestItem) or request.node.path.stem == "test_notebooks"
    if WHOLE or not shows or importlib.util.find_spec("sklearn") is None:
        return
    from circulant._estimators import Estimator

    full = Estimator._settings

    def brief(self, columns, seed):
        settings = json.loads(full(self, columns, seed))
        settings["training"].setdefault("steps", 300)
        return json.dumps(settings)

    monkeypatch.setattr(Estimator, "_settings", brief)
