"""How far something has come: to a function, or to stderr."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """How far something has come."""

    what: str
    """What is under way: a fabric's label, ``sweep``, an experiment."""
    done: float
    """How much is done: flows, points, the share of an experiment, of several seconds of work."""
    total: float | None
    """Of how much, where that is known."""
    note: str
    """More, in a few words."""

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1, where it is known."""
        return min(self.done / self.total, 1.0) if self.total else None


Listener: TypeAlias = Callable[[Progress], object]
"""Hears how far something has come. What it raises stops the work."""

Raw: TypeAlias = Callable[[str, float, float | None, str], None]


class Line:
    """Writes progress to one line of stderr."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        """Shows this instead of what the line said."""
        share = "" if progress.share is None else f"{progress.share:4.0%} "
        # Of an experiment only the share is known, which stands there already.
        count = "" if progress.total == 1 else f"{progress.done:,.10g} "
        if count and progress.total is not None:
            count += f"of {progress.total:,.10g} "
        text = f"{progress.what}: {share}{count}{progress.note}"
        width = max(shutil.get_terminal_size().columns - 1, 20)
        # What a label or a name holds is shown, not carried out by the terminal.
        self._show("".join(c if c.isprintable() else "?" for c in text)[:width])

    def _show(self, text: str) -> None:
        # Work does not end because nobody can see how far it is.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        """Empties the line."""
        if self._width:
            self._show("")
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\r")


def listener(progress: bool | Listener) -> tuple[Raw | None, Callable[[], None]]:
    """What the native part calls, and what to call when it is done."""
    if progress is False:
        return None, lambda: None
    if progress is True:
        line = Line()
        return _raw(line), line.close
    return _raw(progress), lambda: None


def _raw(hear: Listener) -> Raw:
    def step(what: str, done: float, total: float | None, note: str) -> None:
        hear(Progress(what, done, total, note))

    return step
