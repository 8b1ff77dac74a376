//! What the controller has installed, to hold against what cells did.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::journey::Step;
use crate::address::Address;
use crate::link::classes::{CellKind, class_of, vc};
use crate::switch::traced::NOWHERE;
use crate::tables::journal::{Change, Write, blocks};
use crate::tables::{Component, NONE, ROUTING_VCS, Row, Tables, components};
use crate::topology::{Far, PortKind, Topology};

/// The wiring and the tables as they are meant to be.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    topology: Topology,
    /// Those that are installed last, and some before: cells may be under way while they change.
    tables: VecDeque<Arc<Tables>>,
    /// Rows that were written to entries: by TiN, port, channel and component.
    rows: HashMap<(u16, u8, u8, u16), Vec<Row>>,
    /// The same of ways of the escape channels, by TiN and destination.
    escapes: HashMap<(u16, u16), Vec<u8>>,
}

/// Tables that are kept (our choice).
const KEPT: usize = 4;

/// What a cell may do.
enum Ways<'a> {
    /// Any port of a row, on a channel.
    Row(&'a Row, u8),
    /// One port, on a channel.
    Port(u8, u8),
    /// Nothing: it is to be thrown away.
    None,
}

impl Intent {
    pub(super) fn new(topology: &Topology, tables: Arc<Tables>) -> Self {
        Self {
            topology: topology.clone(),
            tables: VecDeque::from([tables]),
            rows: HashMap::new(),
            escapes: HashMap::new(),
        }
    }

    /// Other tables are installed from now on. What those before them allow stays allowed.
    pub(super) fn install(&mut self, tables: Arc<Tables>) {
        self.tables.push_back(tables);
        if self.tables.len() > KEPT {
            self.tables.pop_front();
        }
    }

    /// The controller has written, or will write, one entry after another: what has stood in an entry at any time is
    /// allowed. Nobody knows which of it a cell has met.
    pub(super) fn write(&mut self, write: &Write) {
        match write.change {
            Change::Row { port, rvc, component, row } => {
                self.rows.entry((write.tin, port, rvc, component)).or_default().push(row);
            }
            Change::Escape { to, port, .. } => {
                self.escapes.entry((write.tin, to)).or_default().push(port);
            }
            Change::Reset => {
                for (port, rvc) in blocks(self.topology.shape()) {
                    for component in 0..components(self.topology.shape()) {
                        let key = (write.tin, port, rvc, component);
                        self.rows.entry(key).or_default().push(Row::EMPTY);
                    }
                }
                for to in 0..self.topology.shape().tins() {
                    self.escapes.entry((write.tin, to)).or_default().push(NONE);
                }
            }
            Change::Down { .. } | Change::Order { .. } => {}
        }
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether there are such a TiN, ports and channels.
    pub(super) fn has(&self, step: &Step) -> bool {
        let shape = self.topology.shape();
        let is_output = step.output < shape.ports() || step.output == NOWHERE;
        let channels = crate::link::classes::VCS;
        step.tin < shape.tins()
            && step.input < shape.ports()
            && is_output
            && step.input_vc < channels
            && step.output_vc < channels
            && step.hops < u8::MAX / 2
    }

    /// Which part of a destination a TiN looks at.
    pub(super) fn component(&self, tin: u16, to: Address) -> Component {
        let shape = self.topology.shape();
        let (pod, place) = shape.split(tin);
        crate::tables::component(shape, pod, place, to)
    }

    /// The other end of a port's link.
    pub(super) fn far(&self, tin: u16, port: u8) -> Option<Far> {
        self.topology.far(tin, port)
    }

    /// Whether a cell may do this step.
    pub(super) fn allows(&self, step: &Step, to: Address, kind: CellKind) -> bool {
        self.tables.iter().any(|tables| self.lets(tables, step, to, kind))
            || (!self.rows.is_empty() || !self.escapes.is_empty()) && self.was_let(step, to, kind)
    }

    /// Whether something lets it that has been written, or that stood there before.
    fn was_let(&self, step: &Step, to: Address, kind: CellKind) -> bool {
        let Component::Far(component) = self.component(step.tin, to) else { return false };
        let class = class_of(step.input_vc);
        let mut may_escape = class.is_none();
        if let Some((class, rvc)) = class {
            let known = |tables: &Arc<Tables>| {
                *tables.by_index(tables.entry(tables.block(step.tin, step.input, rvc), component))
            };
            let key = (step.tin, step.input, rvc, component);
            let written = self.rows.get(&key).into_iter().flatten().copied();
            let onward = rvc + u8::from(self.topology.kind(step.input) == PortKind::Global);
            for row in self.tables.iter().map(known).chain(written) {
                let ports = row.minimal_ports() | row.other_ports();
                may_escape |= row.is_empty() || onward >= ROUTING_VCS;
                if step.output != NOWHERE
                    && onward < ROUTING_VCS
                    && ports >> step.output & 1 == 1
                    && step.output_vc == vc(class, onward)
                {
                    return true;
                }
            }
        }
        let there = self.topology.shape().tin(to.pod(), to.tin());
        let known = self.tables.iter().flat_map(|tables| {
            [false, true].map(|has_come_down| tables.escape(step.tin, has_come_down, there))
        });
        let written = self.escapes.get(&(step.tin, there)).into_iter().flatten().copied();
        let channel = if class.is_none() { step.input_vc } else { kind.escape() };
        let mut ports = known.chain(written);
        may_escape
            && ports.any(|port| match port {
                NONE => step.output == NOWHERE,
                port => (step.output, step.output_vc) == (port, channel),
            })
    }

    fn lets(&self, tables: &Tables, step: &Step, to: Address, kind: CellKind) -> bool {
        match self.ways(tables, step, to, kind) {
            Ways::Row(row, channel) => {
                let ports = row.minimal_ports() | row.other_ports();
                step.output != NOWHERE && ports >> step.output & 1 == 1 && step.output_vc == channel
            }
            Ways::Port(port, channel) => (step.output, step.output_vc) == (port, channel),
            Ways::None => step.output == NOWHERE,
        }
    }

    fn ways<'a>(&self, tables: &'a Tables, step: &Step, to: Address, kind: CellKind) -> Ways<'a> {
        let component = match self.component(step.tin, to) {
            Component::Far(component) => component,
            Component::Own(endpoint) => {
                let row = tables.terminals(endpoint);
                return if row.is_empty() { Ways::None } else { Ways::Row(row, step.input_vc) };
            }
            Component::Unknown => return Ways::None,
        };
        let is_global = self.topology.kind(step.input) == PortKind::Global;
        if let Some((class, rvc)) = class_of(step.input_vc) {
            let block = tables.block(step.tin, step.input, rvc);
            let row = tables.by_index(tables.entry(block, component));
            let onward = rvc + u8::from(is_global);
            if !row.is_empty() && onward < ROUTING_VCS {
                return Ways::Row(row, vc(class, onward));
            }
        }
        let is_escaping = class_of(step.input_vc).is_none();
        let comes_down = |far: Far| tables.escapes().is_down(far.tin, step.tin);
        let has_come_down = is_escaping && self.far(step.tin, step.input).is_some_and(comes_down);
        let there = self.topology.shape().tin(to.pod(), to.tin());
        let channel = if is_escaping { step.input_vc } else { kind.escape() };
        match tables.escape(step.tin, has_come_down, there) {
            crate::tables::NONE => Ways::None,
            port => Ways::Port(port, channel),
        }
    }
}
