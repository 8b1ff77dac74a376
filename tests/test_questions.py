"""Every command of docs/questions.md, on small racks with few flows."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LINES = re.findall(r"^    (rackloom .*)$", (ROOT / "docs" / "questions.md").read_text(), re.M)
SMALL = ["--set", "run.flows=60", "--set", "run.time=200 us", "--set", "workload.size=1 KB"]


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
    else:
        size = "collectives" in line
        words += SMALL[4:] if size else SMALL[:4]
    done = command(*words, "--quiet")
    assert done.returncode == 0, done.stderr
    figures = sorted(path.name for path in here.glob("results/*/figures/*"))
    plots = [word for word in words if word == "--plot"]
    assert len(figures) == 2 * len(plots)
    assert list(here.glob("results/*/report.html"))


def test_there_are_questions() -> None:
    assert len(LINES) >= 4
