"""What runs leave behind, as objects. Tables are read from their files when they are asked for."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from rackloom import _native
from rackloom.errors import Error, InputError

if TYPE_CHECKING:
    import pyarrow as pa

Summary: TypeAlias = dict[str, Any]
"""A summary: its keys are those of ``summary.json``, numbers in SI units without prefix."""


class Result:
    """One run: its summary at once, its tables when they are asked for."""

    def __init__(self, directory: Path, label: str, summary: Summary) -> None:
        self.directory = directory
        """Where its files are."""
        self.label = label
        """What tables and legends call it."""
        self.summary = summary
        """``summary.json``."""

    @classmethod
    def load(cls, directory: Path) -> Result:
        """The result of a run that is over."""
        path = directory / "summary.json"
        try:
            summary = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problem = f"holds no finished run: {error}"
            if (directory / "sweep.json").is_file():
                problem = "holds a sweep; use rackloom.Sweep.load"
            raise InputError([(str(directory), None, None, problem)]) from None
        if not isinstance(summary, dict):
            problem = "holds several runs; load one of the folders in it"
            raise InputError([(str(directory), None, None, problem)])
        return cls(directory, str(summary["label"]), summary)

    @cached_property
    def flows(self) -> pa.Table:
        """The flows, a row each, in the order in which they ended; units are in the schema."""
        return _table(self.directory / "flows.parquet")

    @cached_property
    def series(self) -> pa.Table:
        """The gauges over time, a row a sampling interval; units are in the schema."""
        return _table(self.directory / "series.parquet")

    @cached_property
    def trace(self) -> pa.Table:
        """Where packets of the flows of ``run.trace`` were, a row a hop; units are in the schema.

        Raises:
            InputError: The run recorded none.
        """
        return self._recorded("trace.parquet")

    @cached_property
    def links(self) -> pa.Table:
        """What each line of the network carried over time, of a run with ``run.trace``.

        Raises:
            InputError: The run recorded none.
        """
        return self._recorded("links.parquet")

    def _recorded(self, name: str) -> pa.Table:
        path = self.directory / name
        if not path.exists():
            problem = f'holds no {name}; run it again with run__trace="slowest 100"'
            raise InputError([(str(self.directory), None, None, problem)])
        return _table(path)

    @property
    def scenario(self) -> str:
        """The scenario with all defaults filled in, as TOML."""
        return (self.directory / "scenario.toml").read_text(encoding="utf-8")

    def report(self) -> Path:
        """The report: one page, that opens in any browser."""
        return _report(self.directory)

    def __str__(self) -> str:
        return _native.text([(self.label, json.dumps(self.summary))])

    def __repr__(self) -> str:
        return f"<rackloom.Result {self.label!r} in {str(self.directory)!r}>"

    def _repr_html_(self) -> str:
        return _tables([(self.label, self.summary)])


class Comparison(Sequence[Result]):
    """The same flows through several fabrics: a sequence of results."""

    def __init__(self, directory: Path, results: Sequence[Result]) -> None:
        self.directory = directory
        """Where the files of the comparison are; each result has a folder in it."""
        self.results = list(results)
        """A result a fabric, in the order of the scenarios."""

    @property
    def summaries(self) -> list[Summary]:
        """The summaries, in the order of the scenarios."""
        return [result.summary for result in self.results]

    def report(self) -> Path:
        """The report: one page, that opens in any browser."""
        return _report(self.directory)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        return _native.text([(each.label, json.dumps(each.summary)) for each in self.results])

    def __repr__(self) -> str:
        labels = ", ".join(each.label for each in self.results)
        return f"<rackloom.Comparison of {labels} in {str(self.directory)!r}>"

    def _repr_html_(self) -> str:
        return _tables([(each.label, each.summary) for each in self.results])


@dataclass(frozen=True)
class Estimate:
    """What a run of one fabric will take, said before it is begun."""

    label: str
    """What the fabric is called."""
    memory_bytes: int
    """Memory of the network, and of the list of flows if there is one. Open flows come on top."""
    seconds: float | None
    """Time on this machine; None if a short probe saw nothing to tell it from."""
    basis: str
    """What the time rests on."""


@dataclass(frozen=True)
class Recorded:
    """The nodes of one fabric, recorded as vectors."""

    label: str
    """What the fabric is called."""
    directory: Path | None
    """Where the files are; None if it has no nodes that run by themselves."""
    nodes: int
    """How many nodes there are: a file each."""
    messages: int
    """Messages between them."""
    flows: int
    """Flows that began."""
    completed: int
    """Flows that completed."""
    failed: int
    """Flows that failed."""


@dataclass(frozen=True)
class Point:
    """One point of a sweep."""

    settings: dict[str, str]
    """The value of each key of the grid, as text."""
    label: str
    """What its fabric is called."""
    status: Literal["done", "failed", "not run"]
    """What became of it."""
    result: Result | None
    """Its result, if it is done."""
    problem: str | None
    """Why it failed, if it did."""


class Figure:
    """A figure of a sweep. In a notebook it shows itself."""

    def __init__(self, svg: str, pdf: bytes) -> None:
        self.svg = svg
        """The figure as an SVG document."""
        self.pdf = pdf
        """The figure as a PDF of one page, its letters as outlines."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes it as SVG or, by the path's ending, as PDF."""
        target = Path(path)
        match target.suffix.lower():
            case ".svg":
                target.write_text(self.svg, encoding="utf-8")
            case ".pdf":
                target.write_bytes(self.pdf)
            case other:
                problem = f"ends in {other!r}; expected .svg or .pdf"
                raise InputError([(str(target), None, None, problem)])
        return target

    def __repr__(self) -> str:
        return f"<rackloom.Figure, {len(self.svg):,} letters of SVG>"

    def _repr_svg_(self) -> str:
        return self.svg


