-- Wireshark's dissectors of the formats that are no standard's: R2C2, PL2, Homa, NDP, RDS, cells of Shoal and Aquila, and
-- packets of a SCOC chip, as Rackloom writes them (docs/wire-formats.md). For captures of `rackloom why RESULTS --pcapng FILE`.
--
--     wireshark -X lua_script:tools/wireshark/rackloom.lua FILE
--
-- or copied to Wireshark's folder of personal plugins. R2C2 and PL2 share an Ethernet type and are told apart by R2C2's
-- length; Homa has a number of its own in IPv4. NDP and RDS stand in UDP between ports that name flows: say which with
-- "Decode As" on the port, or for all of a capture with the preferences of the protocol "rackloom". Cells have link types
-- for private use: USER0 is Shoal's, USER1 SCOC's, USER2 Aquila's.

local ETHERNET_LOCAL, PL2_TAG, HOMA = 0x88B5, 0x88B6, 146

-- R2C2: a length of two bytes, then a packet (crates/fabrics/r2c2/src/wire).

local r2c2 = Proto("r2c2", "R2C2")
local r2c2_kinds = {
    [0] = "anew", [1] = "start", [2] = "finish", [3] = "demand", [4] = "route", [5] = "assignments",
    [6] = "notice of a drop", [8] = "hello", [9] = "link state", [10] = "report", [12] = "rates", [15] = "data",
}
local r2c2_says = { [0] = "", [1] = "last packet", [2] = "all is there", [3] = "asks for packets" }
local f = {
    length = ProtoField.uint16("r2c2.length", "Length"),
    kind = ProtoField.uint8("r2c2.kind", "Kind", base.DEC, r2c2_kinds, 0x0F),
    says = ProtoField.uint8("r2c2.says", "Says", base.DEC, r2c2_says, 0xF0),
    number = ProtoField.uint8("r2c2.announcement", "Announcement", base.DEC, nil, 0xF0),
    hops = ProtoField.uint8("r2c2.hops", "Hops of the route"),
    done = ProtoField.uint8("r2c2.done", "Hops done"),
    flow = ProtoField.uint32("r2c2.flow", "Flow"),
    source = ProtoField.uint16("r2c2.source", "Source"),
    destination = ProtoField.uint16("r2c2.destination", "Destination"),
    sequence = ProtoField.uint32("r2c2.sequence", "Sequence number"),
    checksum = ProtoField.uint16("r2c2.checksum", "Checksum", base.HEX),
    payload = ProtoField.uint16("r2c2.payload", "Bytes of payload"),
    route = ProtoField.bytes("r2c2.route", "Route, three bits a hop"),
    way = ProtoField.uint8("r2c2.way", "Way", base.HEX),
    demand = ProtoField.uint32("r2c2.demand", "Demand (kb/s)"),
    weight = ProtoField.uint8("r2c2.weight", "Weight"),
    priority = ProtoField.uint8("r2c2.priority", "Priority"),
    protocol = ProtoField.uint8("r2c2.protocol", "Routing protocol"),
    reports = ProtoField.uint8("r2c2.reports", "Reports", base.DEC, r2c2_kinds, 0x0F),
    count = ProtoField.uint8("r2c2.rates", "Rates", base.DEC, nil, 0x0F),
    round = ProtoField.uint16("r2c2.round", "Round"),
    part = ProtoField.uint8("r2c2.part", "Part of the list"),
    tag = ProtoField.uint24("r2c2.tag", "Tag of the list", base.HEX),
    rate = ProtoField.uint32("r2c2.rate", "Rate (kb/s)"),
}
local list = {}
for _, field in pairs(f) do
    list[#list + 1] = field
end
r2c2.fields = list

function r2c2.dissector(tvb, pinfo, tree)
    local length = tvb(0, 2):uint()
    pinfo.cols.protocol = "R2C2"
    local sub = tree:add(r2c2, tvb())
    sub:add(f.length, tvb(0, 2))
    local packet = tvb(2):tvb()
    local kind = packet(0, 1):bitfield(4, 4)
    sub:add(f.kind, packet(0, 1))
    local name = r2c2_kinds[kind] or "unknown"
    if kind == 15 then
        sub:add(f.says, packet(0, 1))
        sub:add(f.hops, packet(1, 1))
        sub:add(f.done, packet(2, 1))
        sub:add(f.flow, packet(4, 4))
        sub:add(f.source, packet(8, 2))
        sub:add(f.destination, packet(10, 2))
        sub:add(f.sequence, packet(12, 4))
        sub:add(f.checksum, packet(16, 2))
        sub:add(f.payload, packet(18, 2))
        sub:add(f.route, packet(20, 16))
        pinfo.cols.info = string.format("%s, flow %d, sequence %d, hop %d of %d", name, packet(4, 4):uint(),
            packet(12, 4):uint(), packet(2, 1):uint(), packet(1, 1):uint())
    elseif kind == 12 then
        local count = packet(1, 1):bitfield(4, 4)
        sub:add(f.count, packet(1, 1))
        sub:add(f.destination, packet(2, 2))
        sub:add(f.round, packet(4, 2))
        sub:add(f.checksum, packet(6, 2))
        sub:add(f.part, packet(8, 1))
        sub:add(f.tag, packet(9, 3))
        for at = 0, count - 1 do
            sub:add(f.rate, packet(12 + 4 * at, 4))
        end
        pinfo.cols.info = string.format("%d %s for %d", count, name, packet(2, 2):uint())
    elseif kind >= 1 and kind <= 4 or kind == 10 and packet(1, 1):bitfield(4, 4) > 0 then
        sub:add(f.number, packet(0, 1))
        if kind == 10 then
            sub:add(f.reports, packet(1, 1))
        else
            sub:add(f.way, packet(1, 1))
        end
        sub:add(f.source, packet(2, 2))
        sub:add(f.destination, packet(4, 2))
        sub:add(f.checksum, packet(6, 2))
        sub:add(f.demand, packet(8, 4))
        sub:add(f.weight, packet(12, 1))
        sub:add(f.priority, packet(13, 1))
        sub:add(f.protocol, packet(14, 1))
        pinfo.cols.info = string.format("%s of a flow, %d to %d", name, packet(2, 2):uint(), packet(4, 2):uint())
    else
        pinfo.cols.info = name
    end
    return length + 2
end

-- PL2's control frames, and the tag of its data (crates/fabrics/pl2/src/wire).

local pl2 = Proto("pl2", "PL2")
local pl2_operations = { [1] = "reserve", [2] = "grant", [3] = "notice", [4] = "reset", [5] = "withdrawal" }
local g = {
    version = ProtoField.uint8("pl2.version", "Version", base.DEC, nil, 0xF0),
    operation = ProtoField.uint8("pl2.operation", "Operation", base.DEC, pl2_operations, 0x0F),
    unsolicited = ProtoField.bool("pl2.unsolicited", "Unsolicited", 8, nil, 0x01),
    crowded = ProtoField.bool("pl2.crowded", "Output crowded", 8, nil, 0x02),
    demand = ProtoField.uint16("pl2.demand", "Demand (slots)"),
    burst = ProtoField.uint32("pl2.burst", "Burst"),
    input = ProtoField.uint32("pl2.input", "Slot at the input"),
    output = ProtoField.uint32("pl2.output", "Slot at the output"),
    stamp = ProtoField.uint64("pl2.stamp", "Time stamp"),
    pair = ProtoField.uint32("pl2.pair", "Slots of the pair"),
}
local pl2_tag = Proto("pl2tag", "PL2 tag")
local pl2_tags = {
    [0] = "outside all reservations", [1] = "unsolicited", [2] = "retransmitted",
    [3] = "retransmitted, not counted",
}
local t = {
    kind = ProtoField.uint16("pl2tag.kind", "Kind", base.DEC, pl2_tags, 0xC000),
    thread = ProtoField.uint16("pl2tag.thread", "Thread", base.DEC, nil, 0x3F00),
    burst = ProtoField.uint16("pl2tag.burst", "Burst", base.DEC, nil, 0x00F0),
    packet = ProtoField.uint16("pl2tag.packet", "Packet of the burst", base.DEC, nil, 0x000F),
}
pl2.fields = { g.version, g.operation, g.unsolicited, g.crowded, g.demand, g.burst, g.input, g.output, g.stamp, g.pair }
pl2_tag.fields = { t.kind, t.thread, t.burst, t.packet }

function pl2.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "PL2"
    local sub = tree:add(pl2, tvb(0, 28))
    sub:add(g.version, tvb(0, 1))
    sub:add(g.operation, tvb(0, 1))
    sub:add(g.unsolicited, tvb(1, 1))
    sub:add(g.crowded, tvb(1, 1))
    sub:add(g.demand, tvb(2, 2))
    sub:add(g.burst, tvb(4, 4))
    sub:add(g.input, tvb(8, 4))
    sub:add(g.output, tvb(12, 4))
    sub:add(g.stamp, tvb(16, 8))
    sub:add(g.pair, tvb(24, 4))
    local operation = pl2_operations[tvb(0, 1):bitfield(4, 4)] or "unknown"
    pinfo.cols.info = string.format("%s, burst %d, %d slots", operation, tvb(4, 4):uint(), tvb(2, 2):uint())
    return tvb:len()
end

function pl2_tag.dissector(tvb, pinfo, tree)
    local sub = tree:add(pl2_tag, tvb(0, 2))
    for _, field in ipairs({ t.kind, t.thread, t.burst, t.packet }) do
        sub:add(field, tvb(0, 2))
    end
    -- A part of a tvb forgets that payload was cut off its end; it is all zeros, so they are put back.
    local rest = tvb(4):bytes()
    rest:set_size(tvb:reported_len() - 4)
    return DissectorTable.get("ethertype"):try(tvb(2, 2):uint(), rest:tvb("Behind the tag"), pinfo, tree)
end

local ours = Proto("rackloom_ethernet", "Rackloom's Ethernet type")

function ours.dissector(tvb, pinfo, tree)
    if tvb(0, 2):uint() + 2 <= tvb:reported_len() then
        return r2c2.dissector:call(tvb, pinfo, tree)
    end
    return pl2.dissector:call(tvb, pinfo, tree)
end

local ethertypes = DissectorTable.get("ethertype")
ethertypes:add(ETHERNET_LOCAL, ours)
ethertypes:add(PL2_TAG, pl2_tag)

-- Homa (crates/transports/src/homa/header.rs; HomaModule, homa_wire.h).

-- Where the type and the identifier of the message stand.
local HOMA_TYPE, HOMA_ID = 11, 20
local homa = Proto("homa_rackloom", "Homa")
local homa_types = {
    [0x10] = "DATA", [0x11] = "GRANT", [0x12] = "RESEND", [0x14] = "BUSY", [0x17] = "NEED_ACK", [0x18] = "ACK",
}
local h = {
    sport = ProtoField.uint16("homa_rackloom.sport", "Source port"),
    dport = ProtoField.uint16("homa_rackloom.dport", "Destination port"),
    kind = ProtoField.uint8("homa_rackloom.type", "Type", base.HEX, homa_types),
    id = ProtoField.uint64("homa_rackloom.id", "Message"),
}
homa.fields = { h.sport, h.dport, h.kind, h.id }

function homa.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "Homa"
    local sub = tree:add(homa, tvb())
    sub:add(h.sport, tvb(0, 2))
    sub:add(h.dport, tvb(2, 2))
    sub:add(h.kind, tvb(HOMA_TYPE, 1))
    sub:add(h.id, tvb(HOMA_ID, 8))
    local kind = homa_types[tvb(HOMA_TYPE, 1):uint()] or "unknown"
    pinfo.cols.info = string.format("%s, message %s", kind, tostring(tvb(HOMA_ID, 8):uint64()))
    return tvb:len()
end

DissectorTable.get("ip.proto"):add(HOMA, homa)

-- NDP and RDS, in UDP (crates/transports/src/ndp/header.rs, rds/header.rs).

local ndp = Proto("ndp_rackloom", "NDP")
local n = {
    flags = ProtoField.uint16("ndp_rackloom.flags", "Flags", base.HEX),
    data = ProtoField.bool("ndp_rackloom.flags.data", "Data", 16, nil, 0x0001),
    ack = ProtoField.bool("ndp_rackloom.flags.ack", "Acknowledgment", 16, nil, 0x0002),
    pull = ProtoField.bool("ndp_rackloom.flags.pull", "Pull", 16, nil, 0x0004),
    nack = ProtoField.bool("ndp_rackloom.flags.nack", "Negative acknowledgment", 16, nil, 0x0008),
    fin = ProtoField.bool("ndp_rackloom.flags.fin", "Last", 16, nil, 0x0040),
    chopped = ProtoField.bool("ndp_rackloom.flags.chopped", "Trimmed", 16, nil, 0x0080),
    sequence = ProtoField.uint32("ndp_rackloom.sequence", "Sequence number"),
}
ndp.fields = { n.flags, n.data, n.ack, n.pull, n.nack, n.fin, n.chopped, n.sequence }

function ndp.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "NDP"
    local sub = tree:add(ndp, tvb(0, 20))
    local flags = sub:add(n.flags, tvb(0, 2))
    for _, field in ipairs({ n.data, n.ack, n.pull, n.nack, n.fin, n.chopped }) do
        flags:add(field, tvb(0, 2))
    end
    sub:add(n.sequence, tvb(12, 4))
    local bits, names = tvb(0, 2):uint(), {}
    for _, pair in ipairs({ { 1, "data" }, { 2, "ack" }, { 4, "pull" }, { 8, "nack" }, { 0x80, "trimmed" } }) do
        if bit.band(bits, pair[1]) ~= 0 then
            names[#names + 1] = pair[2]
        end
    end
    pinfo.cols.info = string.format("%s, sequence %d", table.concat(names, ", "), tvb(12, 4):uint())
    return tvb:len()
end

local rds = Proto("rds_rackloom", "RDS")
local rds_kinds = { [0] = "data", [1] = "grant", [2] = "drop notification", [3] = "receiver is there", [4] = "all has arrived" }
local r = {
    kind = ProtoField.uint8("rds_rackloom.kind", "Kind", base.DEC, rds_kinds),
    last = ProtoField.bool("rds_rackloom.last", "Last packet"),
    number = ProtoField.uint32("rds_rackloom.number", "Packet, or packets granted, or the first that is missing"),
    bytes = ProtoField.uint64("rds_rackloom.bytes", "Bytes of the message, or the first packet that is not missing"),
}
rds.fields = { r.kind, r.last, r.number, r.bytes }

function rds.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "RDS"
    local sub = tree:add(rds, tvb(0, 16))
    sub:add(r.kind, tvb(0, 1))
    sub:add(r.last, tvb(1, 1))
    sub:add(r.number, tvb(4, 4))
    sub:add(r.bytes, tvb(8, 8))
    local kind = rds_kinds[tvb(0, 1):uint()] or "unknown"
    pinfo.cols.info = string.format("%s, %d", kind, tvb(4, 4):uint())
    return tvb:len()
end

local udp = DissectorTable.get("udp.port")
udp:add_for_decode_as(ndp)
udp:add_for_decode_as(rds)

-- Which of the two all datagrams are that no port tells of.
local whole = Proto("rackloom", "Rackloom")
whole.prefs.udp = Pref.enum("UDP carries", 0, "What datagrams hold", {
    { 1, "nothing of ours", 0 }, { 2, "NDP", 1 }, { 3, "RDS", 2 },
}, false)

local function heuristic(tvb, pinfo, tree)
    local chosen = ({ [1] = ndp, [2] = rds })[whole.prefs.udp]
    if not chosen or tvb:len() < 16 then
        return false
    end
    chosen.dissector:call(tvb, pinfo, tree)
    return true
end

whole:register_heuristic("udp", heuristic)

-- Shoal: a header of 64 bits, whose fields are as wide as the rack needs (crates/fabrics/shoal/src/wire/mod.rs).

local shoal = Proto("shoal_rackloom", "Shoal cell")
local s = {
    source = ProtoField.uint16("shoal_rackloom.source", "Source"),
    destination = ProtoField.uint16("shoal_rackloom.destination", "Destination"),
    sequence = ProtoField.uint32("shoal_rackloom.sequence", "Sequence number"),
    feedback = ProtoField.uint16("shoal_rackloom.feedback", "Rate limit feedback"),
    start = ProtoField.bool("shoal_rackloom.start", "Start of packet"),
    ending = ProtoField.bool("shoal_rackloom.end", "End of packet"),
    dropped = ProtoField.bool("shoal_rackloom.dropped", "Last cell dropped"),
    class = ProtoField.uint8("shoal_rackloom.class", "Class"),
    checksum = ProtoField.uint8("shoal_rackloom.checksum", "Checksum", base.HEX),
}
shoal.fields = {
    s.source, s.destination, s.sequence, s.feedback, s.start, s.ending, s.dropped, s.class, s.checksum,
}
shoal.prefs.nodes = Pref.uint("Nodes", 512, "Nodes of the rack: on them depends how wide the fields are")
shoal.prefs.classes = Pref.uint("Classes", 1, "Traffic classes of the rack")

function shoal.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "Shoal"
    local nodes, classes = shoal.prefs.nodes, shoal.prefs.classes
    local id = nodes > 1024 and 11 or (nodes <= 512 and classes > 1) and 9 or 10
    local class = classes > 1 and 3 or 0
    local sub, at, value = tree:add(shoal, tvb(0, 8)), 0, {}
    for _, field in ipairs({
        { "source", id }, { "destination", id }, { "sequence", 64 - 3 * id - 12 - class }, { "feedback", id + 1 },
        { "start", 1 }, { "ending", 1 }, { "dropped", 1 }, { "class", class }, { "checksum", 8 },
    }) do
        local name, bits = field[1], field[2]
        if bits > 0 then
            local first, last = math.floor(at / 8), math.floor((at + bits - 1) / 8)
            value[name] = tvb:range(0, 8):bitfield(at, bits)
            local is_flag = bits == 1
            sub:add(s[name], tvb(first, last - first + 1), is_flag and value[name] == 1 or not is_flag and value[name])
            at = at + bits
        end
    end
    pinfo.cols.info = string.format("%d to %d, sequence %d, feedback %d", value.source, value.destination,
        value.sequence, value.feedback)
    return tvb:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, shoal)

-- SCOC: a header of 36 bytes, the lowest byte of each number first (crates/fabrics/scoc/src/rack/header.rs). Instants are in
-- ticks, of which a byte and a cycle are whole numbers.

local scoc = Proto("scoc_rackloom", "SCOC packet")
local c = {
    source = ProtoField.uint16("scoc_rackloom.source", "Source"),
    destination = ProtoField.uint16("scoc_rackloom.destination", "Destination"),
    size = ProtoField.uint32("scoc_rackloom.size", "Bytes on the line"),
    sequence = ProtoField.uint32("scoc_rackloom.sequence", "Packet of the flow"),
    flow = ProtoField.uint32("scoc_rackloom.flow", "Flow of the source", base.DEC, nil, 0x7FFFFFFF),
    last = ProtoField.bool("scoc_rackloom.last", "Last packet", 32, nil, 0x80000000),
    born = ProtoField.uint64("scoc_rackloom.born", "Ready at its source (ticks)"),
    entered = ProtoField.uint64("scoc_rackloom.entered", "On the line (ticks)"),
    checksum = ProtoField.uint32("scoc_rackloom.checksum", "Checksum", base.HEX),
}
scoc.fields = { c.source, c.destination, c.size, c.sequence, c.flow, c.last, c.born, c.entered, c.checksum }

function scoc.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "SCOC"
    local sub = tree:add(scoc, tvb(0, 36))
    for _, field in ipairs({
        { c.source, 0, 2 }, { c.destination, 2, 2 }, { c.size, 4, 4 }, { c.sequence, 8, 4 }, { c.flow, 12, 4 },
        { c.last, 12, 4 }, { c.born, 16, 8 }, { c.entered, 24, 8 }, { c.checksum, 32, 4 },
    }) do
        sub:add_le(field[1], tvb(field[2], field[3]))
    end
    pinfo.cols.info = string.format("%d to %d, flow %d, packet %d", tvb(0, 2):le_uint(), tvb(2, 2):le_uint(),
        bit.band(tvb(12, 4):le_uint(), 0x7FFFFFFF), tvb(8, 4):le_uint())
    return tvb:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER1, scoc)

