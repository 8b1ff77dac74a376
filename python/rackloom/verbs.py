"""What the command does, as functions. Results are those of the command, to the byte."""

from __future__ import annotations

import builtins
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, cast

from rackloom import _native, cluster, extras, inputs, traces
from rackloom.errors import InputError
from rackloom.inputs import Scenario
from rackloom.progress import Listener, listener
from rackloom.results import (
    Comparison,
    Estimate,
    Recorded,
    Reproduction,
    Result,
    Search,
    Sweep,
)

if TYPE_CHECKING:
    from distributed import Client

Place: TypeAlias = str | os.PathLike[str]
"""A directory for results."""

ALL = "all"
"""What stands for every paper."""

Rows: TypeAlias = list[dict[str, str]]
"""A table of text, a row each."""


@traces.undone_if_refused()
def resolve(scenario: Scenario, /, **overrides: Any) -> dict[str, Any]:
    """Checks a scenario and fills in all defaults; runs nothing.

    Args:
        scenario: A path or a mapping.
        **overrides: Keys to set; see `run`.

    Raises:
        InputError: The scenario cannot be used; every reason is in its ``problems``.
    """
    text = _native.resolve(inputs.source(scenario), inputs.settings(overrides))
    return cast("dict[str, Any]", json.loads(text))


@traces.undone_if_refused()
def estimate(scenario: Scenario, /, **overrides: Any) -> Sequence[Estimate]:
    """What a run will take: memory from the configuration, time from a probe of some seconds.

    Stores nothing.

    Args:
        scenario: A path or a mapping.
        **overrides: Keys to set; see `run`.

    Returns:
        An estimate for each fabric of the scenario, in its order.

    Raises:
        InputError: The scenario cannot be used, or its network takes more memory than there is.
    """
    rows = _native.estimate(inputs.source(scenario), inputs.settings(overrides))
    return [Estimate(*row) for row in rows]


@traces.undone_if_refused()
def record(
    scenario: Scenario,
    /,
    *,
    flows: int = 100,
    out: Place | None = None,
    **overrides: Any,
) -> Sequence[Recorded]:
    """Records what each node of a rack is given and does, as vectors to replay.

    Ctrl-C stops it; what was recorded until then is kept.

    Args:
        scenario: A path or a mapping.
        flows: How many of the workload's flows are carried.
        out: Where the files go. Default: ``results/NAME-HASH-vectors``.
        **overrides: Keys to set; see `run`.

    Returns:
        What came of each fabric of the scenario, in its order.

    Raises:
        InputError: The scenario or the directory cannot be used, or none of its fabrics has
            nodes that run by themselves.
    """
    rows = _native.record(inputs.source(scenario), inputs.settings(overrides), _path(out), flows)
    return [Recorded(*row) for row in rows]


@traces.undone_if_refused()
def run(
    scenario: Scenario,
    /,
    *,
    out: Place | None = None,
    progress: bool | Listener = False,
    **overrides: Any,
) -> Result:
    """Runs a scenario once.

    Ctrl-C stops the run and raises `KeyboardInterrupt`; what was measured until then is in the
    directory and says that it was interrupted.

    Args:
        scenario: The path of a scenario file, or the same as a mapping.
        out: Where results go. Default: ``results/NAME-HASH``.
        progress: True for a line on stderr, or a function that is told.
        **overrides: Keys to set: ``seed=3``, ``workload__load=0.8`` for ``workload.load``, or
            ``**{"workload.load": 0.8}``.

    Raises:
        InputError: The scenario or the directory cannot be used; nothing was written.
        RunError: The run broke.
    """
    step, close = listener(progress)
    try:
        found = _native.run(inputs.source(scenario), inputs.settings(overrides), _path(out), step)
    finally:
        close()
    return _result(found)


@traces.undone_if_refused()
def compare(
    *scenarios: Scenario,
    jobs: int | None = None,
    out: Place | None = None,
    progress: bool | Listener = False,
    **overrides: Any,
) -> Comparison:
    """Runs the same flows through the fabrics of several scenarios, or of one with several.

    Args:
        *scenarios: Paths or mappings.
        jobs: How many fabrics run at a time. Default: as many as there are cores. A warning says
            if there is memory for fewer.
        out: Where results go. Default: ``results/NAME-HASH``.
        progress: True for a line on stderr, or a function that is told.
        **overrides: Keys to set in each of them; see `run`.

    Raises:
        InputError: A scenario or the directory cannot be used, or the flows would differ.
        RunError: A run broke; those that were over stay.
    """
    if not scenarios:
        raise InputError([(None, None, None, "expected at least one scenario to compare")])
    if jobs is not None and jobs < 1:
        raise InputError([(None, None, "jobs", f"expected at least 1, found {jobs}")])
    settings = inputs.settings(overrides)
    step, close = listener(progress)
    try:
        directory, runs, held_back = _native.compare(
            [(inputs.source(scenario), settings) for scenario in scenarios],
            jobs,
            _path(out),
            step,
        )
    finally:
        close()
    _warn(held_back)
    return Comparison(directory, [_result(run) for run in runs])


