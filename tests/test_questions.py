"""Every command of docs/questions.md, on small racks with few flows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LINES = re.findall(r"^    (rackloom .*)$", (ROOT / "docs" / "questions.md").read_text(), re.M)
FEW = ["--set", "run.flows=60", "--set", "run.time=200 us"]
SHORT = ["--set", "run.window=50 us", "--set", "run.warm_up=50 us", "--set", "run.time=200 us"]


@pytest.mark.parametrize("line", LINES)
def test_a_question_is_answered(line: str, here: Path, command: Any) -> None:
    (here / "examples").symlink_to(ROOT / "examples")
    words = shlex.split(line)[1:]
    if "--report" in words:
        # What the page's first command leaves, of a fabric that is done in a blink.
        few = ["--set", "run.flows=60", "--grid", "workload.load=0.2,0.4"]
        scenario = ["examples/shoal-rack.toml", "--set", "fabric.nodes=16"]
        done = command("sweep", *scenario, *few, "--out", "results/load-sweep")
        assert done.returncode == 0, done.stderr
    elif words[0] == "why":
        # What the question's first command leaves, of a flow that is there with so few of them.
        words = ["0" if word.isdigit() else word for word in words]
        few = [*FEW, "--set", "run.trace=flows 0", "--out", "results/why"]
        done = command("run", "examples/why.toml", *few)
        assert done.returncode == 0, done.stderr
    elif "collectives" in line:
        # An accelerator for each of the parameters' nodes.
        words += ["--set", "fabric.nodes=16"]
        for job, size in enumerate(["1 KB", "1 KB", "400 KB", "1 KB"]):
            words += ["--set", f"workload.job[{job}].work.size={size}"]
    elif "jobs" in line:
        words += ["--set", "workload.alone=false"]
    else:
        words += SHORT if "load.toml" in line else FEW
    if words[0] == "search":
        # Which takes a library of Python: the package's command, not the binary.
        few = ["--trials=4"]
        done = subprocess.run(
            [sys.executable, "-m", "rackloom", *words, *few, "--quiet"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        figures = sorted(path.name for path in here.glob("results/*/figures/*"))
        assert figures == ["front.pdf", "front.svg"]
        assert list(here.glob("results/*/trials.csv"))
        return
    done = command(*words, "--quiet")
    assert done.returncode == 0, done.stderr
    figures = sorted(path.name for path in here.glob("results/*/figures/*"))
    plots = [word for word in words if word == "--plot"]
    assert len(figures) == 2 * len(plots)
    assert list(here.glob("results/*/report.html"))


def test_there_are_questions() -> None:
    assert len(LINES) >= 4
