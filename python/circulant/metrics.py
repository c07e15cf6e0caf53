"""How good are predictions, how honest is their confidence, and do they know what they do not know?

``probabilities`` are rows of class probabilities ``[inputs, classes]`` that sum to one; ``labels`` are class indices
``0, 1, ...``. Logarithms are natural. Bad input is a :class:`ValueError`, never a number, and the number of threads never
shows in a result.

>>> from circulant import metrics
>>> probabilities = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]
>>> metrics.accuracy([0, 1, 1, 1], probabilities)
0.75
>>> metrics.auroc([0.1, 0.4, 0.35, 0.8], [0.2, 0.3])
0.75
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _engine
from ._arrays import Float64Array, FloatArray, count, double, floats, integers, seed_of

__all__ = [
    "ClassificationReport",
    "Density",
    "Interval",
    "OodReport",
    "ReliabilityDiagram",
    "accuracy",
    "adaptive_calibration_error",
    "aupr",
    "auroc",
    "bootstrap_classification",
    "bootstrap_mean",
    "bootstrap_ood",
    "brier_score",
    "classification_report",
    "density",
    "energies",
    "entropies",
    "expected_calibration_error",
    "fpr95",
    "max_probabilities",
    "maximum_calibration_error",
    "mean_probabilities",
    "mutual_information",
    "negative_log_likelihood",
    "ood_report",
    "reliability_diagram",
]


class ClassificationReport(NamedTuple):
    """Everything about one set of predictions."""

    accuracy: float
    #: Negative log likelihood in nats.
    nll: float
    brier: float
    #: Expected calibration error, bins of equal width.
    ece: float
    #: Maximum calibration error, bins of equal width.
    mce: float
    #: Expected calibration error, bins of equal mass.
    adaptive_ece: float


class ReliabilityDiagram(NamedTuple):
    """The bars of a reliability diagram; confidence and accuracy are NaN in empty bins."""

    lower: Float64Array
    upper: Float64Array
    counts: npt.NDArray[np.int64]
    confidence: Float64Array
    accuracy: Float64Array


class OodReport(NamedTuple):
    """How well scores tell familiar inputs from out-of-distribution ones."""

    auroc: float
    aupr: float
    #: False positive rate at 95 % true positive rate.
    fpr95: float


class Interval(NamedTuple):
    """A metric with its confidence interval."""

    estimate: float
    lower: float
    upper: float


class Density(NamedTuple):
    """A kernel density."""

    points: Float64Array
    densities: Float64Array
    bandwidth: float


def _matrix(probabilities: npt.ArrayLike, name: str = "probabilities") -> FloatArray:
    (matrix,) = floats(**{name: probabilities})
    if matrix.ndim != 2:
        raise ValueError(f"{name}: expected an array [inputs, classes], got the shape {matrix.shape}")
    return matrix  # type: ignore[no-any-return]


def _samples(probabilities: npt.ArrayLike) -> FloatArray:
    (samples,) = floats(probabilities=probabilities)
    if samples.ndim != 3:
        raise ValueError(f"probabilities: expected an array [samples, inputs, classes], got the shape {samples.shape}")
    return samples  # type: ignore[no-any-return]


def _labels(labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = integers("labels", labels)
    if array.ndim != 1:
        raise ValueError(f"labels: expected one class per input, got the shape {array.shape}")
    return array


def _scores(name: str, scores: npt.ArrayLike) -> Float64Array:
    array = double(name, scores)
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one score per input, got the shape {array.shape}")
    return array


def classification_report(
    labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 15
) -> ClassificationReport:
    """All metrics of one set of predictions.

    Parameters
    ----------
    labels : array of int, [inputs]
    probabilities : array of float, [inputs, classes]
    bins : int
        Of the calibration errors.

    Examples
    --------
    >>> report = classification_report([0, 1], [[0.9, 0.1], [0.4, 0.6]])
    >>> report.accuracy, round(report.brier, 6)
    (1.0, 0.17)
    """
    matrix = _matrix(probabilities)
    report = _engine.classification_report(matrix, matrix.shape[1], _labels(labels), count("bins", bins))
    return ClassificationReport(**report)


def accuracy(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """The share of inputs whose most probable class is the label; the first of equals counts."""
    return classification_report(labels, probabilities).accuracy


def negative_log_likelihood(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """The mean of ``-log p(label)``, in nats; infinite when a label has probability 0."""
    return classification_report(labels, probabilities).nll


def brier_score(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """The mean over inputs of ``sum_k (p_k - [k == label])**2``, from 0 to 2."""
    return classification_report(labels, probabilities).brier


def expected_calibration_error(labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 15) -> float:
    """The mean distance of confidence and accuracy, over bins of equal width."""
    return classification_report(labels, probabilities, bins=bins).ece


def maximum_calibration_error(labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 15) -> float:
    """The largest distance of confidence and accuracy, over bins of equal width."""
    return classification_report(labels, probabilities, bins=bins).mce


def adaptive_calibration_error(labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 15) -> float:
    """The mean distance of confidence and accuracy, over bins of equal mass."""
    return classification_report(labels, probabilities, bins=bins).adaptive_ece


def reliability_diagram(
    labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = 15, adaptive: bool = False
) -> ReliabilityDiagram:
    """Confidence and accuracy, bin by bin.

    Parameters
    ----------
    labels : array of int, [inputs]
    probabilities : array of float, [inputs, classes]
    bins : int
    adaptive : bool
        Bins of equal mass instead of equal width.
    """
    matrix = _matrix(probabilities)
    columns = _engine.reliability_diagram(
        matrix, matrix.shape[1], _labels(labels), count("bins", bins), bool(adaptive)
    )
    lower, upper, counts, confidence, right = columns
    return ReliabilityDiagram(lower, upper, counts.astype(np.int64), confidence, right)


def entropies(probabilities: npt.ArrayLike) -> Float64Array:
    """The entropy of every row, in nats.

    Examples
    --------
    >>> bool(entropies([[0.5, 0.5]])[0] == np.log(2))
    True
    """
    matrix = _matrix(probabilities)
    return _engine.row_scores(matrix, matrix.shape[1], "entropy")


def max_probabilities(probabilities: npt.ArrayLike) -> Float64Array:
    """The confidence of every row: its largest probability."""
    matrix = _matrix(probabilities)
    return _engine.row_scores(matrix, matrix.shape[1], "confidence")


def energies(logits: npt.ArrayLike, *, temperature: float = 1.0) -> Float64Array:
    """The free energy ``-T log sum_k exp(logit_k / T)`` of every row of logits."""
    matrix = _matrix(logits, "logits")
    return _engine.energies(matrix, matrix.shape[1], float(temperature))


def mutual_information(probabilities: npt.ArrayLike) -> Float64Array:
    """What more data would remove of the uncertainty, in nats, from ``[samples, inputs, classes]``.

    Examples
    --------
    Two samples that are each certain and contradict each other:

    >>> bool(mutual_information([[[1.0, 0.0]], [[0.0, 1.0]]])[0] == np.log(2))
    True
    """
    samples = _samples(probabilities)
    return _engine.mutual_information(samples, samples.shape[2], samples.shape[0])


def mean_probabilities(probabilities: npt.ArrayLike) -> Float64Array:
    """The mean over posterior samples, ``[samples, inputs, classes]`` to ``[inputs, classes]``."""
    samples = _samples(probabilities)
    mean = _engine.mean_probabilities(samples, samples.shape[2], samples.shape[0])
    return mean.reshape(samples.shape[1:])


def ood_report(id_scores: npt.ArrayLike, ood_scores: npt.ArrayLike) -> OodReport:
    """AUROC, AUPR and FPR at 95 % TPR of scores; familiar inputs should have the higher ones.

    Parameters
    ----------
    id_scores : array of float, [inputs]
        Of in-distribution inputs, for example the negative entropies.
    ood_scores : array of float, [inputs]
        Of out-of-distribution inputs.
    """
    return OodReport(*_engine.ood_report(_scores("id_scores", id_scores), _scores("ood_scores", ood_scores)))


def auroc(id_scores: npt.ArrayLike, ood_scores: npt.ArrayLike) -> float:
    """The area under the receiver operating characteristic."""
    return ood_report(id_scores, ood_scores).auroc


def aupr(id_scores: npt.ArrayLike, ood_scores: npt.ArrayLike) -> float:
    """The area under the precision-recall curve (average precision), in-distribution inputs being the positive ones."""
    return ood_report(id_scores, ood_scores).aupr


def fpr95(id_scores: npt.ArrayLike, ood_scores: npt.ArrayLike) -> float:
    """The false positive rate at 95 % true positive rate."""
    return ood_report(id_scores, ood_scores).fpr95


def density(
    values: npt.ArrayLike, interval: tuple[float, float], *, points: int = 200, bandwidth: float | None = None
) -> Density:
    """A Gaussian kernel density on an interval, reflected at its ends.

    Parameters
    ----------
    values : array of float, [n]
        Inside the interval.
    interval : (float, float)
    points : int
        Evenly spaced, both ends included.
    bandwidth : float, optional
        Scott's rule if not given.
    """
    lower, upper = interval
    width = None if bandwidth is None else float(bandwidth)
    curve = _engine.density(_scores("values", values), float(lower), float(upper), count("points", points), width)
    return Density(*curve)


def bootstrap_mean(
    values: npt.ArrayLike, *, random_state: Any = 0, resamples: int = 1000, confidence: float = 0.95
) -> Interval:
    """The mean of values with its bootstrap interval.

    Examples
    --------
    >>> interval = bootstrap_mean([1, 1, 0, 1, 1, 0, 1, 1], random_state=7)
    >>> interval.estimate, interval.lower < 0.75 < interval.upper
    (0.75, True)
    """
    return Interval(
        *_engine.bootstrap_mean(
            _scores("values", values), seed_of(random_state), count("resamples", resamples), float(confidence)
        )
    )


def bootstrap_classification(
    labels: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    *,
    bins: int = 15,
    random_state: Any = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> dict[str, Interval]:
    """The metrics of :func:`classification_report` with bootstrap intervals, by their names."""
    matrix = _matrix(probabilities)
    intervals = _engine.bootstrap_classification(
        matrix,
        matrix.shape[1],
        _labels(labels),
        count("bins", bins),
        seed_of(random_state),
        count("resamples", resamples),
        float(confidence),
    )
    return {name: Interval(*interval) for name, interval in intervals.items()}


def bootstrap_ood(
    id_scores: npt.ArrayLike,
    ood_scores: npt.ArrayLike,
    *,
    random_state: Any = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> dict[str, Interval]:
    """The metrics of :func:`ood_report` with bootstrap intervals, by their names."""
    intervals = _engine.bootstrap_ood(
        _scores("id_scores", id_scores),
        _scores("ood_scores", ood_scores),
        seed_of(random_state),
        count("resamples", resamples),
        float(confidence),
    )
    return {name: Interval(*interval) for name, interval in zip(OodReport._fields, intervals)}
