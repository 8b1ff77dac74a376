"""Sweeps on a Dask cluster: the files of a local sweep, whatever becomes of the workers."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rackloom
from rackloom.cluster import Room

distributed = pytest.importorskip("distributed")

Scenario = dict[str, Any]
# Of others' libraries, in what the client starts and stops.
pytestmark = pytest.mark.filterwarnings("default")

DASK = {
    **os.environ,
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
    # A dead worker is missed at once.
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h",
}


class Processes:
    """A scheduler and its workers on loopback, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.all: list[subprocess.Popen[bytes]] = []
        arguments = ["--host=127.0.0.1", "--port=0", "--no-dashboard"]
        self.scheduler = self._start("dask_scheduler", *arguments)
        wait_for(self.file.exists)
        self.address = json.loads(self.file.read_text())["address"]

    def worker(self, *more: str) -> subprocess.Popen[bytes]:
        """Starts one of a single thread, whose process is ours to kill."""
        return self._start(
            "dask_worker",
            "--host=127.0.0.1",
            "--nthreads=1",
            "--no-nanny",
            "--no-dashboard",
            "--memory-limit=2 GiB",
            f"--local-directory={self.folder}",
            *more,
        )

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}"]
        with (self.folder / f"{program}-{len(self.all)}.log").open("wb") as log:
            started = subprocess.Popen(
                [*command, f"--scheduler-file={self.file}", *arguments],
                cwd=self.folder,
                env=DASK,
                stdout=log,
                stderr=log,
            )
        self.all.append(started)
        return started

    def end(self) -> None:
        """Ends all of them."""
        for process in reversed(self.all):
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.02)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    started = Processes(folder)
    yield started
    started.end()


@pytest.fixture
def client(processes: Processes) -> Iterator[Any]:
    with distributed.Client(processes.address, set_as_default=False) as connected:
        yield connected


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a sweep but what tells how fast the engine was."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "summary.json":
            summary = json.loads(path.read_text())
            assert summary.pop("engine")["wall_seconds"] > 0
            found[name] = json.dumps(summary).encode()
        elif path.is_file() and not (
            name.startswith("points/") and path.name in {"report.html", "SHA256SUMS"}
        ):
            found[name] = path.read_bytes()
    return found


LOADS = [0.3, 0.4, 0.5, 0.6, 0.7]


def long(small: Scenario) -> Scenario:
    """A scenario that runs long enough to be interrupted."""
    return {**small, "run": {"flows": 4_000}}


def test_a_worker_dies_and_the_files_are_those_of_a_local_sweep(
    here: Path, small: Scenario, processes: Processes, client: Any
) -> None:
    workers = [processes.worker() for _ in range(3)]
    client.wait_for_workers(3)
    addresses = client.run(os.getpid)
    doomed = next(address for address, process in addresses.items() if process == workers[0].pid)
    killed: list[Any] = []

    def kill(_: rackloom.Progress) -> None:
        if not killed:
            wait_for(lambda: client.processing()[doomed])
            killed.append(client.processing()[doomed])
            os.kill(workers[0].pid, signal.SIGKILL)

    grid: dict[str, list[Any]] = {"workload.load": LOADS, "fabric.guard": ["2.75 ns", "5 ns"]}
    there = rackloom.sweep(
        long(small), grid, client=client, seeds=2, out=here / "there", progress=kill
    )
    assert killed, "it was killed while it ran a point"
    assert len(client.run(os.getpid)) == 2
    ours = rackloom.sweep(long(small), grid, seeds=2, out=here / "here")
    # The wider guard band leaves no room for a cell.
    assert [point.status for point in there] == ["done", "done", "failed"] * len(LOADS)
    assert len(ours) == len(there)
    found, expected = files(here / "there"), files(here / "here")
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    assert sum(name.endswith("flows.parquet") for name in found) == 2 * len(LOADS)
    # Nothing of it stays on the cluster.
    wait_for(lambda: not any(client.run(lambda dask_worker: len(dask_worker.data)).values()))


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "rackloom", *map(str, arguments)]


