"""Building Rust for a microcontroller: with rustup's target, or with Debian's compiler and the source of its standard library."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
M4F, M0 = "thumbv7em-none-eabihf", "thumbv6m-none-eabi"


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def rust_target(target, folder):
    """Variables and flags for cargo."""
    flags = ["--target", target]
    if subprocess.run(["rustup", "target", "add", target], capture_output=True).returncode == 0:
        return {}, flags
    compiler = Path(os.environ.get("RUSTC_WITH_SOURCE", folder / "rustc-with-source"))
    run([ROOT / "tools/rustc-with-source.sh", compiler])
    return {"RUSTC": str(compiler / "rustc"), "RUSTC_BOOTSTRAP": "1"}, [*flags, "-Zbuild-std=core,alloc"]
