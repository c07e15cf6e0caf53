"""One peer in one long-lived process: `worker.py torch|jax THREADS`.

Reads one JSON request per line on stdin and answers with one JSON line on stdout.
Imports, compilation and the choice of the quickest variant happen once per case.
"""

import gc
import importlib
import json
import os
import statistics
import sys
import time

import numpy as np

import cases
import norms_worker
import reference
import svi_worker
import vit_worker

# Shorter calls are timed in batches, because reading the clock and the timer's
# granularity would show.
SHORT_CALL_SECONDS = 0.2e-3
BATCH = 100
WARM_UP_SECONDS = 0.1
FEWEST_SAMPLES = 5
# How long each variant is tried, twice, before the quickest is kept.
TRIAL_SECONDS = 0.25
# Variants add in different orders; a wrong one is off by its whole size.
VARIANTS_AGREE = 1e-3


def inputs(case, dtype):
    """x, a, b and the output gradient g from a fixed seed."""
    random = np.random.default_rng(20)
    size = int(np.prod(case.grid))
    if len(case.grid) == 1:
        shapes = [(case.batch, size), (size,), (), (case.batch, size)]
    else:
        c_in, c_out = case.channels_in, case.channels_out
        shapes = [
            (case.batch, c_in, *case.grid),
            (size, c_in, c_out),
            (c_out,),
            (case.batch, c_out, *case.grid),
        ]
    return [np.asarray(random.standard_normal(s), dtype) for s in shapes]


def measure(call, seconds, pieces=1):
    """Best and median time of one of the pieces that a call does, in milliseconds."""
    clock = time.perf_counter
    # The first call compiles, so it says nothing about the duration.
    call()
    duration, end = float("inf"), clock() + min(WARM_UP_SECONDS, seconds)
    while clock() < end or duration == float("inf"):
        start = clock()
        call()
        duration = min(duration, clock() - start)
    batch = BATCH if duration < SHORT_CALL_SECONDS else 1
    samples = []
    gc.collect()
    gc.disable()
    end = clock() + seconds
    while clock() < end or len(samples) < FEWEST_SAMPLES:
        start = clock()
        for _ in range(batch):
            call()
        samples.append((clock() - start) / (batch * pieces) * 1e3)
    gc.enable()
    return {"best": min(samples), "median": statistics.median(samples)}


def results(peer, call):
    """What a call computes, in the order output, gradients of input, coordinates and bias."""
    found = call()
    finish = getattr(call, "finish", None)
    return peer.to_numpy(finish(found) if finish else found)


def contrasts(peer, case, arguments):
    """Layers of another kind that are timed beside a case."""
    make = getattr(peer, "contrasts", None)
    return make(case, *arguments) if make and case.suite == "layers" else {}


def layer_variants(peer, case):
    calls = peer.variants(case, *inputs(case, np.float32))
    expected = None
    for name, call in calls.items():
        found = results(peer, call)
        expected = expected or found
        error = reference.relative_error(found, expected)
        if not error < VARIANTS_AGREE:
            raise ValueError(f"{case.name}: variant {name!r} is off by {error:.1e}")
    return calls


def prepare(peer, case):
    """The quickest variant, its name, and what each variant took."""
    by_suite = {
        "svi": svi_worker.variants,
        "vit": vit_worker.variants,
        "norms": norms_worker.variants,
    }
    variants = by_suite.get(case.suite, layer_variants)
    calls = variants(peer, case)
    trials = {name: [] for name in calls}
    for _ in range(2):
        for name, call in calls.items():
            trials[name].append(measure(call, TRIAL_SECONDS, case.pieces)["best"])
    tried = {name: min(bests) for name, bests in trials.items()}
    quickest = min(tried, key=tried.get)
    return calls[quickest], quickest, tried


def check(peer, case):
    """Variant -> error against the dense f64 reference, in f32 and in f64."""
    if case.suite == "svi":
        return svi_worker.check(peer, case)
    if case.suite == "vit":
        return vit_worker.check(peer, case)
    if case.suite == "norms":
        return norms_worker.check(peer, case)
    exact = inputs(case, np.float64)
    height, width = (1, *case.grid)[-2:]
    shapes = [v.shape for v in exact]
    x, a, b, g = exact
    y, gx, ga, gb = reference.layer(
        x.reshape(case.batch, case.channels_in, height, width),
        a.reshape(-1, case.channels_in, case.channels_out),
        b.reshape(-1),
        g.reshape(case.batch, case.channels_out, height, width),
    )
    expected = [y.reshape(g.shape)]
    if case.backward:
        gradients = zip((gx, ga, gb), shapes)
        expected += [gradient.reshape(shape) for gradient, shape in gradients]
    errors = {}
    for dtype in ("float32", "float64"):
        arguments = [np.asarray(v, dtype) for v in exact]
        calls = peer.variants(case, *arguments) | contrasts(peer, case, arguments)
        for name, call in calls.items():
            # The second call: work that overwrites its own input shows only there.
            call()
            found = results(peer, call)
            if found[0].dtype != dtype:
                raise ValueError(f"expected {dtype}, found {found[0].dtype}")
            errors.setdefault(name, {})[dtype] = reference.relative_error(found, expected)
    return errors


def agree(peer, case, path):
    """Variant -> how far it is from what ours wrote to a file."""
    if case.suite == "svi":
        return svi_worker.agree(peer, case, path)
    # The inputs first, then what ours made of them.
    shapes = [v.shape for v in inputs(case, np.float32)]
    sizes = [int(np.prod(shape)) for shape in shapes]
    numbers = np.split(np.fromfile(path, np.float32), np.cumsum(sizes))
    given = [part.reshape(shape) for part, shape in zip(numbers, shapes)]
    x, a, b, g = shapes
    outputs = [g, x, a, b] if case.backward else [g]
    ends = np.cumsum([int(np.prod(shape)) for shape in outputs])[:-1]
    expected = [part.reshape(s) for part, s in zip(np.split(numbers[-1], ends), outputs)]
    return {
        name: reference.relative_error(results(peer, call), expected)
        for name, call in (peer.variants(case, *given) | contrasts(peer, case, given)).items()
    }


def serve(peer, requests, answer):
    prepared = {}
    for line in requests:
        request = json.loads(line)
        if request["op"] == "info":
            answer(peer.info())
            continue
        case = cases.parse(request["case"])
        if request["op"] == "check":
            answer({"errors": check(peer, case)})
            continue
        if request["op"] == "agree":
            answer({"errors": agree(peer, case, request["path"])})
            continue
        if case.name not in prepared:
            # One case at a time: old inputs would take memory from the others.
            beside = {}
            if case.suite == "layers":
                beside = contrasts(peer, case, inputs(case, np.float32))
            prepared = {case.name: (*prepare(peer, case), beside)}
        call, variant, tried, beside = prepared[case.name]
        times = measure(call, request["seconds"], case.pieces)
        value = {"value": call()} if case.suite == "norms" else {}
        others = {name: measure(call, request["seconds"]) for name, call in beside.items()}
        answer({**times, **value, "variant": variant, "tried": tried, "contrasts": others})


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    # Libraries may print; only answers belong on the real stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = importlib.import_module(f"peer_{name}")
    peer.set_threads(threads)

    def answer(message):
        print(json.dumps(message), file=answers, flush=True)

    with peer.scope():
        serve(peer, sys.stdin, answer)


if __name__ == "__main__":
    main()
