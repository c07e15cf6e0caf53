"""The classifier behind scikit-learn's interface."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _engine
from ._arrays import Float64Array, contiguous, count
from ._estimators import Estimator

# isort: split
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

__all__ = ["Certificates", "CirculantClassifier", "Uncertainty"]


class Uncertainty(NamedTuple):
    """The uncertainty of every prediction, in nats."""

    #: The entropy of the averaged probabilities.
    total: Float64Array
    #: What no amount of data removes: the mean entropy of the posterior samples.
    aleatoric: Float64Array
    #: What more data would remove: the mutual information.
    epistemic: Float64Array


class Certificates(NamedTuple):
    """What is promised about the network of the posterior's mean."""

    #: The class that the radii are about.
    predicted: npt.NDArray[Any]
    #: The margin of that class in the logits.
    margin: Float64Array
    #: Every input within this distance (2-norm, in the units of X) has the same class; 0 where nothing is promised.
    radius: Float64Array
    #: An upper bound of the Lipschitz constant, in the units of X.
    lipschitz: float
    #: Upper bounds of the operator norms, by layer.
    norms: dict[str, float]
    #: How far float32 logits can be from exact ones; it is subtracted from the margins.
    rounding: float
    #: Whether every rounding error behind the radii is proven.
    proven: bool


class CirculantClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A compact Bayesian classifier: circulant layers with a spectral prior, trained by variational inference.

    Parameters are named as the flags of ``circulant train``; None is the program's default.

    Parameters
    ----------
    model : str
        The hidden layers: 'spectral-circulant', 'spectral-bccb', 'circulant', 'bccb', 'conv2d' or 'dense'.
    image : (int, int, int), optional
        Reads rows as images of ``(channels, height, width)``; needed by the layers for images.
    channels : int, optional
        Output channels of BCCB and convolutional layers.
    width : int, optional
        Outputs of dense layers, if not as many as inputs.
    modes : int, optional
        The lowest bins of spectral circulant layers, if not all.
    depth : int, optional
        The number of hidden layers.
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
        Gradient steps.
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
    norm_limit : float, optional
        Keep the operator norm of every layer at or below this.
    standardise : bool
        Shift and scale every column by its mean and standard deviation.
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
    classes_ : array
    n_features_in_ : int
    feature_names_in_ : array
        If X had names of type str.
    n_parameters_ : int
        Real parameters of the model, without those of the posterior's spread.
    n_steps_ : int
        Steps of training.
    loss_ : float
        The negative evidence bound per example at the last step.

    Examples
    --------
    >>> from circulant import CirculantClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CirculantClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.predict_proba(X[:2]).shape, model.uncertainty(X[:2]).epistemic.shape
    ((2, 3), (2,))
    >>> bool(model.certify(X).radius.max() > 0)
    True
    """

    def __init__(
        self,
        model: str = "spectral-circulant",
        *,
        image: tuple[int, int, int] | None = None,
        channels: int | None = None,
        width: int | None = None,
        modes: int | None = None,
        depth: int | None = None,
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
        norm_limit: float | None = None,
        standardise: bool = True,
        prediction_samples: int = 50,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.image = image
        self.channels = channels
        self.width = width
        self.modes = modes
        self.depth = depth
        self.initial_scale = initial_scale
        self.inference = inference
        self.rank = rank
        self.initial_deviation = initial_deviation
        self.slope = slope
        self.steps = steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.final_rate = final_rate
        self.samples = samples
        self.kl_weight = kl_weight
        self.patience = patience
        self.norm_limit = norm_limit
        self.standardise = standardise
        self.prediction_samples = prediction_samples
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> CirculantClassifier:
        """Train on rows and their classes.

        Ctrl-C stops after the current step: the classifier keeps what it has learned, and :class:`KeyboardInterrupt` is
        raised.

        Parameters
        ----------
        X : array or data frame, [n, features]
        y : array, [n]
        sample_weight : array, [n], optional
            A weight of 2 is the same as a row that is there twice.
        """
        X, y = self._rows(X, y=y)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"expected at least two classes in y, got one class: {classes[0]!r}")
        return self._train(X, labels, classes, sample_weight, None, 0)

    def partial_fit(
        self, X: Any, y: Any, classes: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> CirculantClassifier:
        """Go on from the posterior as it is, on further rows: ``steps`` steps on these alone.

        The columns are standardised as the first rows were.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        classes : array
            All classes that will ever come, at the first call.
        """
        first = getattr(self, "_classifier", None) is None
        X, y = self._rows(X, y=y, reset=first)
        check_classification_targets(y)
        if first:
            known = np.unique(y) if classes is None else np.unique(np.asarray(classes))
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
                raise ValueError(f"classes: expected those of the first call, {known}, got {classes}")
        if len(known) < 2:
            raise ValueError(f"expected at least two classes, got {known}; name all of them with classes=")
        labels = np.searchsorted(known, y)
        if (labels >= len(known)).any() or (known[labels] != y).any():
            raise ValueError(f"y: expected the classes {known}, got {np.unique(y)}")
        begin = None if first else self._classifier
        return self._train(X, labels, known, sample_weight, begin, 0 if first else self._seen)

    def _train(
        self,
        X: npt.NDArray[Any],
        labels: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        sample_weight: npt.ArrayLike | None,
        begin: _engine.Classifier | None,
        seen: int,
    ) -> CirculantClassifier:
        weights = None
        if sample_weight is not None:
            weights = contiguous(_check_sample_weight(sample_weight, X, dtype=np.float64), np.float64)
            if (weights < 0).any():
                raise ValueError("sample_weight: expected weights of at least 0")
        seed = self._seed()
        progress = self._progress()
        try:
            trained, failed = _engine.Classifier.fit(
                self._settings(X.shape[1], seed),
                self._image(X.shape[1]),
                contiguous(X, X.dtype),
                contiguous(labels, np.int64),
                weights,
                [str(name) for name in classes],
                bool(self.standardise),
                self._threads(),
                progress,
                begin,
                seen,
            )
        finally:
            if progress is not None:
                progress.close()
        self.classes_ = classes
        self._classifier = trained
        self._prediction_seed = seed
        self._seen = seen + len(labels)
        self._calibration: Float64Array | None = None
        self._describe()
        if failed is not None:
            raise failed
        return self

    def _describe(self) -> None:
        self.n_parameters_ = self._classifier.parameters[0]
        self.n_steps_ = self._classifier.steps
        self.loss_ = self._classifier.loss

    def _predictions(self, X: Any) -> tuple[Float64Array, Float64Array, Float64Array]:
        rows = self._new_rows(X)
        probabilities, total, expected = self._classifier.predict(
            rows,
            count("prediction_samples", self.prediction_samples, most=65536),
            self._prediction_seed,
            self._threads(),
        )
        return probabilities.reshape(len(rows), -1), total, expected

    def predict_proba(self, X: Any) -> Float64Array:
        """Class probabilities ``[n, classes]``, averaged over networks drawn from the posterior."""
        return self._predictions(X)[0]

    def predict_log_proba(self, X: Any) -> Float64Array:
        """The logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))  # type: ignore[no-any-return]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of every row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]  # type: ignore[no-any-return]

    def uncertainty(self, X: Any) -> Uncertainty:
        """How unsure every prediction is, and why."""
        _, total, expected = self._predictions(X)
        return Uncertainty(total, expected, np.maximum(total - expected, 0.0))

    def score_samples(self, X: Any) -> Float64Array:
        """How familiar every row is: the negative entropy of its prediction; out-of-distribution rows have low scores."""
        return -self._predictions(X)[1]

    def certify(self, X: Any) -> Certificates:
        """Radii around rows inside which the decision of the posterior's mean cannot change.

        The promise is about the network at the mean of the posterior, as it is computed in float32, and not about
        probabilities that are averaged over samples.
        """
        rows = self._new_rows(X)
        found = self._classifier.certify(rows, self._threads())
        return Certificates(
            self.classes_[found["predicted"]],
            found["margin"],
            found["radius"],
            found["lipschitz"],
            dict(found["norms"]),
            found["rounding"],
            found["proven"],
        )

    def calibrate(self, X: Any, y: Any) -> CirculantClassifier:
        """Keep the conformal scores of rows that were not trained on, for :meth:`predict_set`."""
        check_is_fitted(self)
        X, y = self._rows(X, y=y, reset=False)
        labels = np.searchsorted(self.classes_, y)
        if (labels >= len(self.classes_)).any() or (self.classes_[labels] != y).any():
            raise ValueError(f"y: expected the classes {self.classes_}, got {np.unique(y)}")
        probabilities = self._predictions(X)[0]
        self._calibration = np.sort(1.0 - probabilities[np.arange(len(labels)), labels])
        return self

    def predict_set(self, X: Any, coverage: float = 0.9) -> npt.NDArray[np.bool_]:
        """Sets of classes that hold the true one with a probability of at least ``coverage`` (split conformal).

        The guarantee holds for rows that are exchangeable with those of :meth:`calibrate`, which comes first.

        Returns
        -------
        array of bool, [n, classes]
            Which classes of ``classes_`` are in the set.
        """
        check_is_fitted(self)
        if not 0 < coverage < 1:
            raise ValueError(f"coverage: expected a number between 0 and 1, got {coverage!r}")
        if self._calibration is None:
            raise NotFittedError(
                "predict_set needs rows that were not trained on: call calibrate(X, y) with such rows first"
            )
        n = len(self._calibration)
        rank = int(np.ceil((n + 1) * coverage))
        threshold = np.inf if rank > n else self._calibration[rank - 1]
        return 1.0 - self.predict_proba(X) <= threshold  # type: ignore[no-any-return]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``, a JSON file, and the values beside it (.safetensors): what ``circulant predict`` reads too."""
        check_is_fitted(self)
        self._classifier.save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CirculantClassifier:
        """Open what :meth:`save` wrote, or the folder of a run of ``circulant train``."""
        classifier = _engine.Classifier.load(os.fspath(path))
        model = cls()
        names = classifier.class_names or [str(index) for index in range(classifier.classes)]
        whole = all(name.removeprefix("-").isdecimal() for name in names)
        model.classes_ = np.array([int(name) for name in names] if whole else names)
        channels, height, width = classifier.image
        model.image = (channels, height, width) if height * width > 1 else None
        model.n_features_in_ = channels * height * width
        model._classifier = classifier
        model._prediction_seed = 0
        model._seen = 0
        model._calibration = None
        model._describe()
        return model

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page with norms, spectra and filters beside the prior."""
        check_is_fitted(self)
        self._classifier.report(os.fspath(path))

    def _repr_html_inner(self) -> str:
        html: str = super()._repr_html_inner()
        if getattr(self, "_classifier", None) is None:
            return html
        figures = "".join(f"<figure>{svg}<figcaption>{name}</figcaption></figure>" for name, svg in self._figures())
        return f"{html}<details><summary>spectra and filters</summary>{figures}</details>"

    def _figures(self) -> list[tuple[str, str]]:
        return self._classifier.figures()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if state.get("_classifier") is not None:
            state["_classifier"] = self._classifier.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if state.get("_classifier") is not None:
            state["_classifier"] = _engine.Classifier.from_bytes(*state["_classifier"])
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_classifier", None) is not None
