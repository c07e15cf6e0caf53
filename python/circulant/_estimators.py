"""What the estimators share: settings of the program as parameters, checks of arrays, fits, files, display."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "the estimators of circulant need scikit-learn 1.6 or later: pip install 'circulant[sklearn]'"
    ) from error

from . import _engine
from ._arrays import Float64Array, contiguous, count, seed_of
from ._progress import Progress

if TYPE_CHECKING:
    from ._engine import _FitOptions

#: Where the parameters of an estimator are in the program's ``config.toml``.
SETTINGS: dict[str, dict[str, str]] = {
    "model": {
        "channels": "channels",
        "width": "width",
        "modes": "modes",
        "block": "block",
        "depth": "depth",
        "lift": "lift",
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

_COUNTS = {"channels", "width", "modes", "block", "depth", "lift", "rank", "steps", "batch", "samples", "patience"}


class Uncertainty(NamedTuple):
    """The uncertainty of every prediction: of classes in nats, of numbers as standard deviations."""

    #: All of it: the entropy of the averaged probabilities, or the deviation of the target.
    total: Float64Array
    #: What no amount of data removes.
    aleatoric: Float64Array
    #: What more data would remove.
    epistemic: Float64Array


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Arguments and checks."""

    model: str
    depth: int | None
    lift: int | None
    modes: int | None
    rank: int | None
    slope: float | str | None
    standardise: bool
    prediction_samples: int
    random_state: Any
    verbose: int | bool
    n_jobs: int | None
    n_features_in_: int

    _trained: Any
    _prediction_seed: int
    _seen: int
    _calibration: tuple[npt.NDArray[Any], ...] | None

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keeps the arguments of ``__init__`` as they are."""
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    def _settings(self, columns: int, seed: int) -> str:
        """The parameters that are given, as the program's settings in JSON."""
        settings: dict[str, dict[str, Any]] = {table: {} for table in SETTINGS}
        for name in ("model", "inference"):
            if not isinstance(getattr(self, name), str | None):
                raise ValueError(f"{name}: expected a word, got {getattr(self, name)!r}")
        if self.model != "auto":
            settings["model"]["kind"] = self.model
        for table, names in SETTINGS.items():
            for parameter, name in names.items():
                value = getattr(self, parameter, None)
                if value is None:
                    continue
                if parameter in _COUNTS:
                    value = count(parameter, value, most=2**40)
                elif parameter != "inference":
                    value = _number(parameter, value)
                settings[table][name] = value
        if self.slope == "learned":
            settings["posterior"]["learn_slope"] = True
        elif self.slope is not None:
            settings["posterior"]["slope"] = _number("slope", self.slope)
        if self.rank is None and (self.model != "auto" or self.lift is not None):
            # A posterior has no more directions than its layer has coordinates.
            length = settings["model"].get("lift", columns)
            bins = settings["model"].get("modes", length)
            settings["posterior"]["rank"] = max(1, min(8, length, 2 * bins - 1))
        settings["training"]["seed"] = seed
        return json.dumps(settings)

    def _options(self, X: npt.NDArray[Any], target: Any, image: object, seed: int, progress: Any) -> _FitOptions:
        """What both fits of the engine take."""
        columns = X.shape[1]
        names = getattr(self, "feature_names_in_", None)
        table = self.model == "auto" and image is None
        sizes = ("channels", "width", "modes", "block", "depth", "lift")
        return {
            "settings": self._settings(columns, seed),
            "table": table,
            "choose": table and all(getattr(self, size, None) is None for size in sizes),
            "standardise": bool(self.standardise),
            "names": [f"column {index}" for index in range(columns)] if names is None else list(map(str, names)),
            "target_name": str(getattr(target, "name", None) or "target"),
            "seen": self._seen,
            "threads": self._threads(),
            "progress": progress,
        }

    def _learn(self, engine: Any, X: npt.NDArray[Any], target: Any, image: object, *arguments: Any) -> Any:
        """Trains, keeps what was trained, and raises what stopped it."""
        begin = arguments[-1]
        self._seen = 0 if begin is None else self._seen
        seed, progress = self._seed(), Progress(type(self).__name__) if self.verbose else None
        try:
            options = self._options(X, target, image, seed, progress)
            self._trained, failed = engine.fit(options, contiguous(X, X.dtype), *arguments)
        finally:
            if progress is not None:
                progress.close()
        self._prediction_seed = seed
        self._seen += len(X)
        self._calibration = None
        self._describe()
        if failed is not None:
            raise failed
        return self

    def _describe(self) -> None:
        self.n_parameters_ = self._trained.parameters[0]
        self.n_steps_ = self._trained.steps
        self.loss_ = self._trained.loss
        self.model_ = self._trained.model or getattr(self, "model_", "")

    def _opened(self, engine: Any) -> Any:
        """Takes over what was opened from files."""
        self._trained = engine
        names = engine.columns_of_table
        if names and names != [f"column {index}" for index in range(len(names))]:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._prediction_seed = engine.seed
        self._seen = 0
        self._calibration = None
        self._describe()
        return self

    def _weights(self, sample_weight: npt.ArrayLike | None, X: npt.NDArray[Any]) -> Float64Array | None:
        if sample_weight is None:
            return None
        weights = contiguous(_check_sample_weight(sample_weight, X, dtype=np.float64), np.float64)
        if (weights < 0).any():
            raise ValueError("sample_weight: expected weights of at least 0")
        return weights

    def _threads(self) -> int:
        """The number of threads; 0 for what :func:`circulant.set_num_threads` says."""
        if self.n_jobs is None or self.n_jobs == -1:
            return 0
        return count("n_jobs", self.n_jobs, most=1024)

    def _samples(self) -> int:
        return count("prediction_samples", self.prediction_samples, most=65536)

    def _seed(self) -> int:
        # Settings in files are signed.
        return seed_of(self.random_state) >> 1 if self.random_state is None else seed_of(self.random_state) % 2**63

    def _rows(self, X: Any, **arguments: Any) -> Any:
        """Checks rows as scikit-learn does; float32 and float64 are not copied."""
        small = getattr(X, "dtype", None) in (np.dtype("uint8"), np.dtype("int8"), np.dtype("float16"))
        dtype = [np.float32, np.float64] if small else [np.float64, np.float32]
        return validate_data(self, X, dtype=dtype, order="C", **arguments)

    def _new_rows(self, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return contiguous(rows, rows.dtype)

    def score_samples(self, X: Any) -> Float64Array:
        """How familiar every row is: low for out-of-distribution rows.

        The logarithm of the density of its hidden features, a Gaussian per class fitted to those of the training rows (as
        ``circulant predict --score feature-density`` has it). A model with more than 2048 hidden features has none, nor has a
        run that was trained without it: then minus the uncertainty, the entropy of a class or the epistemic deviation of a
        number.
        """
        rows = self._new_rows(X)
        found: Float64Array | None = self._trained.log_densities(rows, self._threads())
        return self._agreement(X) if found is None else found

    def _agreement(self, X: Any) -> Float64Array:
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page (HTML that needs no other file) with settings, norms, and spectra and filters beside the prior."""
        check_is_fitted(self)
        self._trained.report(os.fspath(path))

    def _repr_html_inner(self) -> str:
        html: str = super()._repr_html_inner()
        if not self.__sklearn_is_fitted__():
            return html
        figures = "".join(f"<figure>{svg}<figcaption>{name}</figcaption></figure>" for name, svg in self._figures())
        return f"{html}<details><summary>spectra and filters</summary>{figures}</details>"

    def _figures(self) -> list[tuple[str, str]]:
        """Names and SVG texts."""
        figures: list[tuple[str, str]] = self._trained.figures()
        return figures

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if state.get("_trained") is not None:
            state["_trained"] = (type(self._trained).__name__, self._trained.to_bytes())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if state.get("_trained") is not None:
            kind, files = state["_trained"]
            state["_trained"] = getattr(_engine, kind).from_bytes(files)
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_trained", None) is not None


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a number, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number
