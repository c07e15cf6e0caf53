#!/usr/bin/env python3
"""Measure our layers, norms, variational inference and vision transformer beside PyTorch and JAX, alternating: tables and bar charts of the ratios.

    python3 bench/peers/compare.py            everything, on two threads and on one (an hour)
    python3 bench/peers/compare.py --check    does everyone compute the right thing?

Exit codes: 0 done (targets missed or not), 1 a check failed, 2 could not run.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import chart
import environment
import markdown
from cases import CHECKS, SUITES, parse
from contestants import FRESH, Ours, Peer
from environment import HERE, Failed, log

PEERS = ("torch", "jax")
TARGETS = {case: target for cases in SUITES.values() for case, target in cases.items()}
# Relative to the largest entry. A few roundings in each of about hundred terms.
TOLERANCES = {"float32": 5e-6, "float64": 1e-13}
# Both sides in f32.
TWO_ROUNDED = 1e-5
# The same number from every side, where a case has one; relative.
SAME_VALUE = 1e-9
# Threads of the side that has just stopped spin for a moment before they sleep.
PAUSE_SECONDS = 0.05


def arguments():
    parser = argparse.ArgumentParser(description="Ours beside PyTorch and JAX.")
    add = parser.add_argument
    add("--check", action="store_true", help="compare with slow and obvious f64 versions")
    add("--suite", choices=(*SUITES, "all"), default="all", help="which cases (default all)")
    add("--case", default="", metavar="PART", help="only cases with PART in their name")
    add("--rounds", type=int, default=3, help="runs per side and case (default 3)")
    add("--seconds", type=float, default=1.0, help="per measurement (default 1.0)")
    add("--threads", type=int, choices=(1, 2), help="per side (default: two, then one)")
    add("--out", metavar="DIR", default=HERE / "results", type=Path, help="where results go (default bench/peers/results)")
    add("--venv", metavar="DIR", help="use this environment as it is")
    add("--ours", metavar="EXE", help="use this instead of building our benchmark `layers`")
    add("--ours-svi", metavar="EXE", help="use this instead of building our benchmark `svi`")
    add("--ours-vit", metavar="EXE", help="use this instead of building our benchmark `vit`")
    add("--ours-norms", metavar="EXE", help="use this instead of building our benchmark `norms`")
    parsed = parser.parse_args()
    if parsed.rounds < 1:
        parser.error(f"--rounds: expected at least 1, found {parsed.rounds}")
    if not parsed.seconds > 0:
        parser.error(f"--seconds: expected more than 0, found {parsed.seconds}")
    return parsed


def start_peers(stack, python, threads, **variables):
    return [
        stack.enter_context(closing(Peer(name, python, threads, **variables)))
        for name in PEERS
    ]


def suites(options):
    return [suite for suite in SUITES if options.suite in (suite, "all")]


def make_ours(options):
    """Case -> our program; a benchmark is built only if one of its cases comes up."""
    given = {
        "layers": options.ours,
        "svi": options.ours_svi,
        "vit": options.ours_vit,
        "norms": options.ours_norms,
    }

    @cache
    def executable(suite):
        return given[suite] or environment.build_ours(suite)

    def executable_of_case(case):
        return executable(parse(case).suite)

    return executable_of_case


def check_peers(options, python):
    """Print the errors of every variant; whether all are within tolerance."""
    good = True
    print(f"{'case':38}{'peer':7}{'variant':12}{'f32':>9}{'f64':>9}")
    with ExitStack() as stack:
        peers = start_peers(stack, python, options.threads or 2, JAX_ENABLE_X64="1")
        for case in [case for suite in suites(options) for case in CHECKS[suite]]:
            for peer in peers if options.case in case else []:
                answer = peer.ask(op="check", case=case)
                for variant, errors in answer["errors"].items():
                    within = all(errors[t] <= limit for t, limit in TOLERANCES.items())
                    good &= within
                    numbers = "".join(f"{errors[t]:9.1e}" for t in TOLERANCES)
                    verdict = "" if within else "  WRONG"
                    print(f"{case:38}{peer.name:7}{variant:12}{numbers}{verdict}", flush=True)
    limits = ", ".join(f"{t} {limit:.0e}" for t, limit in TOLERANCES.items())
    print(f"{'all' if good else 'NOT all'} within tolerance ({limits})", flush=True)
    return good


def proof_of(case):
    """The case whose values ours exports to prove this one; None for a norm, whose value is compared whenever it is timed."""
    parsed = parse(case)
    if parsed.suite == "norms":
        return None
    if parsed.suite == "vit":
        return f"vit/{parsed.model}/3"  # the reference of a whole transformer is slow
    # Memory and start are those of the SVI case whose name follows.
    return case.partition("/")[2] if parsed.work in FRESH else case


def prove(case, ours, peers, python):
    """Whether the values that ours computes are those of the peers, or of the f64 reference."""
    parsed = parse(case)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "numbers"
        ours.export(case, path)
        if parsed.work in ("svi", "step"):
            command = [python, HERE / f"{parsed.suite}_check.py", case, path]
            done = subprocess.run(command, stdout=sys.stderr)
            if done.returncode not in (0, 1):
                raise Failed(f"{case}: the exported step could not be checked")
            return done.returncode == 0
        good = True
        for peer in peers:
            for variant, error in peer.ask(op="agree", case=case, path=str(path))["errors"].items():
                log(f"{case}: ours and {peer.name}, {variant}: {error:.1e}")
                good &= error <= TWO_ROUNDED
        return good


def check_ours(options, python):
    """Let ours export the values of every case that it can, and compare."""
    good, ours = True, Ours(make_ours(options), options.threads or 2)
    with ExitStack() as stack:
        peers = start_peers(stack, python, options.threads or 2)
        chosen = [case for suite in suites(options) for case in SUITES[suite] if options.case in case]
        for case in dict.fromkeys(filter(None, map(proof_of, chosen))):
            agreed = prove(case, ours, peers, python)
            print(f"{case:46}{'ours agrees' if agreed else 'ours is WRONG'}", flush=True)
            good &= agreed
    return good


def check(options, python):
    good = check_peers(options, python)
    return good & check_ours(options, python)


def measure(case, sides, rounds, seconds):
    """Every side, alternating, round after round; best of bests, median of medians."""
    runs = {side.name: [] for side in sides}
    for turn in range(rounds):
        for side in sides:
            log(f"{case}: round {turn + 1} of {rounds}, {side.name}")
            runs[side.name].append(side.measure(case, seconds))
            time.sleep(PAUSE_SECONDS)
    result = {"case": case, "unit": parse(case).unit}
    for name, times in runs.items():
        result[name] = {
            "best": min(t["best"] for t in times),
            "median": statistics.median(t["median"] for t in times),
            "rounds": [{key: t[key] for key in ("best", "median")} for t in times],
        }
        contrasts = [t["contrasts"] for t in times if t.get("contrasts")]
        if contrasts:
            result[name]["contrasts"] = {key: min(c[key]["best"] for c in contrasts) for key in contrasts[0]}
        best = min(times, key=lambda t: t["best"])
        for key in ("variant", "tried", "data_mib", "data_seconds"):
            if key in best:
                result[name][key] = best[key]
    values = [times[0]["value"] for times in runs.values() if times[0].get("value") is not None]
    if values and max(values) - min(values) > SAME_VALUE * max(values):
        raise Failed(f"{case}: the sides disagree: {values}")
    for key in ("best", "median"):
        fastest = min(result[name][key] for name in PEERS)
        result[f"ratio_of_{key}"] = fastest / result["ours"][key]
    target = TARGETS[case]
    result["at_least"] = target
    result["reached"] = None if target is None else result["ratio_of_best"] >= target
    return result


def header():
    sides = "".join(f"{name + ' best/median':>22}" for name in ("ours", *PEERS))
    return f"{'case':46}{sides}{'ratio':>8}{'at least':>10}{'reached':>9}"


def row(result):
    sides = ""
    for name in ("ours", *PEERS):
        times = (result[name]["best"], result[name]["median"])
        sides += f"{'/'.join(f'{t:.3f}' if t >= 1 else f'{t:.4f}' for t in times):>22}"
    target, reached = "-", "-"
    if result["at_least"] is not None:
        target = f"{result['at_least']:.1f}"
        reached = "yes" if result["reached"] else "no"
    ratio = f"{result['ratio_of_best']:.2f}"
    label = f"{result['case']} ({result['unit']})"
    return f"{label:46}{sides}{ratio:>8}{target:>10}{reached:>9}{remark(result)}"


def remark(result):
    """Steps or inputs per second at the best time; or how much of memory or time goes to the data."""
    rate = parse(result["case"]).rate
    if rate:
        what, count = rate
        speeds = (f"{count * 1e3 / result[name]['best']:.0f}" for name in ("ours", *PEERS))
        return f"  {'/'.join(speeds)} {what}/s"
    for name in PEERS:
        for what, best in result[name].get("contrasts", {}).items():
            return f"  {what} of {name} {best:.3f}, {best / result['ours']['best']:.2f} of ours"
    if result["unit"] == "MiB":
        sizes = (f"{result[name]['data_mib']:.0f}" for name in ("ours", *PEERS))
        return f"  of it data {'/'.join(sizes)}"
    if "data_seconds" in result["ours"]:
        times = (f"{result[name]['data_seconds']:.3f}" for name in ("ours", *PEERS))
        return f"  of it making the data {'/'.join(times)}"
    return ""


def compare(options, python):
    cases = [case for suite in suites(options) for case in SUITES[suite]]
    chosen = [case for case in cases if options.case in case]
    if not chosen:
        raise Failed(f"--case {options.case}: no such case; there are\n" + "\n".join(cases))
    executable_of_case = make_ours(options)
    for case in chosen:
        executable_of_case(case)  # builds before anything is pinned
    options.out.mkdir(parents=True, exist_ok=True)
    for threads in [options.threads] if options.threads else [2, 1]:
        compare_on(threads, chosen, executable_of_case, options, python)
    print(f"ratio: best of the better peer over our best, same run; all measurements, tables and charts are in {options.out}")


def compare_on(threads, chosen, executable_of_case, options, python):
    environment.pin(threads)
    with ExitStack() as stack:
        peers = start_peers(stack, python, threads)
        report = {
            "machine": environment.machine(),
            "versions": {key: v for peer in peers for key, v in peer.ask(op="info").items()},
            "threads": threads,
            "rounds": options.rounds,
            "seconds": options.seconds,
            "cases": [],
        }
        log(json.dumps({**report["machine"], **report["versions"]}))
        sides = [Ours(executable_of_case, threads), *peers]
        print(f"{threads} thread{'s' if threads > 1 else ''}\n{header()}", flush=True)
        proven = {None}
        for case in chosen:
            proof = proof_of(case)
            if proof not in proven and not prove(proof, sides[0], peers, python):
                raise Failed(f"{case}: ours computes other values, see above")
            proven.add(proof)
            result = measure(case, sides, options.rounds, options.seconds)
            report["cases"].append(result)
            print(row(result), flush=True)
            write(report, options.out)  # after every case, so that an interrupted run keeps its measurements


def write(report, directory):
    """Every number, the tables and the chart of one number of threads."""
    name = f"threads-{report['threads']}"
    (directory / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    (directory / f"{name}.md").write_text("\n".join(markdown.tables(report)) + "\n")
    (directory / f"{name}.svg").write_text(chart.svg(report))


def main():
    options = arguments()
    try:
        python = environment.given_python(options.venv) if options.venv else environment.own_python()
        if options.check:
            return 0 if check(options, python) else 1
        compare(options, python)
        return 0
    except Failed as failure:
        log(f"error: {failure}")
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
