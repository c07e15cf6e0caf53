"""A progress bar for a terminal or a notebook, without dependencies."""

from __future__ import annotations

import sys
import time


class Progress:
    """Shows how far training is: a line that is overwritten, on standard error.

    Called as ``progress(step, steps, loss)`` from the thread that waits; the first call after two seconds shows it.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._begin = time.monotonic()
        self._shown = False

    def __call__(self, step: int, steps: int, loss: float) -> None:
        passed = time.monotonic() - self._begin
        if passed < 2.0 and not self._shown:
            return
        share = step / max(steps, 1)
        bar = ("#" * int(30 * share)).ljust(30, ".")
        left = f", {passed / share - passed:.0f} s left" if share > 0.01 else ""
        sys.stderr.write(f"\r{self._title} [{bar}] {step}/{steps}, loss {loss:.4f}{left}   ")
        sys.stderr.flush()
        self._shown = True

    def close(self) -> None:
        """Ends the line."""
        if self._shown:
            sys.stderr.write("\n")
            sys.stderr.flush()
