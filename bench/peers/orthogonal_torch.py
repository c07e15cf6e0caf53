"""Training steps of an orthogonal network (`circulant train --certified`) beside the same network of PyTorch: transform, Cayley transform per
frequency, gradients by autograd.

    python bench/peers/orthogonal_torch.py --program target/release/circulant --threads 1

First ours trains for a moment on drawn digits, PyTorch reads its parameters, and both must give the same classes and margins. Then both sides train in
turns: ours as the program does, with its own images, loss and Adan; PyTorch one batch again and again with its fused Adam, which has less to do. The ratio is
the best of PyTorch's variants over our best. One JSON line.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from pathlib import Path

RADIUS, OFFSET, TEMPERATURE, BATCH, CLASSES, SIDE = 0.3, 2.2, 0.1, 64, 10, 28
# Of a PyTorch measurement, after a fifth as many that warm up.
STEPS = 50
# Ours trains this many images of every epoch; the second epoch counts.
IMAGES, HELD_OUT = 100 * BATCH, 640
# Both compute in f32, ours with other transforms.
AGREE = 2e-4

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--program", type=Path, required=True)
arguments.add_argument("--threads", type=int, default=1)
arguments.add_argument("--rounds", type=int, default=5)
arguments.add_argument("--widths", default="16,16", help="channels of every stage")
arguments.add_argument("--kernel", type=int, default=3)
options = arguments.parse_args()
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

torch.set_num_threads(options.threads)
fft = torch.fft


class Convolution(torch.nn.Module):
    """`OrthogonalConv2d`: S and V are convolutions with small centred kernels."""

    def __init__(self, channels_in, channels_out, side, kernel, variant):
        super().__init__()
        self.n, self.q = max(channels_in, channels_out), min(channels_in, channels_out)
        self.wide, self.side, self.kernel, self.variant = channels_in > channels_out, side, kernel, variant
        q, taps = self.q, kernel * kernel
        places, signs, free = torch.zeros(q * q * taps, dtype=torch.long), torch.zeros(q * q * taps), 0
        for i in range(q):
            for j in range(q):
                for tap in range(taps):
                    own, mirrored = (i * q + j) * taps + tap, (j * q + i) * taps + taps - 1 - tap
                    if own < mirrored:
                        places[own] = places[mirrored] = free
                        signs[own], signs[mirrored] = 1.0, -1.0
                        free += 1
        self.free, self.places, self.signs = free, places, signs
        self.taps = torch.nn.Parameter(torch.zeros(free + (self.n - q) * q * taps))
        self.bias = torch.nn.Parameter(torch.zeros(channels_out))
        offsets = torch.tensor([(i - kernel // 2) % side for i in range(kernel)])
        self.pixels = (offsets.view(-1, 1) * side + offsets).flatten()

    def operator(self):
        """[H, W/2 + 1, C_out, C_in]"""
        n, q, side = self.n, self.q, self.side
        skew = (self.taps[: self.free][self.places] * self.signs).view(q, q, self.kernel**2)
        kernels = torch.cat((skew, self.taps[self.free :].view(n - q, q, self.kernel**2)))
        image = torch.zeros(n, q, side * side).index_copy(2, self.pixels, kernels)
        generators = fft.rfft2(image.view(n, q, side, side)).permute(2, 3, 0, 1)
        s, v = generators[..., :q, :], generators[..., q:, :]
        one = torch.eye(q, dtype=s.dtype)
        a = one + s + v.mH @ v
        m = torch.linalg.inv(a) if self.variant == "inverse" else torch.linalg.solve(a, one.expand_as(a))
        found = torch.cat((2 * m - one, -2 * v @ m), -2)
        return found.transpose(-1, -2) if self.wide else found

    def forward(self, x):
        spectrum = fft.rfft2(x).permute(2, 3, 1, 0)
        y = (self.operator() @ spectrum).permute(3, 2, 0, 1)
        return fft.irfft2(y, s=(self.side, self.side)) + self.bias.view(-1, 1, 1)


class Network(torch.nn.Module):
    def __init__(self, widths, kernel, variant):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        channels, side = 1, SIDE
        for width in widths:
            channels, side = 4 * channels, side // 2
            for _ in range(2):
                self.layers.append(Convolution(channels, width, side, kernel, variant))
                channels = width
        self.weight = torch.nn.Parameter(torch.zeros(channels * side * side, CLASSES))
        self.bias = torch.nn.Parameter(torch.zeros(CLASSES))

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            if index % 2 == 0:
                x = torch.nn.functional.pixel_unshuffle(x, 2)
            a, b = layer(x).chunk(2, 1)
            x = torch.cat((torch.maximum(a, b), torch.minimum(a, b)), 1)
        return x.flatten(1) @ (self.weight / self.weight.norm(dim=0)) + self.bias

    def read(self, folder):
        found = load_file(folder / "last.safetensors")
        with torch.no_grad():
            for index, layer in enumerate(self.layers):
                layer.taps.copy_(torch.from_numpy(found[f"layers.{index}.taps"]))
                layer.bias.copy_(torch.from_numpy(found[f"layers.{index}.bias"]))
            self.weight.copy_(torch.from_numpy(found["output.weight"]))
            self.bias.copy_(torch.from_numpy(found["output.bias"]))


def ours(*line):
    command = [options.program, "--threads", options.threads, *line]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


def train(folder):
    """Milliseconds per step of the second epoch."""
    ours(
        *("train", "--certified", RADIUS, "--data", "glyphs", "--first", IMAGES + HELD_OUT),
        *("--validation", HELD_OUT, "--epochs", 2, "--batch", BATCH, "--offset", OFFSET),
        *("--temperature", TEMPERATURE, "--widths", options.widths, "--kernel", options.kernel, "--out", folder),
    )
    first, second = map(json.loads, (folder / "epochs.jsonl").read_text().splitlines())
    return (second["seconds"] - first["seconds"]) / (IMAGES // BATCH) * 1e3


def difference(network, folder, images):
    """How far two sides' margins of the same images are apart, at most: the largest logit less the next."""
    network.read(folder)
    np.save(folder / "images.npy", images.numpy())
    ours("certify", folder, "--data", folder / "images.npy", "--predicted", "--out", folder / "rows.json")
    rows = json.loads((folder / "rows.json").read_text())["rows"]
    with torch.no_grad():
        largest, classes = network(images).topk(2)
    if [row["class"] for row in rows] != classes[:, 0].tolist():
        return math.inf
    expected = torch.tensor([row["margin"] for row in rows])
    return (largest[:, 0] - largest[:, 1] - expected).abs().max().item()


