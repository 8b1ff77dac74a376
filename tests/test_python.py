"""The Python package: the command's results as objects, its refusals as exceptions."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rackloom

Scenario = dict[str, Any]
Grid = dict[str, list[Any]]


def endless(small: Scenario) -> Scenario:
    """The scenario with more flows than any test waits for."""
    return {**small, "run": {"flows": 1_000_000_000}}


def without_engine(summary: dict[str, Any]) -> dict[str, Any]:
    """All of a summary that equal runs share."""
    return {key: value for key, value in summary.items() if key != "engine"}


def test_a_run_leaves_its_files_and_says_where(here: Path, small: Scenario) -> None:
    result = rackloom.run(small)
    assert result.directory.parent == Path("results")
    assert result.directory.name == f"small-{result.summary['scenario_hash']}"
    assert {path.name for path in (here / result.directory).iterdir()} == {
        "SHA256SUMS",
        "flows.parquet",
        "report.html",
        "scenario.toml",
        "series.parquet",
        "summary.json",
    }
    stored = json.loads((result.directory / "summary.json").read_text())
    assert stored == result.summary


def test_python_and_the_command_agree_to_the_byte(
    here: Path, small: Scenario, rackloom_command: Callable[..., str]
) -> None:
    ours = rackloom.run(small, out="python", seed=11, fabric__channels=2)
    (here / "small.json").write_text(json.dumps(small))
    rackloom_command("run", "small.json", "--seed=11", "--set=fabric.channels=2", "--out=command")
    theirs = rackloom.load("command")
    assert ours.summary["event_hash"] == theirs.summary["event_hash"]
    assert without_engine(ours.summary) == without_engine(theirs.summary)
    for name in ["flows.parquet", "series.parquet", "scenario.toml"]:
        assert (here / "python" / name).read_bytes() == (here / "command" / name).read_bytes(), name


@pytest.fixture
def rackloom_command(command: Any) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    return run


@pytest.mark.usefixtures("here")
def test_the_tables_agree_with_the_summary(small: Scenario) -> None:
    result = rackloom.run(small)
    flows = result.flows
    assert isinstance(flows, pa.Table)
    completed = flows.filter(pc.equal(flows["status"].cast(pa.string()), "completed"))
    assert completed.num_rows == result.summary["flows"]["completed"]
    assert flows.num_rows == result.summary["flows"]["offered"]
    # What is measured is a fixed set: others arrive before and after it.
    completed = completed.filter(completed["measured"])
    assert completed.num_rows == result.summary["flows"]["measured"] == 400
    took = pc.subtract(completed["end_ps"], completed["start_ps"])
    assert took == completed["fct_ps"]
    stages = [name for name in flows.column_names if name.startswith("stage_")]
    total = sum(pc.sum(completed[name]).as_py() for name in stages)
    whole = pc.sum(completed["fct_ps"]).as_py()
    # The mean over a flow's cells is rounded in each stage: at most 1 ps a stage and flow.
    assert abs(total - whole) <= len(stages) * completed.num_rows
    mean = whole / completed.num_rows / 1e12
    assert result.summary["fct"]["all"]["mean"] == pytest.approx(mean, rel=1e-3)
    delivered = pc.sum(result.series["hops"]).as_py()
    assert delivered == result.summary["engine"]["hops"]


@pytest.mark.usefixtures("here")
def test_every_column_has_a_description() -> None:
    scenario = {"workload": {"kind": "incast", "senders": 3, "size": "1 KB"}}
    result = rackloom.run(scenario, fabric={"kind": "shoal", "nodes": 4})
    for table in (result.flows, result.series):
        for field in table.schema:
            assert field.metadata[b"description"], field.name


@pytest.mark.usefixtures("here")
def test_a_resolved_scenario_names_the_same_run(small: Scenario) -> None:
    resolved = rackloom.resolve(small)
    assert resolved["fabric"]["guard"] == "2.75 ns"
    assert resolved["run"]["flows"] == 400
    first, second = rackloom.run(small), rackloom.run(resolved, out="again")
    assert first.summary["scenario_hash"] == second.summary["scenario_hash"]
    assert first.scenario == second.scenario


def test_an_estimate_is_that_of_the_command(
    here: Path, small: Scenario, rackloom_command: Callable[..., str]
) -> None:
    (here / "small.json").write_text(json.dumps(small))
    (ours,) = rackloom.estimate("small.json", fabric__nodes=32)
    told = rackloom_command(
        "run", "small.json", "--set=fabric.nodes=32", "--estimate", "--format=json"
    )
    (theirs,) = json.loads(told)
    assert ours.memory_bytes == theirs["memory_bytes"] > 0
    assert ours.label == theirs["fabric"]
    assert ours.seconds is not None
    assert 0 < ours.seconds < 60
    assert ours.basis.startswith("a probe")
    assert not (here / "results").exists()
    (larger,) = rackloom.estimate(small, fabric__nodes=64)
    assert larger.memory_bytes > ours.memory_bytes


def test_an_estimate_of_each_fabric_is_told(small: Scenario) -> None:
    pair = {**small, "fabric": [{**small["fabric"], "label": "a"}, {"kind": "pl2", "nodes": 16}]}
    assert [found.label for found in rackloom.estimate(pair)] == ["a", "pl2"]


def test_nodes_are_recorded_as_the_command_records_them(
    here: Path, small: Scenario, rackloom_command: Callable[..., str]
) -> None:
    (ours,) = rackloom.record(small, flows=5, out="ours")
    assert (ours.flows, ours.completed, ours.failed) == (5, 5, 0)
    assert ours.directory == Path("ours")
    assert ours.messages > 0
    (here / "small.json").write_text(json.dumps(small))
    rackloom_command("record", "small.json", "--flows=5", "-o", "theirs")
    names = sorted(path.name for path in (here / "ours").iterdir())
    assert len(names) == ours.nodes + 1
    assert "schema.json" in names
    for name in names:
        assert (here / "ours" / name).read_bytes() == (here / "theirs" / name).read_bytes()


def test_what_takes_more_memory_than_there_is_is_refused_with_its_estimate() -> None:
    huge = {
        "run": {"flows": 10},
        "workload": {"kind": "poisson", "load": 0.1},
        "fabric": {"kind": "pl2", "nodes": 1_000_000_000},
    }
    with pytest.raises(rackloom.InputError, match="of memory, and the limit is"):
        rackloom.estimate(huge)


def test_every_problem_is_told_with_its_place(here: Path) -> None:
    (here / "bad.toml").write_text(
        "[workload]\nkind = 'poisson'\nload = 'much'\n[fabric]\nkind = 'shoal'\ngaurd = '2 ns'\n"
    )
    with pytest.raises(rackloom.InputError) as caught:
        rackloom.run("bad.toml", fabric__nodes=-1)
    found = {(problem.line, problem.key) for problem in caught.value.problems}
    assert {(3, "workload.load"), (6, "fabric.gaurd"), (None, "fabric.nodes")} <= found
    by_key = {problem.key: problem for problem in caught.value.problems}
    assert "guard" in by_key["fabric.gaurd"].message
    assert by_key["fabric.gaurd"].file == "bad.toml"
    assert by_key["fabric.nodes"].file == "fabric__nodes=-1"
    assert "bad.toml:6: fabric.gaurd: " in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert list(here.iterdir()) == [here / "bad.toml"]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("absent.toml", "absent.toml: cannot be read"),
        ({"fabric": {"kind": "shoal", "nodes": float("nan")}}, "found nan; expected a finite"),
        ({"fabric": {"kind": object()}}, "a scenario cannot hold"),
    ],
)
def test_what_is_no_scenario_is_refused(here: Path, scenario: Any, words: str) -> None:
    with pytest.raises(rackloom.InputError, match=words):
        rackloom.run(scenario)
    assert not list(here.iterdir())


def test_a_directory_that_cannot_be_one_is_refused(here: Path, small: Scenario) -> None:
    (here / "file").write_text("")
    with pytest.raises(rackloom.InputError, match="is a file, not a directory"):
        rackloom.run(small, out="file")


@pytest.mark.usefixtures("here")
def test_several_fabrics_are_to_be_compared(small: Scenario) -> None:
    two = {**small, "fabric": [small["fabric"], {**small["fabric"], "channels": 2}]}
    with pytest.raises(rackloom.InputError, match=r"use rackloom\.compare"):
        rackloom.run(two)
    # All flows that the workload has, so that neither fabric sees more of them than the other.
    compared = rackloom.compare({**two, "run": {}}, workload__flows=400)
    assert len(compared) == 2
    assert [result.label for result in compared] == ["shoal", "shoal 2"]
    flows = [result.flows.sort_by("flow_id") for result in compared]
    for column in ["src", "dst", "size_bytes", "start_ps"]:
        assert flows[0][column].equals(flows[1][column]), column
    assert compared[0].summary["event_hash"] != compared[1].summary["event_hash"]
    assert "shoal 2" in str(compared)
    assert compared.report().is_file()


def test_a_sweep_runs_nothing_twice(here: Path, small: Scenario) -> None:
    grid: Grid = {"workload.load": [0.2, 0.4], "fabric__wire_latency": ["40 ns", "60 ns"]}
    first = rackloom.sweep(small, grid, jobs=2, out="sweep")
    assert [point.settings for point in first] == [
        {"workload.load": load, "fabric.wire_latency": latency}
        for load in ["0.2", "0.4"]
        for latency in ["40 ns", "60 ns"]
    ]
    assert [point.status for point in first] == ["done"] * 4
    assert first.table.num_rows == 4
    written = {path: path.stat().st_mtime_ns for path in here.glob("sweep/points/*/summary.json")}
    assert len(written) == 4
    second = rackloom.sweep(small, grid, out="sweep")
    assert [result.summary for result in second.results] == [r.summary for r in first.results]
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_a_sweep_started_on_the_command_line_goes_on_in_python(
    here: Path, small: Scenario, rackloom_command: Callable[..., str]
) -> None:
    (here / "small.json").write_text(json.dumps(small))
    rackloom_command("sweep", "small.json", "--grid=workload.load=0.2,0.4", "--out=sweep")
    written = {path: path.stat().st_mtime_ns for path in here.glob("sweep/points/*/summary.json")}
    rackloom.sweep("small.json", {"workload.load": [0.2, 0.4]}, out="sweep")
    again = {path: path.stat().st_mtime_ns for path in here.glob("sweep/points/*/summary.json")}
    assert again == written
    assert len(written) == 2


@pytest.mark.usefixtures("here")
def test_a_point_that_fails_fails_alone(small: Scenario) -> None:
    swept = rackloom.sweep(small, {"fabric.nodes": [8, 1]})
    assert [point.status for point in swept] == ["done", "failed"]
    assert "fabric.nodes" in str(swept.failed[0].problem)
    assert swept[1].result is None


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({}, "at least one key"),
        ({"seed": []}, "no values"),
        ({"seed": [1, 1]}, "twice"),
        ({"seed": 1}, r"grid: seed: found 1; expected a list of values"),
        ({"workload.load": "0.2,0.5"}, "found '0.2,0.5'; expected a list of values"),
        ({"workload.load": [float("inf")]}, "found inf; expected a finite number"),
    ],
)
def test_a_grid_of_nothing_is_refused(small: Scenario, grid: Any, words: str) -> None:
    with pytest.raises(rackloom.InputError, match=words):
        rackloom.sweep(small, grid)


@pytest.mark.usefixtures("here")
def test_progress_is_told_and_may_stop_the_run(small: Scenario) -> None:
    heard: list[rackloom.Progress] = []

    class EnoughError(Exception):
        pass

    def hear(progress: rackloom.Progress) -> None:
        heard.append(progress)
        if len(heard) == 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        rackloom.run(endless(small), out="stopped", progress=hear)
    assert [step.done for step in heard] == sorted(step.done for step in heard)
    assert heard[0].what == "shoal"
    assert heard[0].total == 1_000_000_000
    assert rackloom.load("stopped").summary["interrupted"] is True


@pytest.mark.usefixtures("here")
def test_progress_on_stderr_leaves_an_empty_line(
    small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    rackloom.run(small, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("\r")


INTERRUPTED = """
import rackloom, sys
try:
    rackloom.{verb}({arguments}, out="stopped")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("verb", "more"), [("run", ""), ("compare", ""), ("sweep", ", {'seed': [1, 2, 3]}")]
)
def test_control_c_stops_the_work(here: Path, small: Scenario, verb: str, more: str) -> None:
    script = INTERRUPTED.format(verb=verb, arguments=repr(endless(small)) + more)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not list(here.glob("stopped/**/.flows.parquet*")):
            assert time.monotonic() < deadline, "the work did not begin"
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out == b"interrupted\n"
    assert process.returncode == 0


