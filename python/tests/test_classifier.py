"""The classifier: scikit-learn's own suite, the habits of its users, and what it adds."""

import copy
import os
import pickle
import signal
import threading
import time
import warnings

import circulant
import numpy as np
import pandas as pd
import polars as pl
import pytest
from circulant import CirculantClassifier
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks


WHOLE = os.environ.get("CIRCULANT_SUITE") == "whole"
#: Of one size, since choosing one among three takes several times as long.
SUITE = CirculantClassifier(steps=100) if WHOLE else CirculantClassifier(steps=100, lift=8)


@parametrize_with_checks([SUITE])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(iris):
    return CirculantClassifier(steps=200, random_state=1).fit(*iris)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits] if WHOLE else [load_wine])
def test_as_good_as_logistic_regression(load):
    X, y = load(return_X_y=True)
    split = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    train, test, y_train, y_test = split
    ours = CirculantClassifier(random_state=0).fit(train, y_train).score(test, y_test)
    theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(train, y_train).score(test, y_test)
    assert ours >= theirs - 0.01, (ours, theirs)


def test_the_same_seed_gives_the_same_bytes(iris):
    X, y = iris
    fit = lambda **settings: CirculantClassifier(steps=30, random_state=3, **settings)
    first = fit().fit(X, y).predict_proba(X)
    order = np.random.default_rng(0).permutation(len(X))
    for other in (
        fit(n_jobs=1).fit(X, y),
        fit().fit(X[order], y[order]),
        fit().fit(np.asfortranarray(X), y),
        fit().fit(X, y, sample_weight=np.ones(len(X))),
    ):
        assert other.predict_proba(X).tobytes() == first.tobytes()
    assert CirculantClassifier(steps=30, random_state=4).fit(X, y).predict_proba(X).tobytes() != first.tobytes()


def test_weights_are_repetitions(iris):
    X, y = iris
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = CirculantClassifier(steps=30, random_state=0).fit(X, y, sample_weight=weights)
    repeated = CirculantClassifier(steps=30, random_state=0).fit(X.repeat(weights, axis=0), y.repeat(weights))
    assert weighted.predict_proba(X).tobytes() == repeated.predict_proba(X).tobytes()
    with pytest.raises(ValueError, match="sample_weight"):
        CirculantClassifier().fit(X, y, sample_weight=-np.ones(len(X)))


def test_uncertainty_and_scores(fitted, iris):
    X, _ = iris
    total, aleatoric, epistemic = fitted.uncertainty(X)
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    entropy = -(probabilities * np.log(probabilities)).sum(axis=1)
    np.testing.assert_allclose(total, entropy, atol=1e-5)
    np.testing.assert_allclose(aleatoric + epistemic, total, atol=1e-6)
    assert (epistemic >= 0).all()


def test_scores_fall_outside_of_the_training_range(fitted, iris, tmp_path):
    X, _ = iris
    inside = fitted.score_samples(X)
    for factor in (4, 20):
        outside = fitted.score_samples(X.mean(axis=0) + factor * (X - X.mean(axis=0)))
        assert np.median(outside) < np.quantile(inside, 0.01), factor
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(fitted.score_samples(X[order]), inside[order])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).score_samples(X), inside)
    path = tmp_path / "model.json"
    fitted.save(path)
    np.testing.assert_array_equal(CirculantClassifier.load(path).score_samples(X), inside)
    # Whoever has only the two files of earlier versions gets minus the entropy.
    (tmp_path / "model.density.safetensors").unlink()
    np.testing.assert_array_equal(CirculantClassifier.load(path).score_samples(X), -fitted.uncertainty(X).total)


def test_certificates_hold(fitted, iris):
    X, _ = iris
    certificates = fitted.certify(X)
    assert certificates.lipschitz > 0 and certificates.proven and set(certificates.norms) >= {"output"}
    inside = certificates.radius > 0
    assert inside.mean() > 0.5
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=X.shape)
        step *= (certificates.radius * 0.999 / np.linalg.norm(step, axis=1))[:, None]
        moved = fitted.certify(X + step).predicted
        assert (moved == certificates.predicted)[inside].all()


def test_certificates_of_the_average_hold(fitted, iris):
    X, _ = iris
    certificates = fitted.certify(X, of="average")
    np.testing.assert_array_equal(certificates.predicted, fitted.predict(X))
    ordered = np.sort(fitted.predict_proba(X), axis=1)
    np.testing.assert_allclose(certificates.margin, ordered[:, -1] - ordered[:, -2], atol=1e-5)
    inside = certificates.radius > 0
    assert inside.mean() > 0.5 and certificates.lipschitz > 0 and certificates.proven
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=X.shape)
        step *= (certificates.radius * 0.999 / np.linalg.norm(step, axis=1))[:, None]
        assert (fitted.predict(X + step) == certificates.predicted)[inside].all()
    with pytest.raises(ValueError, match="'mean' or 'average'"):
        fitted.certify(X, of="median")


