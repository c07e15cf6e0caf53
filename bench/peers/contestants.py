"""The three sides of a comparison, each behind the same `time(case, seconds)`."""

import json
import subprocess

from environment import HERE, Failed, variables


class Ours:
    """Our benchmark: one process per measurement, it starts at once."""

    name = "ours"

    def __init__(self, executable, threads):
        self.executable, self.threads = executable, threads

    def time(self, case, seconds):
        command = [str(self.executable), "--bench", "--json", "--case", case]
        command += ["--seconds", str(seconds), "--threads", str(self.threads)]
        try:
            done = subprocess.run(
                command, env=variables(self.threads), stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise Failed(f"{self.executable}: {error.strerror}") from error
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit code {done.returncode}")
        # `forward` is the beginning of `forward_backward`, so a benchmark that
        # filters by part of the name prints more than the case asked for.
        for line in done.stdout.splitlines():
            found = json.loads(line) if line.startswith("{") else {}
            if found.get("case") == case:
                if (found.get("unit"), found.get("threads")) != ("ms", self.threads):
                    raise Failed(f"{case}: expected ms on {self.threads} threads, found {line}")
                return {"best": found["best"], "median": found["median"]}
        raise Failed(f"{' '.join(command)}: expected a line for {case}, found none")


class Peer:
    """A worker process that stays alive between measurements."""

    def __init__(self, name, python, threads, **environment):
        self.name = name
        self.process = subprocess.Popen(
            [python, HERE / "worker.py", name, str(threads)],
            env=variables(threads, **environment),
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

    def close(self):
        self.process.stdin.close()
        self.process.wait()