DEAF: Scenario = {
    "run": {"sample": "1 s"},
    "workload": {"kind": "incast", "senders": 7, "size": "10 GB"},
    "fabric": {"kind": "packet-switched", "nodes": 8},
}


def test_control_c_is_heard_by_work_that_reports_nothing(here: Path) -> None:
    script = INTERRUPTED.format(verb="run", arguments=repr(DEAF))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not list(here.glob("stopped/.flows.parquet*")):
            assert time.monotonic() < deadline, "the run did not begin"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        out, _ = process.communicate(timeout=60)
    assert out == b"interrupted\n"
    # A second, and what a busy machine adds.
    assert time.monotonic() - asked < 4


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.usefixtures("here")
def test_what_holds_itself_or_is_endlessly_deep_is_refused(small: Scenario) -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    loop: list[Any] = []
    loop.append(loop)
    # Thirty levels, each twice the one above: a thousand million parts.
    wide: list[Any] = []
    for _ in range(30):
        wide = [wide, wide]
    calls: list[Callable[[Any], object]] = [
        lambda bad: rackloom.resolve({**small, "fault": bad}),
        lambda bad: rackloom.resolve(small, fault=bad),
        lambda bad: rackloom.run(small, **{"fabric.guard": bad}),
        lambda bad: rackloom.sweep(small, {"fault": [1, bad]}),
    ]
    for bad in [ring, loop, wide, nested(100), nested(100_000), {"a": nested(100_000)}]:
        for call in calls:
            with pytest.raises(rackloom.InputError) as caught:
                call(bad)
            assert len(str(caught.value)) < 2_000
    with pytest.raises(rackloom.InputError, match="1000000") as caught:
        rackloom.resolve(small, name="x" * 1_000_000)
    assert len(str(caught.value)) < 1_000