class Sweep(Sequence[Point]):
    """A scenario over a grid: a sequence of points, by fabric, then by seed."""

    def __init__(self, directory: Path, points: Sequence[Point]) -> None:
        self.directory = directory
        """Where its files are."""
        self.points = list(points)
        """The points."""

    @classmethod
    def of(cls, directory: Path, keys: Sequence[str], rows: Sequence[_native._Point]) -> Sweep:
        """The sweep of points as the native part has them."""
        points = []
        for values, status, label, found, why in rows:
            settings = dict(zip(keys, values, strict=True))
            result = None if found is None else Result(found[0], found[1], json.loads(found[2]))
            points.append(Point(settings, label, status, result, why))
        return cls(directory, points)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Sweep:
        """A sweep that has run, from its directory."""
        return cls.of(*_native.swept(Path(directory)))

    @property
    def results(self) -> list[Result]:
        """The results of the points that are done."""
        return [point.result for point in self.points if point.result is not None]

    @property
    def failed(self) -> list[Point]:
        """The points that failed."""
        return [point for point in self.points if point.status == "failed"]

    @property
    def table(self) -> pa.Table:
        """``sweep.parquet``: a row a point, its settings, then everything its summary says."""
        return _table(self.directory / "sweep.parquet")

    @property
    def means(self) -> pa.Table:
        """``means.parquet``: a row a setting and fabric, over its seeds.

        ``KEY.low`` and ``KEY.high`` are the ends of the 95 % interval of ``KEY``.
        """
        return _table(self.directory / "means.parquet")

    def plot(
        self,
        *keys: str,
        over: str | None = None,
        log: Literal["", "x", "y", "xy"] = "",
    ) -> Figure:
        """A figure of keys of the summary, side by side: a line a fabric, means with intervals.

        Args:
            *keys: Such as ``slowdown.all.p99``. What no setting changes is a bar a fabric.
            over: A key of the grid or of the summary. Default: the first of the grid.
            log: Axes that are logarithmic.

        Raises:
            InputError: No summary has such a number.
        """
        return Figure(*_native.figure(self.directory, list(keys), over, log))

    def report(self) -> Path:
        """The report: one page, that opens in any browser."""
        return _report(self.directory)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        done = len(self.results)
        return f"<rackloom.Sweep, {done} of {len(self)} points done, in {str(self.directory)!r}>"

    def _repr_html_(self) -> str:
        keys = list(self.points[0].settings) if self.points else []
        rows = [
            [*point.settings.values(), point.label, point.problem or point.status]
            for point in self.points
        ]
        note = "means and intervals: .means; a figure: .plot(key); the page: .report()"
        return "".join([*_markup([*keys, "fabric", "status"], rows), f"<p>{note}</p>"])


@dataclass(frozen=True)
class Trial:
    """A trial of a search: what was tried and what came of it."""

    settings: dict[str, str]
    """The value of each key, as text; ``fabric`` is one of several fabrics."""
    status: str
    """``feasible``, ``infeasible``, ``failed`` or ``not run``."""
    is_best: bool
    """Whether no feasible trial is better; of several aims, in all of them."""
    why: list[str]
    """Why it is not feasible."""
    directories: list[Path]
    """Where its runs are, one a seed."""
    values: list[float] | None
    """Its aims, if all of them are known: those to minimise, then those to maximise."""
    summary: Summary | None
    """Its summary; of several seeds their means. None if it did not run."""


