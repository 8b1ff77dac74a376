#!/usr/bin/env python3
"""Writes switch.json: what PL2's switch does with frames, and what its registers hold after.

A second writing of Algorithm 1 (PL2, section 4.1.1) and of the frames' layout, in another language and
from the paper and the tables of `src/wire` alone; no code of the simulator makes these. The first cases
are worked by hand; the last draw frames at random. A P4 or XDP form of the program can be run against
the file as it stands:

    {"cases": [{"name", "settings", "before": {"in", "out", "pairs"}, "steps": [step]}]}
    settings: ports, drop_above (T), accounting ("literal", "saturating", "flagged"), decrement
          ("ingress": a packet is taken off the counter of its output when it comes in; "egress": when
          it leaves, behind the queue; the paper leaves that open), pairs (a third array has a register
          for each pair of nodes, from each to all in turn; ours, "egress" and "flagged" alone: a data
          packet for which its pair has nothing takes nothing off anywhere, a grant says what its pair had
          before, and what is given back is no more than the pair had)
    step: port and frame (hex) that come in; verdict "send" with out_port and out_frame, or "drop";
          or, with "egress", port and frame that leave, verdict "leaves"; "counted" false: the frame takes
          nothing off when it leaves, for its pair had nothing when it came (a bit of metadata);
          in, out and, if there are some, pairs: all registers after

Node n is at port n and has the address 02:00:00:00:00:nn. Run it to write the file anew.
"""

import json
import pathlib
import random
import struct
import zlib

RESERVE, GRANT, NOTICE, RESET = 1, 2, 3, 4
UNRESERVED, UNSOLICITED, AGAIN, AGAIN_UNCOUNTED = range(4)


def address(node):
    return bytes([2, 0]) + struct.pack(">I", node)


def sealed(body):
    return body + struct.pack("<I", zlib.crc32(body))


def control(to, frm, opcode, demand, flags=0, burst=0, send=0, receive=0, stamp=0, pair=0):
    fields = struct.pack(">BBHIIIQI", 0x10 | opcode, flags, demand, burst, send, receive, stamp, pair)
    body = address(to) + address(frm) + bytes.fromhex("8100e00088b5") + fields
    return sealed(body + bytes(60 - len(body)))


def data(to, frm, tag=None, size=60):
    """`tag`: (kind, thread, burst, index)."""
    head = address(to) + address(frm)
    if tag is not None:
        kind, thread, burst, index = tag
        bits = 1 if kind == UNRESERVED else kind << 14 | thread << 8 | burst << 4 | index
        head += struct.pack(">HH", 0x88B6, bits)
    head += struct.pack(">H", 0x0800)
    return sealed(head + bytes((7 * i) & 255 for i in range(size - len(head))))


class Switch:
    """Algorithm 1 with the unsolicited rule of section 4.4."""

    def __init__(self, settings, before):
        self.settings = settings
        self.into = list(before["in"])
        self.out = list(before["out"])
        self.pairs = list(before.get("pairs", []))

    def less(self, register):
        if self.settings["accounting"] == "literal":
            return (register - 1) % 2**32
        return max(0, register - 1)

    def more(self, register, slots):
        if self.settings["accounting"] == "literal":
            return (register + slots) % 2**32
        return min(2**32 - 1, register + slots)

    def step(self, src, request):
        """One packet, as (verdict, reply): `request` is a tuple of what it is."""
        what, dst, detail = request
        threshold = self.settings["drop_above"]
        if what == "reserve":
            send, receive = self.into[src], self.out[dst]
            self.into[src] = self.more(send, detail)
            self.out[dst] = self.more(receive, detail)
            pair = 0
            if self.pairs:
                pair = self.pairs[self.place(src, dst)]
                self.pairs[self.place(src, dst)] += detail
            return ("grant", send, receive, receive > threshold, pair)
        if what == "reset":
            sender, receiver, slots = detail
            if self.pairs:
                slots = min(slots, self.pairs[self.place(sender, receiver)])
                self.pairs[self.place(sender, receiver)] -= slots
            self.into[sender] = max(0, self.into[sender] - slots)
            self.out[receiver] = max(0, self.out[receiver] - slots)
            return ("return",)
        if what == "other":
            return ("forward",)
        kind = detail[0] if detail else None
        if kind == UNRESERVED:
            return ("forward",)
        if kind == AGAIN_UNCOUNTED and self.settings["accounting"] == "flagged":
            return ("forward",)
        at_egress = self.settings["decrement"] == "egress"
        if kind == UNSOLICITED:
            if self.out[dst] > threshold:
                return ("drop",)
            if at_egress:
                return self.come(src, dst)
            self.out[dst] = self.less(self.out[dst])
            self.into[src] = self.less(self.into[src])
            return ("forward",)
        if at_egress:
            return self.come(src, dst)
        self.out[dst] = self.less(self.out[dst])
        self.into[src] = self.less(self.into[src])
        return ("forward",)

    def place(self, src, dst):
        return src * self.settings["ports"] + dst

    def come(self, src, dst):
        """A packet that is taken off its input now, and off its output when it leaves."""
        if self.pairs:
            if self.pairs[self.place(src, dst)] == 0:
                return ("forward", "uncounted")
            self.pairs[self.place(src, dst)] -= 1
        self.into[src] = self.less(self.into[src])
        return ("forward",)

    def registers(self):
        held = {"in": list(self.into), "out": list(self.out)}
        return held | ({"pairs": list(self.pairs)} if self.pairs else {})

    def leave(self, dst, tag):
        """Data leaves by the port `dst`."""
        kind = tag[0] if tag else None
        is_counted = kind != UNRESERVED and (
            kind != AGAIN_UNCOUNTED or self.settings["accounting"] != "flagged"
        )
        if is_counted:
            self.out[dst] = self.less(self.out[dst])