def test_no_message_commands_the_terminal(small: Scenario) -> None:
    with pytest.raises(rackloom.InputError) as caught:
        rackloom.resolve({**small, "\x1b[2J\u202e": 1})
    assert str(caught.value).isprintable()
    assert r"\x1b[2J\u202e: unknown key" in str(caught.value)


@pytest.mark.usefixtures("here")
def test_a_grid_without_end_is_refused(small: Scenario) -> None:
    with pytest.raises(rackloom.InputError, match="at most 10,000 values"):
        rackloom.sweep(small, {"seed": range(9_000_000)})
    with pytest.raises(rackloom.InputError, match="9000000 points"):
        rackloom.sweep(small, {"seed": range(3_000), "run.flows": range(1, 3_001)})


@pytest.mark.usefixtures("here")
def test_other_threads_run_meanwhile(small: Scenario) -> None:
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    rackloom.run(small, run__flows=20_000)
    during = counted - before
    over.set()
    thread.join()
    assert during >= 5


@pytest.mark.usefixtures("here")
def test_two_runs_at_once_do_not_disturb_each_other(small: Scenario) -> None:
    hashes: dict[str, str] = {}

    def run(name: str) -> None:
        hashes[name] = rackloom.run(small, out=name).summary["event_hash"]

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashes["a"] == hashes["b"] == rackloom.run(small, out="c").summary["event_hash"]