def test_the_command_hears_ctrl_c_and_goes_on_from_there(
    here: Path, small: Scenario, processes: Processes, client: Any
) -> None:
    processes.worker()
    client.wait_for_workers(1)
    (here / "small.json").write_text(json.dumps(long(small)))
    loads = ",".join(map(str, LOADS))
    sweep = command(
        "sweep", "small.json", "--grid", f"workload.load={loads}", "--dask", processes.address
    )
    points = here / "results" / "small-sweep" / "points"
    running = subprocess.Popen(sweep, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: list(points.glob("*/summary.json")))
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130, said
    assert "the same command goes on from here" in said
    kept = {path: path.stat().st_mtime_ns for path in points.glob("*/summary.json")}
    assert 0 < len(kept) < len(LOADS)
    # What ran is cancelled where it ran.
    wait_for(lambda: not any(client.processing().values()), 10)

    done = subprocess.run(sweep, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(LOADS) - len(kept)} points ran, {len(kept)} had run before" in done.stderr
    assert f"100 %, {len(LOADS)} of {len(LOADS)} points" in done.stderr
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_a_search_on_a_cluster_is_that_of_this_machine(
    here: Path, small: Scenario, processes: Processes
) -> None:
    pytest.importorskip("optuna")
    processes.worker()
    processes.worker()
    wanted: dict[str, Any] = {"maximise": "throughput.mean_node", "trials": 8, "jobs": 2}
    wanted["subject"] = "fct.all.p99 < 30 us"
    space = {"workload.load": "0.2..0.8", "fabric.channels": [1, 2]}
    rackloom.search(small, space, out="there", client=processes.address, **wanted)
    rackloom.search(small, space, out="ours", **wanted)
    found, expected = files(here / "there"), files(here / "ours")
    assert "figures/front.svg" in found
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


def test_experiments_on_a_cluster_are_those_of_this_machine(
    here: Path, processes: Processes, client: Any
) -> None:
    processes.worker()
    client.wait_for_workers(1)
    found = []
    for out, more in [("there", ["--dask", processes.address]), ("here", [])]:
        line = command("reproduce", "all", "pl2/section2", "--out", out, *more)
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        measured = json.loads((here / out / "pl2/section2/measured.json").read_text())
        # When, and how long it took.
        del measured["date"], measured["wall_seconds"], measured["run_seconds"]
        page = (here / out / "pl2/section2/report.html").read_bytes()
        found.append((done.stdout, measured, page, (here / out / "claims.json").read_bytes()))
    assert found[0] == found[1]


@pytest.mark.usefixtures("here")
def test_an_experiment_whose_worker_dies_runs_again(processes: Processes, client: Any) -> None:
    experiments = ["aquila/headline", "pl2/section2"]
    doomed = processes.worker()
    client.wait_for_workers(1)
    [address] = client.run(os.getpid)
    killed: list[Any] = []

    def kill(_: rackloom.Progress) -> None:
        if not killed and client.processing()[address]:
            processes.worker()
            killed.append(client.processing()[address])
            os.kill(doomed.pid, signal.SIGKILL)

    there = rackloom.reproduce("all", *experiments, client=client, progress=kill, out="there")
    assert killed, "it was killed while it ran an experiment"
    ours = rackloom.reproduce("all", *experiments, out="here")
    assert not there.broken
    assert there.missing == ours.missing
    assert there.claims == ours.claims
    for one in experiments:
        assert there.report(one).read_bytes() == ours.report(one).read_bytes()


def test_jobs_of_a_cluster_read_their_traces_there(
    root: Path, here: Path, processes: Processes, client: Any
) -> None:
    processes.worker()
    client.wait_for_workers(1)
    scenario = root / "examples" / "jobs.toml"
    grid = {"workload.job.0.collective": ["ring", "halving_doubling"]}
    for out, more in [("there", {"client": client}), ("ours", {})]:
        swept = rackloom.sweep(scenario, grid, out=out, **more)
        assert [point.status for point in swept] == ["done"] * len(swept)
    found, expected = files(here / "there"), files(here / "ours")
    assert sum(name.endswith("flows.parquet") for name in found) == 2 * 3
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


@pytest.mark.usefixtures("here")
def test_points_go_where_they_have_the_memory(
    small: Scenario, processes: Processes, client: Any
) -> None:
    processes.worker("--resources=MEMORY=2e6")
    processes.worker("--resources=MEMORY=50e6")
    client.wait_for_workers(2)
    few = {**small, "run": {"flows": 10}}
    takes = [rackloom.estimate(few, fabric__nodes=nodes)[0].memory_bytes for nodes in (16, 256)]
    assert takes[0] < 2e6 < takes[1] < 50e6
    swept = rackloom.sweep(few, {"fabric.nodes": [16, 256, 2048]}, client=client)
    assert [point.status for point in swept] == ["done", "done", "failed"]
    assert "the largest of 2 workers has 48 MiB" in str(swept[2].problem)


