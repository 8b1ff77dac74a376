"""Flows in memory: frames of pandas and Polars and tables of PyArrow as traces."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rackloom

COLUMNS = {
    "start_ps": [0, 1_500_000, 2_000_000],
    "src": [0, 2, 1],
    "dst": [1, 0, 3],
    "bytes": [5_000, 20_000, 300],
    "class": [0, 1, 0],
}
"""Flows as columns; `FLOWS` is what results say of them."""

FLOWS = [
    {"flow_id": 0, "src": 0, "dst": 1, "class": 0, "size_bytes": 5_000, "start_ps": 0},
    {"flow_id": 1, "src": 2, "dst": 0, "class": 1, "size_bytes": 20_000, "start_ps": 1_500_000},
    {"flow_id": 2, "src": 1, "dst": 3, "class": 0, "size_bytes": 300, "start_ps": 2_000_000},
]

FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, filtered": pd.DataFrame({key: [9, *values] for key, values in COLUMNS.items()})[1:],
    "Polars": pl.DataFrame(COLUMNS),
    "PyArrow": pa.table(COLUMNS),
    "columns": COLUMNS,
}


def scenario(flows: object) -> dict[str, Any]:
    fabric = {"kind": "packet-switched", "nodes": 8}
    return {"workload": {"kind": "trace", "flows": flows}, "fabric": fabric}


def offered(result: rackloom.Result) -> list[dict[str, Any]]:
    table = result.flows.select(list(FLOWS[0])).sort_by("flow_id")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.usefixtures("here")
def test_every_frame_offers_the_same_flows() -> None:
    hashes = set()
    for name, frame in FRAMES.items():
        result = rackloom.run(scenario(frame))
        assert offered(result) == FLOWS, name
        hashes.add(result.summary["scenario_hash"])
    assert len(hashes) == 1, "equal flows are stored as equal bytes"
    assert len(list(Path("results", "traces").iterdir())) == 1


@pytest.mark.usefixtures("here")
def test_what_a_frame_offered_can_be_run_again_from_the_results() -> None:
    first = rackloom.run(scenario(pl.DataFrame(COLUMNS)), out="first")
    again = rackloom.run("first/scenario.toml", out="again")
    assert again.summary["event_hash"] == first.summary["event_hash"]
    # Flows of a run are a table as well, and all of what they say beside the flows is left out.
    table = rackloom.run(scenario(first.flows), out="table")
    assert table.summary["event_hash"] == first.summary["event_hash"]


@pytest.mark.usefixtures("here")
def test_a_frame_may_be_a_setting_and_a_start_a_duration() -> None:
    flows = pd.DataFrame(COLUMNS)
    other = flows.assign(start=pd.to_timedelta(flows["start_ps"] // 1_000, unit="ns"))
    base = scenario(flows[:1])
    result = rackloom.run(base, workload__flows=other.drop(columns="start_ps"), out="a")
    assert offered(result) == FLOWS
    whole = {"kind": "trace", "flows": pl.from_pandas(other).drop("start_ps")}
    assert offered(rackloom.run(base, workload=whole, out="b")) == FLOWS


@pytest.mark.usefixtures("here")
def test_a_frame_that_cannot_be_used_is_refused_and_nothing_is_left() -> None:
    flows = pl.DataFrame(COLUMNS)
    for found, expected in [
        (flows.rename({"bytes": "size"}), "size: unknown column"),
        (flows.with_columns(dst=8), "row 0: dst: found node 8; expected one from 0 to 7"),
        (flows.with_columns(after=[[0], [0], [0]]), "column after holds tables"),
        (flows[:0], "holds no flow"),
        (flows.lazy(), "found LazyFrame, which is no table"),
        (3, "found int, which is no table"),
    ]:
        with pytest.raises(rackloom.InputError) as refused:
            rackloom.run(scenario(found))
        assert expected in str(refused.value)
    with pytest.raises(rackloom.InputError, match="flows and path are both given"):
        rackloom.run({"workload": {"kind": "trace", "flows": flows, "path": "t.csv"}})
    assert not Path("results").exists()


@pytest.mark.usefixtures("here")
def test_a_long_frame_of_equal_values_is_read() -> None:
    count = 200_000
    long = {"start_ps": [0] * count, "src": [0] * count, "dst": [1] * count, "bytes": [1] * count}
    resolved = rackloom.resolve(scenario(pa.table(long)))
    assert resolved["workload"]["format"] == "parquet"
