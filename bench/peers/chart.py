"""Draws the ratios of a results file of compare.py as an SVG bar chart: chart.py RESULTS.json OUT.svg"""

import json
import sys
from xml.sax.saxutils import escape

import markdown

WIDTH, LEFT, ROW, TOP = 760, 300, 30, 84
COLOURS = {"torch": "#c2410c", "jax": "#4338ca"}
LABELS = {"torch": "PyTorch", "jax": "JAX"}


def bars(results):
    """(case, peer, how many times faster ours is), in the order of the file; memory and start are no speed."""
    for case in results["cases"]:
        if case["case"].startswith(("memory/", "start/")):
            continue
        ours = case["ours"]["best"]
        yield case["case"], {peer: case[peer]["best"] / ours for peer in COLOURS if peer in case}


def svg(results):
    rows = list(bars(results))
    longest = max([1, *(ratio for _, ratios in rows for ratio in ratios.values())])
    scale = (WIDTH - LEFT - 60) / longest
    height = TOP + ROW * len(rows) + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="24" font-size="16">How many times faster than the peers (threads: {results["threads"]})</text>',
        f'<text x="12" y="44" fill="#555">{escape(markdown.conditions(results))}</text>',
    ]
    for i, peer in enumerate(COLOURS):
        out.append(f'<rect x="{LEFT + 120 * i}" y="56" width="12" height="12" fill="{COLOURS[peer]}"/>')
        out.append(f'<text x="{LEFT + 120 * i + 18}" y="66">{LABELS[peer]}</text>')
    for i, (case, ratios) in enumerate(rows):
        y = TOP + ROW * i
        out.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(case)}</text>')
        for j, (peer, ratio) in enumerate(ratios.items()):
            top = y + 2 + 12 * j
            out.append(f'<rect x="{LEFT}" y="{top}" width="{ratio * scale:.1f}" height="11" fill="{COLOURS[peer]}"/>')
            out.append(f'<text x="{LEFT + ratio * scale + 4:.1f}" y="{top + 10}" font-size="11">{ratio:.1f}x</text>')
    one = LEFT + scale
    out.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="{TOP - 4}" y2="{height - 20}" stroke="#555" stroke-dasharray="3 3"/>')
    out.append(f'<text x="{one:.1f}" y="{height - 6}" text-anchor="middle" fill="#555">as fast</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        results = json.load(file)
    with open(sys.argv[2], "w") as file:
        file.write(svg(results))
