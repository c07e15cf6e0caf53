#!/usr/bin/env python3
"""What more ranks bring: measured with two, simulated for up to 64. Standard library and `mpirun` only.

    python3 bench/mpi/scaling.py                   build, measure (some minutes on a quiet machine), write docs/scaling.svg
    python3 bench/mpi/scaling.py --results FILE    draw results that were kept
    python3 bench/mpi/scaling.py --keep FILE       keep the results

Measured, on this machine: steps of the MNIST models (batch 4096), of the vision transformer (batch 128), and predictions, with two ranks
of one thread and with one rank of two, alternating; the share of a step that is communication; and steps of one thread on the share
of a batch that one of R ranks has.

Simulated, a step of R ranks: the step of one share, the communication of two ranks here (copies, handing over to the thread that talks,
waiting for the slower one), and the network's part by the usual model of an all-reduce of S bytes (Rabenseifner's):

    2 log2(R) latency + 2 (R - 1)/R S/bandwidth
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Name, seconds of latency, bytes per second, colour.
NETWORKS = [
    ("100 Gbit/s, 5 us", 5e-6, 100e9 / 8, "#15803d"),
    ("100 Gbit/s, 50 us", 50e-6, 100e9 / 8, "#60a5fa"),
    ("10 Gbit/s, 5 us", 5e-6, 10e9 / 8, "#fb923c"),
    ("10 Gbit/s, 50 us", 50e-6, 10e9 / 8, "#c2410c"),
]
# Cases that are simulated, and the sizes of their whole batches.
SIMULATED = {"spectral-bccb": 4096, "dense": 4096, "vit": 128}
RANKS = [1, 2, 4, 8, 16, 32, 64]
ROUNDS = 3
WIDTH, HEIGHT, LEFT, TOP, GAP = 260, 300, 46, 84, 40


def built():
    """The path of the benchmark."""
    command = ["cargo", "bench", "--workspace", "--features", "mpi", "--bench", "scaling", "--no-run", "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message["target"]["name"] == "scaling":
            return message["executable"]
    sys.exit("error: the benchmark cannot be built; it needs Open MPI with its headers and libclang")


def run(program, ranks, threads, *flags):
    """The lines of JSON of a run."""
    command = [*MPIRUN, "-n", str(ranks), program, "--threads", str(threads), *map(str, flags)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed; see its message above")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for line in found:
        print(json.dumps(line), file=sys.stderr, flush=True)
    return found


def measure(program):
    rounds = [{shape: run(program, *shape) for shape in [(2, 1), (1, 2)]} for _ in range(ROUNDS)]
    shares = {
        case: [[size, run(program, 1, 1, "--case", case, "--batch", max(batch // size, 1), "--steps", 30)[0]["step_ms"]] for size in RANKS]
        for case, batch in SIMULATED.items()
    }
    cases = []
    for index, first in enumerate(rounds[0][2, 1]):
        of = lambda shape, key: [measured[shape][index][key] for measured in rounds]
        cases.append(
            {
                "case": first["case"],
                "ranks_ms": min(of((2, 1), "step_ms")),
                "sums_ms": min(of((2, 1), "sums_ms")),
                "threads_ms": min(of((1, 2), "step_ms")),
                # Of each round, which has both beside each other.
                "ratio": statistics.median(a / b for a, b in zip(of((2, 1), "step_ms"), of((1, 2), "step_ms"))),
                "bytes": first["bytes"],
            }
        )
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return {"machine": f"{processor}, {os.cpu_count()} cores", "cases": cases, "shares": shares}


def simulated(results, case, network):
    """How many times faster R ranks are than one, for every R."""
    _, latency, bandwidth, _ = network
    shares = dict(map(tuple, results["shares"][case]))
    measured = next(line for line in results["cases"] if line["case"] == case)
    speeds = []
    for ranks in RANKS:
        step = shares[ranks] * 1e-3
        if ranks > 1:
            step += measured["sums_ms"] * 1e-3
            step += 2 * math.log2(ranks) * latency + 2 * (ranks - 1) / ranks * measured["bytes"] / bandwidth
        speeds.append(shares[1] * 1e-3 / step)
    return speeds


def svg(results):
    height, width = TOP + HEIGHT + 50, LEFT + len(SIMULATED) * (WIDTH + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<text x="12" y="24" font-size="16">Steps of R ranks of one thread, simulated from measured parts</text>',
        f'<text x="12" y="44" fill="#555">{escape(results["machine"])}; the whole batch is the same for every R</text>',
    ]
    for index, (name, _, _, colour) in enumerate(NETWORKS):
        x = 12 + 150 * index
        out.append(f'<rect x="{x}" y="54" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="64">{name}</text>')
    place = lambda value, length: math.log2(value) / math.log2(RANKS[-1]) * length
    for panel, (case, batch) in enumerate(SIMULATED.items()):
        left = LEFT + panel * (WIDTH + GAP)
        x = lambda ranks: left + place(ranks, WIDTH)
        y = lambda speed: TOP + HEIGHT - place(max(speed, 1), HEIGHT)
        out.append(f'<text x="{left}" y="{TOP - 4}" font-weight="bold">{case}, batch {batch}</text>')
        for ranks in RANKS:
            out.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y(ranks):.1f}" y2="{y(ranks):.1f}" stroke="#ddd"/>')
            out.append(f'<text x="{left - 6}" y="{y(ranks) + 4:.1f}" text-anchor="end">{ranks}</text>')
            out.append(f'<text x="{x(ranks):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{ranks}</text>')
        out.append(f'<line x1="{x(1)}" y1="{y(1)}" x2="{x(64)}" y2="{y(64)}" stroke="#555" stroke-dasharray="3 3"/>')
        for network in NETWORKS:
            points = " ".join(f"{x(r):.1f},{y(s):.1f}" for r, s in zip(RANKS, simulated(results, case, network)))
            out.append(f'<polyline points="{points}" fill="none" stroke="{network[3]}" stroke-width="2"/>')
        out.append(f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">ranks (dashed: R times as fast)</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def tables(results):
    """As in docs/scaling.md."""
    lines = [
        "| case | 2 ranks x 1 thread | of it communication | 1 rank x 2 threads | ratio | bytes summed |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in results["cases"]:
        lines.append(
            f"| {line['case']} | {line['ranks_ms']:.2f} ms | {line['sums_ms']:.2f} ms | {line['threads_ms']:.2f} ms "
            f"| {line['ratio']:.2f} | {line['bytes']:,} |"
        )
    chosen = [8, 64]
    header = " | ".join(f"{case}, {ranks} ranks" for case in SIMULATED for ranks in chosen)
    lines += ["", f"| network | {header} |", "| --- " + "| ---: " * len(SIMULATED) * len(chosen) + "|"]
    for network in NETWORKS:
        speeds = [simulated(results, case, network)[RANKS.index(ranks)] for case in SIMULATED for ranks in chosen]
        lines.append(f"| {network[0]} | " + " | ".join(f"{speed:.1f}" for speed in speeds) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, help="draw these results instead of measuring")
    parser.add_argument("--program", help="the benchmark, instead of building it")
    parser.add_argument("--keep", type=Path, help="keep the results in this file")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/scaling.svg", help="the figure [default: docs/scaling.svg]")
    arguments = parser.parse_args()
    if arguments.results:
        results = json.loads(arguments.results.read_text())
    else:
        results = measure(arguments.program or built())
    if arguments.keep:
        arguments.keep.write_text(json.dumps(results, indent=1) + "\n")
    arguments.out.write_text(svg(results))
    print(tables(results))


if __name__ == "__main__":
    main()
