//! Generated from registers.toml; do not edit. After a change of the description:
//!
//! ```text
//! cargo run -p rackloom-aquila-control --example generate_registers
//! ```

use super::{Access, Handle, Register, Reset};

/// Version of the description.
pub const VERSION: u32 = 1;

/// What chip this is: the letters tin1.
pub const ID_CHIP: Handle<u32, 0> = Handle::new(0);
/// Version of the description that the chip was built to.
pub const ID_DESCRIPTION: Handle<u32, 0> = Handle::new(1);
/// The chip's own Ethernet address in the low 48 bits, by which DHCP knows it (M803).
pub const ID_ETHERNET: Handle<u64, 0> = Handle::new(2);
/// Its GNet address without the endpoint: pod 6 bits, TiN 4, six zeros; all ones: none yet.
pub const ID_GNET: Handle<u16, 0> = Handle::new(3);
/// By port: 0 down, 1 training, 2 locked, 3 up (M215).
pub const LINK_STATE: Handle<u8, 1> = Handle::new(4);
/// By port: bit 0 lets the link come up.
pub const LINK_CONTROL: Handle<u8, 1> = Handle::new(5);
/// By port: the Ethernet address of the chip at the other end, which it says of itself; zero: unheard.
pub const LINK_NEIGHBOUR: Handle<u64, 1> = Handle::new(6);
/// Bit 4 a + b: a hop of type b may follow one of type a; odd-, odd+, even-, even+ (M305).
pub const TURN_ALLOWED: Handle<u16, 0> = Handle::new(7);
/// By traffic class: 0 fully adaptive, 1 minimal adaptive, 2 deterministic, 3 minimal deterministic (M314).
pub const CLASS_MODE: Handle<u8, 1> = Handle::new(8);
/// By traffic class: what a queued unit of a longer way counts, in hundredths (M312).
pub const CLASS_DETOUR_WEIGHT: Handle<u16, 1> = Handle::new(9);
/// By traffic class: units of 16 bytes that a longer way counts beside its queue (M312).
pub const CLASS_DETOUR_BIAS: Handle<u16, 1> = Handle::new(10);
/// By host: bit 0 turns its management sideband on (M616).
pub const SIDEBAND_ALLOWED: Handle<u8, 1> = Handle::new(11);
/// By host, of NC-SI: Ethernet address in 48 bits; bit 48 initialised, 49 enabled, 50 sends, 51 notified, 52 selected; by whom 8.
pub const SIDEBAND_CHANNEL: Handle<u64, 1> = Handle::new(12);
/// By port: cells that came in (M605).
pub const COUNT_CELLS_RECEIVED: Handle<u64, 1> = Handle::new(13);
/// By port: cells that went out (M605).
pub const COUNT_CELLS_SENT: Handle<u64, 1> = Handle::new(14);
/// By port: cells that came in and found no way or no hops left (M605).
pub const COUNT_CELLS_DISCARDED: Handle<u64, 1> = Handle::new(15);
/// By port: blocks whose checksum was wrong (M605).
pub const COUNT_BLOCKS_DAMAGED: Handle<u64, 1> = Handle::new(16);
/// Whose ARP and neighbour requests are answered: address 16 bytes, prefix 1, version 1, Ethernet address 6 (M612).
pub const RESPONDER: Handle<[u8; 32], 1> = Handle::new(17);
/// By endpoint: its ports in 8 slots of a byte; ones: nothing listens there (M102).
pub const TERMINAL: Handle<u64, 1> = Handle::new(18);
/// By whether the cell has come down, and pod and TiN: the port of the escape channels; ones: none (M308).
pub const ESCAPE_PORT: Handle<u8, 2> = Handle::new(19);
/// A bit for each port that leads down the escape tree (M308).
pub const ESCAPE_DOWN: Handle<u64, 0> = Handle::new(20);
/// This TiN's place in the order of the escape tree; ones: not in it (M308).
pub const ESCAPE_ORDER: Handle<u32, 0> = Handle::new(21);
/// By weighted group: how many of its slots count; 0: there is no such group (M404).
pub const GROUP_SIZE: Handle<u16, 1> = Handle::new(22);
/// By indexed group: address of its first member 16 bytes, prefix 1, version 1; version 0: no group (M405).
pub const INDEXED_SUBNET: Handle<[u8; 32], 1> = Handle::new(23);
/// By indexed group and place in the subnet: a GNet address; ones: nobody (M405).
pub const INDEXED_MEMBER: Handle<u16, 2> = Handle::new(24);
/// By weighted group and slot: a GNet address (M404).
pub const GROUP_SLOT: Handle<u16, 2> = Handle::new(25);
/// A prefix: address 16 bytes, prefix 1, version 1, what it leads to 1, one zero, target 2; version 0: empty (M402).
pub const IP_FLOW: Handle<[u8; 32], 1> = Handle::new(26);
/// By input port, routing channel and destination (64 pods, 16 TiNs of the own one): 8 and 24 slots of a byte (M302).
pub const ROUTE: Handle<[u8; 32], 3> = Handle::new(27);
/// Bit 0 lets cells for other TiNs that come in at GNet ports go on (M815).
pub const TRANSIT_ALLOWED: Handle<u8, 0> = Handle::new(28);

