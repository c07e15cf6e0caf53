"""The classifier behind scikit-learn's interface."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _engine
from ._arrays import Float64Array, contiguous, count
from ._estimators import Estimator, Uncertainty, _number

# isort: split
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

__all__ = ["Certificates", "CirculantClassifier"]


class Certificates(NamedTuple):
    """What is promised about a decision: that of the posterior's mean, or that of averaged probabilities."""

    #: The class that the radii are about.
    predicted: npt.NDArray[Any]
    #: The margin of that class: in the logits of the mean, or in averaged probabilities.
    margin: Float64Array
    #: Every input within this distance (2-norm, in the units of X) has the same class; 0 where nothing is promised.
    radius: Float64Array
    #: An upper bound of the Lipschitz constant of the logits, in the units of X; of the average the mean over samples.
    lipschitz: float
    #: Upper bounds of the operator norms at the posterior's mean, by layer.
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
        'auto': for a table the size among three that predicts held-out rows best, unless sizes are given. Or the hidden layers:
        'spectral-circulant', 'spectral-bccb', 'block-circulant', 'circulant', 'bccb', 'conv2d' or 'dense'.
    image : (int, int, int), optional
        Reads rows as images of ``(channels, height, width)``; needed by the layers for images.
    channels : int, optional
        Output channels of BCCB and convolutional layers.
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
    norm_limit : float, optional
        Keep the operator norm of every layer at or below this.
    class_weight : 'balanced' or dict, optional
        What the examples of a class count.
    standardise : bool
        Shift and scale every column (of images every channel) by its mean and standard deviation.
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
    model_ : str
        The model, and why it was chosen.
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
        model: str = "auto",
        *,
        image: tuple[int, int, int] | None = None,
        channels: int | None = None,
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
        norm_limit: float | None = None,
        class_weight: str | dict[Any, float] | None = None,
        standardise: bool = True,
        prediction_samples: int = 50,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())

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
        target = y
        X, y = self._rows(X, y=y)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"expected at least two classes in y, got one class: {classes[0]!r}")
        return self._train(X, labels, classes, target, sample_weight, None)

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
        first, target = not self.__sklearn_is_fitted__(), y
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
        labels = _labels(known, y)
        return self._train(X, labels, known, target, sample_weight, None if first else self._trained)

    def _train(
        self,
        X: npt.NDArray[Any],
        labels: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        target: Any,
        sample_weight: npt.ArrayLike | None,
        begin: _engine.Classifier | None,
    ) -> CirculantClassifier:
        weights = self._weights(sample_weight, X)
        if self.class_weight is not None:
            of_class = compute_sample_weight(self.class_weight, classes[labels])
            weights = of_class if weights is None else weights * of_class
        image = None if self.image is None else self._image(X.shape[1])
        names = [str(name) for name in classes]
        self.classes_ = classes
        labels = contiguous(labels, np.int64)
        return self._learn(_engine.Classifier, X, target, image, labels, weights, names, image, begin)  # type: ignore[no-any-return]

    def _image(self, columns: int) -> tuple[int, int, int]:
        """``(channels, height, width)`` of a row."""
        try:
            channels, height, width = (count("image", side, most=2**40) for side in tuple(self.image or ()))
        except ValueError as error:
            raise ValueError(f"image: expected (channels, height, width), got {self.image!r}") from error
        if channels * height * width != columns:
            raise ValueError(
                f"image: expected sizes with the product {columns}, the number of columns of X, got {self.image!r}"
            )
        return channels, height, width

    def _predictions(self, X: Any) -> tuple[Float64Array, Float64Array, Float64Array]:
        rows = self._new_rows(X)
        probabilities, total, expected = self._trained.predict(
            rows, self._samples(), self._prediction_seed, self._threads()
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

    def _agreement(self, X: Any) -> Float64Array:
        return -self._predictions(X)[1]

    def certify(self, X: Any, of: str = "mean") -> Certificates:
        """Radii around rows inside which the decision cannot change, as it is computed in float32.

        Parameters
        ----------
        X : array or data frame, [n, features]
        of : 'mean' or 'average'
            The decision of the network at the posterior's mean; or that of :meth:`predict`, whose probabilities are averaged over
            posterior samples, which takes a bound of each of them.
        """
        if of not in ("mean", "average"):
            raise ValueError(f"of: expected 'mean' or 'average', got {of!r}")
        rows = self._new_rows(X)
        average = (self._samples(), self._prediction_seed) if of == "average" else None
        found = self._trained.certify(rows, average, self._threads())
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
        """Keep the predictions of rows that were not trained on, for :meth:`predict_set`."""
        check_is_fitted(self)
        X, y = self._rows(X, y=y, reset=False)
        labels = contiguous(_labels(self.classes_, y), np.int64)
        self._calibration = (contiguous(self._predictions(X)[0], np.float64), labels)
        return self

    def predict_set(self, X: Any, coverage: float = 0.9, method: str = "threshold") -> npt.NDArray[np.bool_]:
        """Sets of classes that hold the true one with a probability of at least ``coverage`` (split conformal).

        The promise is about rows that are exchangeable with those of :meth:`calibrate`, which comes first.

        Parameters
        ----------
        X : array or data frame, [n, features]
        coverage : float
        method : 'threshold', 'aps' or 'raps'
            The smallest sets on average; larger ones where a row is hard; the same without the long tail.

        Returns
        -------
        array of bool, [n, classes]
            Which classes of ``classes_`` are in the set.
        """
        check_is_fitted(self)
        if self._calibration is None:
            raise NotFittedError(
                "predict_set needs rows that were not trained on: call calibrate(X, y) with such rows first"
            )
        probabilities, labels = self._calibration
        found = contiguous(self.predict_proba(X), np.float64)
        members = _engine.conformal_sets(
            probabilities, labels, found, len(self.classes_), _number("coverage", coverage), str(method)
        )
        return members.reshape(found.shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``, a JSON file, and the values beside it (.safetensors): what ``circulant predict`` reads too."""
        check_is_fitted(self)
        self._trained.save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CirculantClassifier:
        """Open what :meth:`save` wrote, or the folder of a run of ``circulant train``."""
        trained = _engine.Classifier.load(os.fspath(path))
        model = cls()
        names = trained.class_names or [str(index) for index in range(trained.classes)]
        whole = all(name.removeprefix("-").isdecimal() for name in names)
        model.classes_ = np.array([int(name) for name in names] if whole else names)
        channels, height, width = trained.image
        model.image = (channels, height, width) if height * width > 1 and not trained.columns_of_table else None
        model.n_features_in_ = channels * height * width
        return model._opened(trained)  # type: ignore[no-any-return]

    def _figures(self) -> list[tuple[str, str]]:
        figures = super()._figures()
        if self._calibration is not None:
            title = "Reliability of held-out rows"
            probabilities, labels = self._calibration
            svg = _engine.reliability_figure(probabilities, len(self.classes_), labels, title)
            figures.append(("reliability", svg))
        return figures


def _labels(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Where the classes of rows are among all classes."""
    labels = np.searchsorted(classes, y)
    if (labels >= len(classes)).any() or (classes[labels] != y).any():
        raise ValueError(f"y: expected the classes {classes}, got {np.unique(y)}")
    return labels
