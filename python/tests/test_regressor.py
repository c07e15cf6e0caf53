"""The regression: scikit-learn's own suite, the habits of its users, and what it adds."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from circulant import CirculantClassifier, CirculantRegressor
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks


#: Of one size, since choosing one among three takes several times as long.
SUITE = CirculantRegressor(steps=100) if os.environ.get("CIRCULANT_SUITE") == "whole" else CirculantRegressor(steps=100, lift=8)


@parametrize_with_checks([SUITE])
def test_scikit_learn(estimator, check):
    check(estimator)


def noisy(rows, seed=0):
    """A sine whose noise has the deviation 0.3, and a column without meaning."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(rows, 2))
    return X, 10 + 5 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=rows)


@pytest.fixture(scope="module")
def data():
    return noisy(800)


@pytest.fixture(scope="module")
def fitted(data):
    return CirculantRegressor(steps=1000, random_state=1).fit(*data)


def test_it_finds_the_function_and_the_noise(fitted):
    X, y = noisy(500, seed=1)
    mean, deviation = fitted.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.5
    assert 0.25 < np.median(deviation) < 0.5
    np.testing.assert_array_equal(mean, fitted.predict(X))
    assert fitted.score(X, y) > 0.97
    assert 10 < fitted.n_parameters_ and fitted.n_steps_ == 1000
    assert "held-out" in fitted.model_


def test_quantiles(fitted):
    X, y = noisy(2000, seed=2)
    quantiles = fitted.predict_quantiles(X, [0.05, 0.25, 0.5, 0.95])
    assert quantiles.shape == (2000, 4) and (np.diff(quantiles, axis=1) > 0).all()
    assert 0.8 < np.mean((quantiles[:, 0] < y) & (y < quantiles[:, 3])) < 1.0
    np.testing.assert_allclose(quantiles[:, 2], fitted.predict(X), atol=0.1)
    for wrong in ([0.0], [1.5], [float("nan")], ["half"]):
        with pytest.raises(ValueError):
            fitted.predict_quantiles(X, wrong)


def test_uncertainty_and_scores(fitted, data):
    X, _ = data
    total, aleatoric, epistemic = fitted.uncertainty(X)
    np.testing.assert_allclose(np.hypot(aleatoric, epistemic), total, rtol=1e-9)
    np.testing.assert_array_equal(total, fitted.predict(X, return_std=True)[1])


def test_scores_fall_outside_of_the_training_range(fitted, data):
    X, _ = data
    inside = fitted.score_samples(X)
    for factor in (4, 20):
        outside = fitted.score_samples(X.mean(axis=0) + factor * (X - X.mean(axis=0)))
        assert np.median(outside) < np.quantile(inside, 0.01), factor
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(fitted.score_samples(X[order]), inside[order])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).score_samples(X), inside)


def test_intervals_cover(fitted):
    X, y = noisy(3000, seed=3)
    with pytest.raises(ValueError, match="calibrate"):
        CirculantRegressor(steps=20).fit(X[:50], y[:50]).predict_interval(X)
    model = copy.copy(fitted).calibrate(X[:1000], y[:1000])
    for coverage in (0.7, 0.9):
        lower, upper = model.predict_interval(X[1000:], coverage).T
        assert np.mean((lower <= y[1000:]) & (y[1000:] <= upper)) == pytest.approx(coverage, abs=0.04)
    for wrong in (0.0, 1.0, 2, "most", 0.99999):
        with pytest.raises(ValueError, match="coverage"):
            model.predict_interval(X, wrong)


def test_certificates_hold(fitted, data):
    X, _ = data
    found = fitted.certify(X, tolerance=2.0)
    assert found.proven and found.lipschitz > 0 and set(found.norms) >= {"output"}
    assert (found.radius > 0).all() and (found.tolerance == 2.0).all()
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=X.shape)
        step *= (found.radius * 0.999 / np.linalg.norm(step, axis=1))[:, None]
        assert (np.abs(fitted.predict(X + step) - found.predicted) <= 2.0).all()
    own = fitted.certify(X)
    half = np.diff(fitted.predict_quantiles(X, [0.05, 0.95]), axis=1)[:, 0] / 2
    np.testing.assert_allclose(own.tolerance, half)
    for wrong in (0.0, -1.0, float("nan"), np.ones(3), np.ones((2, 2)), "much"):
        with pytest.raises((ValueError, TypeError), match="tolerance"):
            fitted.certify(X, tolerance=wrong)