@traces.undone_if_refused()
def sweep(
    scenario: Scenario,
    grid: Mapping[str, Iterable[Any]],
    /,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    client: Client | str | None = None,
    out: Place | None = None,
    progress: bool | Listener = False,
    **overrides: Any,
) -> Sweep:
    """Runs the fabrics of a scenario over a grid of settings, on all cores or on a Dask cluster.

    A point that has run, here or on the command line, is not run again: after Ctrl-C the same call
    goes on from there, and a grid with other values joins what is there.

    Args:
        scenario: A path or a mapping.
        grid: Keys and the values that each takes: ``{"workload.load": [0.2, 0.5]}``.
        seeds: Run each with so many seeds, from the scenario's on: figures are means with 95 %
            intervals.
        jobs: How many points run at a time. Default: as many as there are cores. A warning says
            if there is memory for fewer.
        client: A client of Dask, or its scheduler's address: points run on its workers, and those
            of workers that are lost run again. Results are the same, to the byte.
        out: Where results go. Default: ``results/NAME-sweep``.
        progress: True for a line on stderr, or a function that is told.
        **overrides: Keys to set for all points; see `run`.

    Raises:
        InputError: No point can run. A point that fails among others is listed as failed.
        RunError: The cluster is gone; what had ended is kept, and the same call goes on from there.
    """
    _check_jobs(jobs)
    if jobs is not None and client is not None:
        _refuse("jobs", "says how many points run here; expected it without client")
    axes = inputs.grid(grid) if grid or seeds is None else []
    if seeds is not None:
        overrides = {**overrides, "run.seeds": seeds}
    step, close = listener(progress)
    try:
        swept, held_back = _native.sweep(
            inputs.source(scenario),
            inputs.settings(overrides),
            axes,
            jobs,
            _path(out),
            step,
            None if client is None else cluster.of(client),
        )
    finally:
        close()
    _warn(held_back)
    return Sweep.of(*swept)


@traces.undone_if_refused()
def search(
    scenario: Scenario,
    over: Mapping[str, str | Iterable[Any]],
    /,
    *,
    minimise: str | Sequence[str] = (),
    maximise: str | Sequence[str] = (),
    subject: str | Sequence[str] = (),
    trials: int = 50,
    seeds: int | None = None,
    jobs: int | None = None,
    client: Client | str | None = None,
    out: Place | None = None,
    progress: bool | Listener = False,
    **overrides: Any,
) -> Search:
    """Searches among scenarios for the best of those that meet conditions.

    Needs Optuna: ``pip install rackloom[search]``. Runs that were made, here or on the command
    line, are not made again: after Ctrl-C the same call goes on from there, and so does one with
    more trials. Of a scenario with several fabrics, which is best is part of the search.

    Args:
        scenario: A path or a mapping.
        over: Keys and what each may be: ``"16..64"``, with ``/STEP`` behind it;
            ``"1 us..1 ms log"``, by its logarithm; or a list of values.
        minimise: Keys of the summary that are to be small, such as ``equipment.cost_ratio``.
        maximise: Keys that are to be large. Of several aims the front is found.
        subject: What has to hold: ``"fct.short.p999 < 50 us"``.
        trials: How many are made in all.
        seeds: Run each with so many seeds, from the scenario's on: the search goes by means.
        jobs: How many trials run at a time; the trials depend on it. Default: as many as there are
            cores, or as the cluster's workers have threads.
        client: A client of Dask, or its scheduler's address; see `sweep`.
        out: Where results go. Default: ``results/NAME-search``.
        progress: True for a line on stderr, or a function that is told.
        **overrides: Keys to set for all trials; see `run`. The seed is also that of the search.

    Raises:
        InputError: The scenario cannot be used, Optuna is not installed, or the directory holds
            another search. A trial that fails among others is listed as failed.
        RunError: The cluster is gone; what had ended is kept, and the same call goes on from there.
    """
    _check_jobs(jobs)
    if trials < 1:
        _refuse("trials", f"expected at least 1, found {trials}")
    aims = _texts(minimise), _texts(maximise)
    if not any(aims):
        _refuse("minimise", "expected a key to minimise or to maximise")
    if seeds is not None:
        overrides = {**overrides, "run.seeds": seeds}
    step, close = listener(progress)
    try:
        searched, told = _native.search(
            inputs.source(scenario),
            inputs.settings(overrides),
            (inputs.space(over), *aims, _texts(subject), trials, jobs),
            extras,
            _path(out),
            step,
            None if client is None else cluster.of(client),
        )
    finally:
        close()
    _warn(told)
    return Search.of(*searched)


