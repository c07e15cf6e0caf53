"""What a run needs: the virtual environment, our executable, equal conditions."""

import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REQUIREMENTS = HERE / "requirements.txt"


class Failed(Exception):
    """A message for the user that says what to do next."""


def log(message):
    print(message, file=sys.stderr, flush=True)


def python_of(directory):
    return Path(directory) / "bin" / "python"


def own_python():
    """Python of `.venv`, made and filled when it is missing or out of date."""
    directory = HERE / ".venv"
    stamp = directory / "installed-requirements.txt"
    wanted = REQUIREMENTS.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return python_of(directory)
    log(f"installing {', '.join(wanted.split())} (some gigabytes, once)")
    try:
        venv.create(directory, with_pip=True, clear=True)
    except subprocess.CalledProcessError as error:
        raise Failed("this Python has no ensurepip; install its venv package") from error
    command = [python_of(directory), "-m", "pip", "install", "--requirement", REQUIREMENTS]
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        raise Failed("pip could not install requirements.txt; see its message above")
    stamp.write_text(wanted)
    return python_of(directory)


def given_python(directory):
    """Python of an environment that exists; nothing is installed into it."""
    python = python_of(directory)
    if not python.exists():
        raise Failed(f"--venv {directory}: expected a virtual environment, found no bin/python")
    return python


def build_ours(suite):
    """Build the benchmark of a suite, which has its name, and return its executable, as cargo reports it."""
    # Both packages whatever the suite: one alone may have other features, and everything would be built twice.
    build = f"cargo bench -p circulant-kernels -p circulant --bench {suite} --no-run --message-format=json"
    log(build)
    try:
        done = subprocess.run(build.split(), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise Failed(f"cargo: {error.strerror}; install Rust, or pass {flag(suite)} EXE") from error
    if done.returncode != 0:
        raise Failed("cargo could not build the benchmark; see its message above")
    found = None
    for line in done.stdout.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        target = message.get("target", {})
        if target.get("name") == suite and "bench" in target.get("kind", []):
            found = message.get("executable") or found
    if found is None:
        raise Failed(f"cargo built no executable for the benchmark `{suite}`")
    return found


def flag(suite):
    return "--ours" if suite == "layers" else f"--ours-{suite}"


def pin(threads):
    """Keep this process and its children on the first `threads` allowed cores."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < threads:
        raise Failed(f"--threads {threads}: expected as many cores, found {len(allowed)}")
    os.sched_setaffinity(0, allowed[:threads])


# Freed memory stays with the process. Otherwise the peers spend up to half their time
# on page faults for their temporary arrays.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


def variables(threads, **more):
    """Environment of every measured process, ours included; timed ones add KEEP_MEMORY."""
    count = str(threads)
    flags = os.environ.get("XLA_FLAGS", "")
    if threads == 1:
        flags += " --xla_cpu_multi_thread_eigen=false"
    return {
        **os.environ,
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "NPROC": count,
        "XLA_FLAGS": flags.strip(),
        "JAX_PLATFORMS": "cpu",
        **more,
    }


def machine():
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