@pytest.mark.usefixtures("here")
def test_results_show_themselves(small: Scenario) -> None:
    result = rackloom.run(small, fabric__label="<b>Shoal</b>")
    page = result._repr_html_()
    assert "&lt;b&gt;Shoal&lt;/b&gt;" in page
    assert "<b>" not in page
    assert page.count("<table>") == page.count("</table>") == 2
    assert "Flows completed" in page
    assert "Flows completed" in str(result)
    assert "results" in repr(result)
    assert result.report().read_text().startswith("<!DOCTYPE html>")


def test_arrays_of_numpy_are_lists(small: Scenario) -> None:
    numpy = pytest.importorskip("numpy")
    pattern = {"kind": "hot_spot", "share": numpy.float32(0.5), "nodes": numpy.arange(2)}
    listed = {"kind": "hot_spot", "share": 0.5, "nodes": [0, 1]}
    found = rackloom.resolve(small, workload__pattern=pattern)
    assert found == rackloom.resolve(small, workload__pattern=listed)


def test_a_directory_without_a_finished_run_is_refused(here: Path) -> None:
    with pytest.raises(rackloom.InputError, match="holds no finished run"):
        rackloom.load(here)


def test_the_catalogue_is_that_of_the_command(rackloom_command: Callable[..., str]) -> None:
    assert rackloom.list() == json.loads(rackloom_command("list", "--format=json"))
    assert rackloom.schema() == json.loads(rackloom_command("schema"))
    shown = rackloom_command("describe", "shoal", "--format=json")
    assert rackloom.describe("shoal") == json.loads(shown)
    assert {row["kind"] for row in rackloom.list("fabrics")} == {"fabric"}
    with pytest.raises(rackloom.InputError, match="shoal"):
        rackloom.describe("shaol")
    with pytest.raises(rackloom.InputError, match="unknown"):
        rackloom.list("fabric")  # type: ignore[arg-type]


