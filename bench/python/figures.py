"""The figures of the Python package, as ratios within one run: imports, fits beside the program and beside others, the torch layer,
the latency of one row.

    python bench/python/figures.py                      # all; an engine of the release profile, a quiet machine
    python bench/python/figures.py --only latency import
    python bench/python/figures.py --quick              # few steps and rows: whether everything runs
    python bench/python/figures.py --json figures.json

What needs a package that is missing (scikit-learn, torch, numpyro) or data that cannot be fetched is left out, and says so.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peers
from circulant import CirculantClassifier, _engine, datasets, metrics

PROGRAM = [sys.executable, "-m", "circulant"]


def best(function, rounds):
    """The shortest time of a call in seconds, after one that does not count."""
    function()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times)


def alternating(functions, rounds):
    """The shortest times of several calls, alternating; who comes first changes, since everyone finds the caches of the one before."""
    times = {name: [] for name in functions}
    names = list(functions)
    for turn in range(rounds + 1):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            function = functions[name]
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: min(found[1:]) for name, found in times.items()}


def has(name):
    found = importlib.util.find_spec(name) is not None
    if not found:
        print(f"  {name} is not installed: left out")
    return found


def import_times(options):
    """A process that imports, beside one that does not."""
    run = lambda code: lambda: subprocess.run([sys.executable, "-c", code], check=True)
    functions = {"nothing": run("pass"), "numpy": run("import numpy"), "circulant": run("import circulant")}
    times = alternating(functions, 3 if options.quick else 15)
    own = times["circulant"] - times["nothing"]
    print(f"  circulant {own:.3f} s (numpy, which it loads when it is used, {times['numpy'] - times['nothing']:.3f} s)")
    return {"import_s": own, "import_of_numpy_s": times["numpy"] - times["nothing"]}


def beside_the_program(options):
    """`fit` in Python beside `circulant train` on the same rows, which reads them and writes its run too."""
    from sklearn.datasets import load_digits

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder, count = Path(folder), iter(range(10**6))
        X, y = load_digits(return_X_y=True)
        np.savez(folder / "digits.npz", x=X.astype(np.float32), y=y)
        steps = "60" if options.quick else "3000"
        digits = f"import numpy; a = numpy.load({str(folder / 'digits.npz')!r}); X, y = a['x'], a['y']"
        flags = ["--data", str(folder / "digits.npz"), "--steps", steps]
        cases = {"digits": (digits, f"steps={steps}", flags)}
        try:
            datasets.load("mnist")
            steps = "20" if options.quick else "1000"
            load = "from circulant import datasets; d = datasets.load('mnist'); X, y = d.rows, d.labels; X = X / numpy.float32(255)"
            fit = f"'spectral-circulant', image=(1, 28, 28), standardise=False, steps={steps}"
            cases["mnist"] = (f"import numpy; {load}", fit, ["--data", "mnist", "--steps", steps])
        except OSError as error:
            print(f"  MNIST cannot be fetched: left out ({error})")
        for name, (load, fit, flags) in cases.items():
            space = {}
            exec(f"{load}; from circulant import CirculantClassifier; m = CirculantClassifier({fit}, random_state=0)", space)
            python = lambda: space["m"].fit(space["X"], space["y"])
            train = lambda: subprocess.run(
                [*PROGRAM, "train", *flags, "--out", str(folder / f"run{next(count)}")], check=True, capture_output=True
            )
            times = alternating({"python": python, "program": train}, 1 if options.quick else 5)
            ratio = times["python"] / times["program"]
            print(f"  {name}: fit {times['python']:.2f} s, program {times['program']:.2f} s, ratio {ratio:.3f}")
            found[name] = {"fit_s": times["python"], "program_s": times["program"], "ratio": ratio}
    return found


def beside_others(options):
    """Digits, 40 % held out: accuracy, log loss and seconds of a fit."""
    from sklearn.datasets import load_digits
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    if options.quick:
        train, y_train = train[:200], y_train[:200]
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    steps = 60 if options.quick else 3000
    ours = {"steps": 60} if options.quick else {}
    same = dict(classes=10, width=16, steps=steps, batch=128)
    fits = {
        "CirculantClassifier": lambda: CirculantClassifier(random_state=0, **ours).fit(train, y_train).predict_proba,
        "the same, lift=16": lambda: CirculantClassifier(lift=16, random_state=0, **ours).fit(train, y_train).predict_proba,
        "MLPClassifier": lambda: MLPClassifier(random_state=0).fit(train, y_train).predict_proba,
        "GaussianProcessClassifier": lambda: GaussianProcessClassifier(random_state=0).fit(train, y_train).predict_proba,
    }
    if has("torch"):
        fits["torch, same model"] = lambda: peers.fit_torch(train, y_train, **same)
    if has("numpyro"):
        fits["NumPyro SVI, same model"] = lambda: peers.fit_numpyro(train, y_train, **same)
    found = {}
    for name, fit in fits.items():
        start = time.perf_counter()
        predict = fit()
        seconds = time.perf_counter() - start
        p = np.clip(predict(test), 1e-30, None)
        p /= p.sum(axis=1, keepdims=True)
        report = metrics.classification_report(y_test, p)
        print(f"  {name:26} accuracy {report.accuracy:.4f}  log loss {report.nll:.4f}  ECE {report.ece:.4f}  fit {seconds:7.2f} s")
        found[name] = {"accuracy": report.accuracy, "nll": report.nll, "ece": report.ece, "fit_s": seconds}
    return found


def torch_layers(options):
    """Forward and backward through autograd, beside the bare kernel and torch's own FFT."""
    if not has("torch"):
        return {}
    import torch
    from circulant.torch import BlockCirculant1d, SpectralCirculant1d

    found = {}
    cases = {
        "512 x 784": (SpectralCirculant1d(784), (512, 784), _engine.Operator.signal(784)),
        "8320 x 128 -> 512": (BlockCirculant1d(128, 512, block=16), (8320, 128), _engine.Operator.image(1, 16, 8, 32, 1.0)),
    }
    for name, (layer, shape, operator) in cases.items():
        x = torch.randn(shape, requires_grad=True)
        y = layer(x)
        g = torch.randn_like(y)

        def ours():
            torch.autograd.grad(layer(x), [x, *layer.parameters()], g)

        coordinates = layer.coordinates.detach().numpy().reshape(-1)
        bias = layer.bias.detach().numpy()
        inputs, upstream = x.detach().numpy(), g.numpy()
        outputs, of_x = np.empty_like(upstream), np.empty_like(inputs)
        of_coordinates, of_bias = np.empty_like(coordinates), np.empty_like(bias)

        def bare():
            operator.forward(inputs, coordinates, bias, False, outputs)
            operator.backward(inputs, coordinates, bias, False, None, upstream, of_x, of_coordinates, of_bias)

        if "784" in name:
            spectrum = torch.fft.rfft(torch.randn(784)).detach().requires_grad_()
            forward = lambda: torch.fft.irfft(torch.fft.rfft(x) * spectrum, n=784)
        else:
            spectrum = torch.fft.rfft(torch.randn(32, 8, 16)).detach().requires_grad_()

            def forward():
                blocks = torch.fft.rfft(x.reshape(-1, 8, 16))
                return torch.fft.irfft(torch.einsum("bck,ock->bok", blocks, spectrum), n=16).reshape(len(x), -1)

        def fft():
            torch.autograd.grad(forward(), [x, spectrum], g)

        times = alternating({"layer": ours, "kernel": bare, "torch.fft": fft}, 5 if options.quick else 50)
        ratio, gain = times["layer"] / times["kernel"], times["torch.fft"] / times["layer"]
        shown = ", ".join(f"{what} {1e3 * seconds:.3f} ms" for what, seconds in times.items())
        print(f"  {name}: {shown}; layer/kernel {ratio:.2f}, torch.fft/layer {gain:.2f}")
        found[name] = {f"{what}_s": seconds for what, seconds in times.items()} | {"layer_to_kernel": ratio, "fft_to_layer": gain}
    return found


def latency(options):
    """The probabilities of one row."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    models = {
        "CirculantClassifier, 50 samples": CirculantClassifier(steps=60, random_state=0).fit(X, y),
        "the same, inference='point'": CirculantClassifier(steps=60, inference="point", random_state=0).fit(X, y),
        "MLPClassifier": MLPClassifier(max_iter=20, random_state=0).fit(X, y),
    }
    found = {}
    for name, model in models.items():
        shortest, median = best(lambda: model.predict_proba(X[:1]), 50 if options.quick else 1000)
        print(f"  {name:32} {1e6 * shortest:8.0f} us, median {1e6 * median:.0f} us")
        found[name] = {"best_us": 1e6 * shortest, "median_us": 1e6 * median}
    return found


PARTS = {
    "import": import_times,
    "program": beside_the_program,
    "peers": beside_others,
    "torch": torch_layers,
    "latency": latency,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="few steps and rows: whether everything runs")
    parser.add_argument("--json", type=Path, help="the same as a file")
    options = parser.parse_args()
    found = {}
    for name in options.only:
        print(f"{name}: {PARTS[name].__doc__.splitlines()[0]}", flush=True)
        found[name] = PARTS[name](options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore", module="sklearn")
    main()
