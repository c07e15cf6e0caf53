"""Writes the pages of docs/python from the docstrings of what is public.

    python python/pages.py            # after a change of a docstring
    python python/pages.py --check    # says which pages are old

A page per class of estimators and of torch layers, one per module of functions. Modules whose extra is missing are left alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "python"
#: Pages by what they are about: a class, or all of a module.
PAGES = {
    "classifier": ("circulant", "CirculantClassifier", "sklearn"),
    "regressor": ("circulant", "CirculantRegressor", "sklearn"),
    "functional": ("circulant.functional", None, None),
    "metrics": ("circulant.metrics", None, None),
    "datasets": ("circulant.datasets", None, None),
    "torch": ("circulant.torch", None, "torch"),
}
_UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def markdown(docstring: str, level: int) -> str:
    """A docstring in NumPy's style as Markdown."""
    text = inspect.cleandoc(docstring)
    parts = _UNDERLINED.split(text)
    written = [_prose(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2]):
        written.append(f"{'#' * level} {title}\n")
        written.append(_prose(body) if title in ("Examples", "Notes") else _items(body))
    return "\n".join(part.rstrip() + "\n" for part in written if part.strip())


def _prose(text: str) -> str:
    """Roles and literals of reStructuredText, and examples as code."""
    text = re.sub(r":\w+:`\.?~?([^`]+)`", r"`\1`", text).replace("``", "`")
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(_block(block) for block in blocks if block.strip()) + "\n"


def _block(block: str) -> str:
    if ">>>" in block:
        return f"```python\n{inspect.cleandoc(block)}\n```"
    if re.search(r"^=+  +=+", block, re.MULTILINE):
        rows = (re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in block.splitlines() if line[0] != "=")
        return "\n".join(["| name | what |", "| --- | --- |", *(f"| {name} | {what} |" for name, what in rows)])
    return " ".join(line.strip() for line in block.splitlines())


def _items(body: str) -> str:
    """``name : type`` with indented lines below, as a list."""
    items: list[tuple[str, list[str]]] = []
    for line in body.strip().splitlines():
        if line and not line[0].isspace():
            name, _, kind = line.partition(" : ")
            names = ", ".join(f"`{part.strip()}`" for part in name.split(",")) if kind else f"`{name}`"
            items.append((f"- {names}" + (f" ({kind})" if kind else ""), []))
        elif line.strip():
            items[-1][1].append(line.strip())
    lines = (f"{head}: {' '.join(words)}" if words else head for head, words in items)
    return "\n".join(_prose(line).strip() for line in lines) + "\n"


def _signature(member: Any) -> str:
    try:
        signature = inspect.signature(member)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def of_class(title: str, owner: type, level: int) -> str:
    """A class, its fields and its methods."""
    hashes = "#" * level
    text = [f"{hashes} {title}{'' if hasattr(owner, '_fields') else _signature(owner)}\n"]
    text.append(markdown(owner.__doc__ or "", level + 1))
    if fields := getattr(owner, "_fields", ()):
        text.append(f"Fields: {', '.join(f'`{field}`' for field in fields)}.\n")
    members: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("circulant"):
            members |= vars(base)
    for name, member in sorted(members.items()):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            text += [f"{hashes}# `{name}{_signature(function)}`\n", markdown(function.__doc__, level + 2)]
    return "\n".join(text)


def page(module_name: str, name: str | None) -> str:
    """The text of a page."""
    module = importlib.import_module(module_name)
    head = f"<!-- Written by python/pages.py from the docstrings of {module_name}: change them, not this page. -->\n\n"
    if name is not None:
        return head + of_class(f"{module_name}.{name}", getattr(module, name), 1)
    text = [f"# {module_name}\n", markdown(module.__doc__ or "", 2)]
    for member_name in module.__all__:
        member = getattr(module, member_name)
        if inspect.isclass(member):
            text.append(of_class(member_name, member, 2))
        elif inspect.isfunction(member):
            text += [f"## `{member_name}{_signature(member)}`\n", markdown(member.__doc__ or "", 3)]
    return head + "\n".join(text)


def pages() -> dict[Path, str]:
    """All pages whose extra is there."""
    found = {}
    for stem, (module, name, extra) in PAGES.items():
        if extra is None or importlib.util.find_spec(extra) is not None:
            found[FOLDER / f"{stem}.md"] = page(module, name)
    return found


def main() -> int:
    """Writes the pages, or checks them."""
    old = [path for path, text in pages().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{path.name} is old: run python/pages.py" for path in old))
        return 1 if old else 0
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    print(f"{len(old)} pages changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
