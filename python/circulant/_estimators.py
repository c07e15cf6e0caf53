"""What the estimators share: settings of the program as parameters, checks of arrays, files, display."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "the estimators of circulant need scikit-learn 1.6 or later: pip install 'circulant[sklearn]'"
    ) from error

from ._arrays import contiguous, count, seed_of
from ._progress import Progress

#: Where the parameters of an estimator are in the program's ``config.toml``.
SETTINGS: dict[str, dict[str, str]] = {
    "model": {
        "model": "kind",
        "channels": "channels",
        "width": "width",
        "modes": "modes",
        "depth": "depth",
        "initial_scale": "initial_scale",
    },
    "posterior": {"inference": "inference", "rank": "rank", "initial_deviation": "initial_deviation"},
    "training": {
        "steps": "steps",
        "batch": "batch",
        "learning_rate": "learning_rate",
        "final_rate": "final_rate",
        "samples": "samples",
        "kl_weight": "kl_weight",
        "patience": "patience",
        "norm_limit": "norm_limit",
    },
}

_COUNTS = {"channels", "width", "modes", "depth", "rank", "steps", "batch", "samples", "patience"}
_WORDS = {"model", "inference"}


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Arguments and checks."""

    # Of the subclasses, as scikit-learn wants them.
    image: tuple[int, int, int] | None
    slope: float | str | None
    random_state: Any
    verbose: int | bool
    n_jobs: int | None

    def _settings(self, columns: int, seed: int) -> str:
        """The parameters that are given, as the program's settings in JSON."""
        settings: dict[str, dict[str, Any]] = {table: {} for table in SETTINGS}
        for table, names in SETTINGS.items():
            for parameter, name in names.items():
                value = getattr(self, parameter)
                if value is None:
                    continue
                if parameter in _WORDS:
                    if not isinstance(value, str):
                        raise ValueError(f"{parameter}: expected a word, got {value!r}")
                    settings[table][name] = value
                elif parameter in _COUNTS:
                    settings[table][name] = count(parameter, value, most=2**40)
                else:
                    settings[table][name] = _number(parameter, value)
        if self.slope == "learned":
            settings["posterior"]["learn_slope"] = True
        elif self.slope is not None:
            settings["posterior"]["slope"] = _number("slope", self.slope)
        if self.rank is None:
            # A posterior has no more directions than its layer has coordinates.
            bins = settings["model"].get("modes", columns)
            settings["posterior"]["rank"] = max(1, min(8, columns, 2 * bins - 1))
        settings["training"]["seed"] = seed
        return json.dumps(settings)

    def _threads(self) -> int:
        """The number of threads; 0 for what :func:`circulant.set_num_threads` says."""
        if self.n_jobs is None or self.n_jobs == -1:
            return 0
        return count("n_jobs", self.n_jobs, most=1024)

    def _seed(self) -> int:
        # Settings in files are signed.
        return seed_of(self.random_state) >> 1 if self.random_state is None else seed_of(self.random_state) % 2**63

    def _progress(self) -> Progress | None:
        return Progress(type(self).__name__) if self.verbose else None

    def _rows(self, X: Any, **arguments: Any) -> Any:
        """Checks rows as scikit-learn does; float32 and float64 are not copied."""
        small = getattr(X, "dtype", None) in (np.dtype("uint8"), np.dtype("int8"), np.dtype("float16"))
        dtype = [np.float32, np.float64] if small else [np.float64, np.float32]
        return validate_data(self, X, dtype=dtype, order="C", **arguments)

    def _new_rows(self, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return contiguous(rows, rows.dtype)

    def _image(self, columns: int) -> tuple[int, int, int]:
        """``(channels, height, width)`` of a row."""
        if self.image is None:
            return (1, 1, columns)
        sides = tuple(self.image)
        if len(sides) != 3:
            raise ValueError(f"image: expected (channels, height, width), got {self.image!r}")
        channels, height, width = (count("image", side, most=2**40) for side in sides)
        if channels * height * width != columns:
            raise ValueError(
                f"image: expected sizes with the product {columns}, the number of columns of X, got {self.image!r}"
            )
        return channels, height, width


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a number, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number
