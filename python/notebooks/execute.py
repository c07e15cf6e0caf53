"""Runs the notebooks and keeps their outputs; needs nbclient and ipykernel.

    python python/notebooks/execute.py [NAME ...]
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, record_timing=False).execute()
        # What depends on the machine alone.
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)
        print(path.name)
