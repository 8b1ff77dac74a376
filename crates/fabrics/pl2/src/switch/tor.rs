//! The top-of-rack switch of the simulated network: Algorithm 1 where packets arrive.
//!
//! Models: PL2 §4.1.1, §4.4, §4.5 (claims M06, M07, M12, M14, M31): grants to requesters and, if asked
//! for, their copies to receivers; and the control plane, which resets the counters of a pair or port that
//! has been silent for a while (our choice: the paper leaves recovery to others).

use kernel::{Span, Time};
use packets::{Hop, Marks, Orders, Packet, Program, Verdict};
use rack::topology::{PortId, Topology, Vertex};
use serde_json::{Map, Value, json};

use super::pipeline::{Between, Header, Outcome, Pipeline, Settings};
use super::registers::Registers;
use super::scheduler::Scheduler;
use crate::config::Plan;
use crate::host::wait::chosen;
use crate::message;
use crate::message::{Message, tag_of};
use crate::wire::Tag;
use crate::wire::control::{Flags, Opcode};

/// No register: a host's port.
const NONE: u32 = u32::MAX;

/// From here on a counter has gone below zero, to the letter of Alg. 1 ([`Accounting::Literal`]): that is no
/// slot that anybody is to wait for.
///
/// [`Accounting::Literal`]: super::Accounting::Literal
const BELOW_ZERO: u32 = 1 << 31;

/// What the switch has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Reservations granted, and slots in them.
    pub(crate) grants: u64,
    pub(crate) slots: u64,
    /// Most slots that a grant told of, at inputs and outputs.
    pub(crate) input_max: u32,
    pub(crate) output_max: u32,
    /// Unsolicited packets dropped.
    pub(crate) dropped: u64,
    /// Slots given back by hosts.
    pub(crate) returned: u64,
    /// Registers that the control plane reset, and slots in them.
    pub(crate) resets: u64,
    pub(crate) reset_slots: u64,
    /// Packets for which their pair had nothing reserved.
    pub(crate) uncounted: u64,
}

/// Who is told of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Copies {
    /// The requester alone.
    #[default]
    None,
    /// The receiver of the data as well.
    ToReceivers,
}

/// When a port was last used, or when the last slot comes that is granted there; where pairs are tracked,
/// when a pair was.
#[derive(Clone, Debug)]
struct Activity {
    input: Vec<Time>,
    output: Vec<Time>,
    pairs: Vec<Time>,
}

/// The switch.
#[derive(Clone, Debug)]
pub struct Tor {
    scheduler: Scheduler,
    /// By port of the topology: its register.
    registers: Vec<u32>,
    /// By node: its register.
    nodes: Vec<u32>,
    copies: Copies,
    watches_lines: bool,
    /// How long a port or pair is silent before its counters are reset; zero: never.
    audit: Span,
    /// The time of a count.
    unit: Span,
    activity: Activity,
    /// Whether an audit is to come.
    is_armed: bool,
    counts: Counts,
}