def run(name, settings, before, requests):
    """A case: `requests` are (port, what, destination, detail). What "leaves" came by the port before."""
    switch = Switch(settings, before)
    steps = []
    # Of packets that wait, in order: whether each is counted when it leaves.
    waiting = {}
    for number, (port, what, dst, detail) in enumerate(requests):
        if what == "reserve":
            frame = control(dst, port, RESERVE, detail, burst=number, stamp=number * 1000)
        elif what == "reset":
            sender, receiver, slots = detail
            frame = control(dst, port, RESET, slots, send=sender, receive=receiver)
        elif what == "other":
            frame = control(dst, port, NOTICE, detail)
        else:
            frame = data(dst, port, detail)
        if what == "leaves":
            step = {"port": dst, "frame": frame.hex(), "verdict": "leaves"}
            if waiting[port, dst, detail].pop(0):
                switch.leave(dst, detail)
            else:
                step |= {"counted": False}
            steps.append(step | switch.registers())
            continue
        reply = switch.step(port, (what, dst, detail))
        step = {"port": port, "frame": frame.hex()}
        if reply[0] == "grant":
            _, send, receive, is_crowded, pair = reply
            answer = control(
                port, dst, GRANT, detail, 2 * is_crowded, number, send, receive, number * 1000, pair
            )
            step |= {"verdict": "send", "out_port": port, "out_frame": answer.hex()}
        elif reply[0] == "drop":
            step |= {"verdict": "drop"}
        else:
            out_port = port if reply[0] == "return" else dst
            step |= {"verdict": "send", "out_port": out_port, "out_frame": frame.hex()}
            is_counted = reply[-1] != "uncounted"
            waiting.setdefault((port, dst, detail), []).append(is_counted)
            step |= {} if is_counted else {"counted": False}
        steps.append(step | switch.registers())
    return {"name": name, "settings": settings, "before": before, "steps": steps}


def damaged(name, settings):
    """Frames that a switch drops: a wrong bit, a destination that nobody has, too short."""
    before = {"in": [0] * settings["ports"], "out": [0] * settings["ports"]}
    frame = bytearray(control(1, 0, RESERVE, 2))
    frame[20] ^= 1
    frames = [bytes(frame), control(9, 0, RESERVE, 2), sealed(b""), data(1, 0)[:20]]
    steps = [{"port": 0, "frame": f.hex(), "verdict": "drop", **before} for f in frames]
    return {"name": name, "settings": settings, "before": before, "steps": steps}


def settings(ports, drop_above, accounting="flagged", decrement="ingress", pairs=False):
    return {
        "ports": ports,
        "drop_above": drop_above,
        "accounting": accounting,
        "decrement": decrement,
    } | ({"pairs": True} if pairs else {})


def zeros(ports, pairs=False):
    held = {"in": [0] * ports, "out": [0] * ports}
    return held | ({"pairs": [0] * ports**2} if pairs else {})


