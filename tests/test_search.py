"""Searches: what a sweep of the whole space shows to be the best is found."""

import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import rackloom

pytest.importorskip("optuna")

Scenario = dict[str, Any]
Summary = dict[str, Any]

LOADS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
SPACE: dict[str, list[Any]] = {"workload.load": LOADS, "fabric.channels": [1, 2, 3, 4]}


def p99(summary: Summary) -> float:
    return float(summary["fct"]["all"]["p99"])


def throughput(summary: Summary) -> float:
    return float(summary["throughput"]["mean_node"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> rackloom.Sweep:
    """Every point of the space."""
    scenario = {
        "name": "small",
        "seed": 7,
        "run": {"flows": 200},
        "workload": {"kind": "poisson", "load": 0.4, "sizes": {"kind": "fixed", "size": "3 KB"}},
        "fabric": {"kind": "shoal", "nodes": 16},
    }
    return rackloom.sweep(scenario, SPACE, out=tmp_path_factory.mktemp("whole"))


@pytest.fixture
def scenario(small: Scenario) -> Scenario:
    return {**small, "run": {"flows": 200}}


@pytest.mark.usefixtures("here")
def test_half_the_trials_find_the_best_that_a_sweep_of_all_shows(
    scenario: Scenario, whole: rackloom.Sweep
) -> None:
    limit = sorted(p99(result.summary) for result in whole.results)[len(whole) // 3]
    expected = max(
        throughput(result.summary) for result in whole.results if p99(result.summary) < limit
    )
    found = rackloom.search(
        scenario,
        SPACE,
        maximise="throughput.mean_node",
        subject=f"fct.all.p99 < {limit!r}",
        trials=len(whole) // 2,
        jobs=1,
    )
    assert len(found) == len(whole) // 2
    assert not found.is_exhausted
    assert found.best is not None
    assert found.best.values == [expected]
    assert p99(found.best.summary or {}) < limit
    told = {point.settings["workload.load"] for point in whole}
    assert {trial.settings["workload.load"] for trial in found} <= told
    for trial in found:
        assert trial.summary is not None
        assert (trial.status == "feasible") == (p99(trial.summary) < limit)
        assert bool(trial.why) == (trial.status == "infeasible")


@pytest.mark.usefixtures("here")
def test_the_front_is_that_of_every_point(scenario: Scenario, whole: rackloom.Sweep) -> None:
    found = rackloom.search(
        scenario,
        SPACE,
        minimise="fct.all.p99",
        maximise="throughput.mean_node",
        trials=1000,
        jobs=2,
    )
    assert found.is_exhausted
    assert len(found) == len(whole)
    pairs = {(p99(result.summary), throughput(result.summary)) for result in whole.results}
    beaten = {
        worse
        for worse, better in itertools.product(pairs, pairs)
        if better != worse and better[0] <= worse[0] and better[1] >= worse[1]
    }
    assert {tuple(trial.values or []) for trial in found.front} == pairs - beaten
    assert found.table.num_rows == len(whole)
    assert sum(found.table["is_best"].to_pylist()) == len(found.front)
    assert found.plot().svg.startswith("<svg")
    assert found.report().is_file()


def tried(found: rackloom.Search) -> list[dict[str, str]]:
    return [trial.settings for trial in found]


def test_a_search_that_goes_on_tries_what_a_whole_one_tries(here: Path, scenario: Scenario) -> None:
    space = {"workload.load": "0.1..0.7", "fabric.wire_latency": "10 ns..1 us log"}
    wanted: dict[str, Any] = {"minimise": "fct.all.p99", "jobs": 1}
    straight = rackloom.search(scenario, space, trials=16, out="straight", **wanted)
    first = rackloom.search(scenario, space, trials=12, out="parts", **wanted)
    points = here / "parts" / "points"
    made = {path: path.stat().st_mtime_ns for path in points.glob("*/summary.json")}
    assert len(made) == len(first) == 12
    second = rackloom.search(scenario, space, trials=16, out="parts", **wanted)
    assert made == {path: path.stat().st_mtime_ns for path in made}
    assert tried(second) == tried(straight)
    for name in ["search.json", "trials.csv", "trials.parquet", "figures/front.svg"]:
        assert (here / "parts" / name).read_bytes() == (here / "straight" / name).read_bytes()
    other = rackloom.search({**scenario, "seed": 8}, space, trials=12, out="other", **wanted)
    assert tried(other) != tried(first)


@pytest.mark.usefixtures("here")
def test_what_cannot_run_is_listed_and_does_not_end_a_search(scenario: Scenario) -> None:
    found = rackloom.search(
        scenario, {"fabric.nodes": [16, 17, 1]}, minimise="fct.all.p99", trials=9
    )
    failed = {trial.settings["fabric.nodes"]: trial for trial in found if trial.status == "failed"}
    assert "1" in failed
    assert "fabric.nodes" in failed["1"].why[0]
    assert found.best is not None
    shown = found._repr_html_()
    assert shown.count("<tr>") == 1 + len(found)
    assert shown.count("<td>best</td>") == len(found.front)
    assert shown.count("<td>failed; ") == len(failed)


def test_the_command_stops_at_ctrl_c_and_goes_on(here: Path, scenario: Scenario) -> None:
    (here / "small.json").write_text(json.dumps({**scenario, "run": {"flows": 20_000}}))
    search = [sys.executable, "-m", "rackloom", "search", "small.json", "--jobs=1", "--trials=8"]
    search += ["--over", "workload.load=0.3..0.6", "--minimise", "fct.all.p99"]
    points = here / "results" / "small-search" / "points"
    running = subprocess.Popen(search, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not list(points.glob("*/summary.json")):
        assert time.monotonic() < limit
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130, said
    assert "the same command goes on from here" in said
    # The run that was under way is half a run, and says so.
    whole = [
        path
        for path in points.glob("*/summary.json")
        if not json.loads(path.read_text())["interrupted"]
    ]
    kept = {path: path.stat().st_mtime_ns for path in whole}
    assert 0 < len(kept) < 8
    done = subprocess.run(search, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "100 %, 8 of 8 trials" in done.stderr
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert len(list(points.iterdir())) == 8


def test_what_is_no_search_is_refused(here: Path, scenario: Scenario, command: Any) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "a key to minimise or to maximise"),
        ({"minimise": "nodes", "trials": 0}, "expected at least 1"),
        ({"minimise": "nodes", "subject": "nodes"}, "expected KEY < LIMIT"),
    ]
    for wanted, expected in cases:
        with pytest.raises(rackloom.InputError, match=expected):
            rackloom.search(scenario, {"seed": [1, 2]}, **wanted)
    (here / "small.json").write_text(json.dumps(scenario))
    done = command("search", "small.json", "--over=seed=1,2", "--minimise=nodes")
    assert done.returncode == 2
    assert "pip install 'rackloom[search]'" in done.stderr
    assert [path.name for path in here.iterdir()] == ["small.json"]