impl Tor {
    /// The switch of a plan, with nothing reserved.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let topology = &plan.network.topology;
        let shared = plan.config.hosts_per_port.get();
        let ports = plan.ports();
        let silent = |count: u32| vec![Time::ZERO; count as usize];
        let pairs = if plan.has_pairs() { topology.hosts().pow(2) } else { 0 };
        let activity =
            Activity { input: silent(ports), output: silent(ports), pairs: silent(pairs) };
        Self {
            scheduler: plan.scheduler(),
            registers: registers(topology, shared),
            nodes: (0..topology.hosts()).map(|host| host / shared).collect(),
            copies: plan.copies(),
            watches_lines: plan.watches_lines(),
            audit: plan.config.switch.audit,
            unit: plan.unit,
            activity,
            is_armed: false,
            counts: Counts::default(),
        }
    }

    /// The schedule, to look at.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// What it has done.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Lets data pass, or not.
    #[inline]
    fn data(&mut self, packet: &mut Packet, between: Between, now: Time) -> Verdict {
        let tag = tag_of(packet);
        if tag != Some(Tag::Unreserved) {
            self.touch(between, now);
        }
        match self.scheduler.data(now, tag, between) {
            Outcome::Drop => {
                self.counts.dropped += 1;
                return Verdict::Drop;
            }
            // What in hardware goes along as a bit of metadata is said by the tag here.
            Outcome::ForwardUncounted => {
                self.counts.uncounted += 1;
                packet.path = tag.map_or(Tag::Unreserved, Tag::uncounted).bits();
            }
            _ => {}
        }
        Verdict::Forward
    }

    /// A control frame: what the parser makes of it, and what becomes of it.
    #[inline(never)]
    fn control(
        &mut self,
        hop: &Hop,
        packet: &mut Packet,
        message: Message,
        mut between: Between,
        orders: &mut Orders,
    ) -> Verdict {
        let header = match message.opcode {
            Opcode::Reserve => Header::Reserve(message.demand),
            Opcode::Reset => {
                let register = |node: u32| self.nodes[node as usize];
                let input = register(message.send_slot);
                let output = register(message.receive_slot);
                let pair = self.pair(message.send_slot, message.receive_slot);
                between = Between { input, output, pair };
                Header::Reset(message.demand)
            }
            Opcode::Grant | Opcode::Notice | Opcode::Withdrawal => Header::Other,
        };
        let now = orders.now();
        if header != Header::Other {
            self.touch(between, now);
        }
        match self.scheduler.process(now, header, between) {
            Outcome::Grant { send_slot, receive_slot, pair_slots, is_crowded } => {
                let flags = Flags { is_crowded, ..message.flags };
                let grant = Message { flags, send_slot, receive_slot, pair_slots, ..message };
                // Who waits for a slot is not silent.
                let slot = chosen(send_slot, receive_slot);
                if slot < BELOW_ZERO {
                    self.touch(between, now + self.unit * u64::from(slot));
                }
                self.grant(hop, packet, grant, orders);
                Verdict::Turn
            }
            Outcome::Return => {
                self.counts.returned += u64::from(message.demand);
                let (sender, addressee) = (packet.src, packet.dst);
                if self.copies == Copies::ToReceivers && addressee.get() == message.receive_slot {
                    let withdrawal = Message { opcode: Opcode::Withdrawal, ..message };
                    orders.send(hop.to, withdrawal.packet(sender, addressee));
                }
                (packet.src, packet.dst) = (addressee, sender);
                Verdict::Turn
            }
            Outcome::Forward | Outcome::ForwardUncounted | Outcome::Drop => Verdict::Forward,
        }
    }

    /// A pair, or its ports where nobody tracks those, is in use until then, by what has to do with slots:
    /// other traffic says nothing of them.
    #[inline]
    fn touch(&mut self, between: Between, until: Time) {
        let Activity { input, output, pairs } = &mut self.activity;
        if let Some(at) = pairs.get_mut(between.pair as usize) {
            *at = until.max(*at);
        } else {
            for at in [&mut input[between.input as usize], &mut output[between.output as usize]] {
                *at = until.max(*at);
            }
        }
    }

    /// M14: what pairs that have been silent for long have left reserved is void. A port was used when the last
    /// of its pairs was.
    fn void_silent_pairs(&mut self, now: Time) {
        let Some(pipeline) = self.scheduler.pipeline_mut() else { return };
        let Activity { input, output, pairs } = &mut self.activity;
        for (pair, &at) in (0..).zip(&*pairs) {
            let between = between(&self.nodes, pair);
            for used in [&mut input[between.input as usize], &mut output[between.output as usize]] {
                *used = at.max(*used);
            }
            let is_silent = now >= at + self.audit;
            if is_silent && pipeline.pairs().get(pair) > 0 {
                self.counts.resets += 1;
                self.counts.reset_slots += u64::from(pipeline.void(between));
            }
        }
    }

    /// M14: … and so is what ports have reserved that have been silent for as long, but for what their pairs
    /// have. Returns what is left.
    fn reset_silent_ports(&mut self, now: Time) -> u64 {
        let (audit, due) = (self.audit, self.due());
        let Self { scheduler, activity, counts, .. } = self;
        let Some(pipeline) = scheduler.pipeline_mut() else { return 0 };
        let used = [&activity.input, &activity.output];
        let mut left = 0;
        for ((registers, used), due) in pipeline.registers_mut().into_iter().zip(used).zip(due) {
            for ((index, &at), due) in (0..).zip(used).zip(due) {
                let held = registers.get(index);
                if held > due && now >= at + audit {
                    registers.set(index, due);
                    counts.resets += 1;
                    counts.reset_slots += u64::from(held - due);
                }
            }
            left += registers.sum();
        }
        left
    }

    /// What pairs have reserved at each input and output; zeros if nobody tracks them.
    fn due(&self) -> [Vec<u32>; 2] {
        let Some(pipeline) = self.scheduler.pipeline() else { return [vec![], vec![]] };
        let Settings { ports, increment, .. } = *pipeline.settings();
        let [mut inputs, mut outputs] = [vec![0; ports as usize], vec![0; ports as usize]];
        for (pair, &slots) in (0..).zip(pipeline.pairs().cells()).filter(|&(_, &slots)| slots > 0) {
            let Between { input, output, .. } = between(&self.nodes, pair);
            inputs[input as usize] += slots * increment;
            outputs[output as usize] += slots * increment;
        }
        [inputs, outputs]
    }

    /// The register of two hosts.
    #[inline]
    fn pair(&self, from: u32, to: u32) -> u32 {
        from * self.nodes.len() as u32 + to
    }

    /// Rewrites a reservation to its grant (Alg. 1, lines 8 to 12).
    fn grant(&mut self, hop: &Hop, packet: &mut Packet, grant: Message, orders: &mut Orders) {
        let grant = Message { opcode: Opcode::Grant, ..grant };
        self.counts.grants += 1;
        self.counts.slots += u64::from(grant.demand);
        self.counts.input_max = self.counts.input_max.max(grant.send_slot);
        self.counts.output_max = self.counts.output_max.max(grant.receive_slot);
        let (requester, receiver) = (packet.src, packet.dst);
        *packet = Packet { hops: packet.hops, ..grant.packet(receiver, requester) };
        if self.copies == Copies::ToReceivers {
            let notice = Message { opcode: Opcode::Notice, ..grant };
            orders.send(hop.to, notice.packet(requester, receiver));
        }
        self.arm(hop.switch, orders);
    }

    /// Makes sure that an audit comes while anything is reserved.
    fn arm(&mut self, switch: Vertex, orders: &mut Orders) {
        if !self.is_armed && self.audit > Span::ZERO && self.scheduler.pipeline().is_some() {
            self.is_armed = true;
            orders.wake_at(switch, orders.now() + self.audit);
        }
    }
}

