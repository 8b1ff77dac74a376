"""Flows in memory as a trace: frames of pandas and Polars, tables of PyArrow."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rackloom.errors import InputError

PLACE = Path("results", "traces")
"""Where frames are stored, by their content. Results name the file, so they can be run again."""

KEY = "workload.flows"

_written: ContextVar[list[Path] | None] = ContextVar("written", default=None)
"""What the call under way has stored."""


@contextmanager
def undone_if_refused() -> Iterator[None]:
    """What a call stores goes away if its scenario cannot be used: then nothing was written."""
    written: list[Path] = []
    token = _written.set(written)
    try:
        yield
    except InputError:
        for path in written:
            path.unlink(missing_ok=True)
        if written:
            _remove_empty(PLACE, PLACE.parent)
        raise
    finally:
        _written.reset(token)


def is_frame(value: object) -> bool:
    """Whether it hands out its columns as Arrow does; pandas does so from 2.2 on."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


def with_path(workload: object) -> object:
    """The workload, its ``flows`` stored if it is a trace that has some."""
    if not isinstance(workload, Mapping) or workload.get("kind") != "trace":
        return workload
    if "flows" not in workload:
        return workload
    for key in ("path", "format"):
        if key in workload:
            message = f"flows and {key} are both given; remove one"
            raise InputError([("scenario", None, KEY, message)])
    rest = {key: value for key, value in workload.items() if key != "flows"}
    return {**rest, "path": store(workload["flows"]), "format": "parquet"}


def store(frame: object) -> str:
    """Stores a frame as Parquet under its digest and returns its path."""
    table = _table(frame)
    try:
        PLACE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=PLACE, prefix=".") as folder:
            fresh = Path(folder, "flows.parquet")
            # Without the frame's own description: the same flows are the same bytes.
            pq.write_table(table, fresh, compression="zstd", store_schema=False)
            with fresh.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
            path = PLACE / f"{digest}.parquet"
            if not path.exists():
                fresh.replace(path)
                written = _written.get()
                if written is not None:
                    written.append(path)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot be stored in {PLACE}: {error}"
        raise InputError([("scenario", None, KEY, message)]) from None
    return str(path)


def _table(frame: object) -> pa.Table:
    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        message = (
            f"found {type(frame).__name__}, which is no table ({error}); expected a frame of "
            "pandas or Polars, a table of PyArrow, or a mapping of columns"
        )
        raise InputError([("scenario", None, KEY, message)]) from None
    # A pandas index is no column of flows: rows that were filtered keep their old numbers in it.
    index = [name for name in table.column_names if name.startswith("__index_level_")]
    table = table.drop_columns(index).replace_schema_metadata(None)
    for place, field in enumerate(table.schema):
        if field.name == "start" and pa.types.is_duration(field.type):
            nanoseconds = table.column(place).cast(pa.duration("ns")).cast(pa.int64())
            table = table.set_column(place, "start_ns", nanoseconds)
    return table


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
