"""Every public function with hostile input: an exception of Python, never a panic of Rust, and never an abort."""

import inspect
import itertools

import numpy as np
import pytest
from circulant import _engine, datasets, functional, metrics
from scipy import sparse

HOSTILE = [
    None,
    0,
    -1,
    2**70,
    float("nan"),
    float("inf"),
    1e300,
    "words",
    b"bytes",
    1j,
    object(),
    [],
    [[]],
    [1.0, [2.0]],
    [1.0, 2.0, 3.0],
    [[0.5, 0.5], [0.1, 0.9]],
    (3, 4),
    (0, 0),
    (10**9, 10**9),
    np.zeros((0, 3)),
    np.zeros((2, 0, 3)),
    np.ones((2, 3, 4)),
    np.full((2, 2), np.nan),
    np.full(4, np.inf),
    np.ones(4, dtype=complex),
    np.array(["a"]),
    np.array([None]),
    np.ones((2, 2), dtype=np.float16),
    np.ones(5, dtype=np.float32)[::2],
    np.array([1, 2], dtype=np.uint64),
    sparse.csr_array(np.eye(3)),
]


def call(function, arguments, others):
    try:
        function(*arguments, **others)
    except Exception as error:  # PanicException is a BaseException: it gets through
        assert str(error) or isinstance(error, MemoryError), f"{function} raised {error!r} without a message"


def required(function):
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]


def public():
    for module in (functional, metrics, datasets):
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isfunction(member):
                yield pytest.param(member, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", list(public()))
def test_hostile_arguments(function):
    if function is datasets.load:
        values = [value for value in HOSTILE if not isinstance(value, np.ndarray)]
        for value in values:
            call(function, [value], {})
        return
    count = len(required(function))
    if count <= 2:
        combinations = itertools.product(HOSTILE, repeat=count)
    else:
        # Every argument hostile in turn beside every kind of the others.
        combinations = (
            [value if place == index else other for place in range(count)]
            for index in range(count)
            for value in HOSTILE
            for other in HOSTILE
        )
    for arguments in combinations:
        call(function, arguments, {})


@pytest.mark.parametrize("function", list(public()))
def test_hostile_options(function):
    usual = {
        "x": np.ones((3, 4)),
        "coordinates": np.ones(4),
        "grad_y": np.ones((3, 4)),
        "labels": [0, 1],
        "probabilities": [[0.5, 0.5], [0.1, 0.9]],
        "size": 4,
        "limit": 1.0,
        "mean": np.zeros(3),
        "log_deviation": np.zeros(3),
        "id_scores": [0.1, 0.2],
        "ood_scores": [0.0, 0.3],
        "values": [0.1, 0.2, 0.4],
        "interval": (0.0, 1.0),
        "filters": np.ones(4),
        "logits": [[0.0, 1.0]],
        "name": "nothing",
    }
    arguments = [usual[p.name] for p in required(function)]
    options = [p.name for p in inspect.signature(function).parameters.values() if p.default is not p.empty]
    for option, value in itertools.product(options, HOSTILE):
        # A billion points or draws are refused by memory alone; what is asked for is given.
        call(function, arguments, {option: value})


def test_hostile_engine():
    """The engine itself, which users do not call: wrong types, sizes and orders."""
    arrays = [np.ones(4), np.ones(3, dtype=np.float32), np.ones((4, 4))[:, ::2], np.ones((2, 2), order="F"), None, "x"]
    operators = [_engine.Operator.signal(4), _engine.Operator.image(2, 2, 1, 1, 1.0)]
    for operator, x, a, y in itertools.product(operators, arrays, arrays, arrays):
        call(operator.forward, (x, a, None, False, y), {})
        call(operator.forward, (x, a, y, True, x), {})
        call(operator.backward, (x, a, None, True, y, x, y, a), {})
        call(operator.analyse, (x, y), {})
        call(operator.synthesise, (x, y), {})
    for operator, x in itertools.product(operators, arrays):
        for method in (operator.norm, operator.singular_values, operator.half_spectrum):
            call(method, (x,), {})
        call(operator.clip, (x, float("nan")), {})
    for sizes in [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (10**18, 10**18, 1, 1), (1, 1, 10**18, 10**18)]:
        with pytest.raises((ValueError, OverflowError)):
            _engine.Operator.image(*sizes, 1.0)
    read_only = np.ones(4)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        operators[0].forward(np.ones(4), np.ones(4), None, False, read_only)