@pytest.mark.usefixtures("here")
def test_an_unknown_paper_is_refused() -> None:
    with pytest.raises(rackloom.InputError, match="unknown"):
        rackloom.reproduce("shaol")
    with pytest.raises(rackloom.InputError, match="unknown"):
        rackloom.reproduce("shoal", effort="some")  # type: ignore[arg-type]


@pytest.mark.usefixtures("here")
def test_an_experiment_is_repeated() -> None:
    found = rackloom.reproduce("shoal", "table1")
    assert found.claims
    assert not found.broken
    assert {row["verdict"] for row in found.claims} <= {"reproduced", "differs", "not run"}
    assert found.report().is_file()
    assert found._repr_html_().count("<tr>") == len(found.claims) + 1
    assert (found.failed, found.lost, found.missing) == ([], [], [])


@pytest.mark.usefixtures("here")
def test_experiments_of_all_papers_are_repeated_once() -> None:
    heard: list[rackloom.Progress] = []
    found = rackloom.reproduce("all", "pl2/section2", jobs=1, progress=heard.append)
    assert {row["paper"] for row in found.claims} == {"pl2"}
    assert found.report("pl2/section2").is_file()
    assert not found.broken
    everything = {row["name"].replace(" ", "/") for row in rackloom.list("experiments")}
    assert {*found.missing} == everything - {"pl2/section2"}
    assert heard[-1].total == 1
    measured = found.directory / "pl2/section2/measured.json"
    before = measured.stat().st_mtime_ns
    again = rackloom.reproduce("all", "pl2/section2")
    assert measured.stat().st_mtime_ns == before
    assert again.claims == found.claims


@pytest.mark.usefixtures("here")
def test_a_cluster_is_for_all_papers_alone() -> None:
    with pytest.raises(rackloom.InputError, match="expected paper 'all'"):
        rackloom.reproduce("pl2", "section2", client="tcp://127.0.0.1:1")
    with pytest.raises(rackloom.InputError, match="without client"):
        rackloom.reproduce("all", jobs=1, client="tcp://127.0.0.1:1")
    with pytest.raises(rackloom.InputError, match="unknown"):
        rackloom.reproduce("all", "pl2/fig77")
    with pytest.raises(rackloom.InputError, match="at least 1"):
        rackloom.reproduce("pl2", jobs=0)