impl Tor {
    /// Inputs count what their pairs do; outputs that, and what waits in their queues.
    fn check_pairs(&self, pipeline: &Pipeline) -> Result<(), String> {
        let [inputs, outputs] = self.due();
        for (index, (&counted, due)) in pipeline.input().cells().iter().zip(inputs).enumerate() {
            if counted != due {
                return Err(format!(
                    "{counted} slots reserved at input {index}, {due} for its pairs"
                ));
            }
        }
        for (index, (&counted, due)) in pipeline.output().cells().iter().zip(outputs).enumerate() {
            if counted < due {
                return Err(format!(
                    "{counted} slots reserved at output {index}, {due} for its pairs"
                ));
            }
        }
        Ok(())
    }
}

/// The registers that a pair of hosts is counted in.
fn between(nodes: &[u32], pair: u32) -> Between {
    let hosts = nodes.len() as u32;
    let register = |node: u32| nodes[node as usize];
    Between { input: register(pair / hosts), output: register(pair % hosts), pair }
}

/// By port of the topology: the register of the switch's ports, `shared` hosts to each.
fn registers(topology: &Topology, shared: u32) -> Vec<u32> {
    let register = |port: &rack::topology::Port| {
        let is_host = topology.is_host(port.vertex);
        if is_host { NONE } else { port.peer.get() / shared }
    };
    topology.ports().iter().map(register).collect()
}