-- Aquila: a header of 8 bytes (crates/fabrics/aquila/src/link/header.rs), and behind it what each kind of cell says
-- (crates/fabrics/aquila/src/cells). Addresses are of a pod, a TiN in it, and an endpoint of that.

local aquila = Proto("aquila_rackloom", "Aquila cell")
local aquila_kinds = {
    [0] = "RTS", [1] = "CTS", [2] = "CTD", [3] = "DATA", [4] = "REQ", [5] = "RESP", [6] = "WRITE_REQ",
    [7] = "RESP_ERROR", [8] = "RAW",
}
local aquila_operations = { [1] = "read", [2] = "write", [3] = "compare and swap", [4] = "fetch and add" }
local aquila_statuses = {
    [0] = "done", [1] = "bad tag", [2] = "out of bounds", [3] = "no region", [4] = "forbidden", [5] = "host error",
}
local function aquila_field(kind, name, title, mask, values)
    return ProtoField[kind]("aquila_rackloom." .. name, title, base.DEC, values, mask)
end
local a = {
    destination = ProtoField.uint16("aquila_rackloom.destination", "Destination", base.HEX),
    source = ProtoField.uint16("aquila_rackloom.source", "Source", base.HEX),
    length = aquila_field("uint8", "length", "Bytes of the cell"),
    kind = aquila_field("uint16", "kind", "Kind", 0xF800, aquila_kinds),
    vc = aquila_field("uint16", "vc", "Virtual channel", 0x07C0),
    hops = aquila_field("uint16", "hops", "Hops left", 0x003E),
    traced = ProtoField.bool("aquila_rackloom.traced", "Traced", 16, nil, 0x0001),
    checksum = ProtoField.uint8("aquila_rackloom.checksum", "Checksum", base.HEX),
    bytes = aquila_field("uint64", "packet_length", "Bytes of the packet"),
    class = aquila_field("uint64", "class_of_service", "Class of service"),
    ingress = aquila_field("uint64", "ingress", "Place in the ingress buffer"),
    ingress_use = aquila_field("uint64", "ingress_generation", "Use of that place"),
    usage = aquila_field("uint64", "usage", "Ingress buffer full (sixteenths)"),
    port = aquila_field("uint64", "egress_port", "Egress port"),
    marks = aquila_field("uint64", "may_be_marked", "May be marked"),
    hash = aquila_field("uint64", "flow_hash", "Hash of the flow"),
    egress = aquila_field("uint64", "egress", "Place in the egress buffer"),
    egress_use = aquila_field("uint64", "egress_generation", "Use of that place"),
    index = aquila_field("uint64", "index", "Cell of the packet"),
    last = aquila_field("uint64", "last", "Last cell"),
    operation = aquila_field("uint8", "operation", "Operation", nil, aquila_operations),
    asked = aquila_field("uint16", "asked", "Bytes asked for"),
    slot = aquila_field("uint16", "slot", "Slot of the command"),
    segment = aquila_field("uint8", "segment", "Segment"),
    generation = aquila_field("uint8", "generation", "Use of the slot"),
    region = aquila_field("uint32", "region", "Region"),
    key = aquila_field("uint32", "key", "Key"),
    address = ProtoField.uint64("aquila_rackloom.address", "Address", base.HEX),
    tag = ProtoField.bytes("aquila_rackloom.tag", "Tag"),
    offset = aquila_field("uint16", "offset", "Offset in the segment (8 bytes)"),
    words = aquila_field("uint8", "words", "Length (8 bytes)"),
    status = aquila_field("uint8", "status", "Status", nil, aquila_statuses),
}
local aquila_fields = {}
for _, field in pairs(a) do
    aquila_fields[#aquila_fields + 1] = field
end
aquila.fields = aquila_fields
aquila.prefs.data_header = Pref.uint("Header of data", 4, "Bytes that data cells say of themselves: 4, or 0")

-- Fields of a number of bytes from `at` on, by their widths in bits, the highest first; those without a name are spare.
local function aquila_bits(sub, tvb, at, fields)
    local first, value = 0, {}
    for _, field in ipairs(fields) do
        local name, bits = field[1], field[2]
        if name then
            local from, to = math.floor(first / 8), math.floor((first + bits - 1) / 8)
            value[name] = tvb(at + from, to - from + 1):bitfield(first % 8, bits)
            sub:add(a[name], tvb(at + from, to - from + 1), UInt64(value[name]))
        end
        first = first + bits
    end
    return value
end

local function aquila_name(bits)
    local pod, tin = bit.rshift(bits, 10), bit.band(bit.rshift(bits, 6), 15)
    return string.format("%d.%d:%d", pod, tin, bit.band(bits, 63))
end

local function aquila_says(kind, sub, tvb)
    if kind == 0 then
        local says = aquila_bits(sub, tvb, 8, {
            { "bytes", 14 }, { "class", 3 }, { "ingress", 20 }, { "ingress_use", 4 }, { "usage", 4 }, { "port", 2 },
            { "marks", 1 }, { nil, 1 }, { "hash", 12 },
        })
        return string.format("%d bytes at %d", says.bytes, says.ingress)
    elseif kind == 1 or kind == 2 then
        local says = aquila_bits(sub, tvb, 8, {
            { "ingress", 20 }, { "ingress_use", 4 }, { "egress", 20 }, { "egress_use", 4 },
        })
        return string.format("from %d to %d", says.ingress, says.egress)
    elseif kind == 3 then
        if aquila.prefs.data_header == 0 then
            return ""
        end
        local says = aquila_bits(sub, tvb, 8, {
            { "egress", 20 }, { "egress_use", 4 }, { "index", 7 }, { "last", 1 },
        })
        return string.format("cell %d%s for %d", says.index, says.last == 1 and ", the last," or "", says.egress)
    elseif kind == 4 or kind == 6 then
        sub:add(a.operation, tvb(8, 1))
        sub:add(a.asked, tvb(10, 2))
        sub:add(a.slot, tvb(12, 2))
        sub:add(a.segment, tvb(14, 1))
        sub:add(a.generation, tvb(15, 1))
        sub:add(a.region, tvb(16, 4))
        sub:add(a.key, tvb(20, 4))
        sub:add(a.address, tvb(24, 8))
        sub:add(a.tag, tvb(32, 16))
        return string.format("%d bytes, slot %d, segment %d", tvb(10, 2):uint(), tvb(12, 2):uint(), tvb(14, 1):uint())
    elseif kind == 5 or kind == 7 then
        sub:add(a.slot, tvb(8, 2))
        sub:add(a.segment, tvb(10, 1))
        sub:add(a.generation, tvb(11, 1))
        sub:add(a.offset, tvb(12, 2))
        sub:add(a.words, tvb(14, 1))
        sub:add(a.status, tvb(15, 1))
        return string.format("slot %d, segment %d, offset %d", tvb(8, 2):uint(), tvb(10, 1):uint(),
            8 * tvb(12, 2):uint())
    end
    return ""
end

function aquila.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "Aquila"
    local sub = tree:add(aquila, tvb())
    sub:add(a.destination, tvb(0, 2))
    sub:add(a.source, tvb(2, 2))
    sub:add(a.length, tvb(4, 1))
    for _, field in ipairs({ a.kind, a.vc, a.hops, a.traced }) do
        sub:add(field, tvb(5, 2))
    end
    sub:add(a.checksum, tvb(7, 1))
    local kind = tvb(5, 1):bitfield(0, 5)
    pinfo.cols.info = string.format("%s %s to %s, channel %d %s", aquila_kinds[kind] or "unknown",
        aquila_name(tvb(2, 2):uint()), aquila_name(tvb(0, 2):uint()), tvb(5, 2):bitfield(5, 5),
        aquila_says(kind, sub, tvb))
    return tvb:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER2, aquila)