def by_hand():
    yield run(
        "figure 2: slots 4 and 5",
        settings(4, 100),
        {"in": [0, 4, 0, 0], "out": [0, 0, 5, 0]},
        [(1, "reserve", 2, 4)] + [(1, "data", 2, None)] * 4,
    )
    yield run(
        "start-up: two senders to one receiver, a burst each",
        settings(3, 100),
        zeros(3),
        [(0, "reserve", 2, 4), (1, "reserve", 2, 2), (0, "reserve", 1, 1)]
        + [(0, "data", 2, None)] * 4
        + [(1, "data", 2, None)] * 2
        + [(0, "data", 1, None)],
    )
    copy = (UNSOLICITED, 3, 1, 0)
    yield run(
        "unsolicited packets pass at T and are dropped above it; the input is left alone",
        settings(2, 4),
        {"in": [9, 0], "out": [0, 4]},
        [(0, "data", 1, copy), (0, "reserve", 1, 2), (0, "data", 1, copy), (0, "reserve", 1, 1)],
    )
    again = [(0, "reserve", 1, 1), (0, "data", 1, copy), (0, "data", 1, (AGAIN_UNCOUNTED, 3, 1, 0))]
    for accounting in ("flagged", "saturating", "literal"):
        yield run(
            f"both copies of a packet, {accounting}", settings(2, 4, accounting), zeros(2), again
        )
    yield run(
        "a first copy that was dropped, and a second that counts",
        settings(2, 1),
        {"in": [0, 0], "out": [0, 2]},
        [(0, "reserve", 1, 1), (0, "data", 1, copy), (0, "data", 1, (AGAIN, 3, 1, 0))],
    )
    yield run(
        "what nobody reserved is not counted; slots are given back; copies pass",
        settings(3, 100),
        {"in": [5, 0, 0], "out": [0, 3, 0]},
        [
            (0, "data", 1, (UNRESERVED, 0, 0, 0)),
            (1, "reset", 2, (0, 1, 2)),
            (1, "reset", 2, (0, 1, 9)),
            (0, "other", 1, 4),
        ],
    )
    top = 2**32 - 1
    below = [(0, "data", 1, copy), (0, "reserve", 1, 4), (0, "data", 1, None)]
    for accounting in ("flagged", "literal"):
        yield run(f"below zero and back, {accounting}", settings(2, 4, accounting), zeros(2), below)
    for accounting in ("flagged", "literal"):
        yield run(
            f"above the largest number and back, {accounting}",
            settings(2, 4, accounting),
            {"in": [top - 2, 0], "out": [0, top]},
            [(0, "reserve", 1, 4), (0, "data", 1, None), (0, "reserve", 1, 1)],
        )
    yield damaged("frames that are dropped", settings(2, 100))


def by_hand_at_egress():
    at = {"decrement": "egress"}
    burst = [(1, "data", 2, None)] * 4
    yield run(
        "egress: figure 2; the input is free when packets come, the output when they leave",
        settings(4, 100, **at),
        {"in": [0, 4, 0, 0], "out": [0, 0, 5, 0]},
        [(1, "reserve", 2, 4)] + burst + [(1, "leaves", 2, None)] * 4,
    )
    copy = (UNSOLICITED, 3, 1, 0)
    yield run(
        "egress: unsolicited packets count while they wait: the third finds more than T and is dropped",
        settings(3, 2, **at),
        zeros(3),
        [(0, "reserve", 2, 2), (0, "data", 2, copy), (0, "data", 2, (UNSOLICITED, 3, 1, 1))]
        + [(1, "reserve", 2, 1), (1, "data", 2, copy), (0, "leaves", 2, copy)]
        + [(1, "data", 2, copy), (0, "leaves", 2, (UNSOLICITED, 3, 1, 1)), (1, "leaves", 2, copy)],
    )
    uncounted = (AGAIN_UNCOUNTED, 3, 1, 0)
    again = [(0, "reserve", 1, 1), (0, "data", 1, copy), (0, "data", 1, uncounted)]
    again += [(0, "leaves", 1, copy), (0, "leaves", 1, uncounted)]
    for accounting in ("flagged", "saturating", "literal"):
        yield run(
            f"egress: both copies of a packet, {accounting}",
            settings(2, 4, accounting, **at),
            zeros(2),
            again,
        )
    yield run(
        "egress: a packet that is lost in the queue stays counted until it is given back",
        settings(2, 100, **at),
        zeros(2),
        [(0, "reserve", 1, 2), (0, "data", 1, None), (0, "data", 1, None), (0, "leaves", 1, None)]
        + [(1, "reset", 0, (0, 1, 1))],
    )
    yield run(
        "egress: what nobody reserved is not counted when it leaves either; control frames are not",
        settings(2, 100, **at),
        {"in": [0, 0], "out": [0, 3]},
        [(0, "data", 1, (UNRESERVED, 0, 0, 0)), (0, "leaves", 1, (UNRESERVED, 0, 0, 0))],
    )


