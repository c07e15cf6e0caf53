"""Counts the instructions of three kernels with callgrind and compares them with counts.json.

    python3 bench/instructions/check.py             # fails when a count has grown by more than 5 %
    python3 bench/instructions/check.py --update    # writes the counts of today

Counts are of one run of the kernel, from the difference between 6 runs and 1: start-up does not count. They belong to the
compiler and the instruction set that callgrind emulates (AVX2); with another compiler the check only tells.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COUNTS = HERE / "counts.json"
CASES = ["signal", "images", "attention"]
RUNS = 6
ALLOWED = 0.05


def fail(message: str) -> None:
    print(f"check.py: {message}", file=sys.stderr)
    sys.exit(1)


def build() -> str:
    # The test profile compiles the kernels as they ship. Of the whole workspace, because a package alone may have other features:
    # so CI has all of it but this program.
    command = ["cargo", "build", "--workspace", "--bench", "instructions", "--message-format=json"]
    # Incremental builds cut the code into other pieces, which changes what is inlined; CI does not use them either.
    environment = os.environ | {"CARGO_INCREMENTAL": "0"}
    built = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    lines = built.stdout.splitlines()
    made = [json.loads(line) for line in lines if line.startswith("{")]
    found = [m["executable"] for m in made if m.get("target", {}).get("name") == "instructions" and m.get("executable")]
    if not found:
        fail("cargo built no program `instructions`")
    return found[-1]


def instructions(program: str, case: str, runs: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, case, str(runs)]
    result = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    counted = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode != 0 or counted is None:
        fail(f"callgrind failed on {case}:\n{result.stderr}")
    return int(counted.group(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write counts.json")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        fail("valgrind is not installed; `apt-get install valgrind`")
    compiler = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    program = build()
    counts = {}
    for case in CASES:
        once, often = (instructions(program, case, runs) for runs in (1, RUNS))
        counts[case] = (often - once) // (RUNS - 1)
    if arguments.update:
        COUNTS.write_text(json.dumps({"compiler": compiler, "instructions": counts}, indent=2) + "\n")
        print(f"wrote {COUNTS.relative_to(ROOT)}: {counts}")
        return
    known = json.loads(COUNTS.read_text())
    grown = []
    for case, count in counts.items():
        before = known["instructions"][case]
        change = count / before - 1
        print(f"{case:<10} {count:>12,} instructions, {before:>12,} before, {change:+.2%}")
        if change > ALLOWED:
            grown.append(case)
        elif change < -ALLOWED:
            print(f"{case} needs fewer now: keep it with --update")
    if grown and compiler != known["compiler"]:
        print(f"grown: {', '.join(grown)}; but the compiler is {compiler}, the counts are of {known['compiler']}")
    elif grown:
        fail(f"{', '.join(grown)} grew by more than {ALLOWED:.0%}; find out why, or accept it with --update")


if __name__ == "__main__":
    main()
