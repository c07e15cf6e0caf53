#!/usr/bin/env python3
"""Exports of runs for microcontrollers: the Rust crate built for one, the C compiled for one and for this machine.

    python3 bench/exports/devices.py RUN... [--circulant target/release/circulant]

For every run and number format: the crate of `--to rust` is built for a Cortex-M4F (rustup's target, or where rustup cannot fetch
it the compiler that tools/rustc-with-source.sh makes, or that of RUSTC_WITH_SOURCE), and the C of `--to c` compiled by gcc and by
arm-none-eabi-gcc (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi) as C99 at all levels of optimisation, warnings being errors.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/microcontroller"))
from target import M4F, rust_target, run  # noqa: E402

LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-c"]
COMPILERS = {
    "gcc": [],
    "arm-none-eabi-gcc": ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--circulant", default=str(ROOT / "target/release/circulant"))
    parser.add_argument("--target-dir", type=Path, default=ROOT / "target/microcontroller")
    arguments = parser.parse_args()
    variables, flags = rust_target(M4F, arguments.target_dir)
    edge = f'{{ path = "{ROOT / "crates/circulant-edge"}" }}'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, source in enumerate(arguments.runs):
            for quantise in ["f32", "f16", "int8"]:
                export = [arguments.circulant, "export", source, "--quantise", quantise, "--unchecked"]
                crate, c = folder / f"rust{number}-{quantise}", folder / f"c{number}-{quantise}"
                run([*export, "--to", "rust", "--edge-crate", edge, "--out", crate])
                run([*export, "--to", "c", "--out", c])
                environment = dict(os.environ, CARGO_TARGET_DIR=str(arguments.target_dir), **variables)
                run(["cargo", "build", "--release", "--manifest-path", crate / "Cargo.toml", *flags], env=environment)
                for compiler, machine in COMPILERS.items():
                    for level in LEVELS:
                        for file in ["main.c", "circulant.c"]:
                            run([compiler, *STRICT, level, *machine, c / file, "-o", c / "object.o"])
                print(f"{source.name}, {quantise}: crate built for {M4F}; C99 at {' '.join(LEVELS)} by {' and '.join(COMPILERS)}", flush=True)


if __name__ == "__main__":
    main()