def test_the_command_of_the_wheel_is_the_command(
    here: Path, small: Scenario, rackloom_command: Callable[..., str]
) -> None:
    command = Path(sys.executable).parent / "rackloom"
    (here / "small.json").write_text(json.dumps(small))
    for arguments in [["run", "small.json", "--quiet"], ["list"], ["--help"]]:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout == rackloom_command(*arguments)
    bad = subprocess.run([command, "run", "absent"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert "absent: cannot be read" in bad.stderr
    module = [sys.executable, "-m", "rackloom", "no-such-verb"]
    assert subprocess.run(module, capture_output=True, check=False).returncode == 2


def test_the_command_of_the_wheel_hears_control_c(here: Path, small: Scenario) -> None:
    command = Path(sys.executable).parent / "rackloom"
    (here / "endless.json").write_text(json.dumps(endless(small)))
    arguments = [str(command), "run", "endless.json", "--out=stopped", "--quiet"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not list(here.glob("stopped/.flows.parquet*")):
            assert time.monotonic() < deadline, "the run did not begin"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert rackloom.load("stopped").summary["interrupted"] is True


def test_paths_of_every_kind_are_taken(here: Path, small: Scenario) -> None:
    (here / "small.json").write_text(json.dumps(small))
    paths: list[str | Path] = ["small.json", Path("small.json"), here / "small.json"]
    for path in paths:
        assert rackloom.resolve(path)["name"] == "small"
    assert os.fspath(rackloom.run(Path("small.json"), out=Path("out")).directory) == "out"


def test_problems_survive_another_process() -> None:
    problem = rackloom.Problem("a.toml", 3, "fabric.guard", "too long")
    assert pickle.loads(pickle.dumps(problem)) == problem  # noqa: S301 - our own bytes
    assert str(problem) == "a.toml:3: fabric.guard: too long"
    error = rackloom.InputError([("a.toml", 3, "fabric.guard", "too long")])
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert copy.problems == error.problems == [problem]
    assert str(copy) == str(error)


def test_a_sweep_of_seeds_has_means_with_intervals_and_figures(here: Path, small: Scenario) -> None:
    swept = rackloom.sweep(small, {"workload.load": [0.2, 0.4]}, seeds=3, out="sweep")
    assert len(swept) == 6
    assert swept.table.num_rows == 6
    means = swept.means.to_pydict()
    assert means["set.workload.load"] == [0.2, 0.4]
    assert means["seeds_run"] == [3, 3]
    key = "slowdown.all.p50"
    for index in range(2):
        assert means[f"{key}.low"][index] < means[key][index] < means[f"{key}.high"][index]
        points = swept.table.to_pydict()[key][3 * index : 3 * index + 3]
        assert means[key][index] == pytest.approx(sum(points) / 3)
    figure = swept.plot(key, "equipment.power_watts", log="y")
    assert figure.svg.startswith("<svg")
    for name, head in [("a.svg", b"<svg"), ("a.pdf", b"%PDF")]:
        assert figure.save(here / name).read_bytes().startswith(head)
    with pytest.raises(rackloom.InputError, match=r"expected \.svg or \.pdf"):
        figure.save("a.png")
    with pytest.raises(rackloom.InputError, match="no summary of this sweep has"):
        swept.plot("slowdown.all.p98")
    assert repr(figure).startswith("<rackloom.Figure, ")
    with pytest.raises(rackloom.InputError, match=r"holds a sweep; use rackloom\.Sweep\.load"):
        rackloom.load(swept.directory)
    shown = swept._repr_html_()
    assert shown.count("<tr>") == 1 + 6
    assert "<th>workload.load</th>" in shown
    again = rackloom.Sweep.load("sweep")
    assert [point.settings for point in again] == [point.settings for point in swept]
    assert again.plot(key, "equipment.power_watts", log="y").svg == figure.svg
    with pytest.raises(rackloom.InputError, match="holds no sweep"):
        rackloom.Sweep.load(here)