def by_hand_with_pairs():
    given = settings(3, 2, decrement="egress", pairs=True)
    copy = (UNSOLICITED, 3, 1, 0)
    yield run(
        "pairs: a grant says what its pair had; what leaked is given back, and no more than is there",
        given,
        zeros(3, pairs=True),
        [(0, "reserve", 2, 2), (1, "reserve", 2, 2), (0, "data", 2, None), (0, "leaves", 2, None)]
        # One of the first two got lost: the next grant of the pair shows it.
        + [(0, "reserve", 2, 1), (0, "reset", 1, (0, 2, 1)), (0, "reset", 1, (0, 2, 9))]
        + [(1, "data", 2, None), (1, "leaves", 2, None)],
    )
    yield run(
        "pairs: a packet whose reservation got lost takes nothing of others, now or when it leaves",
        given,
        zeros(3, pairs=True),
        [(1, "reserve", 2, 2), (0, "data", 2, copy), (0, "leaves", 2, copy), (0, "data", 1, None)]
        + [(0, "leaves", 1, None), (0, "reserve", 2, 1), (0, "data", 2, (AGAIN_UNCOUNTED, 3, 1, 0))],
    )
    yield run(
        "pairs: an unsolicited packet that is dropped leaves its pair alone",
        given,
        zeros(3, pairs=True),
        [(0, "reserve", 2, 3), (0, "data", 2, copy), (0, "data", 2, (AGAIN, 3, 1, 0))]
        + [(0, "leaves", 2, (AGAIN, 3, 1, 0))],
    )


def at_random(seed, accounting, ports=4, count=60, decrement="ingress", pairs=False):
    draw = random.Random(seed)
    requests = []
    # Packets that wait, by the port they leave by; which of the unsolicited ones were dropped shows a
    # switch beside.
    waiting = [[] for _ in range(ports)]
    given = settings(ports, 6, accounting, decrement, pairs)
    beside = Switch(given, zeros(ports, pairs))
    for _ in range(count):
        full = [port for port in range(ports) if waiting[port]]
        if decrement == "egress" and full and draw.random() < 0.4:
            dst = draw.choice(full)
            src, tag, is_counted = waiting[dst].pop(0)
            if is_counted:
                beside.leave(dst, tag)
            requests.append((src, "leaves", dst, tag))
            continue
        src, dst = draw.sample(range(ports), 2)
        what = draw.choices(["reserve", "data", "reset", "other"], [4, 10, 1, 1])[0]
        tag = (draw.randrange(4), draw.randrange(64), draw.randrange(16), draw.randrange(16))
        detail = {
            "reserve": draw.randint(1, 6),
            "data": draw.choice([None, None, tag]),
            "reset": (*draw.sample(range(ports), 2), draw.randint(1, 8)),
            "other": 1,
        }[what]
        requests.append((src, what, dst, detail))
        reply = beside.step(src, (what, dst, detail))
        if reply[0] == "forward" and what == "data":
            waiting[dst].append((src, detail, reply[-1] != "uncounted"))
    place = "pairs: " if pairs else "" if decrement == "ingress" else "egress: "
    return run(f"{place}random {seed}, {accounting}", given, zeros(ports, pairs), requests)


def written(case):
    """A case as text, a line for each step."""
    steps = ",\n  ".join(json.dumps(step) for step in case["steps"])
    head = json.dumps({key: value for key, value in case.items() if key != "steps"})
    return f'{head[:-1]}, "steps": [\n  {steps}]}}'


def main():
    cases = list(by_hand())
    accountings = ("flagged", "saturating", "literal")
    cases += [at_random(seed, name) for seed, name in enumerate(accountings)]
    cases += by_hand_at_egress()
    cases += [
        at_random(seed, name, count=100, decrement="egress")
        for seed, name in enumerate(accountings, start=3)
    ]
    cases += by_hand_with_pairs()
    cases += [
        at_random(seed, "flagged", count=80, decrement="egress", pairs=True) for seed in (6, 7)
    ]
    path = pathlib.Path(__file__).with_name("switch.json")
    path.write_text('{"cases": [\n' + ",\n".join(map(written, cases)) + "\n]}\n")


if __name__ == "__main__":
    main()