impl Program for Tor {
    const WATCHES_LINES: bool = true;

    fn watches_lines(&self) -> bool {
        self.watches_lines
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    /// There is one switch: all that was counted was in one part.
    fn add_counts(&mut self, other: &Self) {
        let passes = |tor: &Self| tor.scheduler.pipeline().map_or(0, |pipeline| pipeline.passes);
        if passes(other) > passes(self) || other.counts != Counts::default() {
            self.clone_from(other);
        }
    }

    #[inline]
    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        let between = Between {
            input: self.registers[hop.from.index()],
            output: self.registers[hop.to.index()],
            pair: self.pair(packet.src.get(), packet.dst.get()),
        };
        match Message::of(packet) {
            None => self.data(packet, between, orders.now()),
            Some(message) => self.control(hop, packet, message, between, orders),
        }
    }

    #[inline]
    fn leaves(&mut self, port: PortId, packet: &Packet, _: &mut Orders) {
        let register = match packet.marks.contains(Marks::RETURNED) {
            // What goes back to its sender was reserved where it was to go.
            true => self.nodes[packet.src.index()],
            false => self.registers[port.index()],
        };
        if packet.kind != message::KIND && register != NONE {
            self.scheduler.leaves(tag_of(packet), register);
        }
    }

    /// M14: what waits no more is not counted any more, whether it left or was dropped (our choice: the
    /// hardware tells a program what its queues drop, if it is asked to).
    fn dropped(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        self.leaves(port, packet, orders);
    }

    /// M14: what silent pairs and ports have left reserved is void.
    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        self.is_armed = false;
        self.void_silent_pairs(orders.now());
        if self.reset_silent_ports(orders.now()) > 0 {
            self.arm(switch, orders);
        }
    }

    /// A switch that comes back knows of no reservation (Alg. 1, lines 1 to 3).
    fn died(&mut self, vertex: Vertex, _: &mut Orders) {
        let is_host = vertex.index() < self.nodes.len();
        let Some(pipeline) = self.scheduler.pipeline_mut().filter(|_| !is_host) else { return };
        let Pipeline { input, output, pairs, .. } = pipeline;
        for registers in [input, output, pairs] {
            for index in 0..registers.cells().len() as u32 {
                registers.set(index, 0);
            }
        }
    }

    /// I03: what was added is still there or was taken off. I08: one operation a pass and array.
    fn check(&self) -> Result<(), String> {
        let Some(pipeline) = self.scheduler.pipeline() else { return Ok(()) };
        let settings = pipeline.settings();
        for (name, registers) in [("input", pipeline.input()), ("output", pipeline.output())] {
            let Registers { added, taken, .. } = *registers;
            let left = registers.sum();
            let wraps = settings.accounting == super::Accounting::Literal;
            if !wraps && added - taken != left {
                return Err(format!(
                    "{added} slots reserved at {name}s, {taken} taken off, {left} left"
                ));
            }
        }
        if settings.pairs > 0 {
            self.check_pairs(pipeline)?;
        }
        let passes = pipeline.passes;
        if pipeline.input().operations != passes {
            let operations = pipeline.input().operations;
            return Err(format!("{operations} operations at inputs in {passes} passes"));
        }
        Ok(())
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        let counts = &self.counts;
        let mut map = Map::new();
        let mut put = |key: &str, value: u64| map.insert(key.to_owned(), json!(value));
        put("grants", counts.grants);
        put("slots_granted", counts.slots);
        put("input_slots_max", counts.input_max.into());
        put("output_slots_max", counts.output_max.into());
        put("unsolicited_dropped", counts.dropped);
        put("slots_given_back", counts.returned);
        put("counters_reset", counts.resets);
        put("slots_reset", counts.reset_slots);
        put("packets_uncounted", counts.uncounted);
        if let Some(pipeline) = self.scheduler.pipeline() {
            put("counters_below_zero", pipeline.input().underflows + pipeline.output().underflows);
            put("slots_left", pipeline.input().sum().max(pipeline.output().sum()));
        }
        map
    }
}
