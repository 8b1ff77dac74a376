"""Scenarios and settings as the native part takes them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rackloom import traces
from rackloom.errors import InputError

Scenario: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A scenario: the path of a file, TOML or JSON, or the same as a mapping."""

Settings: TypeAlias = list[tuple[str, bytes, str]]

DEPTH_MAX = 32
"""How deep mappings and lists may lie within each other, as in files."""

PARTS_MAX = 1_000_000
"""How many values a scenario may hold (our choice)."""

VALUES_MAX = 10_000
"""How many values a key of a grid may have: as many as a sweep has points."""

SHOWN_MAX = 200
"""A longer value is shown by its start."""


def source(scenario: Scenario) -> Path | bytes:
    """The scenario as the native part takes it: a path, or JSON."""
    if isinstance(scenario, Mapping):
        return _json(_with_paths(scenario), "scenario")
    return Path(os.fspath(scenario))


def settings(overrides: Mapping[str, Any]) -> Settings:
    """Keywords as settings: ``workload__load=0.8`` sets ``workload.load``."""
    found = []
    for key, value in _settings_with_paths(overrides):
        _check(value, key)
        origin = f"{key}={_shortened(value)}"
        found.append((key.replace("__", "."), _json(value, origin), origin))
    return found


def _with_paths(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """A scenario in which a trace is a file, not a frame."""
    if "workload" not in scenario:
        return scenario
    return {**scenario, "workload": traces.with_path(scenario["workload"])}


def _settings_with_paths(overrides: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in overrides.items():
        match key.replace("__", "."):
            case "workload":
                yield key, traces.with_path(value)
            case "workload.flows" if traces.is_frame(value):
                yield "workload.path", traces.store(value)
                yield "workload.format", "parquet"
            case _:
                yield key, value


def grid(axes: Mapping[str, Iterable[Any]]) -> list[tuple[str, list[str]]]:
    """A grid, its values written as on the command line, so that both name the same points."""
    found = []
    for key, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            message = f"found {_shortened(values)}; expected a list of values, such as [0.2, 0.5]"
            raise InputError([("grid", None, key, message)])
        written: list[str] = []
        for value in values:
            if len(written) >= VALUES_MAX:
                raise InputError([("grid", None, key, f"expected at most {VALUES_MAX:,} values")])
            _check(value, key)
            written.append(_written(value))
        counts = Counter(written)
        repeated = [value for value, count in counts.items() if count > 1]
        if not written or repeated:
            what = f"these stand twice: {', '.join(sorted(repeated))}" if repeated else "no values"
            raise InputError([("grid", None, key, what)])
        found.append((key.replace("__", "."), written))
    if not found:
        raise InputError([("grid", None, None, "expected at least one key with its values")])
    return found


def space(over: Mapping[str, str | Iterable[Any]]) -> list[str]:
    """What a search goes over, as on the command line: ``KEY=LOW..HIGH`` or ``KEY=VALUE,...``."""
    ranges = {key: value for key, value in over.items() if isinstance(value, str)}
    lists = {key: value for key, value in over.items() if not isinstance(value, str)}
    written = dict(grid(lists)) if lists else {}
    texts = []
    for key in over:
        name = key.replace("__", ".")
        values = ranges[key] if key in ranges else ",".join(map(_bare, written[name]))
        texts.append(f"{name}={values}")
    return texts


def _bare(value: str) -> str:
    """A value of a list, in quotes if it holds what would part it."""
    return json.dumps(value) if "," in value and value[0] not in "[{\"'" else value


def _written(value: object) -> str:
    """A value as it stands after ``--grid KEY=``: text bare, all else as TOML."""
    return value if isinstance(value, str) else _toml(value)


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Mapping():
            pairs = (f"{json.dumps(str(key))} = {_toml(each)}" for key, each in value.items())
            return "{ " + ", ".join(pairs) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str() | int():
            return json.dumps(value)
        case _:
            return _json(value, "grid").decode()


def _check(value: object, origin: str) -> None:
    """Refuses what is nested without end, or holds more than any scenario: itself, say; and NaN."""
    level, depth, count = [value], 0, 0
    while level:
        below: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                below.extend(each.values())
            elif isinstance(each, list | tuple):
                below.extend(each)
            elif isinstance(each, float) and not math.isfinite(each):
                message = f"found {float(each)}; expected a finite number"
                raise InputError([(origin, None, None, message)])
            if count + len(below) > PARTS_MAX:
                message = f"holds more than {PARTS_MAX:,} parts; flows belong in a trace, a file"
                raise InputError([(origin, None, None, message)])
        count += len(below)
        level = below
        depth += 1
        if depth > DEPTH_MAX and level:
            message = f"nested more than {DEPTH_MAX} deep; expected a scenario, which is a few"
            raise InputError([(origin, None, None, message)])


def _shortened(value: object) -> str:
    """A value for messages."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:60]}... ({len(text)} characters)"


def _json(value: object, origin: str) -> bytes:
    """JSON, with paths as text, and with the numbers and arrays of NumPy as numbers and lists."""
    _check(value, origin)
    try:
        return json.dumps(value, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError([(origin, None, None, str(error))]) from None


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    message = f"a scenario cannot hold {value!r}, of type {type(value).__name__}"
    raise TypeError(message)