/// All registers, by address.
pub static REGISTERS: [Register; 29] = [
    Register {
        name: "id.chip",
        base: 0x0,
        width: 32,
        dimensions: &[],
        access: Access::ReadOnly,
        reset: Reset::Number(0x74696e31),
        meaning: "What chip this is: the letters tin1.",
    },
    Register {
        name: "id.description",
        base: 0x4,
        width: 32,
        dimensions: &[],
        access: Access::ReadOnly,
        reset: Reset::Number(0x1),
        meaning: "Version of the description that the chip was built to.",
    },
    Register {
        name: "id.ethernet",
        base: 0x8,
        width: 64,
        dimensions: &[],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "The chip's own Ethernet address in the low 48 bits, by which DHCP knows it (M803).",
    },
    Register {
        name: "id.gnet",
        base: 0x10,
        width: 16,
        dimensions: &[],
        access: Access::ReadWrite,
        reset: Reset::Ones,
        meaning: "Its GNet address without the endpoint: pod 6 bits, TiN 4, six zeros; all ones: none yet.",
    },
    Register {
        name: "link.state",
        base: 0x1000,
        width: 8,
        dimensions: &[64],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By port: 0 down, 1 training, 2 locked, 3 up (M215).",
    },
    Register {
        name: "link.control",
        base: 0x1040,
        width: 8,
        dimensions: &[64],
        access: Access::ReadWrite,
        reset: Reset::Number(0x1),
        meaning: "By port: bit 0 lets the link come up.",
    },
    Register {
        name: "link.neighbour",
        base: 0x1200,
        width: 64,
        dimensions: &[64],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By port: the Ethernet address of the chip at the other end, which it says of itself; zero: unheard.",
    },
    Register {
        name: "turn.allowed",
        base: 0x2000,
        width: 16,
        dimensions: &[],
        access: Access::ReadWrite,
        reset: Reset::Number(0x0),
        meaning: "Bit 4 a + b: a hop of type b may follow one of type a; odd-, odd+, even-, even+ (M305).",
    },
    Register {
        name: "class.mode",
        base: 0x2100,
        width: 8,
        dimensions: &[10],
        access: Access::ReadWrite,
        reset: Reset::Number(0x0),
        meaning: "By traffic class: 0 fully adaptive, 1 minimal adaptive, 2 deterministic, 3 minimal deterministic (M314).",
    },
    Register {
        name: "class.detour_weight",
        base: 0x2120,
        width: 16,
        dimensions: &[10],
        access: Access::ReadWrite,
        reset: Reset::Number(0xc8),
        meaning: "By traffic class: what a queued unit of a longer way counts, in hundredths (M312).",
    },
    Register {
        name: "class.detour_bias",
        base: 0x2140,
        width: 16,
        dimensions: &[10],
        access: Access::ReadWrite,
        reset: Reset::Number(0x50),
        meaning: "By traffic class: units of 16 bytes that a longer way counts beside its queue (M312).",
    },
    Register {
        name: "sideband.allowed",
        base: 0x3000,
        width: 8,
        dimensions: &[2],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "By host: bit 0 turns its management sideband on (M616).",
    },
    Register {
        name: "sideband.channel",
        base: 0x3010,
        width: 64,
        dimensions: &[2],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By host, of NC-SI: Ethernet address in 48 bits; bit 48 initialised, 49 enabled, 50 sends, 51 notified, 52 selected; by whom 8.",
    },
    Register {
        name: "count.cells_received",
        base: 0x4000,
        width: 64,
        dimensions: &[64],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By port: cells that came in (M605).",
    },
    Register {
        name: "count.cells_sent",
        base: 0x4200,
        width: 64,
        dimensions: &[64],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By port: cells that went out (M605).",
    },
    Register {
        name: "count.cells_discarded",
        base: 0x4400,
        width: 64,
        dimensions: &[64],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By port: cells that came in and found no way or no hops left (M605).",
    },
    Register {
        name: "count.blocks_damaged",
        base: 0x4600,
        width: 64,
        dimensions: &[64],
        access: Access::ReadOnly,
        reset: Reset::Zeros,
        meaning: "By port: blocks whose checksum was wrong (M605).",
    },
    Register {
        name: "responder",
        base: 0x8000,
        width: 256,
        dimensions: &[64],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "Whose ARP and neighbour requests are answered: address 16 bytes, prefix 1, version 1, Ethernet address 6 (M612).",
    },
    Register {
        name: "terminal",
        base: 0x10000,
        width: 64,
        dimensions: &[64],
        access: Access::ReadWrite,
        reset: Reset::Ones,
        meaning: "By endpoint: its ports in 8 slots of a byte; ones: nothing listens there (M102).",
    },
    Register {
        name: "escape.port",
        base: 0x20000,
        width: 8,
        dimensions: &[2, 1024],
        access: Access::ReadWrite,
        reset: Reset::Ones,
        meaning: "By whether the cell has come down, and pod and TiN: the port of the escape channels; ones: none (M308).",
    },
    Register {
        name: "escape.down",
        base: 0x21000,
        width: 64,
        dimensions: &[],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "A bit for each port that leads down the escape tree (M308).",
    },
    Register {
        name: "escape.order",
        base: 0x21008,
        width: 32,
        dimensions: &[],
        access: Access::ReadWrite,
        reset: Reset::Ones,
        meaning: "This TiN's place in the order of the escape tree; ones: not in it (M308).",
    },
    Register {
        name: "group.size",
        base: 0x30000,
        width: 16,
        dimensions: &[256],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "By weighted group: how many of its slots count; 0: there is no such group (M404).",
    },
    Register {
        name: "indexed.subnet",
        base: 0x31000,
        width: 256,
        dimensions: &[16],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "By indexed group: address of its first member 16 bytes, prefix 1, version 1; version 0: no group (M405).",
    },
    Register {
        name: "indexed.member",
        base: 0x38000,
        width: 16,
        dimensions: &[16, 1024],
        access: Access::ReadWrite,
        reset: Reset::Ones,
        meaning: "By indexed group and place in the subnet: a GNet address; ones: nobody (M405).",
    },
    Register {
        name: "group.slot",
        base: 0x40000,
        width: 16,
        dimensions: &[256, 512],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "By weighted group and slot: a GNet address (M404).",
    },
    Register {
        name: "ip.flow",
        base: 0x100000,
        width: 256,
        dimensions: &[4096],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "A prefix: address 16 bytes, prefix 1, version 1, what it leads to 1, one zero, target 2; version 0: empty (M402).",
    },
    Register {
        name: "route",
        base: 0x1000000,
        width: 256,
        dimensions: &[64, 3, 80],
        access: Access::ReadWrite,
        reset: Reset::Ones,
        meaning: "By input port, routing channel and destination (64 pods, 16 TiNs of the own one): 8 and 24 slots of a byte (M302).",
    },
    Register {
        name: "transit.allowed",
        base: 0x2000000,
        width: 8,
        dimensions: &[],
        access: Access::ReadWrite,
        reset: Reset::Zeros,
        meaning: "Bit 0 lets cells for other TiNs that come in at GNet ports go on (M815).",
    },
];
