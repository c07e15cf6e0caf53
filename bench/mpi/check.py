#!/usr/bin/env python3
"""The program on several ranks, with real processes: the same results, and one clear end whatever happens to a rank.

    python3 bench/mpi/check.py [--program target/release/circulant] [CASE ...]

Builds the program with the feature `mpi` unless `--program` names one, and installs Open MPI by apt where it is missing and that is
allowed. Without names all cases run, in a few minutes. What this machine does not allow (a file system of its own, network
namespaces) is skipped, and says so.
"""

import argparse
import csv
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["libopenmpi-dev", "openmpi-bin", "libclang-dev"]
# Of losses after 100 steps of Adam in f32, from sums in another order.
TOLERANCE = 1e-5
# The longest that ranks may take to end after something went wrong.
LIMIT = 30
MODEL = "--data glyphs --first 600 --model spectral-circulant --rank 2 --samples 1 --batch 100".split()
# Long enough to be disturbed.
LONG = "--data glyphs --first 600 --model spectral-bccb --channels 4 --batch 120 --checkpoint-every 10 --steps 5000".split()


class Skipped(Exception):
    """What the machine does not allow."""


def ensure(holds, *what):
    if not holds:
        raise AssertionError(" ".join(str(part) for part in what))


class Ranks:
    """A run of the program under mpirun."""

    def __init__(self, place, size, *words, shell=None, options=(), prefix=()):
        program = ["sh", "-c", shell, str(place.program)] if shell else [str(place.program), "--threads", "1"]
        command = [*prefix, "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *options, "-n", str(size)]
        command += [*program, *map(str, words)]
        self.stdout, self.stderr = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.stdout, stderr=self.stderr, env=place.environment, start_new_session=True
        )

    def pids(self):
        """Processes of the program below mpirun, by rank."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent != self.process.pid:
                    continue
                for variable in (entry / "environ").read_bytes().split(b"\0"):
                    if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                        found[int(variable.split(b"=")[1])] = int(entry.name)
            except (OSError, IndexError, ValueError):
                continue
        return found

    def end(self, limit=300):
        """Exit code, stdout and stderr."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            # The whole session is ours.
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"no end after {limit} s: {self.text(self.stderr)}") from None
        self.seconds = time.monotonic() - self.start
        return code, self.text(self.stdout), self.text(self.stderr)

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read()


class Place:
    """A folder for one case."""

    def __init__(self, program, root):
        self.program, self.root = program, root
        self.temporary = root / "tmp"
        self.temporary.mkdir()
        self.environment = os.environ | {"TMPDIR": str(self.temporary), "CIRCULANT_CACHE": str(self.temporary / "cache")}

    def path(self, name):
        return self.root / name

    def alone(self, *words):
        """Stdout of a single process that succeeds."""
        command = [str(self.program), "--threads", "1", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=self.environment)
        ensure(done.returncode == 0, command, done.stderr)
        return done.stdout

    def ranks(self, size, *words, **more):
        """Stdout of ranks that succeed."""
        code, out, errors = Ranks(self, size, *words, **more).end()
        ensure(code == 0, f"{size} ranks", words, "exit code", code, errors)
        self.ensure_tidy()
        return out

    def refused(self, size, *words, code=1, parts=(), limit=LIMIT, **more):
        """The message of ranks that fail, which comes once."""
        found, _, errors = Ranks(self, size, *words, **more).end(limit)
        ensure(found == code, f"exit code {found}, expected {code}:", errors)
        for part in parts:
            ensure(errors.count(part) == 1, f"{part!r} is {errors.count(part)} times in:", errors)
        ensure("panicked" not in errors, errors)
        self.ensure_tidy()
        return errors

    def ensure_tidy(self):
        left = [path.name for path in self.temporary.glob("circulant-rank-*")]
        ensure(not left, "private folders are left over:", left)


