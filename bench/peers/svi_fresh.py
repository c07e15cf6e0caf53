"""One peer trains in a fresh process: `svi_fresh.py torch|jax THREADS CASE STEPS`.

Prints one JSON line: seconds from the start of the process (interpreter and imports
included) to the end of the first step, those that making the data took, and the peak memory after all steps.
"""

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np


def seconds_since_start():
    """Since the kernel started this process, to a hundredth of a second."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks_per_second = 100  # USER_HZ, the same on every Linux
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / ticks_per_second


def peak_mib():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status: expected a line VmHWM, found none")


def main():
    name, threads, case_name, steps = sys.argv[1:]
    peer = importlib.import_module(f"peer_{name}")
    implementation = importlib.import_module(f"svi_{name}")
    import cases
    import svi_problem

    peer.set_threads(int(threads))
    case = cases.parse(case_name)
    before = time.perf_counter()
    inputs, labels = svi_problem.data(dtype=np.uint8)
    data_seconds = time.perf_counter() - before
    with peer.scope():
        training = implementation.Training(case.model, case.batch, inputs, labels)
        training.run(1)
        first = seconds_since_start()
        if int(steps) > 1:
            training.run(int(steps) - 1)
    data = (inputs.nbytes + labels.nbytes) / 2**20
    result = {"case": case_name, "first_step_seconds": first, "peak_mib": peak_mib()}
    print(json.dumps({**result, "data_mib": data, "data_seconds": data_seconds, "steps": int(steps)}))


if __name__ == "__main__":
    main()
