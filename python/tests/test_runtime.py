"""Threads, forks and imports."""

import os
import subprocess
import sys
import threading

import circulant
import numpy as np
import pytest
from circulant import functional as F


def big():
    return F.circulant(np.ones((512, 784)), np.ones(784))


def test_results_do_not_depend_on_threads():
    x, a = np.random.default_rng(0).normal(size=(100, 784)), np.random.default_rng(1).normal(size=784)
    results = []
    for threads in [1, 2, 3, 0]:
        circulant.set_num_threads(threads)
        results.append(F.circulant_gradients(x, a, x).coordinates.tobytes())
    assert len(set(results)) == 1
    assert 1 <= circulant.num_threads() <= os.cpu_count()
    with pytest.raises(ValueError, match="threads"):
        circulant.set_num_threads(10**6)
    with pytest.raises(OverflowError):
        circulant.set_num_threads(-1)


def test_python_threads_run_at_the_same_time():
    results = [None] * 8

    def work(index):
        results[index] = big().sum()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_after_threads_were_started():
    expected = big().sum()
    child = os.fork()
    if child == 0:
        os._exit(0 if big().sum() == expected else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_importing_loads_nothing_large():
    code = "import sys, circulant; print([m for m in ('sklearn', 'torch', 'pandas', 'scipy') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
