"""The three sides of a comparison, each behind the same `measure(case, seconds)`.

Memory and start are measured in a fresh process, which trains for some steps and prints
one JSON line; everything else is timed.
"""

import json
import subprocess

from cases import parse
from environment import HERE, KEEP_MEMORY, Failed, variables

# Work of a fresh process -> steps, and what of its answer is the measure.
FRESH = {"memory": (1000, "peak_mib"), "start": (1, "first_step_seconds")}


def run(command, environment):
    """The JSON lines that a command prints."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Side:
    def measure(self, case, seconds):
        work = parse(case).work
        if work not in FRESH:
            return self.time(case, seconds)
        steps, key = FRESH[work]
        # The steps are those of the SVI case whose name follows.
        answers = self.fresh(case.partition("/")[2], steps)
        if not answers:
            raise Failed(f"{case}: expected a line of JSON from {self.name}, found none")
        found = answers[-1]
        of_data = {key: found[key] for key in ("data_mib", "data_seconds")}
        return {"best": found[key], "median": found[key], **of_data}


class Ours(Side):
    """Our benchmarks: one process per measurement, it starts at once."""

    name = "ours"

    def __init__(self, executable_of_case, threads):
        self.executable_of_case, self.threads = executable_of_case, threads

    def time(self, case, seconds):
        command = [self.executable_of_case(case), "--bench", "--json", "--case", case]
        command += ["--seconds", seconds, "--threads", self.threads]
        # `forward` is the beginning of `forward_backward`, so a benchmark that
        # filters by part of the name prints more than the case asked for.
        for found in run(command, variables(self.threads, **KEEP_MEMORY)):
            if found.get("case") == case:
                if (found.get("unit"), found.get("threads")) != ("ms", self.threads):
                    raise Failed(f"{case}: expected ms on {self.threads} threads, found {found}")
                return {key: found[key] for key in ("best", "median", "value") if key in found}
        raise Failed(f"{case}: expected a line of JSON from {command[0]}, found none")

    def fresh(self, case, steps):
        command = [self.executable_of_case(case), "--bench", "--run-steps", steps, "--case", case]
        return run([*command, "--threads", self.threads], variables(self.threads))

    def export(self, case, path):
        run([self.executable_of_case(case), "--bench", "--export", case, path], variables(self.threads))


class Peer(Side):
    """A worker process that stays alive between measurements."""

    def __init__(self, name, python, threads, **environment):
        self.name, self.python, self.threads = name, python, threads
        self.process = subprocess.Popen(
            [python, HERE / "worker.py", name, str(threads)],
            env=variables(threads, **KEEP_MEMORY, **environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"the {self.name} worker ended; see its message above")
        return json.loads(line)

    def time(self, case, seconds):
        return self.ask(op="time", case=case, seconds=seconds)

    def fresh(self, case, steps):
        command = [self.python, HERE / "svi_fresh.py", self.name, self.threads, case, steps]
        return run(command, variables(self.threads))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