def stepper(network, images, labels):
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    offset = math.sqrt(2) * RADIUS * OFFSET * torch.nn.functional.one_hot(labels, CLASSES)

    def step():
        optimizer.zero_grad()
        logits = (network(images) - offset) / TEMPERATURE
        (torch.nn.functional.cross_entropy(logits, labels) * TEMPERATURE).backward()
        optimizer.step()

    return step


def measure(step):
    for _ in range(STEPS // 5):
        step()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - start) / STEPS * 1e3


def main():
    torch.manual_seed(0)
    widths = [int(width) for width in options.widths.split(",")]
    images, labels = torch.rand(BATCH, 1, SIDE, SIDE), torch.randint(CLASSES, (BATCH,))
    times = {"ours": []}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "first"
        train(folder)
        steps = {}
        for variant in ("inverse", "solve"):
            network = Network(widths, options.kernel, variant)
            gap = difference(network, folder, images)
            if not gap < AGREE:
                raise SystemExit(f"{variant}: margins differ by {gap:.1e}")
            steps[variant], times[variant] = stepper(network, images, labels), []
        for turn in range(options.rounds):
            times["ours"].append(train(Path(place) / f"turn-{turn}"))
            for variant, step in steps.items():
                times[variant].append(measure(step))
    best = {name: min(found) for name, found in times.items()}
    ratio = min(best[variant] for variant in steps) / best["ours"]
    print(json.dumps({"threads": options.threads, "widths": options.widths, "ms": best, "ratio": ratio, "gap": gap, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
