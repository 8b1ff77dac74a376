"""The notebooks in examples/ run from beginning to end."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent


# Jupyter's own warnings about event loops and sockets left to the garbage collector.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda p: p.name)
def test_a_notebook_runs(path: Path, here: Path) -> None:
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    (here / "examples").symlink_to(ROOT / "examples")
    resources = {"metadata": {"path": str(here)}}
    NotebookClient(notebook, timeout=300, resources=resources).execute()
    shown = [
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert "image/png" in shown, "no plot was drawn"
    assert "text/html" in shown, "no table was shown"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda p: p.name)
def test_a_notebook_is_kept_without_output(path: Path) -> None:
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        assert not cell.get("outputs"), "clear the output before committing"
        assert cell.get("execution_count") is None
