#!/usr/bin/env python3
"""Flash, RAM and instructions per input of a network on a Cortex-M4F in QEMU, beside dense int8 perceptrons; and of the same
network as code of a Cortex-M0+, which has no unit for floats (the M4 runs it, instruction by instruction the same).

    python3 bench/microcontroller/measure.py RUN... [--circulant target/release/circulant] [--images 1000]

RUN is a run of 28 x 28 images in ten classes that `circulant train --data mnist` made; the perceptrons are as accurate as
the first one. Needs numpy, arm-none-eabi-gcc and
qemu-system-arm (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm), and a Rust target (rustup's, or what
tools/rustc-with-source.sh makes). Everything is checked: the device must give the classes and probabilities that the
exported model gives on this machine.
"""

import argparse
import gzip
import json
import os
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np

from target import M0, M4F, ROOT, run, rust_target

HERE = Path(__file__).resolve().parent
QEMU = ["-nographic", "-monitor", "none", "-serial", "none", "-M", "mps2-an386", "-icount", "shift=0"]
QEMU += ["-semihosting-config", "enable=on,target=native"]
INSTRUCTIONS_PER_TICK = 40  # one per nanosecond of virtual time, 25 MHz


def idx(path):
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    sides = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(sides)


def mnist(cache):
    def find(name):
        found = sorted(cache.glob(f"mnist/**/{name}*"))
        if not found:
            sys.exit(f"{cache} has no MNIST; fetch it with `circulant data fetch mnist`")
        return idx(found[0])

    return [find(f"{part}-{kind}") for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def build_rust(model, memory, samples, folder, target=M4F, integers=False):
    """The program that draws so many networks, or with none of them computes moments."""
    variables, flags = rust_target(target, folder)
    env = dict(os.environ, MODEL=str(model), MEMORY=str(memory), SAMPLES=str(max(samples, 1)), CARGO_TARGET_DIR=str(folder), **variables)
    command = ["cargo", "build", "--release", "--manifest-path", HERE / "Cargo.toml", *flags]
    features = ["fixed"] * integers + ["moments"] * (samples == 0)
    command += ["--features", ",".join(features)] if features else []
    run(command, env=env)
    return folder / target / "release/circulant-microcontroller"


def simulate(elf, images, folder):
    """Sizes, answers and instructions of a program."""
    sections = {}
    for line in run(["arm-none-eabi-size", "-A", elf]).splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[0].startswith("."):
            sections[parts[0]] = int(parts[1])
    flash = sum(sections.get(name, 0) for name in (".vector_table", ".text", ".rodata", ".data", ".ARM.exidx"))
    static = sections.get(".data", 0) + sections.get(".bss", 0)
    (folder / "images.bin").write_bytes(images.tobytes())
    run(["qemu-system-arm", *QEMU, "-kernel", elf], cwd=folder, timeout=1200)
    raw = (folder / "predictions.bin").read_bytes()
    words = np.frombuffer(raw[:-4], np.uint32).reshape(-1, 14)
    assert len(words) == len(images), (len(words), len(images))
    stack = struct.unpack("<I", raw[-4:])[0]
    return {
        "flash": flash,
        "static": static,
        "stack": stack,
        "instructions": float(words[:, 13].mean() * INSTRUCTIONS_PER_TICK),
        "classes": words[:, 0].astype(int),
        "numbers": words[:, 1:13].copy().view(np.float32),
    }


def perceptron(images, labels, width, seed, epochs=12):
    """784 - width - 10 with relu, by Adam on cross-entropy."""
    random = np.random.default_rng(seed)
    x = images.reshape(-1, 784).astype(np.float32) / 255
    p = [random.normal(0, (2 / 784) ** 0.5, (784, width)), np.zeros(width)]
    p += [random.normal(0, (1 / width) ** 0.5, (width, 10)), np.zeros(10)]
    p = [part.astype(np.float32) for part in p]
    m, v = [np.zeros_like(q) for q in p], [np.zeros_like(q) for q in p]
    step = 0
    for epoch in range(epochs):
        order = random.permutation(len(x))
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        for start in range(0, len(x), 128):
            part = order[start : start + 128]
            a, t = x[part], labels[part]
            h = np.maximum(a @ p[0] + p[1], 0)
            z = h @ p[2] + p[3]
            e = np.exp(z - z.max(1, keepdims=True))
            g = e / e.sum(1, keepdims=True)
            g[np.arange(len(t)), t] -= 1
            g /= len(t)
            gh = (g @ p[2].T) * (h > 0)
            step += 1
            for i, d in enumerate([a.T @ gh, gh.sum(0), h.T @ g, g.sum(0)]):
                m[i] = 0.9 * m[i] + 0.1 * d
                v[i] = 0.999 * v[i] + 0.001 * d * d
                p[i] -= rate * (m[i] / (1 - 0.9**step)) / (np.sqrt(v[i] / (1 - 0.999**step)) + 1e-8)
    return p


def quantised(p, images):
    """int8 weights, scales per layer, the hidden layer's range from training images."""
    w1, b1, w2, b2 = p
    s1, s2 = np.abs(w1).max() / 127, np.abs(w2).max() / 127
    h = np.maximum(images[:2000].reshape(-1, 784) / 255 @ w1 + b1, 0)
    sh = np.quantile(h, 0.9995) / 127
    return {
        "w1": np.round(w1.T / s1).astype(int), "b1": np.round(b1 / (s1 / 255)).astype(int),
        "multiplier": int(round(s1 / 255 / sh * 2**31)),
        "w2": np.round(w2.T / s2).astype(int), "b2": np.round(b2 / (s2 * sh)).astype(int), "scale": s2 * sh,
    }


def accuracy_of(member, images, labels):
    x = images.reshape(-1, 784).astype(np.int64)
    h = np.clip(((x @ member["w1"].T + member["b1"]) * member["multiplier"]) >> 31, 0, 127)
    return float(((h @ member["w2"].T + member["b2"]).argmax(1) == labels).mean())


def header(members, width):
    def array(kind, name, values, shape):
        text = str(np.array(values).tolist()).replace("[", "{").replace("]", "}")
        return f"static const {kind} {name}{shape} = {text};\n"

    n = len(members)
    text = f"#define HIDDEN {width}\n#define MEMBERS {n}\n"
    text += array("int8_t", "first_weights", [m["w1"] for m in members], f"[{n}][{width}][784]")
    text += array("int32_t", "first_bias", [m["b1"] for m in members], f"[{n}][{width}]")
    text += array("int32_t", "first_multiplier", [m["multiplier"] for m in members], f"[{n}]")
    text += array("int8_t", "second_weights", [m["w2"] for m in members], f"[{n}][10][{width}]")
    text += array("int32_t", "second_bias", [m["b2"] for m in members], f"[{n}][10]")
    return text + array("float", "second_scale", [m["scale"] for m in members], f"[{n}]")


def build_c(members, width, folder):
    folder.mkdir(exist_ok=True)
    (folder / "weights.h").write_text(header(members, width))
    elf = folder / "dense.elf"
    flags = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2 -std=c99 -Wall -ffunction-sections -nostartfiles"
    extra = os.environ.get("ARM_GCC_FLAGS", "").split()
    run(["arm-none-eabi-gcc", *flags.split(), *extra, "-Wl,--gc-sections", "-T", HERE / "dense/link.ld", "-I", folder,
         HERE / "dense/main.c", "-o", elf, "-lm"])
    return elf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--circulant", type=Path, default=ROOT / "target/release/circulant")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=12, help="of the perceptrons")
    parser.add_argument("--quantise", default="int8")
    parser.add_argument("--target-dir", type=Path, default=ROOT / "target/microcontroller")
    parser.add_argument("--cache", type=Path, default=Path(os.environ.get("CIRCULANT_CACHE", "~/.cache/circulant")).expanduser())
    arguments = parser.parse_args()
    train, train_labels, test, test_labels = mnist(arguments.cache)
    images = test[: arguments.images]
    labels = test_labels[: arguments.images].astype(int)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        goal = None
        for run_folder in arguments.runs:
            model = folder / "model.circ"
            exported = json.loads(run([arguments.circulant, "export", run_folder, "--to", "edge", "--quantise", arguments.quantise,
                                       "--out", model, "--json", "--data", "mnist", "--first", arguments.images]))
            sums = next(r for r in exported["rows"] if "sums" in r["name"])
            goal = goal or sums["accuracy"]
            ways = [(samples, M4F, False) for samples in (1, 8, 32, 0)]
            # The simulation of floats in software takes minutes.
            if not rows:
                ways += [(8, M4F, True), (8, M0, False), (8, M0, True)]
            for samples, target, integers in ways:
                elf = build_rust(model, exported["memory_for_sums"], samples, arguments.target_dir, target, integers)
                found = simulate(elf, images, folder)
                found["name"] = f"{run_folder.name}, " + (f"S = {samples}" if samples else "moments")
                found["name"] += (", integers" if integers else "") + (", Cortex-M0+" if target == M0 else "")
                rows.append(found)
                accuracy = float((found["classes"] == labels).mean())
                print(found["name"], {k: v for k, v in found.items() if k in ("flash", "static", "stack", "instructions")},
                      "accuracy", accuracy, flush=True)
                # What the export computed on this machine; integers may decide one or two images otherwise.
                if samples == 8:
                    assert abs(accuracy - sums["accuracy"]) < (5e-3 if integers else 2e-3), sums
        # The narrowest perceptron that is as accurate on these images as the network is.
        for width in (6, 8, 10, 12, 14, 16, 20, 24, 32):
            member = quantised(perceptron(train, train_labels, width, 0, arguments.epochs), train)
            reached = accuracy_of(member, images, labels)
            print("perceptron", width, reached, flush=True)
            if reached >= goal:
                break
        members = [member] + [quantised(perceptron(train, train_labels, width, seed, arguments.epochs), train) for seed in range(1, 5)]
        for count in (1, 5):
            found = simulate(build_c(members[:count], width, folder / f"c{count}"), images, folder)
            found["name"] = f"dense int8, 784 - {width} - 10" + (", 5 members" if count == 5 else "")
            rows.append(found)
    print("| program | accuracy | flash | static RAM | deepest stack | instructions per input |\n| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        accuracy = (row["classes"] == labels).mean()
        print(f"| {row['name']} | {accuracy:.3f} | {row['flash']:,} | {row['static']:,} | {row['stack']:,} | {row['instructions']:,.0f} |")


if __name__ == "__main__":
    main()
