"""Random scenarios of every fabric: each runs to its end, or is refused with a message.

Keys, values and defaults are those that `rackloom describe` tells, so a key that is added later is
tried as well. The binary has its debug checks on: whatever breaks an invariant of a model ends the
run with a panic, which is what these tests look for. The same scenarios every time; more with

    RACKLOOM_SCENARIOS=1000 .venv/bin/pytest tests/test_random_scenarios.py
"""

import json
import os
import random
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import rackloom

FABRICS = tuple(row["name"] for row in rackloom.list("fabrics"))
SCENARIOS = int(os.environ.get("RACKLOOM_SCENARIOS", "40"))
# Seconds after which a run is interrupted, which some ask for: greetings each nanosecond, say. Then
# it has to end soon, with its results up to there.
PATIENCE = 20

# Exit codes: of a run that comes to nothing, of a scenario that is refused, and of a run that was
# interrupted.
FAILED, REFUSED, INTERRUPTED = 1, 2, 130
# How a sound model may come to nothing: more flows open than are kept, and flows that nothing moves
# any further, whose results are stored. Broken books and panics have the same exit code.
OVERRUN = "flows are open, more than a run keeps"
STUCK = "flows open that nothing moves any further"
# Of a run that an interrupt finds in work that takes long at a time, on a machine with much to do.
CUT_SHORT = "did not stop in time"
# Of one that it finds before any flow has ended.
NOTHING_YET = "before anything was finished"

# How often a key is set that need not be, and a table's `kind` is another than the default.
SET = 0.12
OTHER_KIND = 0.45
# How often something fails; of fabrics of which nothing can, seldom, as they refuse such scenarios.
FAULTY = 0.75
FAULTY_OF = {"scoc-network": 0.1}

WORKLOADS = (
    'kind = "poisson"\nload = 0.1\nsizes = { kind = "table", name = "W1", reading = "upper_step" }',
    'kind = "poisson"\nload = 0.9\nsizes = { kind = "table", name = "W3", reading = "upper_step" }',
    'kind = "incast"\nsenders = 3\nsize = "60 KB"',
    'kind = "incast"\nsenders = 1\nsize = "1 B"',
    'kind = "bulk"\npattern = { kind = "permutation" }\nsize = "60 KB"',
    'kind = "all_to_all"\nsize = "3 KB"',
    'kind = "outcast"\nreceivers = 3\nsize = "20 KB"',
)
FAULTS = ("node = 1", "switch = 0", "node_link = 2", "count = 1", "link = { a = 0, b = 1 }")
# Sizes of racks, which are drawn small: a debug build is slow.
SIZES = {
    "pl2": ("nodes = 8",),
    "shoal": ("nodes = 16",),
    "r2c2": tuple(
        f'topology.kind = "{kind}"\ntopology.dimensions = {dimensions}'
        for kind in ("torus", "mesh")
        for dimensions in ("[3, 3]", "[4]", "[2, 3, 4]", "[8]")
    ),
}
UNITS = {
    "a rate": ("bps", "Mbps", "Gbps"),
    "a time": ("ps", "ns", "us", "ms"),
    "a size": ("B", "KB", "MB"),
}
# What needs a list or a file of its own.
LEFT_OUT = ("graph", "weighted")


@dataclass(frozen=True)
class Key:
    """A key below `[fabric]`, and the kinds of the tables around it with which it is there."""

    name: str
    value: str
    default: str
    kinds: tuple[tuple[str, str], ...]

    @property
    def table(self) -> str | None:
        """The table whose kind it is; none: another key."""
        return self.name.removesuffix(".kind") if self.name.endswith(".kind") else None


def keys_of(rows: Sequence[Mapping[str, str]]) -> list[Key]:
    """The rows of `describe` in order: those behind a `kind` hang on it, in its table."""
    kinds: dict[str, str] = {}
    found = []
    for row in rows:
        name, value = row["key"], row["value"]
        kinds = {table: kind for table, kind in kinds.items() if name.startswith(f"{table}.")}
        if name.endswith(".kind"):
            kinds[name.removesuffix(".kind")] = value.strip('"')
        if name not in ("kind", "label"):
            found.append(Key(name, value, row["default"], tuple(kinds.items())))
    return found


