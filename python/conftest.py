"""Modules whose extras are not installed are not collected; Ctrl-C reaches the tests."""

import importlib.util
import signal

import pytest

collect_ignore = []
if importlib.util.find_spec("torch") is None:
    collect_ignore += ["circulant/torch.py", "circulant/_torch_ops.py"]


@pytest.fixture(autouse=True)
def ctrl_c():
    """The workers of pytest-xdist ignore Ctrl-C, which some tests press."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