def test_a_worker_is_large_enough_by_its_limit_and_by_what_it_offers() -> None:
    plain = {"memory_limit": 1000, "resources": {}}
    boundless = {"memory_limit": 0, "resources": {}}
    offering = {"memory_limit": 1000, "resources": {"MEMORY": 500.0}}
    fits = rackloom.cluster._fits
    assert [fits(1000, plain), fits(1001, plain), fits(1 << 60, boundless)] == [True, False, True]
    assert [fits(500, offering), fits(501, offering)] == [True, False]


@pytest.mark.usefixtures("here")
def test_a_cluster_without_workers_is_waited_for(
    small: Scenario, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rackloom.cluster, "LOOK_SECONDS", 0.1)
    late = threading.Timer(1, processes.worker)
    late.start()
    with pytest.warns(RuntimeWarning, match="no workers now; points wait for the first"):
        swept = rackloom.sweep(small, {"seed": [1, 2]}, client=processes.address)
    late.join()
    assert [point.status for point in swept] == ["done", "done"]


def test_workers_of_another_version_are_no_use(
    here: Path, small: Scenario, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.worker()
    monkeypatch.setattr("rackloom.cluster._native.VERSION", "9.9.9")
    with pytest.raises(rackloom.RunError, match="as where the sweep was started"):
        rackloom.sweep(small, {"seed": [1, 2]}, client=processes.address)
    assert not (here / "results").exists()


def test_a_scheduler_that_is_gone_ends_the_sweep_with_a_message(
    here: Path, small: Scenario, processes: Processes
) -> None:
    processes.worker()
    points = here / "results" / "small-sweep" / "points"

    def kill(_: rackloom.Progress) -> None:
        processes.scheduler.kill()

    with pytest.raises(rackloom.RunError, match="scheduler"):
        rackloom.sweep(long(small), {"seed": [1, 2, 3]}, client=processes.address, progress=kill)
    assert list(points.glob("*/summary.json"))


def test_what_cannot_be_a_cluster_is_refused(here: Path, small: Scenario) -> None:
    grid = {"seed": [1, 2]}
    with pytest.raises(rackloom.InputError, match="found int; expected a"):
        rackloom.sweep(small, grid, client=3)
    with pytest.raises(rackloom.InputError, match="expected the address of a Dask scheduler"):
        rackloom.sweep(small, grid, client="nowhere")
    with pytest.raises(rackloom.InputError, match="expected it without client"):
        rackloom.sweep(small, grid, jobs=2, client="tcp://127.0.0.1:1")
    assert not list(here.iterdir())


def test_the_binary_alone_says_what_to_install(
    here: Path, small: Scenario, command: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    (here / "small.json").write_text(json.dumps(small))
    done = command("sweep", "small.json", "--grid=seed=1,2", "--dask=tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "pip install 'rackloom[dask]'" in done.stderr
    assert [path.name for path in here.iterdir()] == ["small.json"]


def test_the_script_for_slurm_asks_for_workers_that_rackloom_can_use(root: Path) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    page = (root / "docs" / "clusters.md").read_text()
    [script] = re.findall(r"^```py\n(.*?)^```$", page, re.M | re.S)
    calls = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    [made] = [call for call in calls if getattr(call.func, "id", "") == "SLURMCluster"]
    arguments = {str(word.arg): ast.literal_eval(word.value) for word in made.keywords}
    with jobqueue.SLURMCluster(**arguments) as cluster:
        job = cluster.job_script()
    for expected in ["#SBATCH -p compute", "#SBATCH --cpus-per-task=16", "--nthreads 1 "]:
        assert expected in job
    for expected in ["--nworkers 16 ", "--memory-limit 3.7", "--lifetime 235m"]:
        assert expected in job


def test_runs_in_one_worker_wait_for_room() -> None:
    room = Room()
    with room.taken(6, 10, lambda: False):
        began = time.monotonic()
        # Told to stop while it waits, so that the test ends; it did wait.
        with room.taken(5, 10, lambda: time.monotonic() > began + 0.3):
            assert time.monotonic() >= began + 0.3
        with room.taken(4, 10, lambda: False):
            pass
    with room.taken(100, 10, lambda: False):
        pass