def test_counts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 3))
    y = rng.poisson(np.exp(1 + X[:, 0]))
    model = CirculantRegressor(task="counts", steps=600, random_state=0).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    assert np.corrcoef(mean, np.exp(1 + X[:, 0]))[0, 1] > 0.9
    assert (deviation**2 >= mean * 0.99).all()
    assert (model.predict_quantiles(X[:5], [0.1, 0.9]) % 1 == 0).all()
    with pytest.raises(ValueError, match="exponential"):
        model.certify(X)
    for wrong in (y - 1, y + 0.5):
        with pytest.raises(ValueError, match="whole number"):
            CirculantRegressor(task="counts").fit(X, wrong)


def test_the_same_seed_gives_the_same_bytes(data):
    X, y = data
    fit = lambda **settings: CirculantRegressor(steps=30, random_state=3, **settings)
    first = fit().fit(X, y).predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    for other in (
        fit(n_jobs=1).fit(X, y),
        fit().fit(X[order], y[order]),
        fit().fit(X, y, sample_weight=np.ones(len(X))),
    ):
        assert other.predict(X).tobytes() == first.tobytes()


def test_weights_are_repetitions(data):
    X, y = data
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    for task in ("regression", "counts"):
        target = np.round(y) if task == "counts" else y
        fit = lambda: CirculantRegressor(task=task, steps=30, random_state=0)
        weighted = fit().fit(X, target, sample_weight=weights)
        repeated = fit().fit(X.repeat(weights, axis=0), target.repeat(weights))
        assert weighted.predict(X).tobytes() == repeated.predict(X).tobytes()


def test_partial_fit_learns_a_stream():
    X, y = noisy(1500, seed=4)
    model = CirculantRegressor(steps=300, random_state=0)
    for start in range(0, 1200, 400):
        model.partial_fit(X[start : start + 400], y[start : start + 400])
    assert model.n_steps_ == 900
    assert model.score(X[1200:], y[1200:]) > 0.9


def test_a_model_that_went_on_is_saved_as_it_is(data, tmp_path):
    X, y = data
    model = CirculantRegressor(steps=40, random_state=0).fit(X, y)
    model.partial_fit(X, y)
    model.save(tmp_path / "run")
    loaded = CirculantRegressor.load(tmp_path / "run")
    for found, expected in zip(loaded.predict(X, return_std=True), model.predict(X, return_std=True)):
        np.testing.assert_array_equal(found, expected)


