"""What the tests share: the project's root, a small scenario, the `rackloom` binary."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def metadata(root: Path) -> dict[str, Any]:
    """What Cargo says of the workspace and of all it depends on."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    text = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture(scope="session")
def binary(metadata: Mapping[str, Any]) -> Path:
    """The binary that `make python-test` has built."""
    path = Path(metadata["target_directory"]) / "debug" / "rackloom"
    assert path.is_file(), f"{path} is missing: run `make test`, which builds it"
    return path


@pytest.fixture
def command(binary: Path, tmp_path: Path) -> Command:
    """Runs the binary in an empty directory."""

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [binary, *arguments],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small() -> dict[str, Any]:
    """A scenario that runs in well under a second."""
    return {
        "name": "small",
        "seed": 7,
        "run": {"flows": 400},
        "workload": {"kind": "poisson", "load": 0.4, "sizes": {"kind": "fixed", "size": "3 KB"}},
        "fabric": {"kind": "shoal", "nodes": 16},
    }
