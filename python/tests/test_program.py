"""The program in the package, data sets and experiments."""

import json
import subprocess
import sys

import numpy as np
import pytest
from circulant import CirculantClassifier, datasets, reproduce


def program(*arguments, **others):
    return subprocess.run([sys.executable, "-m", "circulant", *arguments], capture_output=True, text=True, **others)


def test_python_m_circulant_is_the_program():
    done = program("params")
    assert done.returncode == 0 and "spectral" in done.stdout
    assert program("--help").returncode == 0
    wrong = program("nothing")
    assert wrong.returncode == 2 and "nothing" in wrong.stderr


def test_runs_of_the_program_and_of_python_are_the_same_files(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)).astype(np.float32), rng.integers(0, 3, 200)
    X[:, 0] += y
    np.savez(tmp_path / "table.npz", x=X, y=y)
    images = ["--data", "glyphs", "--first", "200"]
    done = program("train", *images, "--steps", "30", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    model = CirculantClassifier.load(tmp_path / "run")
    assert model.predict_proba(np.zeros((3, 784))).shape == (3, 10) and model.n_features_in_ == 784
    arguments = ["--data", str(tmp_path / "table.npz"), "--input-name", "x", "--label-name", "y"]
    ours = CirculantClassifier(steps=30, random_state=0).fit(X, y)
    ours.save(tmp_path / "ours.json")
    done = program("predict", str(tmp_path / "ours.json"), *arguments, "--json", "--samples", "50", "--seed", "0")
    assert done.returncode == 0, done.stderr
    theirs = [json.loads(line)["probabilities"] for line in done.stdout.splitlines()]
    np.testing.assert_allclose(theirs, ours.predict_proba(X), atol=2e-6)


def test_data_sets():
    assert "mnist" in datasets.names()
    drawn = datasets.load("shapes", "test", random_state=1)
    assert drawn.images.shape == (10_000, 1, 28, 28) and drawn.rows.base is not None
    assert len(drawn.labels) == 10_000 and len(drawn.class_names) == 10
    with pytest.raises(ValueError, match="expected one of"):
        datasets.load("nothing")
    with pytest.raises(ValueError, match="split"):
        datasets.load("mnist", "middle")


def test_reproduce_names_its_experiments(tmp_path):
    with pytest.raises(ValueError, match="experiment"):
        reproduce("nothing", out=tmp_path)
    with pytest.raises(RuntimeError, match="exit code 2"):
        reproduce("mnist", "--nonsense", out=tmp_path)