def losses(run):
    lines = (run / "steps.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def without_times(run):
    """All that a run has written and that must repeat."""
    steps = [{**json.loads(line), "seconds": 0} for line in (run / "steps.jsonl").read_text().splitlines()]
    return steps, (run / "checkpoint.safetensors").read_bytes()


def ensure_close(found, expected):
    ensure(len(found) == len(expected), len(found), "steps, expected", len(expected))
    for step, (one, other) in enumerate(zip(found, expected)):
        ensure(abs(one - other) <= TOLERANCE * abs(other), f"step {step}: {one}, expected {other}")
    return max(abs(one - other) / abs(other) for one, other in zip(found, expected))


def wait_for_steps(run, count, process):
    log = run / "steps.jsonl"
    while not log.exists() or log.read_text().count("\n") < count:
        ensure(process.process.poll() is None, "ended before:", Ranks.text(process.stderr))
        ensure(time.monotonic() - process.start < 120, "training does not begin")
        time.sleep(0.01)


def case_training(place):
    """Losses of 1, 2 and 3 ranks within 1e-5, and bit for bit with the same number."""
    words = ["train", *MODEL, "--steps", 100, "--validation", 50]
    place.alone(*words, "--out", place.path("1"))
    worst = 0
    for size in [2, 3]:
        out = place.ranks(size, *words, "--out", place.path(f"{size}"))
        ensure(out.count("next: circulant evaluate") == 1, "one summary:", out)
        worst = max(worst, ensure_close(losses(place.path(f"{size}")), losses(place.path("1"))))
    place.ranks(2, *words, "--out", place.path("again"))
    ensure(without_times(place.path("again")) == without_times(place.path("2")), "2 ranks do not repeat")
    facts = json.loads((place.path("3") / "run.json").read_text())
    ensure(facts["ranks"] == 3, facts)
    return f"losses differ by {worst:.1e} at most"


def case_tables(place):
    """Classes and numbers of tables, the model chosen by the evidence."""
    for task in ["class", "number"]:
        data = place.path(f"{task}.csv")
        rows = [(i % 7, i * 37 % 11, (i * i) % 5) for i in range(120)]
        target = (lambda a, b, c: "xyz"[(a + b) % 3]) if task == "class" else (lambda a, b, c: 0.3 * a - 0.1 * b + c)
        data.write_text("a,b,c,target\n" + "".join(f"{a},{b},{c},{target(a, b, c)}\n" for a, b, c in rows))
        words = ["train", "--data", data, "--steps", 60, "--validation", 20]
        place.alone(*words, "--out", place.path(f"{task}-1"))
        place.ranks(2, *words, "--out", place.path(f"{task}-2"))
        ensure_close(losses(place.path(f"{task}-2")), losses(place.path(f"{task}-1")))
        # The last digits of the posterior differ, so predictions are compared on one run.
        run = place.path(f"{task}-1")
        for size in [2, 3]:
            words = ["predict", run, "--data", data]
            ensure(place.ranks(size, *words) == place.alone(*words), task, "predictions of", size, "ranks")
            words = ["certify", run, "--data", data, "--json", "--samples", 5]
            ensure(place.ranks(size, *words) == place.alone(*words), task, "certificates of", size, "ranks")


def case_predictions(place):
    """Predictions, evaluations and certificates are those of one process, byte by byte."""
    run = place.path("run")
    place.alone("train", *MODEL, "--steps", 50, "--out", run, "--validation", 60)
    data = ["--data", "glyphs", "--first", 700, "--samples", 10]
    commands = {
        "predict": ["predict", run, *data, "--coverage", 0.8],
        "evaluate": ["evaluate", run, *data, "--ood", "shapes", "--intervals", "--json"],
        "certify": ["certify", run, *data, "--json"],
    }
    for name, words in commands.items():
        expected = place.alone(*words)
        for size in [2, 3]:
            ensure(place.ranks(size, *words) == expected, name, "on", size, "ranks differs")
    out = place.path("rows.csv")
    words = ["certify", run, *data, "--out"]
    place.alone(*words, place.path("alone.csv"))
    place.ranks(3, *words, out)
    ensure(out.read_bytes() == place.path("alone.csv").read_bytes(), "rows of certificates differ")
    ensure(len(list(csv.reader(out.open()))) == 701, "a row per input")


def case_resume(place):
    """A checkpoint of 4 ranks resumes on 1, and the other way round."""
    words = ["train", *MODEL, "--checkpoint-every", 25]
    whole = place.path("whole")
    place.alone(*words, "--steps", 100, "--out", whole)
    for before, after in [(4, 1), (1, 4)]:
        run = place.path(f"{before}-{after}")
        first = [*words, "--steps", 50, "--out", run]
        second = ["train", "--resume", run, "--steps", 100]
        for size, line in [(before, first), (after, second)]:
            place.alone(*line) if size == 1 else place.ranks(size, *line)
        ensure_close(losses(run), losses(whole))


@contextmanager
def disturbed(place, size, steps=25, words=LONG, **more):
    """Ranks in the middle of training."""
    run = place.path("run")
    process = Ranks(place, size, "train", *words, "--out", run, **more)
    wait_for_steps(run, steps, process)
    yield run, process
    if process.process.poll() is None:
        process.process.send_signal(signal.SIGTERM)


def ensure_resumes(place, run, least):
    """The checkpoint stands: it can be evaluated, and trained on."""
    found = json.loads(place.alone("inspect", run, "--json"))["steps"]
    ensure(found >= least, f"the checkpoint has {found} steps, expected {least} or more")
    place.alone("train", "--resume", run, "--steps", found + 5)
    ensure(len(losses(run)) == found + 5, "it trains on")
    return found


def case_killed(place):
    """kill -9 of a rank in the middle."""
    with disturbed(place, 3) as (run, process):
        os.kill(process.pids()[1], signal.SIGKILL)
        begin = time.monotonic()
        code, _, errors = process.end(LIMIT)
        seconds = time.monotonic() - begin
    ensure(code != 0, "it must not succeed")
    ensure("rank 1" in errors and "signal 9" in errors, "mpirun says which one:", errors)
    ensure_resumes(place, run, 10)
    return f"ended after {seconds:.1f} s"


def case_killed_quietly(place):
    """The same where mpirun does not end the others: they find the rank lost by themselves."""
    with disturbed(place, 3, options=["--enable-recovery"]) as (run, process):
        os.kill(process.pids()[2], signal.SIGKILL)
        begin = time.monotonic()
        code, _, errors = process.end(LIMIT)
        seconds = time.monotonic() - begin
    ensure(errors.count("circulant: rank 2 has not been heard of for 20 s") == 1, errors)
    ensure_resumes(place, run, 10)
    return f"ended after {seconds:.1f} s"


def case_slow(place):
    """A rank that stands still for some seconds delays the others, and changes nothing."""
    words = [*MODEL, "--steps", 400]
    place.ranks(2, "train", *words, "--out", place.path("whole"))
    with disturbed(place, 2, words=words) as (run, process):
        pid = process.pids()[1]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(6)
        reached = len(losses(run))
        os.kill(pid, signal.SIGCONT)
        code, _, errors = process.end()
    ensure(code == 0, errors)
    ensure(reached < 400, "it was stopped in the middle")
    ensure(without_times(run) == without_times(place.path("whole")), "it is not what it would have been")


def case_full_disk(place):
    """A disk that fills up on rank 0."""
    disk = place.path("disk")
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], capture_output=True, text=True)
    if made.returncode != 0:
        raise Skipped(f"no file system of its own: {made.stderr.strip()}")
    try:
        words = ["train", *MODEL, "--steps", 100000, "--checkpoint-every", 50, "--out", disk / "run"]
        place.refused(2, *words, parts=["circulant: "], limit=300)
        place.path("filled").mkdir()
        (disk / "filler").write_bytes(b"0" * (os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
        errors = place.refused(2, "train", *MODEL, "--steps", 50, "--out", disk / "other", parts=["circulant: "])
        ensure("No space left" in errors, errors)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def case_refusals(place):
    """What cannot begin is refused once, with exit code 1, and nothing is left behind."""
    run = place.path("run")
    few = ["train", *MODEL[:-2], "--batch", 2, "--out", run]
    place.refused(3, *few, parts=["expected a batch of at least 3 examples"])
    rank = "${OMPI_COMM_WORLD_RANK}"

    def differ(size, part, data="glyphs", first=600, steps=20, seed=0):
        flags = f"--data {data} --first {first} --steps {steps} --seed {seed} --model spectral-circulant --rank 2 --batch 100"
        place.refused(size, shell=f'exec "$0" --threads 1 train {flags} --out {place.path("differ")}', parts=[part])
        ensure(not place.path("differ").exists(), "a folder is left behind")

    differ(2, "the settings: expected seed = 0 as on rank 0, found seed = 1;", seed=rank)
    differ(2, "the settings: expected steps = 20 as on rank 0, found steps = 21;", steps=f"2{rank}")
    differ(2, "as on rank 0, found", first=f"6{rank}0")
    # An error outside of everything that ranks do together: on rank 1, then on rank 0.
    differ(2, "circulant: rank 1: nowhere is neither", data=f'"$([ {rank} = 1 ] && echo nowhere || echo glyphs)"')
    differ(3, "circulant: nowhere is neither", data=f'"$([ {rank} = 0 ] && echo nowhere || echo glyphs)"')
    place.ranks(2, "train", *MODEL, "--steps", 3, "--out", run)
    place.refused(2, "train", *MODEL, "--out", run, parts=["already holds a run"])
    place.refused(2, "predict", place.path("missing"), "--data", "glyphs", parts=["missing"])
    place.refused(2, "train", "--nonsense", code=2, parts=["unexpected argument"])


def case_single(place):
    """Commands of one process run once."""
    for words in [["params"], ["data", "list"], ["--version"]]:
        ensure(place.ranks(3, *words) == place.alone(*words), words)


def case_interrupted(place):
    """Ctrl-C, which mpirun passes on: all stop after the same step, with a checkpoint."""
    with disturbed(place, 3) as (run, process):
        process.process.send_signal(signal.SIGINT)
        code, out, errors = process.end(LIMIT)
    ensure(code != 0 and not out, code, out)
    ensure(errors.count("stopping after this step") == 1, errors)
    ensure(errors.count("with a checkpoint; resume with") == 1, errors)
    logged = len(losses(run))
    found = json.loads(place.alone("inspect", run, "--json"))["steps"]
    ensure(found == logged, f"{logged} steps are logged, the checkpoint has {found}")
    place.ensure_tidy()
    place.ranks(2, "train", "--resume", run, "--steps", found + 20)
    ensure(len(losses(run)) == found + 20, "it trains on")


HEADS = "--resize 16x16 --seeds 0 --steps 12 --samples 3 --corrupted 5 --encoder".split()
HEADS.append(str(ROOT / "crates/circulant-data/tests/fixtures/encoder.onnx"))


def pictures(folder):
    """A folder of PNG files of 12 x 12 in three classes, with a training and a test part."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for part, count in [("train", 12), ("test", 6)]:
        for label in range(3):
            place = folder / part / f"class-{label}"
            place.mkdir(parents=True)
            for index in range(count):
                pixels = [[(label * 80 + index, 20 * x, 12 * y + 3 * index) for x in range(12)] for y in range(12)]
                raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
                header = struct.pack(">IIBBBBB", 12, 12, 8, 2, 0, 0, 0)
                parts = [(b"IHDR", header), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
                file = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
                (place / f"{index}.png").write_bytes(file)
    return folder


def case_experiments(place):
    """`reproduce` gives on two ranks what it gives on one."""
    folder = place.path("sets")
    folder.mkdir()
    rows = [(i % 7, i * 37 % 11) for i in range(60)]
    (folder / "toy.csv").write_text("a,b,target\n" + "".join(f"{a},{b},{0.3 * a - 0.1 * b}\n" for a, b in rows))
    (folder / "toy-test-mask.csv").write_text("s0,s1,s2\n" + "".join(f"{i % 5 == 0:d},{i % 5 == 1:d},{i % 5 == 2:d}\n" for i in range(60)))
    settings = place.path("settings.toml")
    settings.write_text("[training]\nsteps = 40\n")
    lines = {
        "tables": ["tables", "--data", folder, "--config", settings, "--samples", 5],
        "mnist": "mnist --data glyphs --first 300 --steps 20 --seeds 0 --models spectral-bccb,dense --samples 5".split(),
        "heads": ["heads", "--data", pictures(place.path("pictures")), *HEADS],
        "vit": "vit --data glyphs --first 200 --epochs 2 --models spectral --warm-up 1 --batch 40 --width 16 --depth 1 --no-curvature".split(),
    }
    for name, words in lines.items():
        one, two = place.path(f"{name}-1"), place.path(f"{name}-2")
        place.alone("reproduce", *words, "--out", one)
        out = place.ranks(2, "reproduce", *words, "--out", two)
        ensure(out.strip(), "a table is printed")
        files = [{str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} for root in (one, two)]
        ensure(files[0] == files[1], name, "files differ:", files[0] ^ files[1])
        if name == "tables":
            # JSON is read to the last digit but one.
            rounded = lambda value: round(value, 12) if isinstance(value, float) else value
            lines_of = lambda root: map(json.loads, (root / "splits.jsonl").read_text().splitlines())
            read = lambda root: [{key: rounded(line[key]) for key in line if key != "seconds"} for line in lines_of(root)]
            ensure(read(one) == read(two), "splits differ:", read(one), read(two))
        if name == "mnist":
            for run in ["spectral-bccb", "dense"]:
                ensure_close(*[losses(root / "runs" / run / "seed-0") for root in (two, one)])
        if name == "heads":
            bounds = [(root / "runs/spectral/seed-0/lipschitz.jsonl").read_text().count("\n") for root in (one, two)]
            ensure(bounds[0] == bounds[1] > 0, "looks at the bound:", bounds)
        # What is done is not repeated.
        again = place.ranks(2, "reproduce", *words, "--out", two)
        ensure(again.strip(), "a table is printed again")


NAMES = ["circulant-check-1", "circulant-check-2"]


@contextmanager
def two_hosts(place):
    """Two network namespaces with an address each, joined by a cable; what mpirun needs to use both."""

    def ip(*words):
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(f"no network namespaces: {done.stderr.strip()}")

    try:
        for name in NAMES:
            ip("netns", "add", name)
        ip("link", "add", "circ1", "netns", NAMES[0], "type", "veth", "peer", "name", "circ2", "netns", NAMES[1])
        for number, name in enumerate(NAMES, 1):
            ip("-n", name, "addr", "add", f"10.26.0.{number}/24", "dev", f"circ{number}")
            for device in ["lo", f"circ{number}"]:
                ip("-n", name, "link", "set", device, "up")
        # Instead of ssh: the name of the host, then a command for its shell.
        agent = place.path("agent")
        agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {NAMES[1]} unshare --uts sh -c "hostname two; $*"\n')
        agent.chmod(0o755)
        # mpirun too must notice soon that a host is gone.
        keepalive = {"time": 4, "intvl": 2, "probes": 3}
        options = ["--host", "10.26.0.1:1,10.26.0.2:1", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self"]
        for layer in ["btl", "oob"]:
            options += ["--mca", f"{layer}_tcp_if_include", "10.26.0.0/24"]
        for name, value in keepalive.items():
            options += ["--mca", f"oob_tcp_keepalive_{name}", str(value)]
        yield {"options": options, "prefix": ["ip", "netns", "exec", NAMES[0]]}
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def case_two_hosts(place):
    """Two hosts with their own addresses; one is cut off in the middle of training."""
    with two_hosts(place) as hosts:
        words = ["train", *MODEL, "--steps", 100]
        place.alone(*words, "--out", place.path("alone"))
        place.ranks(2, *words, "--out", place.path("together"), **hosts)
        ensure_close(losses(place.path("together")), losses(place.path("alone")))
        with disturbed(place, 2, **hosts) as (run, process):
            subprocess.run(["ip", "-n", NAMES[1], "link", "set", "circ2", "down"], check=True)
            begin = time.monotonic()
            code, _, errors = process.end(60)
            seconds = time.monotonic() - begin
        ensure(code != 0, "it must not succeed")
        ensure("rank 1 has not been heard of" in errors or "lost" in errors.lower(), errors)
        ensure(seconds <= LIMIT, f"it took {seconds:.0f} s")
        ensure_resumes(place, run, 10)
        return f"ended after {seconds:.1f} s"


def prepared():
    """Open MPI is here."""
    if shutil.which("mpirun") is None:
        print("installing Open MPI", file=sys.stderr)
        subprocess.run(["apt-get", "update", "-q"], check=False, stdout=subprocess.DEVNULL)
        done = subprocess.run(["apt-get", "install", "-qy", *PACKAGES], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"mpirun is missing; install {', '.join(PACKAGES)}")


def main():
    cases = {name.removeprefix("case_"): case for name, case in globals().items() if name.startswith("case_")}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(cases)} [default: all]")
    parser.add_argument("--program", type=Path, help="the program with the feature `mpi` [default: built for release]")
    arguments = parser.parse_args()
    prepared()
    unknown = set(arguments.cases) - set(cases)
    if unknown:
        parser.error(f"unknown cases: {', '.join(sorted(unknown))}")
    program = arguments.program
    if program is None:
        subprocess.run(["cargo", "build", "--release", "--workspace", "--features", "mpi", "--bin", "circulant"], cwd=ROOT, check=True)
        program = ROOT / "target/release/circulant"
    failed = 0
    for name in arguments.cases or cases:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="circulant-mpi-") as root:
            try:
                note = cases[name](Place(program.resolve(), Path(root)))
                result = "ok" + (f", {note}" if note else "")
            except Skipped as skipped:
                result = f"skipped: {skipped}"
            except AssertionError as error:
                failed += 1
                result = f"FAILED: {error}"
        print(f"{name} ({time.monotonic() - begin:.0f} s): {result}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
