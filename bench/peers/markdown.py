"""Tables in Markdown from results files of compare.py: markdown.py RESULTS.json [...]"""

import json
import sys

from cases import SUITES, parse

TITLES = {
    "layers": "The layers",
    "svi": "Variational inference and prediction",
    "vit": "Training steps of the vision transformer",
    "norms": "Exact operator norms",
}
SIDES = {"ours": "ours", "torch": "PyTorch", "jax": "JAX or NumPyro"}


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def conditions(results):
    """Machine, versions and how long everything was measured, in one line."""
    machine = results["machine"]
    versions = ", ".join(f"{k} {results['versions'][k]}" for k in ("torch", "jax", "numpyro", "equinox") if k in results["versions"])
    rounds = f"{results['rounds']} round{'s' if results['rounds'] > 1 else ''}"
    return f"{machine['cpu']}; {versions}; {rounds} of {results['seconds']:g} s"


def cell(case, side):
    """The best of one side; of memory and start also what the data alone takes."""
    parsed = parse(case["case"])
    of_data = {"memory": "data_mib", "start": "data_seconds"}.get(parsed.work)
    data = f", {number(side[of_data])} of it data" if of_data else ""
    return f"{number(side['best'])} {parsed.unit}{data}"


def tables(results):
    """Best times; the ratio is that of the better peer, and of medians in brackets."""
    yield f"{conditions(results)}; {results['threads']} thread{'s' if results['threads'] > 1 else ''}."
    for suite, title in TITLES.items():
        chosen = [c for c in results["cases"] if c["case"] in SUITES[suite]]
        if not chosen:
            continue
        yield f"\n### {title}\n"
        yield f"| case | {' | '.join(SIDES.values())} | best peer / ours |"
        yield "| --- | --- | --- | --- | --- |"
        for case in chosen:
            times = " | ".join(cell(case, case[side]) for side in SIDES)
            yield f"| `{case['case']}` | {times} | **{case['ratio_of_best']:.2f}** ({case['ratio_of_median']:.2f}) |"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        with open(path) as file:
            print("\n".join(tables(json.load(file))))


if __name__ == "__main__":
    main()