class Search(Sequence[Trial]):
    """A search among scenarios: a sequence of trials."""

    def __init__(self, directory: Path, trials: Sequence[Trial], *, is_exhausted: bool) -> None:
        self.directory = directory
        """Where its files are."""
        self.trials = list(trials)
        """The trials, in their order."""
        self.is_exhausted = is_exhausted
        """Whether every point of the space was tried."""

    @classmethod
    def of(
        cls,
        directory: Path,
        keys: Sequence[str],
        rows: Sequence[_native._Trial],
        is_exhausted: bool,
    ) -> Search:
        """The search of trials as the native part has them."""
        trials = []
        for values, status, is_best, why, folders, aims, summary in rows:
            settings = dict(zip(keys, values, strict=True))
            read = None if summary is None else json.loads(summary)
            trials.append(Trial(settings, status, is_best, why, folders, aims, read))
        return cls(directory, trials, is_exhausted=is_exhausted)

    @property
    def best(self) -> Trial | None:
        """The first of the best trials; None if none meets the conditions."""
        return next(iter(self.front), None)

    @property
    def front(self) -> list[Trial]:
        """The feasible trials than which none is better, in all of several aims."""
        return [trial for trial in self.trials if trial.is_best]

    @property
    def table(self) -> pa.Table:
        """``trials.parquet``: a row a trial, its settings, then everything its summary says."""
        return _table(self.directory / "trials.parquet")

    def plot(self) -> Figure:
        """The front of each two aims; of a single one, how good the best is by each trial."""
        path = self.directory / "figures" / "front.svg"
        try:
            return Figure(path.read_text(encoding="utf-8"), path.with_suffix(".pdf").read_bytes())
        except OSError as error:
            problem = f"there is no figure, as no trial has run: {error}"
            raise InputError([(str(self.directory), None, None, problem)]) from None

    def report(self) -> Path:
        """The report: one page, that opens in any browser."""
        return _report(self.directory)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> list[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | list[Trial]:
        return self.trials[index]

    def __len__(self) -> int:
        return len(self.trials)

    def __repr__(self) -> str:
        feasible = sum(trial.status == "feasible" for trial in self.trials)
        place = str(self.directory)
        return f"<rackloom.Search, {feasible} of {len(self)} trials feasible, in {place!r}>"

    def _repr_html_(self) -> str:
        keys = list(self.trials[0].settings) if self.trials else []
        rows = [
            [
                *trial.settings.values(),
                "; ".join([trial.status, *trial.why]),
                "" if trial.values is None else ", ".join(f"{value:.4g}" for value in trial.values),
                "best" if trial.is_best else "",
            ]
            for trial in self.trials
        ]
        return "".join(_markup([*keys, "status", "aims", ""], rows))


@dataclass(frozen=True)
class Reproduction:
    """Experiments repeated, of one paper or of all: their claims beside what we found."""

    directory: Path
    """Where its files are."""
    claims: list[dict[str, Any]]
    """The rows of the table: what was published, what we found, the verdict, and why; of all papers
    also which ``paper``, and every row that is measured in the directory."""
    broken: dict[str, str]
    """Experiments that broke, and why."""
    lost: list[str]
    """Claims that the last release reproduced and this one does not."""
    failed: list[str]
    """Checks that do not hold."""
    missing: list[str]
    """Of all papers: experiments that have not been measured, as `reproduce` takes them."""

    def report(self, experiment: str = "") -> Path:
        """The report: one page, that opens in any browser.

        Args:
            experiment: Of all papers, whose pages are apart: which, such as ``"pl2/fig7"``.
        """
        return _report(self.directory / experiment)

    def _repr_html_(self) -> str:
        if not self.claims:
            return "<p>No claims.</p>"
        titles = list(self.claims[0])
        rows = [
            ["" if row[key] is None else str(row[key]) for key in titles] for row in self.claims
        ]
        return "".join(_markup(titles, rows))


def _table(path: Path) -> pa.Table:
    from pyarrow import parquet  # noqa: PLC0415 - only who asks for tables pays for Arrow

    return parquet.read_table(path)


def _report(directory: Path) -> Path:
    path = directory / "report.html"
    if not path.is_file():
        message = f"{path}: there is no report"
        raise Error(message)
    return path.resolve()


def _tables(runs: list[tuple[str, Summary]]) -> str:
    shown = _native.page([(label, json.dumps(summary)) for label, summary in runs])
    labels = ", ".join(label for label, _ in runs)
    parts = [f"<h4>{html.escape(labels)}</h4>"]
    for titles, rows in shown:
        parts.extend(_markup(titles, rows))
    return "".join(parts)


def _markup(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table><thead><tr>"
    yield from (f"<th>{html.escape(title)}</th>" for title in titles)
    yield "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"
