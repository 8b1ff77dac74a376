"""The record of a run's packets in other people's tools: PyArrow, Wireshark."""

import json
import shutil
import struct
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rackloom

ROOT = Path(__file__).parent.parent
DISSECTORS = ROOT / "tools" / "wireshark" / "rackloom.lua"
TSHARK = shutil.which("tshark")

SWITCH = {"kind": "single-switch", "hosts": 8}


def packet_switched(transport: str) -> dict[str, Any]:
    return {"kind": "packet-switched", "topology": SWITCH, "transport": {"kind": transport}}


def scenario(fabric: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "why",
        "run": {"trace": "slowest 6"},
        "workload": {"kind": "incast", "senders": 6, "receiver": 0, "size": "40 KB"},
        "fabric": fabric,
    }


def record(here: Path, command: Any, fabric: dict[str, Any]) -> pa.Table:
    """Runs six flows to one node; where their packets were."""
    (here / "why.json").write_text(json.dumps(scenario(fabric)))
    done = command("run", "why.json", "--quiet", "--out", "r")
    assert done.returncode == 0, done.stderr
    return pq.read_table(here / "r" / "trace.parquet")


@pytest.mark.parametrize("transport", ["dctcp", "ndp", "homa"])
def test_lines_carried_what_the_record_of_all_their_packets_says(
    here: Path, command: Any, transport: str
) -> None:
    hops = record(here, command, packet_switched(transport))
    links = pq.read_table(here / "r" / "links.parquet")
    assert all(field.metadata[b"description"] for field in links.schema)
    (span,) = set(links["span_ps"].to_pylist())
    # All flows are recorded, each until its end: until the first of them ends, each packet that
    # went on a line is in one table, and its bytes are in the other.
    first_end = min(pq.read_table(here / "r" / "flows.parquet")["end_ps"].to_pylist())
    expected: dict[tuple[int, int], int] = {}
    for hop in hops.to_pylist():
        place = (hop["port"], hop["started_ps"] // span * span)
        if hop["sent_ps"] > hop["started_ps"] and place[1] + span <= first_end:
            expected[place] = expected.get(place, 0) + hop["wire_bytes"]
    rows = links.to_pylist()
    early = [row for row in rows if row["start_ps"] + span <= first_end]
    assert {(row["port"], row["start_ps"]): row["carried_bytes"] for row in early} == expected
    assert len(expected) > 100
    ends = {hop["port"]: (hop["from"], hop["to"]) for hop in hops.to_pylist()}
    assert {row["port"]: (row["from"], row["to"]) for row in early} == ends
    # Six flows meet before the receiver's line, and nowhere else.
    deepest = max(rows, key=lambda row: row["waiting_max_bytes"])
    assert deepest["to"] == "node 0"
    assert deepest["waiting_max_bytes"] > 0


def test_the_record_is_a_table_whose_rows_follow_each_other(here: Path, command: Any) -> None:
    hops = record(here, command, packet_switched("dctcp"))
    assert set(pc.unique(hops["flow_id"]).to_pylist()) == set(range(6))
    assert all(field.metadata[b"description"] for field in hops.schema)
    rows = hops.to_pylist()
    for row in rows:
        assert row["joined_ps"] <= row["started_ps"] <= row["sent_ps"]
        waited = row["behind_own_ps"] + row["behind_others_ps"] + row["held_ps"]
        assert waited == row["started_ps"] - row["joined_ps"]
        assert len(row["beside_flows"]) == len(row["beside_bytes"])
        assert row["flow_id"] not in row["beside_flows"]
    # A packet joins the next queue when it has arrived.
    for before, after in pairwise(rows):
        if after["hop"] > 0:
            assert (after["packet"], after["hop"]) == (before["packet"], before["hop"] + 1)
            assert after["joined_ps"] == before["arrived_ps"]
    page = (ROOT / "docs" / "why.md").read_text()
    assert [name for name in hops.column_names if f"`{name}`" not in page] == []


@pytest.mark.usefixtures("here")
def test_python_has_the_record_or_says_how_to_have_one() -> None:
    recorded = rackloom.run(scenario(packet_switched("dctcp")))
    assert recorded.trace.num_rows > 0
    plain = scenario(packet_switched("dctcp"))
    del plain["run"]
    with pytest.raises(rackloom.InputError, match="run__trace"):
        _ = rackloom.run(plain).trace


def test_the_page_names_every_part(here: Path, command: Any) -> None:
    page = (ROOT / "docs" / "why.md").read_text()
    hops = record(here, command, packet_switched("dctcp"))
    parts = set()
    for flow in pc.unique(hops["flow_id"]).to_pylist():
        done = command("why", "r", str(flow), "--format", "json")
        parts |= {part["part"] for part in json.loads(done.stdout)["parts"]}
    assert parts
    assert [part for part in parts if f"`{part}`" not in page] == []


def frames(capture: Path, *fields: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """What tshark reads of each frame: these fields."""
    assert TSHARK is not None
    wanted = [word for field in fields for word in ("-e", field)]
    command = [TSHARK, "-X", f"lua_script:{DISSECTORS}", *options]
    command += ["-r", str(capture), "-T", "fields"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=True)
    assert "Lua" not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


FABRICS: dict[str, tuple[dict[str, Any], str, str, tuple[str, ...]]] = {
    "dctcp": (packet_switched("dctcp"), "tcp", "tcp.seq", ()),
    "dcqcn": (packet_switched("dcqcn"), "infiniband", "infiniband.bth.psn", ()),
    "homa": (packet_switched("homa"), "homa_rackloom", "homa_rackloom.id", ()),
    "ndp": (
        packet_switched("ndp"),
        "ndp_rackloom",
        "ndp_rackloom.sequence",
        ("-o", "rackloom.udp:NDP"),
    ),
    "rds": (
        packet_switched("rds"),
        "rds_rackloom",
        "rds_rackloom.number",
        ("-o", "rackloom.udp:RDS"),
    ),
    "pl2": ({"kind": "pl2", "nodes": 8, "transport": {"kind": "raw"}}, "pl2tag", "pl2tag.kind", ()),
    "r2c2": (
        {"kind": "r2c2", "topology": {"kind": "torus", "dimensions": [2, 4]}},
        "r2c2",
        "r2c2.sequence",
        (),
    ),
    "scoc": ({"kind": "scoc", "nodes": 8}, "scoc_rackloom", "scoc_rackloom.sequence", ()),
    "aquila": ({"kind": "aquila", "nodes": 36}, "aquila_rackloom", "aquila_rackloom.vc", ()),
    "aquila-read": (
        {"kind": "aquila", "nodes": 36, "carrier": "1rma-read"},
        "aquila_rackloom",
        "aquila_rackloom.vc",
        (),
    ),
    "shoal": ({"kind": "shoal", "nodes": 8}, "shoal_rackloom", "shoal_rackloom.sequence", ()),
}


@pytest.mark.parametrize("carrier", ["ip", "1rma-read", "1rma-write"])
def test_cells_of_aquila_say_what_they_waited_for(here: Path, command: Any, carrier: str) -> None:
    hops = record(here, command, {"kind": "aquila", "nodes": 36, "carrier": carrier})
    page = (ROOT / "docs" / "why.md").read_text()
    assert [name for name in hops.column_names if f"`{name}`" not in page] == []
    assert all(field.metadata[b"description"] for field in hops.schema)
    cells = [row for row in hops.to_pylist() if row["cell"] is not None]
    kinds = {row["cell_kind"] for row in cells}
    expected = {"ip": "RTS CTS DATA", "1rma-read": "REQ RESP", "1rma-write": "WRITE_REQ REQ RESP"}
    assert kinds == set(expected[carrier].split())
    assert [kind for kind in kinds if f"`{kind}`" not in page] == []
    waits = ["fifo", "room", "crossbar", "line", "credit"]
    for before, after in pairwise(cells):
        if after["hop"] == 0:
            continue
        assert (after["cell"], after["hop"]) == (before["cell"], before["hop"] + 1)
        waited = sum(after[f"wait_{name}_ps"] for name in waits)
        assert waited == after["started_ps"] - after["joined_ps"]
        # 40 ns of a TiN, 20 on the way to an endpoint; a cycle before the first of them may be cut.
        inside = after["joined_ps"] - before["arrived_ps"]
        assert inside in (20_000, 40_000) or (before["hop"] == 0 and 37_500 < inside < 40_000)
    parts = set()
    for flow in pc.unique(hops["flow_id"]).to_pylist():
        done = command("why", "r", str(flow), "--format", "json")
        found = json.loads(done.stdout)
        assert sum(part["ps"] for part in found["parts"]) == found["fct_ps"]
        parts |= {part["part"] for part in found["parts"]}
        assert found["cells"]
    assert [part for part in parts if f"`{part}`" not in page] == []
    assert "solicitation_way" in parts
    assert ("request_way" in parts) == (carrier != "1rma-read")


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", FABRICS)
def test_wireshark_reads_the_frames(here: Path, command: Any, name: str) -> None:
    fabric, protocol, field, options = FABRICS[name]
    hops = record(here, command, fabric)
    done = command("why", "r", "--pcapng", "r.pcapng")
    assert done.returncode == 0, done.stderr
    wanted = ["frame.interface_name", "frame.time_epoch", "frame.len", "_ws.malformed"]
    capture = here / "r.pcapng"
    read = frames(capture, "frame.protocols", field, *wanted, options=options)
    rows = [row for row in hops.to_pylist() if row["sent_ps"] > row["started_ps"]]
    rows.sort(key=lambda row: (row["started_ps"], row["port"], row["flow_id"], row["packet"]))
    assert len(read) == len(rows)
    named = [frame for frame in read if protocol in frame[0].split(":")]
    assert named
    assert all(frame[1] for frame in named)
    for frame, row in zip(read, rows, strict=True):
        assert frame[2] == f"{row['from']} to {row['to']}"
        seconds, _, fraction = frame[3].partition(".")
        assert int(seconds) * 10**9 + int(fraction[:9]) == row["started_ps"] // 1000
        assert int(frame[4]) == len(row["header"]) + row["payload_bytes"]
        assert frame[5] == ""


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
def test_wireshark_reads_control_frames_of_pl2(here: Path) -> None:
    # As the table of crates/fabrics/pl2/src/wire/control.rs has it; they belong to no flow.
    ethernet = bytes.fromhex("020000000001 020000000002 8100e000 88b5")
    says = struct.pack(">BBHIIIQI14x", 0x12, 2, 3, 7, 8, 9, 10, 11)
    frame = ethernet + says
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)
    capture = here / "control.pcap"
    capture.write_bytes(head + struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    names = ["operation", "unsolicited", "crowded", "demand", "burst", "input", "output", "pair"]
    read = frames(capture, "frame.protocols", *(f"pl2.{name}" for name in names))
    assert read[0][0].endswith(":pl2")
    assert read[0][1:] == ["2", "0", "1", "3", "7", "8", "9", "11"]