def whole_number(draw: random.Random, key: Key) -> str:
    if key.name.endswith(("hosts", "nodes")):
        return str(draw.choice((4, 8, 16, 27, 32)))
    bounds = [int(bound) for bound in re.findall(r"-?\d+", key.value)]
    low, high = bounds[0] if bounds else 0, bounds[1] if len(bounds) > 1 else None
    usual = int(key.default) if key.default.lstrip("-").isdigit() else low + 2
    drawn = draw.choice((low, low + 1, usual + 1, usual // 2, usual * 2, low + draw.randrange(8)))
    return str(max(low, drawn if high is None else min(high, draw.choice((drawn, high)))))


def number(draw: random.Random, key: Key) -> str:
    bounds = [float(bound) for bound in re.findall(r"[\d.]+", key.value)]
    low, high = bounds if len(bounds) == 2 else (0.0, 10.0)
    return f"{draw.choice((low, high, draw.uniform(low, high))):.4g}"


def quantity(draw: random.Random, key: Key, units: Sequence[str]) -> str | None:
    default = re.match(r'"([\d.]+) (\w+)"', key.default)
    if default and draw.random() < 0.8:
        amount = round(float(default[1]) * draw.choice((0, 0.1, 0.5, 1, 2, 3, 10)), 3)
        is_part_of_a_byte = default[2] == "B" and amount != int(amount)
        return None if is_part_of_a_byte else f'"{amount:g} {default[2]}"'
    return f'"{draw.choice((0, 1, 2, 10, 100))} {draw.choice(units)}"'


def value_of(draw: random.Random, key: Key) -> str | None:
    """A value as `describe` has it, or slightly beside; none: a list, a table or text."""
    choices = re.findall(r'"[^"]*"', key.value)
    if key.value == "true or false":
        return draw.choice(("true", "false"))
    if key.value.startswith("a whole number"):
        return whole_number(draw, key)
    if key.value.startswith("a number"):
        return number(draw, key)
    for start, units in UNITS.items():
        if key.value.startswith(start):
            return quantity(draw, key, units)
    return draw.choice(choices) if len(choices) > 1 else None


def fabric_table(draw: random.Random, fabric: str, keys: Sequence[Key]) -> list[str]:
    """Lines of the `[fabric]` table."""
    of_tables: dict[str, list[str]] = {}
    for key in keys:
        if key.table is not None:
            of_tables.setdefault(key.table, []).append(key.value.strip('"'))
    chosen = {}
    for table, kinds in of_tables.items():
        if table == "topology" or draw.random() < OTHER_KIND:
            chosen[table] = draw.choice([kind for kind in kinds if kind not in LEFT_OUT])
    lines = [f'kind = "{fabric}"']
    if fabric in SIZES:
        lines += draw.choice(SIZES[fabric]).splitlines()
    known = {line.partition(" = ")[0] for line in lines}
    for key in keys:
        is_there = all(chosen.get(table) == kind for table, kind in key.kinds)
        if not is_there or key.name in known or key.name == "shape.dimensions":
            continue
        if key.table is not None:
            lines.append(f"{key.name} = {key.value}")
        elif key.name == "topology.dimensions":
            lines.append(f"{key.name} = {draw.choice(('[3, 3]', '[4]', '[2, 3, 4]'))}")
        elif key.default == "required" or draw.random() < SET:
            value = value_of(draw, key)
            lines += [] if value is None else [f"{key.name} = {value}"]
    return lines


def scenario(draw: random.Random, fabric: str, keys: Sequence[Key]) -> str:
    lines = [f"seed = {draw.randrange(1_000)}", "[run]", "flows = 120"]
    workload = draw.choice(WORKLOADS)
    if "poisson" not in workload:
        lines = lines[:1]
    lines += ["[workload]", workload, "[fabric]", *fabric_table(draw, fabric, keys)]
    if draw.random() < FAULTY_OF.get(fabric, FAULTY):
        lines += ["[[fault]]", draw.choice(FAULTS), f'at = "{draw.choice((3, 20, 90))} us"']
        if draw.random() < 0.6:
            lines.append(f'until = "{draw.choice((120, 600))} us"')
    return "\n".join(lines) + "\n"


def carry(binary: Path, file: Path, out: Path) -> tuple[int, str]:
    """Runs a scenario, for a while. Gives the exit code and what was said."""
    command: list[str | Path] = [binary, "run", file, "--quiet", "-o", out]
    quiet = {**os.environ, "NO_COLOR": "1"}
    no, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, env=quiet, stdout=no, stderr=pipe, text=True) as run:
        try:
            _, message = run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            try:
                _, message = run.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                run.kill()
                raise
        return run.returncode, message


@pytest.mark.parametrize("fabric", FABRICS)
def test_random_scenarios_run_or_are_refused(fabric: str, binary: Path, tmp_path: Path) -> None:
    described = subprocess.run(
        [binary, "describe", fabric, "--format", "json"], check=True, stdout=subprocess.PIPE
    )
    keys = keys_of(json.loads(described.stdout))
    ran = 0
    for index in range(SCENARIOS):
        text = scenario(random.Random(f"{fabric} {index}"), fabric, keys)  # noqa: S311
        file, out = tmp_path / f"{index}.toml", tmp_path / str(index)
        file.write_text(text)
        code, message = carry(binary, file, out)
        told = f"{text}\nends with {code}:\n{message}"
        assert code in (0, FAILED, REFUSED, INTERRUPTED), told
        is_stuck = code == FAILED and STUCK in message
        if code == INTERRUPTED and CUT_SHORT in message:
            continue
        if code == INTERRUPTED and NOTHING_YET in message:
            assert not (out / "summary.json").exists(), told
            continue
        if code in (0, INTERRUPTED) or is_stuck:
            ran += 1
            assert (out / "summary.json").is_file(), told
        else:
            assert (OVERRUN if code == FAILED else str(file)) in message, told
            assert not out.exists(), f"{told}\nand leaves something behind"
    assert ran > 0, f"none of {SCENARIOS} scenarios ran: that tells nothing"
