//! In which order registers are written, so that nothing is missing in between.
//!
//! Models: Aquila §4.1, §4.3 (M610, M728, I70): groups before flows to add, flows before groups to remove. Within a
//! group: members before what makes them count, and the other way round to remove them.

use crate::expand::ip;
use crate::expand::writes;
use crate::registers::file::RegisterFile;
use crate::registers::map::{
    ESCAPE_DOWN, ESCAPE_ORDER, ESCAPE_PORT, GROUP_SIZE, GROUP_SLOT, ID_GNET, INDEXED_MEMBER,
    INDEXED_SUBNET, IP_FLOW, RESPONDER, ROUTE, SIDEBAND_ALLOWED, TERMINAL, TRANSIT_ALLOWED,
    TURN_ALLOWED,
};
use crate::registers::{ENTRY_BYTES_MAX, Register};
use crate::rpc::{Item, MESSAGE_BYTES_MAX};

/// Writes, in order.
#[derive(Clone, Default, Debug)]
pub struct Order {
    /// After which a session through the GNet pipeline can be had (M811): everything but the routes of cells that come
    /// from other TiNs.
    pub first: Vec<Item>,
    /// The others.
    pub rest: Vec<Item>,
}

/// All registers that the front end sets of every TiN. Beside them there is [`SIDEBAND_ALLOWED`], of those of which
/// operators have said what they want (M616).
#[must_use]
pub fn owned() -> Vec<&'static Register> {
    let transit = [TRANSIT_ALLOWED.register()];
    crate::expand::owned().into_iter().chain(ip::owned()).chain(transit).collect()
}

/// Entries of a request at the most: the narrowest ones fill it first, of each register as many as there are.
#[must_use]
pub fn entries_max() -> u64 {
    let mut registers = owned();
    registers.sort_by_key(|register| register.entry_bytes());
    let mut room = MESSAGE_BYTES_MAX as u64;
    let mut entries = 0;
    for register in registers {
        let size = u64::from(register.entry_bytes());
        let count = u64::from(register.entries()).min(room / size);
        (entries, room) = (entries + count, room - count * size);
    }
    entries
}

/// The writes that make one register file of another. Ports from `terminals` on are those of the TiN's own endpoints.
#[must_use]
pub fn order(from: &RegisterFile, to: &RegisterFile, terminals: u8) -> Order {
    const EMPTY: [u8; ENTRY_BYTES_MAX] = [0; ENTRY_BYTES_MAX];
    let all = |register: &'static Register| from.differing(to, register);
    let some = |register, which: &dyn Fn(u32) -> bool| -> Vec<Item> {
        writes(to, register, from.differing(to, register).into_iter().filter(|&at| which(at)))
    };
    let whole = [
        ID_GNET.register(),
        TURN_ALLOWED.register(),
        TERMINAL.register(),
        RESPONDER.register(),
        ESCAPE_ORDER.register(),
        ESCAPE_DOWN.register(),
        ESCAPE_PORT.register(),
    ];
    let mut first: Vec<Item> =
        whole.iter().flat_map(|&register| writes(to, register, all(register))).collect();
    let slots = GROUP_SLOT.register().dimensions[1];
    let size = |file: &RegisterFile, group| u32::from(file.get(GROUP_SIZE, [group]));
    // Slots that count, then that they do.
    first.extend(some(GROUP_SLOT.register(), &|at| at % slots < size(to, at / slots)));
    first.extend(some(GROUP_SIZE.register(), &|group| size(to, group) > 0));
    let places = INDEXED_MEMBER.register().dimensions[1];
    let is_group = |file: &RegisterFile, group| file.get(INDEXED_SUBNET, [group]) != EMPTY;
    first.extend(some(INDEXED_MEMBER.register(), &|at| is_group(to, at / places)));
    first.extend(some(INDEXED_SUBNET.register(), &|group| is_group(to, group)));
    first.extend(some(IP_FLOW.register(), &|at| to.get(IP_FLOW, [at]) != EMPTY));
    let per_port: u32 = ROUTE.register().dimensions[1..].iter().product();
    let is_terminal = |at: u32| at / per_port >= terminals.into();
    first.extend(some(ROUTE.register(), &is_terminal));
    first.extend(some(SIDEBAND_ALLOWED.register(), &|_| true));

    let mut rest = some(ROUTE.register(), &|at| !is_terminal(at));
    rest.extend(some(IP_FLOW.register(), &|at| to.get(IP_FLOW, [at]) == EMPTY));
    rest.extend(some(GROUP_SIZE.register(), &|group| size(to, group) == 0));
    rest.extend(some(GROUP_SLOT.register(), &|at| at % slots >= size(to, at / slots)));
    rest.extend(some(INDEXED_SUBNET.register(), &|group| !is_group(to, group)));
    rest.extend(some(INDEXED_MEMBER.register(), &|at| !is_group(to, at / places)));
    rest.extend(some(TRANSIT_ALLOWED.register(), &|_| true));
    Order { first, rest }
}