def _texts(given: str | Sequence[str]) -> builtins.list[str]:
    return [given] if isinstance(given, str) else [*given]


def reproduce(
    paper: str,
    /,
    *experiments: str,
    effort: Literal["quick", "full"] = "quick",
    jobs: int | None = None,
    client: Client | str | None = None,
    out: Place | None = None,
    progress: bool | Listener = False,
) -> Reproduction:
    """Repeats experiments of a paper, or of all, and puts our figures beside the published ones.

    Of ``"all"`` each experiment is kept: one that this build has measured is not measured again,
    here or on the command line, and after Ctrl-C the same call goes on from there.

    Args:
        paper: The paper, as ``list("experiments")`` names it, or ``"all"``.
        *experiments: Which experiments; of all papers ``"pl2"`` or ``"pl2/fig7"``. Default: all.
        effort: ``quick`` takes minutes; ``full`` is the paper's size.
        jobs: How many runs are made at a time. Default: as many as there are cores.
        client: A client of Dask, or its scheduler's address: experiments of ``"all"`` run on its
            workers, and those of workers that are lost run again. Workers have the same build.
        out: Where results go. Default: ``reproduced/PAPER``, ``reproduced/all-EFFORT``.
        progress: True for a line on stderr, or a function that is told.

    Raises:
        InputError: There is no such paper or experiment, or the directory cannot be used.
        RunError: The cluster is gone; what had ended is kept.
    """
    _check_jobs(jobs)
    if jobs is not None and client is not None:
        _refuse("jobs", "says how many runs are made here; expected it without client")
    if client is not None and paper != ALL:
        _refuse("client", f"expected paper {ALL!r} with names of experiments, found {paper!r}")
    name = f"{ALL}-{effort}" if paper == ALL else paper
    directory = _path(out) or Path("reproduced") / name
    told = None
    step, close = listener(progress)
    try:
        if paper == ALL:
            there = None if client is None else cluster.of(client)
            found, told = _native.reproduce_all(experiments, effort, jobs, directory, step, there)
        else:
            found = _native.reproduce(paper, experiments, effort, jobs, directory, step)
    finally:
        close()
    _warn(told)
    claims, broken, *rest = found
    return Reproduction(directory, json.loads(claims), dict(broken), *rest)


def list(  # noqa: A001 - the command's verb
    what: Literal["fabrics", "workloads", "sizes", "experiments"] | None = None, /
) -> Rows:
    """What there is: rows with ``kind``, ``name`` and ``summary``."""
    return cast("Rows", json.loads(_native.listing(what)))


def describe(name: str, /) -> Rows:
    """The keys of a fabric, a workload, or one of ``run`` and ``fault``.

    Rows with ``key``, ``value``, ``default`` and ``description``.
    """
    _, _, rows = _native.describe(name)
    return cast("Rows", json.loads(rows))


def schema() -> dict[str, Any]:
    """The JSON Schema of the scenario file."""
    return cast("dict[str, Any]", json.loads(_native.schema()))


def load(directory: Place, /) -> Result:
    """The result of a run that is over, from its directory.

    Raises:
        InputError: There is no finished run.
    """
    return Result.load(Path(directory))


def _check_jobs(jobs: int | None) -> None:
    if jobs is not None and jobs < 1:
        _refuse("jobs", f"expected at least 1, found {jobs}")


def _refuse(argument: str, message: str) -> NoReturn:
    raise InputError([(None, None, argument, message)])


def _path(place: Place | None) -> Path | None:
    return None if place is None else Path(place)


def _warn(held_back: str | None) -> None:
    """Says why fewer runs went on at a time than asked for."""
    if held_back is not None:
        warnings.warn(held_back, RuntimeWarning, stacklevel=3)


def _result(run: tuple[Path, str, str]) -> Result:
    directory, label, summary = run
    return Result(directory, label, json.loads(summary))
