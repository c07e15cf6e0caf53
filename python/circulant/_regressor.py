"""The regression behind scikit-learn's interface."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from . import _engine
from ._arrays import Float64Array, contiguous, double
from ._estimators import Estimator, Uncertainty, _number

# isort: split
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

__all__ = ["CirculantRegressor", "TargetCertificates"]


class TargetCertificates(NamedTuple):
    """What is promised about the mean prediction."""

    #: The mean prediction.
    predicted: Float64Array
    #: How far it may move.
    tolerance: Float64Array
    #: It moves by at most the tolerance for every input within this distance (2-norm, in the units of X).
    radius: Float64Array
    #: An upper bound of the Lipschitz constant of the mean prediction, in the units of y per unit of X.
    lipschitz: float
    #: Upper bounds of the operator norms at the posterior's mean, by layer.
    norms: dict[str, float]
    #: How far float32 means can be from exact ones; it is taken into account.
    rounding: float
    #: Whether every rounding error behind the radii is proven.
    proven: bool


class CirculantRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """A compact Bayesian regression: circulant layers with a spectral prior, trained by variational inference.

    It predicts a distribution: a mean, a standard deviation with its two causes, quantiles, and intervals with a promised
    coverage. Parameters are named as the flags of ``circulant train``; None is the program's default.

    Parameters
    ----------
    model : str
        'auto': for a table the size among three that predicts held-out rows best, unless sizes are given. Or the hidden layers:
        'spectral-circulant', 'block-circulant', 'circulant' or 'dense'.
    task : 'regression' or 'counts'
        Numbers with Gaussian noise, or whole numbers from 0.
    width : int, optional
        Outputs of dense or block-circulant layers, if not as many as inputs.
    modes : int, optional
        The lowest bins of spectral circulant or block-circulant layers, if not all.
    block : int, optional
        The length of a block of block-circulant layers.
    depth : int, optional
        The number of hidden layers.
    lift : int, optional
        Outputs of a dense layer before the hidden layers.
    initial_scale : float, optional
        What the initial weights of hidden layers are multiplied by.
    inference : 'bayesian' or 'point', optional
        A distribution over parameters, or the most probable ones.
    rank : int, optional
        The rank of the posterior of spectral coordinates.
    initial_deviation : float, optional
        The standard deviation that posteriors start with, in units of the layer's initial weights.
    slope : float or 'learned', optional
        How fast the spectral prior falls with frequency.
    steps : int, optional
        Gradient steps; choosing a size takes as many again.
    batch : int, optional
        Examples per step.
    learning_rate : float, optional
        The learning rate of Adam.
    final_rate : float, optional
        The learning rate falls to this share of itself, along half a cosine.
    samples : int, optional
        Posterior samples per step.
    kl_weight : float, optional
        The weight of the KL term.
    patience : int, optional
        Stop when the smoothed loss has not improved for so many steps.
    standardise : bool
        Shift and scale every column by its mean and standard deviation; the target always is, unless it is a count.
    prediction_samples : int
        Posterior samples behind every prediction.
    random_state : None, int or generator
        The same number gives the same bytes, whatever the number of threads and the order of the rows.
    verbose : int or bool
        Show how far training is.
    n_jobs : int, optional
        Threads; None and -1 are all.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array
        If X had names of type str.
    n_parameters_ : int
        Real parameters of the model, without those of the posterior's spread.
    model_ : str
        The model, and why it was chosen.
    n_steps_ : int
        Steps of training.
    loss_ : float
        The negative evidence bound per example at the last step.

    Examples
    --------
    >>> from circulant import CirculantRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CirculantRegressor(random_state=0).fit(X, y)
    >>> mean, deviation = model.predict(X[:3], return_std=True)
    >>> mean.shape, bool((deviation > 0).all())
    ((3,), True)
    >>> model.predict_quantiles(X[:3], [0.05, 0.5, 0.95]).shape
    (3, 3)
    >>> bool(model.certify(X[:3], tolerance=100.0).radius.min() > 0)
    True
    """

    def __init__(
        self,
        model: str = "auto",
        *,
        task: str = "regression",
        width: int | None = None,
        modes: int | None = None,
        block: int | None = None,
        depth: int | None = None,
        lift: int | None = None,
        initial_scale: float | None = None,
        inference: str | None = None,
        rank: int | None = None,
        initial_deviation: float | None = None,
        slope: float | str | None = None,
        steps: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        final_rate: float | None = None,
        samples: int | None = None,
        kl_weight: float | None = None,
        patience: int | None = None,
        standardise: bool = True,
        prediction_samples: int = 50,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> CirculantRegressor:
        """Train on rows and their targets.

        Ctrl-C stops after the current step: the regression keeps what it has learned, and :class:`KeyboardInterrupt` is
        raised.

        Parameters
        ----------
        X : array or data frame, [n, features]
        y : array, [n]
        sample_weight : array, [n], optional
            A weight of 2 is the same as a row that is there twice.
        """
        target = y
        X, y = self._rows(X, y=y, y_numeric=True)
        return self._train(X, y, target, sample_weight, None)

    def partial_fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> CirculantRegressor:
        """Go on from the posterior as it is, on further rows: ``steps`` steps on these alone.

        Columns and target are standardised as the first rows were.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        """
        first, target = not self.__sklearn_is_fitted__(), y
        X, y = self._rows(X, y=y, y_numeric=True, reset=first)
        return self._train(X, y, target, sample_weight, None if first else self._trained)

    def _train(
        self,
        X: npt.NDArray[Any],
        y: npt.NDArray[Any],
        target: Any,
        sample_weight: npt.ArrayLike | None,
        begin: _engine.Regressor | None,
    ) -> CirculantRegressor:
        if self.task not in ("regression", "counts"):
            raise ValueError(f"task: expected 'regression' or 'counts', got {self.task!r}")
        weights, targets = self._weights(sample_weight, X), contiguous(y, np.float64)
        return self._learn(_engine.Regressor, X, target, None, targets, weights, self.task == "counts", begin)  # type: ignore[no-any-return]

    def _predictions(self, X: Any, quantiles: Sequence[float] = ()) -> list[Float64Array]:
        rows = self._new_rows(X)
        found: list[Float64Array] = self._trained.predict(
            rows, list(quantiles), self._samples(), self._prediction_seed, self._threads()
        )
        return found

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Float64Array: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Float64Array, Float64Array]: ...
    def predict(self, X: Any, return_std: bool = False) -> Float64Array | tuple[Float64Array, Float64Array]:
        """The mean of every row's target, averaged over networks drawn from the posterior; with ``return_std`` its standard
        deviation too."""
        mean, deviation, *_ = self._predictions(X)
        return (mean, deviation) if return_std else mean

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> Float64Array:
        """Quantiles ``[n, quantiles]`` of every row's target, of the distribution that the model believes in."""
        shares = [_number("quantiles", share) for share in np.atleast_1d(np.asarray(quantiles, dtype=object))]
        return self._predictions(X, shares)[4].reshape(-1, len(shares))

    def uncertainty(self, X: Any) -> Uncertainty:
        """How unsure every prediction is, and why: standard deviations, whose squares add up."""
        _, total, aleatoric, epistemic, _ = self._predictions(X)
        return Uncertainty(total, aleatoric, epistemic)

    def _agreement(self, X: Any) -> Float64Array:
        return -self._predictions(X)[3]

    def certify(self, X: Any, tolerance: npt.ArrayLike | None = None) -> TargetCertificates:
        """Radii around rows inside which the mean prediction moves by at most a tolerance.

        Parameters
        ----------
        X : array or data frame, [n, features]
        tolerance : float or array, [n], optional
            In the unit of y; half of the row's own 90 % interval unless given.
        """
        rows = self._new_rows(X)
        tolerances = None
        if tolerance is not None:
            given = double("tolerance", tolerance)
            if given.ndim > 1 or given.size not in (1, len(rows)):
                raise ValueError(f"tolerance: expected a number or {len(rows)}, one per row, got the shape {given.shape}")
            tolerances = contiguous(np.broadcast_to(given.reshape(-1), len(rows)), np.float64)
        found = self._trained.certify(rows, tolerances, self._samples(), self._prediction_seed, self._threads())
        return TargetCertificates(
            found["mean"],
            found["tolerance"],
            found["radius"],
            found["lipschitz"],
            dict(found["norms"]),
            found["rounding"],
            found["proven"],
        )

    def calibrate(self, X: Any, y: Any) -> CirculantRegressor:
        """Keep the predictions of rows that were not trained on, for :meth:`predict_interval`."""
        check_is_fitted(self)
        X, y = self._rows(X, y=y, y_numeric=True, reset=False)
        mean, deviation, *_ = self._predictions(X)
        self._calibration = (mean, deviation, contiguous(y, np.float64))
        return self

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Float64Array:
        """Intervals that hold the target with a probability of at least ``coverage`` (split conformal).

        They are ``mean -+ factor * deviation``. The promise is about rows that are exchangeable with those of
        :meth:`calibrate`, which comes first; :meth:`predict_quantiles` needs no such rows and promises nothing.

        Returns
        -------
        array, [n, 2]
            Lower and upper ends.
        """
        check_is_fitted(self)
        if self._calibration is None:
            raise NotFittedError(
                "predict_interval needs rows that were not trained on: call calibrate(X, y) with such rows first"
            )
        mean, deviation, *_ = self._predictions(X)
        coverage = _number("coverage", coverage)
        return np.stack(_engine.conformal_intervals(list(self._calibration), mean, deviation, coverage), axis=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new folder with the files of a run, which ``circulant predict``, ``evaluate`` and ``certify`` read too."""
        check_is_fitted(self)
        self._trained.save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CirculantRegressor:
        """Open the folder that :meth:`save` or ``circulant train`` made."""
        trained = _engine.Regressor.load(os.fspath(path))
        model = cls(task="counts" if trained.counts else "regression")
        model.n_features_in_ = len(trained.columns_of_table)
        return model._opened(trained)  # type: ignore[no-any-return]
