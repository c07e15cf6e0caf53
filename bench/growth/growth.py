#!/usr/bin/env python3
"""How the cost of our layers grows, as a log-log picture and a table. Standard library only.

    python3 bench/growth/growth.py                     run the benchmark (some minutes), draw docs/growth.svg
    python3 bench/growth/growth.py --points FILE       draw points that were kept
    python3 bench/growth/growth.py --keep FILE         keep the points
    python3 bench/growth/growth.py --venv DIR          MKL's transforms beside it, by the PyTorch of a virtual
                                                       environment (compare.py makes bench/peers/.venv)
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
# Title, unit of x, and the series of each panel.
PANELS = [
    ("length d", "d", ["circulant, forward", "circulant, forward and backward", "MKL, both transforms", "dense, forward", "dense, forward and backward"]),
    ("channels (32 x 32, in = out)", "channels", ["channels, forward and backward"]),
    ("posterior samples (MNIST model)", "samples", ["posterior samples"]),
]
COLOURS = ["#1d4ed8", "#60a5fa", "#15803d", "#c2410c", "#fb923c"]
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 340, 56, 70, 40


def measure(arguments):
    command = ["cargo", "bench", "-p", "circulant", "--bench", "growth", "--", "--json"]
    lines = run([*command, "--threads", str(arguments.threads), "--seconds", str(arguments.seconds)], "install Rust")
    if arguments.venv:
        mkl = [Path(arguments.venv) / "bin/python", ROOT / "bench/growth/mkl.py", arguments.threads, arguments.seconds]
        lines += run([str(part) for part in mkl], "run bench/peers/compare.py --check once")
    if arguments.keep:
        Path(arguments.keep).write_text("".join(lines))
    return [json.loads(line) for line in lines]


def run(command, advice):
    """The lines of JSON that a program prints."""
    lines = []
    try:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f"error: {command[0]}: {error.strerror}; {advice}")
    for line in process.stdout:
        if line.startswith("{"):
            lines.append(line)
            print(line, end="", file=sys.stderr, flush=True)
    if process.wait() != 0 or not lines:
        sys.exit(f"error: {' '.join(command)} failed; see its message above")
    return lines


def by_series(points):
    found = {}
    for point in points:
        found.setdefault(point["series"], []).append((point["x"], point["microseconds"]))
    return {name: sorted(series) for name, series in found.items()}


def even(points, unit):
    """Of lengths the powers of two: the others are marks beside the line."""
    return [(x, t) for x, t in points if unit != "d" or x & (x - 1) == 0]


def exponent(series):
    """Least squares of log time against log x, over the upper half of the points."""
    upper = [(math.log(x), math.log(t)) for x, t in series[len(series) // 2 :]]
    mean_x, mean_t = (sum(v) / len(upper) for v in zip(*upper))
    square = sum((x - mean_x) ** 2 for x, _ in upper)
    return sum((x - mean_x) * (t - mean_t) for x, t in upper) / square


def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def panel(left, title, unit, per, lines):
    """The SVG of one log-log picture; `lines` are (name, points, colour)."""
    values = [point for _, points, _ in lines for point in points]
    xs, ts = zip(*values)
    x_low, x_high = math.log10(min(xs)), math.log10(max(xs))
    t_range = decades(min(ts), max(ts))
    t_low, t_high = t_range[0], t_range[-1]

    def place(x, t):
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(t) - t_low) / (t_high - t_low)
        return left + across * WIDTH, TOP + (1 - up) * HEIGHT

    out = [f'<text x="{left}" y="{TOP - 40}" font-size="14">us per {per} against {escape(title)}</text>']
    for power in t_range:
        _, y = place(10**x_low, 10.0**power)
        out.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{10.0**power:g}</text>')
    marks = [2**k for k in range(0, 17, 2)] if unit == "d" else [1, 2, 4, 8, 16, 32, 64] if unit == "channels" else [1, 10, 100]
    for x in marks:
        if min(xs) <= x <= max(xs):
            at, _ = place(x, 10.0**t_low)
            out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{TOP + HEIGHT}" stroke="#eee"/>')
            out.append(f'<text x="{at:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle" font-size="11">{x}</text>')
    for i, (name, points, colour) in enumerate(lines):
        smooth = even(points, unit)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in smooth))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        for point in points:
            x, y = place(*point)
            inside = colour if point in smooth else "white"
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{inside}" stroke="{colour}"/>')
        label = f"{name} (slope {exponent(smooth):.2f})"
        y = TOP + 14 + 15 * i
        out.append(f'<rect x="{left + 8}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{left + 22}" y="{y}" font-size="11">{escape(label)}</text>')
    return out


def svg(found, pers):
    panels = [(title, unit, [name for name in names if name in found]) for title, unit, names in PANELS]
    panels = [entry for entry in panels if entry[2]]
    width = LEFT + len(panels) * (WIDTH + LEFT + GAP) - GAP
    height = TOP + HEIGHT + 52
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (title, unit, names) in enumerate(panels):
        lines = [(name, found[name], COLOURS[j]) for j, name in enumerate(names)]
        out += panel(LEFT + i * (WIDTH + LEFT + GAP), title, unit, pers[names[0]], lines)
    out.append(f'<text x="{LEFT}" y="{height - 6}" font-size="11" fill="#555">open marks: 784 and primes; slopes over the upper half of the line</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def table(found):
    for name, points in found.items():
        unit = "d" if name.startswith(("circulant", "dense", "MKL")) else ""
        print(f"\n{name}: slope {exponent(even(points, unit)):.2f} (upper half)")
        for x, time in points:
            # What is left of a transform when its d log d is taken out.
            constant = f"  {1e3 * time / (x * math.log2(x)):8.3f} ns/(d log2 d)" if name.startswith(("circulant", "MKL")) else ""
            print(f"{x:8d} {time:12.4f} us{constant}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", metavar="FILE", help="draw these instead of measuring")
    parser.add_argument("--keep", metavar="FILE", help="keep the measured points, a line of JSON each")
    parser.add_argument("--venv", metavar="DIR", help="a virtual environment with PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="per point (default 0.5)")
    parser.add_argument("--out", metavar="SVG", default=ROOT / "docs/growth.svg")
    arguments = parser.parse_args()
    if arguments.points:
        lines = Path(arguments.points).read_text().splitlines()
        points = [json.loads(line) for line in lines]
    else:
        points = measure(arguments)
    found = by_series(points)
    table(found)
    Path(arguments.out).write_text(svg(found, {point["series"]: point["per"] for point in points}))


if __name__ == "__main__":
    main()
