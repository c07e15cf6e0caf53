"""``python -m circulant`` is the program."""

import sys

from . import _engine


def main() -> int:
    """Run the program with the arguments of this process."""
    return _engine.program(["circulant", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
