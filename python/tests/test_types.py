"""Types: the examples under mypy's strictest rules, the stubs of the engine against the engine, and pages that are up to date."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1]
EXAMPLES = sorted((PYTHON / "examples").glob("*.py"))


def run(*arguments, **variables):
    environment = os.environ | {"PYTHONPATH": str(PYTHON), "MYPYPATH": str(PYTHON)} | variables
    return subprocess.run([sys.executable, *arguments], cwd=PYTHON, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path):
    done = run(str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_are_typed(tmp_path):
    pytest.importorskip("mypy")
    flags = ["--strict", "--follow-imports=silent", "--config-file=", "--cache-dir", str(tmp_path)]
    done = run("-m", "mypy", *flags, *map(str, EXAMPLES))
    assert done.returncode == 0, done.stdout


def test_stubs_are_the_engine(tmp_path):
    pytest.importorskip("mypy")
    done = run("-m", "mypy.stubtest", "circulant._engine", MYPY_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stdout


def test_pages_are_those_of_the_docstrings():
    done = run("pages.py", "--check")
    assert done.returncode == 0, done.stdout
