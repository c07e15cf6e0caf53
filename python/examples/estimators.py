"""A classifier and a regression on tables: probabilities, uncertainty, certificates, conformal prediction, files.

python examples/estimators.py
"""

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from circulant import CirculantClassifier, CirculantRegressor, Uncertainty, metrics


def moons(rows: int, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Two half circles with noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    angle = rng.uniform(0, np.pi, rows)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points[labels == 1] = np.array([1.0, 0.5]) - points[labels == 1]
    return points + 0.2 * rng.normal(size=points.shape), labels


def classify(steps: int) -> float:
    """Returns the accuracy on new rows."""
    X, y = moons(400, seed=0)
    X_held, y_held = moons(200, seed=1)
    X_new, y_new = moons(200, seed=2)
    model = CirculantClassifier(steps=steps, random_state=0).fit(X, y)
    uncertainty: Uncertainty = model.uncertainty(X_new)
    report = metrics.classification_report(y_new, model.predict_proba(X_new))
    sets = model.calibrate(X_held, y_held).predict_set(X_new, coverage=0.9, method="aps")
    print(f"accuracy {report.accuracy:.3f}, epistemic part {uncertainty.epistemic.mean():.4f} nats")
    print(f"certified radii up to {model.certify(X_new).radius.max():.3f}, {sets.sum(axis=1).mean():.2f} classes per set")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "moons.json"
        model.save(path)
        assert np.array_equal(CirculantClassifier.load(path).predict(X_new), model.predict(X_new))
    return report.accuracy


def regress(steps: int) -> float:
    """Returns the share of new targets in their intervals."""
    X, _ = moons(1200, seed=3)
    y = np.sin(3.0 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=len(X))
    model = CirculantRegressor(steps=steps, random_state=0).fit(X[:800], y[:800])
    mean, deviation = model.predict(X[1000:], return_std=True)
    lower, upper = model.calibrate(X[800:1000], y[800:1000]).predict_interval(X[1000:], coverage=0.9).T
    covered = float(np.mean((lower <= y[1000:]) & (y[1000:] <= upper)))
    print(f"error {np.sqrt(np.mean((mean - y[1000:]) ** 2)):.3f}, deviation {deviation.mean():.3f}, covered {covered:.3f}")
    return covered


if __name__ == "__main__":
    assert classify(steps=1000) > 0.85
    assert regress(steps=1000) > 0.8