def test_files(fitted, data, tmp_path):
    X, y = data
    expected = fitted.predict(X)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), copy.copy(fitted)):
        np.testing.assert_array_equal(other.predict(X), expected)
    fitted.save(tmp_path / "run")
    loaded = CirculantRegressor.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict(X), expected)
    assert loaded.n_steps_ == fitted.n_steps_ and loaded.n_features_in_ == 2
    with pytest.raises(ValueError, match="already holds a run"):
        fitted.save(tmp_path / "run")
    np.savez(tmp_path / "table.npz", x=X.astype(np.float32), y=y)
    arguments = ["--data", str(tmp_path / "table.npz"), "--input-name", "x", "--label-name", "y"]
    command = [sys.executable, "-m", "circulant", "predict", str(tmp_path / "run"), *arguments, "--json"]
    done = subprocess.run([*command, "--samples", "50", "--seed", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = [json.loads(line)["mean"] for line in done.stdout.splitlines()]
    np.testing.assert_allclose(theirs, fitted.predict(X.astype(np.float32)), rtol=1e-5)
    with pytest.raises(ValueError, match="CirculantClassifier"):
        CirculantRegressor.load(tmp_path / "nothing")
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError):
        CirculantRegressor.load(tmp_path / "run")


def test_runs_of_the_program(tmp_path):
    frame = pd.DataFrame(noisy(300)[0], columns=["a", "b"]).assign(price=noisy(300)[1], kind=["x", "y", "z"] * 100)
    train = [sys.executable, "-m", "circulant", "train", "--steps", "30", "--target", "price"]
    for name, columns in (("numbers", ["a", "b", "price"]), ("words", ["a", "kind", "price"])):
        frame[columns].to_csv(tmp_path / f"{name}.csv", index=False)
        data = ["--data", str(tmp_path / f"{name}.csv"), "--out", str(tmp_path / name)]
        done = subprocess.run([*train, *data], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    model = CirculantRegressor.load(tmp_path / "numbers")
    assert list(model.feature_names_in_) == ["a", "b"] and model.predict(frame[["a", "b"]]).shape == (300,)
    with pytest.raises(ValueError, match="kind"):
        CirculantRegressor.load(tmp_path / "words")
    with pytest.raises(ValueError, match="numbers, not classes"):
        CirculantClassifier.load(tmp_path / "numbers")


def test_data_frames(data):
    X, y = data
    expected = CirculantRegressor(steps=20, random_state=0).fit(X, y).predict(X)
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        model = CirculantRegressor(steps=20, random_state=0).fit(frame, y)
        assert list(model.feature_names_in_) == ["a", "b"]
        np.testing.assert_array_equal(model.predict(frame), expected)


def test_inside_the_tools_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    model = CirculantRegressor(steps=300, random_state=0)
    ours = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()
    assert ours > cross_val_score(Ridge(), X, y, cv=3).mean() - 0.05
    search = GridSearchCV(model, {"depth": [1, 2]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.3
    assert clone(model).get_params() == model.get_params()


def test_inside_mapie(data):
    regression = pytest.importorskip("mapie.regression")
    (X, y), (new, truth) = data, noisy(500, seed=5)
    model = CirculantRegressor(steps=300, random_state=0)
    split = regression.SplitConformalRegressor(model.fit(X[:400], y[:400]), confidence_level=0.9, prefit=True)
    _, intervals = split.conformalize(X[400:], y[400:]).predict_interval(new)
    assert np.mean((intervals[:, 0, 0] <= truth) & (truth <= intervals[:, 1, 0])) > 0.8
    cross = regression.CrossConformalRegressor(model, confidence_level=0.9, cv=3)
    _, intervals = cross.fit_conformalize(X, y).predict_interval(new)
    assert np.mean((intervals[:, 0, 0] <= truth) & (truth <= intervals[:, 1, 0])) > 0.8


def test_ctrl_c_stops_and_leaves_the_model_usable(data, tmp_path):
    model = CirculantRegressor(steps=10**7, random_state=0)
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert model.n_steps_ > 0 and model.predict(data[0]).shape == (800,)
    model.save(tmp_path / "run")
    assert CirculantRegressor.load(tmp_path / "run").n_steps_ == model.n_steps_


def test_settings_and_rows_are_checked(fitted, data):
    X, y = data
    for settings in ({"task": "ranks"}, {"model": "nothing"}, {"model": 3}, {"steps": 0}, {"lift": -1}, {"kl_weight": -1}):
        with pytest.raises((ValueError, TypeError)):
            CirculantRegressor(**settings).fit(X, y)
    for bad in (X[:, :0], X[:0], np.full_like(X, np.nan), np.full_like(X, 1e300), X[0], [["a"] * 2], X + 1j):
        with pytest.raises((ValueError, TypeError)):
            fitted.predict(bad)
    for bad in (y + 1j, np.full_like(y, np.nan), y[:-1], np.stack([y, y], axis=1), ["a"] * len(y)):
        with pytest.raises((ValueError, TypeError)):
            CirculantRegressor(steps=5).fit(X, bad)
    # The same target everywhere is no error.
    constant = CirculantRegressor(steps=50, random_state=0).fit(X, np.full(len(X), 7.0))
    np.testing.assert_allclose(constant.predict(X), 7.0, atol=0.5)


def test_display(fitted, tmp_path):
    html = fitted._repr_html_()
    assert html.count("<svg") >= 3 and "CirculantRegressor" in html
    fitted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "a number as target" in page and "classes" not in page.split("Settings")[1].split("Spectra")[0]
    fitted.save(tmp_path / "run")
    inspect = [sys.executable, "-m", "circulant", "inspect", str(tmp_path / "run"), "--json"]
    done = subprocess.run(inspect, capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["layers"], done.stderr
