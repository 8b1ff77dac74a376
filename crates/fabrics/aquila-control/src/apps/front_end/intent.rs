//! What is wanted of a TiN, and the registers that say it.
//!
//! Models: Aquila §4.2 (M706, M724, M725, M731): flows of classes of ports become rows of the table of each port, without
//! the ports that lead back.

use std::collections::{BTreeMap, BTreeSet};

use aquila::address::{Address, ENDPOINTS_MAX};
use aquila::pipeline::routes::Next;
use aquila::tables::compute::alike;
use aquila::tables::flows::{Flow, InputClass};
use aquila::tables::slots::Slots;
use aquila::tables::{components, terminals};
use ipnet::IpNet;

use crate::apps::rows::{
    EscapeRow, IndexedRow, IpFlow, NONE, PORTS, decode_flows, decode_members, decode_prefix,
    encode_prefix,
};
use crate::apps::{Clique, rows};
use crate::expand::ip;
use crate::expand::{number, place, row_bytes};
use crate::nib::{Key, Table};
use crate::registers::file::RegisterFile;
use crate::registers::map::{
    ESCAPE_DOWN, ESCAPE_ORDER, ESCAPE_PORT, ID_GNET, REGISTERS, ROUTE, SIDEBAND_ALLOWED, TERMINAL,
    TRANSIT_ALLOWED, TURN_ALLOWED,
};
use crate::registers::{Register, find};

/// Rows of the base for one TiN, decoded.
#[derive(Clone, Default, Debug)]
pub struct Intent {
    classes: Option<[u8; PORTS]>,
    escape: Option<EscapeRow>,
    gnet: BTreeMap<(u8, u8), Vec<Flow>>,
    flows: BTreeMap<IpNet, IpFlow>,
    groups: BTreeMap<u16, Vec<(Address, u32)>>,
    indexed: BTreeMap<u16, IndexedRow>,
    passes: bool,
    /// A bit for each host whose sideband is on; `None`: operators have never said.
    sidebands: Option<u8>,
}

/// It cannot be programmed: it is no such row, or the chip has no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfit;

