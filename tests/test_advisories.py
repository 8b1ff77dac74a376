"""`make advisories` checks where it can, says where it cannot, and fails on what it finds."""

import os
import subprocess
from pathlib import Path

import pytest


def run(root: Path, programs: Path, **scripts: str) -> subprocess.CompletedProcess[str]:
    """Runs the script with programs of our own before all others on the path."""
    programs.mkdir(exist_ok=True)
    for name, script in scripts.items():
        program = programs / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.run(
        [root / "scripts/advisories"], env=environment, capture_output=True, text=True, check=False
    )


def test_a_database_out_of_reach_is_told_and_no_failure(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path / "bin", git="exit 128")
    assert done.returncode == 0, done.stderr
    assert "SKIPPED, nothing was checked: the database cannot be reached" in done.stdout


@pytest.mark.parametrize(("found", "code"), [("exit 0", 0), ("exit 1", 1)])
def test_what_is_found_is_a_failure(root: Path, tmp_path: Path, found: str, code: int) -> None:
    done = run(root, tmp_path / "bin", git="exit 0", cargo_deny="exit 9", cargo=found)
    assert done.returncode == code, done.stdout
    assert "SKIPPED" not in done.stdout
    assert ("none applies" in done.stdout) is (code == 0)
