"""The paper's experiments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["reproduce"]


def reproduce(experiment: str, *flags: str, out: str | os.PathLike[str]) -> dict[str, Any]:
    """Repeat one of the paper's experiments: ``circulant reproduce``, in a process of its own.

    Parameters
    ----------
    experiment : 'mnist', 'heads' or 'vit'
    *flags : str
        Of the program, for example ``"--steps", "100"``; ``python -m circulant reproduce mnist --help`` names them.
    out : path
        The folder for runs, results and report. What is there already is not repeated.

    Returns
    -------
    dict
        ``results.json`` of the folder.
    """
    if experiment not in ("mnist", "heads", "vit"):
        raise ValueError(f"experiment: expected 'mnist', 'heads' or 'vit', got {experiment!r}")
    arguments = ["reproduce", experiment, *map(str, flags), "--out", os.fspath(out)]
    done = subprocess.run([sys.executable, "-m", "circulant", *arguments])
    if done.returncode != 0:
        raise RuntimeError(f"circulant {' '.join(arguments)} failed with exit code {done.returncode}")
    results: dict[str, Any] = json.loads(Path(out, "results.json").read_text())
    return results
