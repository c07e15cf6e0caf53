"""What users pass, as contiguous arrays of one number type; no copy where the type allows."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
Float64Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def is_sparse(values: object) -> bool:
    """Whether this is a sparse matrix of SciPy."""
    return hasattr(values, "tocsr") and hasattr(values, "toarray")


def real(name: str, values: npt.ArrayLike) -> FloatArray:
    """An array of real numbers of any kind."""
    if is_sparse(values):
        raise TypeError(f"{name}: sparse input is not supported; pass {name}.toarray()")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: expected an array of numbers, got {type(values).__name__}: {error}") from None
    if array.dtype.kind == "c":
        raise TypeError(f"{name}: complex values are not supported; pass their real and imaginary parts")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected an array of numbers, got {array.dtype}")
    return cast(FloatArray, array)


def floats(**arrays: npt.ArrayLike | None) -> list[Any]:
    """The arrays as contiguous ones of a common type: float32 if all are, else float64."""
    found = {name: None if values is None else real(name, values) for name, values in arrays.items()}
    single = all(array is None or array.dtype in (np.float32, np.float16) for array in found.values())
    dtype = np.float32 if single else np.float64
    return [None if array is None else contiguous(array, dtype) for array in found.values()]


def contiguous(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The array itself if it is contiguous, aligned and of this type; a copy if not."""
    return np.require(array, dtype=dtype, requirements=["C", "A"])


def double(name: str, values: npt.ArrayLike) -> Float64Array:
    """A contiguous array of float64."""
    return contiguous(real(name, values), np.float64)


def integers(name: str, values: npt.ArrayLike) -> IntArray:
    """A contiguous array of int64; whole numbers of any type will do."""
    array = real(name, values)
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.floor(array)).all()):
        raise ValueError(f"{name}: expected whole numbers")
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) >= 2**63:
        raise ValueError(f"{name}: expected numbers below 2**63")
    return contiguous(array, np.int64)


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state: None, a number, or a generator, which gives its next number."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31))
    try:
        seed = int(random_state.__index__())
    except (AttributeError, TypeError):
        raise ValueError(
            f"random_state: expected None, a whole number, or a generator of NumPy, got {random_state!r}"
        ) from None
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_state: expected a number in [0, 2**64), got {seed}")
    return seed


def count(name: str, value: Any, least: int = 1, most: int = 10_000_000) -> int:
    """A whole number in a range."""
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: expected a whole number, got {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name}: expected a number from {least} to {most}, got {number}")
    return number