impl Intent {
    /// Whether anything is wanted at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.classes.is_none()
    }

    /// Whether all is here that a TiN needs: flows of IP come last, after their groups.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.is_empty() && !self.flows.is_empty()
    }

    /// Whether a flow leads out of the Clique.
    #[must_use]
    pub fn leads_out(&self) -> bool {
        self.flows.values().any(|flow| matches!(flow.next, Next::Group(_)))
    }

    /// Whether the TiN may carry others' cells (M815).
    #[must_use]
    pub fn passes(&self) -> bool {
        self.passes
    }

    /// Whether the TiN may carry others' cells from now on (M815): once its registers have equalled what is wanted of it.
    pub fn set_passes(&mut self, passes: bool) {
        self.passes = passes;
    }

    /// A bit for each host whose management sideband is wanted (M616); `None`: nobody has ever said, and the register is
    /// as after a cold start.
    #[must_use]
    pub fn sidebands(&self) -> Option<u8> {
        self.sidebands
    }

    /// Operators want these sidebands.
    pub fn set_sidebands(&mut self, sidebands: u8) {
        self.sidebands = Some(sidebands);
    }

    /// Sets a row, or takes it out. Nothing is changed if it does not fit.
    ///
    /// # Errors
    /// It is no row of this Clique, or the chip has no room for it.
    pub fn set(&mut self, clique: &Clique, key: &Key, value: Option<&[u8]>) -> Result<(), Unfit> {
        let shape = clique.topology.shape();
        let (table, rest) = (key.0, key.1.get(2..).ok_or(Unfit)?);
        let number = || rest.try_into().map(u16::from_be_bytes).map_err(|_| Unfit);
        let mut scratch = RegisterFile::new();
        match (table, value) {
            (Table::PortClass, None) => self.classes = None,
            (Table::PortClass, Some(value)) => {
                let classes: [u8; PORTS] = value.try_into().map_err(|_| Unfit)?;
                let is_class =
                    |&class: &u8| class == NONE || usize::from(class) < InputClass::ALL.len();
                if !classes.iter().all(is_class) {
                    return Err(Unfit);
                }
                self.classes = Some(classes);
            }
            (Table::GnetFlow, value) => {
                let &[class, rvc] = rest else { return Err(Unfit) };
                match value {
                    None if class == NONE => self.escape = None,
                    None => drop(self.gnet.remove(&(class, rvc))),
                    Some(value) if class == NONE => {
                        self.escape = Some(EscapeRow::decode(value, shape.tins()).ok_or(Unfit)?);
                    }
                    Some(value) => {
                        let known = InputClass::ALL.get(usize::from(class)).ok_or(Unfit)?;
                        let flows = decode_flows(value, components(shape)).ok_or(Unfit)?;
                        let all = flows.iter().fold(0, |all, flow| all | flow.all());
                        if !known.channels().contains(&rvc) || all >> shape.external_ports() != 0 {
                            return Err(Unfit);
                        }
                        self.gnet.insert((class, rvc), flows);
                    }
                }
            }
            (Table::IpFlow, value) => {
                let prefix = decode_prefix(rest).ok_or(Unfit)?;
                let flow = value.map(|value| IpFlow::decode(value).ok_or(Unfit)).transpose()?;
                let Some(flow) = flow else {
                    self.flows.remove(&prefix);
                    return Ok(());
                };
                ip::set_flow(&mut scratch, prefix, flow).map_err(|_| Unfit)?;
                let has_it =
                    |other: (&IpNet, &IpFlow)| other.1.index == flow.index && *other.0 != prefix;
                if self.flows.iter().any(has_it) {
                    return Err(Unfit);
                }
                self.flows.insert(prefix, flow);
            }
            (Table::Group, None) => drop(self.groups.remove(&number()?)),
            (Table::Group, Some(value)) => {
                let members = decode_members(value).ok_or(Unfit)?.into_iter();
                let members: Vec<_> = members.map(|(to, w)| (Address::from_bits(to), w)).collect();
                ip::set_group(&mut scratch, number()?, &members).map_err(|_| Unfit)?;
                self.groups.insert(number()?, members);
            }
            (Table::IndexedGroup, None) => drop(self.indexed.remove(&number()?)),
            (Table::IndexedGroup, Some(value)) => {
                let row = IndexedRow::decode(value).ok_or(Unfit)?;
                ip::set_indexed(&mut scratch, number()?, &row).map_err(|_| Unfit)?;
                self.indexed.insert(number()?, row);
            }
            _ => return Err(Unfit),
        }
        Ok(())
    }

    /// Whether what a flow leads to is there.
    #[must_use]
    pub fn has_target(&self, next: Next) -> bool {
        match next {
            Next::Group(group) => self.groups.contains_key(&group),
            Next::Indexed(group) => self.indexed.contains_key(&group),
            _ => true,
        }
    }

    /// Whether a row is a group that is wanted.
    #[must_use]
    pub fn has_group(&self, key: &Key) -> bool {
        rows::group_of(key).is_some_and(|number| match key.0 {
            Table::Group => self.groups.contains_key(&number),
            _ => self.indexed.contains_key(&number),
        })
    }

    /// Whether a row is a flow to a group that is not there, or that the chip has refused.
    #[must_use]
    pub fn is_held_back(&self, key: &Key, refused: &BTreeSet<u16>) -> bool {
        let prefix = key.1.get(2..).and_then(decode_prefix);
        let flow = prefix.and_then(|prefix| self.flows.get(&prefix));
        let Some(flow) = flow.filter(|_| key.0 == Table::IpFlow) else { return false };
        !self.has_target(flow.next)
            || matches!(flow.next, Next::Group(group) if refused.contains(&group))
    }

    /// The row that has set the register at an address.
    #[must_use]
    pub fn owner(&self, clique: &Clique, tin: u16, address: u32) -> Option<Key> {
        let (register, at) = find(address).ok()?;
        let Register { name, dimensions, .. } = REGISTERS[register];
        let (table, rest) = match name {
            "route" => {
                let (channels, places) = (dimensions[1], dimensions[2]);
                let port = u8::try_from(at / channels / places).ok()?;
                let rvc = (at / places % channels) as u8;
                (Table::GnetFlow, vec![clique.class(tin, port)?.index() as u8, rvc])
            }
            "escape.port" | "escape.down" | "escape.order" => (Table::GnetFlow, vec![NONE; 2]),
            "ip.flow" => {
                let flow = self.flows.iter().find(|(_, flow)| u32::from(flow.index) == at);
                (Table::IpFlow, encode_prefix(*flow?.0).to_vec())
            }
            "group.size" => (Table::Group, (at as u16).to_be_bytes().to_vec()),
            "group.slot" => (Table::Group, ((at / dimensions[1]) as u16).to_be_bytes().to_vec()),
            "indexed.subnet" => (Table::IndexedGroup, (at as u16).to_be_bytes().to_vec()),
            "indexed.member" => {
                (Table::IndexedGroup, ((at / dimensions[1]) as u16).to_be_bytes().to_vec())
            }
            _ => (Table::PortClass, Vec::new()),
        };
        Some((table, rows::key(tin, &rest)))
    }

    /// The registers of a TiN of which this is wanted. Flows to groups that are not there, or that the chip has
    /// refused, are left out (I70).
    #[must_use]
    pub fn image(&self, clique: &Clique, tin: u16, refused: &BTreeSet<u16>) -> RegisterFile {
        let mut image = RegisterFile::new();
        let Some(classes) = &self.classes else { return image };
        let shape = clique.topology.shape();
        image.set(ID_GNET, [], (number(shape, tin) << 6) as u16);
        image.set(TURN_ALLOWED, [], clique.turns.bits());
        image.set(TRANSIT_ALLOWED, [], u8::from(self.passes));
        for host in 0..SIDEBAND_ALLOWED.register().entries() {
            let is_on = self.sidebands.unwrap_or(0) >> host & 1;
            image.set(SIDEBAND_ALLOWED, [host], is_on);
        }
        for endpoint in 0..ENDPOINTS_MAX {
            let row = terminals(shape, endpoint);
            image.set(TERMINAL, [endpoint.into()], u64::from_be_bytes(row.minimal));
        }
        if let Some(escape) = &self.escape {
            let places =
                [0, 1].into_iter().flat_map(|row| (0..shape.tins()).map(move |to| (row, to)));
            for ((row, to), &port) in places.zip(&escape.ports) {
                image.set(ESCAPE_PORT, [row, number(shape, to)], port);
            }
            image.set(ESCAPE_ORDER, [], escape.order);
            image.set(ESCAPE_DOWN, [], escape.down);
        }
        self.routes(clique, tin, classes, &mut image);
        ip::set_responder(&mut image, &clique.plan);
        let fits = "it was tried when it was set";
        for (&group, members) in &self.groups {
            ip::set_group(&mut image, group, members).expect(fits);
        }
        for (&group, row) in &self.indexed {
            ip::set_indexed(&mut image, group, row).expect(fits);
        }
        for (&prefix, &flow) in &self.flows {
            let is_refused = matches!(flow.next, Next::Group(group) if refused.contains(&group));
            if self.has_target(flow.next) && !is_refused {
                ip::set_flow(&mut image, prefix, flow).expect(fits);
            }
        }
        image
    }

    fn routes(&self, clique: &Clique, tin: u16, classes: &[u8; PORTS], image: &mut RegisterFile) {
        let shape = clique.topology.shape();
        let slots = Slots::of(&clique.topology, tin);
        let input = |port: u8| {
            let class = InputClass::ALL.get(usize::from(classes[usize::from(port)]))?;
            Some((*class, clique.back(tin, port)))
        };
        for (class, back, ports) in alike(shape, input) {
            for rvc in class.channels() {
                let Some(flows) = self.gnet.get(&(class.index() as u8, rvc)) else { continue };
                for (component, flow) in (0..).zip(flows) {
                    let row = row_bytes(&slots.row(flow.without(back), component));
                    for &port in &ports {
                        let at = [port.into(), rvc.into(), place(shape, component).into()];
                        image.set(ROUTE, at, row);
                    }
                }
            }
        }
    }
}
