#!/usr/bin/env python3
"""ONNX and dense exports of a run beside the program, in onnxruntime and torch.

    python3 bench/exports/check.py RUN DATA [--circulant target/release/circulant]

Needs numpy, onnxruntime, torch and safetensors (pip install numpy onnxruntime torch safetensors). DATA is an .npy file of
floats that the run's network takes as they are, `[n, channels, height, width]`. Eight networks averaged by onnxruntime must be
what `circulant predict --samples 8` says, and torch's dense layers what onnxruntime makes of the posterior's mean, to 1e-5.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch

TOLERANCE = 1e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("data", type=Path)
    parser.add_argument("--circulant", default=str(Path(__file__).resolve().parents[2] / "target/release/circulant"))
    arguments = parser.parse_args()
    x = np.load(arguments.data).astype(np.float32)
    x = x.reshape(len(x), -1)

    def program(*words):
        return subprocess.run([arguments.circulant, *map(str, words)], check=True, capture_output=True, text=True).stdout

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def onnx(samples):
            path = folder / f"{samples}.onnx"
            program("export", arguments.run, "--to", "onnx", "--samples", samples, "--out", path)
            return onnxruntime.InferenceSession(path).run(None, {"x": x})[0]

        lines = program("predict", arguments.run, "--data", arguments.data, "--samples", 8, "--json").splitlines()
        expected = np.array([json.loads(line)["probabilities"] for line in lines], np.float32)
        drawn = float(np.abs(onnx(8) - expected).max())
        print(f"onnxruntime, 8 networks, beside the program: {drawn:.2e}")
        program("export", arguments.run, "--to", "dense", "--out", folder / "dense")
        spec = importlib.util.spec_from_file_location("network", folder / "dense/network.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with torch.no_grad():
            dense = torch.softmax(module.network(torch.from_numpy(x)), 1).numpy()
        mean = float(np.abs(onnx(1) - dense).max())
        print(f"torch beside onnxruntime, the posterior's mean: {mean:.2e}")
    if max(drawn, mean) > TOLERANCE:
        sys.exit("differs by more than 1e-5")


if __name__ == "__main__":
    main()
