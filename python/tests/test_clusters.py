"""The estimators on clusters: searches through joblib, predictions of ten million rows by partitions, with Dask and with Ray.

Whoever has neither skips this: ``pip install 'dask[array,distributed]' 'ray[data]'``, then
``CIRCULANT_VENV=VENV python/test.sh tests/test_clusters.py``.
"""

import joblib
import numpy as np
import pytest
from circulant import CirculantClassifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

ROWS = 10_000_000
PARTITION = 250_000
#: Of one worker, with its interpreter and libraries; the rows alone are 320 MB of float64, their probabilities 240.
MEMORY = 700 * 2**20


@pytest.fixture(scope="module")
def search():
    grid = {"kl_weight": [0.1, 1.0], "lift": [8, 16]}
    return GridSearchCV(CirculantClassifier(steps=40, n_jobs=1, random_state=0), grid, cv=2)


@pytest.fixture(scope="module")
def expected(search):
    return search.fit(*load_iris(return_X_y=True)).cv_results_["mean_test_score"]


@pytest.fixture(scope="module")
def model():
    X, y = load_iris(return_X_y=True)
    return CirculantClassifier(steps=100, lift=8, prediction_samples=4, n_jobs=1, random_state=0).fit(X, y)


@pytest.fixture
def peak():
    """The largest memory of the process that calls it, in bytes; travels by value, since workers do not have this module."""

    def of_this_process():
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    return of_this_process


def test_dask(search, expected, model, peak):
    distributed = pytest.importorskip("distributed")
    array = pytest.importorskip("dask.array")
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        with joblib.parallel_config("dask"):
            found = search.fit(*load_iris(return_X_y=True)).cv_results_["mean_test_score"]
        np.testing.assert_array_equal(found, expected)

        rows = array.random.default_rng(0).normal(4.0, 2.0, (ROWS, 4), chunks=(PARTITION, 4))
        probabilities = rows.map_blocks(model.predict_proba, chunks=(PARTITION, 3), dtype=np.float64, meta=np.empty((0, 0)))
        mean = probabilities.mean(axis=0).compute()
        assert mean.sum() == pytest.approx(1.0) and (mean > 0).all()
        part = rows.partitions[3][:100].compute()
        # Rows share the rounding of those beside them.
        np.testing.assert_allclose(probabilities.partitions[3][:100].compute(), model.predict_proba(part), atol=1e-6)
        peaks = client.run(peak)
        assert len(peaks) == 2 and max(peaks.values()) < MEMORY, peaks


def test_ray(search, expected, model, peak):
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            found = search.fit(*load_iris(return_X_y=True)).cv_results_["mean_test_score"]
        np.testing.assert_array_equal(found, expected)

        class Predict:
            """One per worker, with the model."""

            def __init__(self, model):
                self.model = model

            def __call__(self, batch):
                rows = np.random.default_rng(batch["id"][0]).normal(4.0, 2.0, (len(batch["id"]), 4))
                probabilities = self.model.predict_proba(rows)
                sums = probabilities.sum(axis=0, keepdims=True)
                return {"rows": [len(rows)], "sums": sums, "peak": [peak()]}

        blocks = ray.data.range(ROWS, override_num_blocks=ROWS // PARTITION)
        parts = blocks.map_batches(
            Predict, fn_constructor_args=(model,), batch_size=PARTITION, compute=ray.data.ActorPoolStrategy(size=2), num_cpus=0.5
        ).take_all()
        assert sum(part["rows"] for part in parts) == ROWS
        mean = sum(part["sums"] for part in parts) / ROWS
        assert mean.sum() == pytest.approx(1.0) and (mean > 0).all()
        assert max(part["peak"] for part in parts) < MEMORY, parts
    finally:
        ray.shutdown()
