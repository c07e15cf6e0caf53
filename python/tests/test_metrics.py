"""Metrics against scikit-learn's, where both exist, and against their definitions."""

import numpy as np
import pytest
from circulant import metrics as M
from scipy import special
from sklearn import metrics as sk


def predictions(rows=400, classes=5, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(rows, classes))
    probabilities = special.softmax(logits, axis=1)
    labels = np.where(rng.random(rows) < 0.7, probabilities.argmax(axis=1), rng.integers(0, classes, rows))
    return labels, probabilities, logits


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_to_scikit_learn(dtype):
    labels, probabilities, _ = predictions()
    probabilities = probabilities.astype(dtype)
    tolerance = dict(rel=1e-12) if dtype == np.float64 else dict(rel=1e-5)
    assert M.accuracy(labels, probabilities) == sk.accuracy_score(labels, probabilities.argmax(axis=1))
    nll = M.negative_log_likelihood(labels, probabilities)
    assert nll == pytest.approx(sk.log_loss(labels, probabilities.astype(float)), **tolerance)
    one_hot = np.eye(5)[labels]
    assert M.brier_score(labels, probabilities) == pytest.approx(((probabilities - one_hot) ** 2).sum(1).mean(), rel=1e-5)
    id_scores, ood_scores = probabilities[:300, 0], probabilities[300:, 1]
    truth = np.r_[np.ones(300), np.zeros(100)]
    scores = np.r_[id_scores, ood_scores]
    assert M.auroc(id_scores, ood_scores) == pytest.approx(sk.roc_auc_score(truth, scores), rel=1e-12)
    assert M.aupr(id_scores, ood_scores) == pytest.approx(sk.average_precision_score(truth, scores), rel=1e-12)
    fpr, tpr, _ = sk.roc_curve(truth, scores, drop_intermediate=False)
    assert M.fpr95(id_scores, ood_scores) == pytest.approx(fpr[np.argmax(tpr >= 0.95)], abs=1e-12)


def test_calibration_is_its_definition():
    labels, probabilities, _ = predictions()
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    edges = np.linspace(0, 1, 11)
    expected, largest = 0.0, 0.0
    diagram = M.reliability_diagram(labels, probabilities, bins=10)
    for k in range(10):
        inside = (confidence > edges[k]) & (confidence <= edges[k + 1])
        assert diagram.counts[k] == inside.sum()
        if inside.any():
            gap = abs(confidence[inside].mean() - right[inside].mean())
            assert diagram.confidence[k] == pytest.approx(confidence[inside].mean())
            assert diagram.accuracy[k] == pytest.approx(right[inside].mean())
            expected, largest = expected + gap * inside.mean(), max(largest, gap)
        else:
            assert np.isnan(diagram.accuracy[k])
    assert M.expected_calibration_error(labels, probabilities, bins=10) == pytest.approx(expected)
    assert M.maximum_calibration_error(labels, probabilities, bins=10) == pytest.approx(largest)
    adaptive = M.reliability_diagram(labels, probabilities, bins=10, adaptive=True)
    weighted = np.abs(adaptive.confidence - adaptive.accuracy) * adaptive.counts / 400
    assert M.adaptive_calibration_error(labels, probabilities, bins=10) == pytest.approx(weighted.sum())


def test_scores_are_their_definitions():
    labels, probabilities, logits = predictions()
    np.testing.assert_allclose(M.entropies(probabilities), special.entr(probabilities).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(M.max_probabilities(probabilities), probabilities.max(axis=1))
    np.testing.assert_allclose(
        M.energies(logits, temperature=2.0), -2.0 * special.logsumexp(logits / 2.0, axis=1), rtol=1e-12
    )
    samples = np.stack([predictions(seed=seed)[1] for seed in range(4)])
    mean = samples.mean(axis=0)
    np.testing.assert_allclose(M.mean_probabilities(samples), mean)
    information = special.entr(mean).sum(axis=1) - special.entr(samples).sum(axis=2).mean(axis=0)
    np.testing.assert_allclose(M.mutual_information(samples), information, atol=1e-12)
    curve = M.density(M.entropies(probabilities), (0.0, np.log(5)), points=400)
    assert np.trapezoid(curve.densities, curve.points) == pytest.approx(1.0, abs=1e-3)


def test_intervals_hold_the_estimate_and_repeat():
    labels, probabilities, _ = predictions()
    intervals = M.bootstrap_classification(labels, probabilities, random_state=3, resamples=200)
    report = M.classification_report(labels, probabilities)._asdict()
    assert intervals.keys() == report.keys()
    for name, interval in intervals.items():
        assert interval.estimate == pytest.approx(report[name]) and interval.lower < interval.upper
    again = M.bootstrap_classification(labels, probabilities, random_state=3, resamples=200)
    assert intervals == again
    ood = M.bootstrap_ood(probabilities[:300, 0], probabilities[300:, 1], resamples=100)
    assert ood["auroc"].lower <= M.auroc(probabilities[:300, 0], probabilities[300:, 1]) <= ood["auroc"].upper


def test_bad_input_is_named():
    labels, probabilities, logits = predictions()
    for bad, message in [
        (logits, "softmax"),
        (probabilities[:, :, None], "inputs, classes"),
        (probabilities * 2, "sum"),
        (np.full_like(probabilities, np.nan), "probability"),
        (probabilities[:0], "at least one"),
    ]:
        with pytest.raises(ValueError, match=message):
            M.accuracy(labels, bad)
    with pytest.raises(ValueError, match="label"):
        M.accuracy(labels[:7], probabilities)
    with pytest.raises(ValueError):
        M.accuracy(labels + 9, probabilities)
    with pytest.raises(ValueError, match="whole numbers"):
        M.accuracy(labels + 0.5, probabilities)
    with pytest.raises(TypeError, match="complex"):
        M.entropies(probabilities + 0j)
    with pytest.raises(TypeError, match="numbers"):
        M.entropies([["a", "b"]])