def test_a_row_at_a_time_is_the_same_row(fitted, iris):
    """Drawn networks are kept for the next call: other numbers of samples must not find them."""
    X, _ = iris
    few = copy.deepcopy(fitted).set_params(prediction_samples=3)
    many, of_few = fitted.predict_proba(X[:5]), few.predict_proba(X[:5])
    assert (many != of_few).any()
    for row in range(5):
        np.testing.assert_allclose(fitted.predict_proba(X[row : row + 1])[0], many[row], rtol=1e-5, atol=1e-7)
    fitted.set_params(prediction_samples=3)
    np.testing.assert_array_equal(fitted.predict_proba(X[:5]), of_few)
    fitted.set_params(prediction_samples=50)
    np.testing.assert_array_equal(fitted.predict_proba(X[:5]), many)


def test_conformal_sets_cover():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = np.where(rng.random(3000) < 1 / (1 + np.exp(-2 * X[:, 0])), "b", "a")
    model = CirculantClassifier(steps=100, random_state=0).fit(X[:500], y[:500])
    with pytest.raises(ValueError, match="calibrate"):
        model.predict_set(X)
    model.calibrate(X[500:1500], y[500:1500])
    for coverage in (0.7, 0.9):
        sets = model.predict_set(X[1500:], coverage)
        covered = sets[np.arange(1500), np.searchsorted(model.classes_, y[1500:])].mean()
        assert covered == pytest.approx(coverage, abs=0.04)
        for method in ("aps", "raps"):
            members = model.predict_set(X[1500:], coverage, method)
            assert members[np.arange(1500), np.searchsorted(model.classes_, y[1500:])].mean() > coverage - 0.04
    for wrong in ({"coverage": 1.5}, {"coverage": "most"}, {"coverage": 0.9999}, {"method": "best"}):
        with pytest.raises(ValueError, match="coverage|method"):
            model.predict_set(X, **wrong)


def test_partial_fit_learns_a_stream():
    X, y = load_digits(return_X_y=True)
    model = CirculantClassifier(steps=150, random_state=0)
    scores = []
    for start in range(0, 1200, 300):
        rows = slice(start, start + 300)
        model.partial_fit(X[rows], y[rows], classes=np.arange(10))
        scores.append(model.score(X[1200:], y[1200:]))
    assert model.n_steps_ == 600
    assert scores[-1] > max(0.85, scores[0]), scores
    copied = pickle.loads(pickle.dumps(model)).partial_fit(X[:300], y[:300])
    assert copied.n_steps_ == 750 and copied.score(X[1200:], y[1200:]) > 0.85
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X[:50], y[:50] + 10)


def test_files(fitted, iris, tmp_path):
    X, y = iris
    expected = fitted.predict_proba(X)
    path = tmp_path / "iris.json"
    fitted.save(path)
    loaded = CirculantClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), copy.copy(fitted)):
        np.testing.assert_array_equal(other.predict_proba(X), expected)
    with pytest.raises(ValueError, match="json"):
        fitted.save(tmp_path / "iris")
    with pytest.raises(OSError):
        CirculantClassifier.load(tmp_path / "nothing.json")
    text = path.read_text()
    path.write_text(text.replace("circulant-classifier-2", "circulant-classifier-99"))
    with pytest.raises(ValueError, match="newer"):
        CirculantClassifier.load(path)
    path.write_text(text[:40])
    with pytest.raises(ValueError):
        CirculantClassifier.load(path)


def test_data_frames(iris):
    X, y = iris
    names = ["a", "b", "c", "d"]
    expected = CirculantClassifier(steps=20, random_state=0).fit(X, y).predict_proba(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = CirculantClassifier(steps=20, random_state=0).fit(frame, y)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.predict_proba(frame), expected)
    other = pd.DataFrame(X, columns=["a", "b", "c", "x"])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(other)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    assert set(CirculantClassifier(steps=20).fit(X, words).predict(X)) <= set(words)


def test_memory_mapped_rows(iris, tmp_path):
    X, y = iris
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = CirculantClassifier(steps=20, random_state=0)
    np.testing.assert_array_equal(model.fit(mapped, y).predict(mapped), model.fit(X, y).predict(X))


def test_inside_the_tools_of_scikit_learn(iris):
    X, y = iris
    model = CirculantClassifier(steps=200, random_state=0)
    assert cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean() > 0.8
    search = GridSearchCV(model, {"depth": [1, 2]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.8
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    assert clone(model).get_params() == model.get_params()


def test_inside_mapie(iris):
    classification = pytest.importorskip("mapie.classification")
    X, y = iris
    model = CirculantClassifier(steps=100, random_state=0).fit(X[::2], y[::2])
    split = classification.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    _, sets = split.conformalize(X[1::4], y[1::4]).predict_set(X[3::4])
    assert sets[np.arange(len(sets)), y[3::4], 0].mean() > 0.75
    cross = classification.CrossConformalClassifier(model, confidence_level=0.9, cv=3)
    _, sets = cross.fit_conformalize(X, y).predict_set(X)
    assert sets[np.arange(150), y, 0].mean() > 0.8


def test_images():
    X, y = load_digits(return_X_y=True)
    for kind in ("auto", "spectral-bccb", "block-circulant", "bccb", "conv2d", "circulant", "dense"):
        for standardise in (False, True):
            model = CirculantClassifier(kind, image=(1, 8, 8), standardise=standardise, steps=60, random_state=0)
            assert model.fit(X / 16, y).score(X / 16, y) > 0.8, (kind, standardise)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="image"):
        CirculantClassifier(image=(1, 8, 9)).fit(X, y)


def test_sizes_are_chosen_or_given(iris):
    assert "held-out rows" in CirculantClassifier(steps=30, random_state=0).fit(*iris).model_
    for sizes in ({"depth": 2}, {"lift": 8}, {"modes": 3, "lift": 12}):
        model = CirculantClassifier(steps=30, random_state=0, **sizes).fit(*iris)
        assert "as the settings say" in model.model_ and model.n_steps_ == 30, sizes


def test_class_weights_are_sample_weights(iris):
    X, y = iris
    fit = lambda **others: CirculantClassifier(steps=30, random_state=0, **others)
    weighted = fit(class_weight={0: 2, 1: 1, 2: 0.5}).fit(X, y).predict_proba(X)
    expected = fit().fit(X, y, sample_weight=np.array([2, 1, 0.5])[y]).predict_proba(X)
    assert weighted.tobytes() == expected.tobytes()
    rare = np.r_[0:50, 50:55, 100:150]
    balanced, plain = (fit(class_weight=weight).fit(X[rare], y[rare]) for weight in ("balanced", None))
    assert balanced.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()


def test_settings_are_checked(iris):
    for settings in (
        {"model": "nothing"},
        {"model": 3},
        {"steps": 0},
        {"steps": -1},
        {"learning_rate": -1.0},
        {"learning_rate": "fast"},
        {"learning_rate": float("nan")},
        {"modes": 99},
        {"inference": "none"},
        {"slope": "steep"},
        {"rank": 0},
        {"random_state": -3},
        {"n_jobs": 10**9},
        {"width": 0},
        {"model": "spectral-circulant", "width": 3},
    ):
        with pytest.raises((ValueError, TypeError)):
            CirculantClassifier(**settings).fit(*iris)


# The first is stopped while it chooses a size, the second after that.
@pytest.mark.parametrize("steps", [10**7, 900])
def test_ctrl_c_stops_and_leaves_the_model_usable(iris, steps):
    X, y = iris
    model = CirculantClassifier(steps=steps, random_state=0)
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    # 0.2 s on a machine that does nothing else.
    assert time.monotonic() - sent[0] < 1.0
    assert model.n_steps_ > 0 and model.predict(X).shape == (150,)


def test_fits_in_threads_take_turns(iris):
    X, y = iris
    expected = CirculantClassifier(steps=20, random_state=0).fit(X, y).predict_proba(X)
    results = []
    work = lambda: results.append(CirculantClassifier(steps=20, random_state=0).fit(X, y).predict_proba(X))
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(results) == 4 and all((result == expected).all() for result in results)


def test_display(fitted, tmp_path, capsys, iris):
    html = fitted._repr_html_()
    assert "<svg" in html and "CirculantClassifier" in html and "Reliability" not in html
    assert "Reliability" in copy.copy(fitted).calibrate(*iris)._repr_html_()
    fitted.report(tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()[:200].lower()
    from circulant._progress import Progress

    progress = Progress("title")
    progress._begin -= 10
    progress(5, 10, 0.5)
    progress.close()
    assert "5/10" in capsys.readouterr().err
    CirculantClassifier(steps=5, verbose=1).fit(*iris)


def test_bad_rows(fitted, iris):
    X, y = iris
    for bad in (X[:, :0], X[:0], np.full_like(X, np.nan), np.full_like(X, np.inf), X[0], [["a"] * 4], X + 1j):
        with pytest.raises((ValueError, TypeError)):
            fitted.predict(bad)
        with pytest.raises((ValueError, TypeError)):
            CirculantClassifier(steps=5).fit(bad, y[: len(bad)])
    with pytest.raises(ValueError):
        fitted.predict(np.full_like(X, 1e300))
    with pytest.raises(ValueError, match="class"):
        CirculantClassifier().fit(X, np.zeros(len(X)))
    assert circulant.num_threads() >= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(X)
