//! CRRD: a Clos network with memories in its first and last stage (M48).
//!
//! Models: Oki, Jing, Rojas-Cessa and Chao, "Concurrent Round-Robin-Based Dispatching Schemes for
//! Clos-Network Switches", IEEE/ACM ToN 2002, as SCOC §3.A and §6.B use it. The inputs of a group
//! share their virtual output queues, and so their buffers. In a slot every output link of an input
//! module picks a queue and every queue a link, both in turn; then each link of a centre module
//! picks one of the input modules that want it. The pointers of both phases move only when the
//! second phase grants. A module's queues take their turns in the order of that paper, v = h k + j
//! for output h of output module j of k: neighbours go to different modules, without which the
//! pointers do not part. Slots are of the packet's size; packets are stored whole.

use kernel::{Bytes, Rate};
use rack::Problem;
use switching::arbiters::RoundRobin;
use switching::{Arriving, BitRows, Departure, Egress, Line, Packet, QueueBank, Switch, iter_ones};

use crate::flat::ITERATIONS_MAX;

/// A switch with concurrent round-robin dispatching.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrrdConfig {
    /// Ports. Default 128 (§4.E).
    pub ports: usize,
    /// Ports of a module and centre modules. Default 4, as in SCOC. At most 64.
    pub per_group: usize,
    /// Iterations of the first phase. Default 1: our choice (E16).
    pub iterations: usize,
    /// Packets for which a group has room, for each of its inputs. Default 16 (§3.A); 512 in the
    /// variants with 32 times the buffers (§4.E).
    pub packets: usize,
    /// Packets at each output. Default unlimited: the memories of the last stage take what the
    /// centre sends, for no arbiter asks whether an output has room, and only so does the first
    /// microbenchmark come out as published (our choice, E16).
    pub output_packets: usize,
    /// Speed-up as a quotient. Default 1.
    pub speed_up: (u64, u64),
    /// The packet that fills a slot. Default 288 B (§4.E).
    pub slot: Bytes,
    /// Line rate. Default 25 Gbps.
    pub line_rate: Rate,
}

impl Default for CrrdConfig {
    fn default() -> Self {
        Self {
            ports: 128,
            per_group: 4,
            iterations: 1,
            packets: 16,
            output_packets: usize::MAX,
            speed_up: (1, 1),
            slot: Bytes::new(288),
            line_rate: Rate::from_gbps(25),
        }
    }
}

impl CrrdConfig {
    /// Its lines; a cycle is a slot.
    #[must_use]
    pub fn line(&self) -> Line {
        Line::slotted(self.line_rate, self.slot, self.speed_up)
    }

    /// Checks it.
    ///
    /// # Errors
    /// Every problem.
    pub fn check(&self) -> Result<(), Vec<Problem>> {
        let mut problems: Vec<Problem> =
            crate::flat::check_speed_up(self.speed_up).into_iter().collect();
        if !(1..=64).contains(&self.per_group) || !self.ports.is_multiple_of(self.per_group) {
            let message = format!("groups of {} do not divide {}", self.per_group, self.ports);
            problems.push(Problem::new("per_group", message));
        }
        if self.packets == 0 || self.output_packets == 0 || self.iterations == 0 {
            problems.push(Problem::new("packets", "buffers and iterations are at least one"));
        }
        if self.iterations > ITERATIONS_MAX {
            let message = format!("{}; expected at most {ITERATIONS_MAX}", self.iterations);
            problems.push(Problem::new("iterations", message));
        }
        if let Err(message) = Line::check_slot(self.line_rate, self.slot, self.speed_up) {
            problems.push(Problem::new("port_rate", message));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// A link of an input module that found a queue.
#[derive(Clone, Copy, Debug)]
struct Match {
    group: usize,
    /// The queue's turn in its module: v.
    turn: usize,
    output: usize,
    first_iteration: bool,
}

/// The switch.
#[derive(Clone, Debug)]
pub struct Crrd {
    config: CrrdConfig,
    line: Line,
    slot: u64,
    groups: usize,
    /// For each turn v its output, and for each output its turn.
    output_of: Vec<u16>,
    turn_of: Vec<u16>,
    /// `group * ports + turn`.
    queues: QueueBank,
    /// Row `group`: turns of outputs for which it has a packet.
    requests: BitRows,
    /// By turn. Row 0: outputs with room. Row 1: queues of the module at work without a link.
    open: BitRows,
    /// `group * per_group + link`, over turns.
    link_turns: Vec<RoundRobin>,
    /// `group * ports + turn`, over links.
    queue_turns: Vec<RoundRobin>,
    /// `link * groups + output group`, over input groups.
    centre_turns: Vec<RoundRobin>,
    /// `link * groups + group`: what the first phase found.
    matches: Vec<Option<Match>>,
    /// Row `link * groups + output group`: input groups that ask the centre module.
    asking: BitRows,
    held: Vec<usize>,
    egress: Egress,
    arriving: Arriving,
}

impl Crrd {
    /// An empty switch.
    ///
    /// # Panics
    /// If [`CrrdConfig::check`] refuses the configuration.
    #[must_use]
    pub fn new(config: CrrdConfig) -> Self {
        config.check().expect("a configuration is checked before it is built");
        let groups = config.ports / config.per_group;
        let links = config.per_group * groups;
        // v = h k + j of output h of module j, which is port j n + h.
        let output_of = |turn: usize| turn % groups * config.per_group + turn / groups;
        let mut turn_of = vec![0; config.ports];
        (0..config.ports).for_each(|turn| turn_of[output_of(turn)] = turn as u16);
        Self {
            line: config.line(),
            slot: 0,
            groups,
            output_of: (0..config.ports).map(|turn| output_of(turn) as u16).collect(),
            turn_of,
            queues: QueueBank::new(groups * config.ports),
            requests: BitRows::new(groups, config.ports),
            open: BitRows::new(2, config.ports),
            link_turns: vec![RoundRobin::default(); links],
            queue_turns: vec![RoundRobin::default(); groups * config.ports],
            centre_turns: vec![RoundRobin::default(); links],
            matches: vec![None; links],
            asking: BitRows::new(links, groups),
            held: vec![0; groups],
            egress: Egress::new(config.line(), config.ports, config.output_packets),
            arriving: Arriving::new(config.line()),
            config,
        }
    }

    fn group(&self, port: u16) -> usize {
        usize::from(port) / self.config.per_group
    }

    /// Phase 1 in one input module: queues and links find each other.
    fn dispatch(&mut self, group: usize) {
        self.open.clear_row(1);
        for turn in iter_ones(self.requests.row(group)) {
            let room = self.open.get(0, turn);
            self.open.put(1, turn, room);
        }
        let mut linkless = u64::MAX >> (64 - self.config.per_group);
        for iteration in 0..self.config.iterations {
            let mut offers: Vec<(usize, u64)> = Vec::new();
            for link in iter_ones(&[linkless]) {
                let pointer = self.link_turns[group * self.config.per_group + link];
                let Some(turn) = pointer.choose(self.open.row(1)) else { continue };
                match offers.iter_mut().find(|(to, _)| *to == turn) {
                    Some((_, links)) => *links |= 1 << link,
                    None => offers.push((turn, 1 << link)),
                }
            }
            for (turn, links) in offers {
                let pointer = self.queue_turns[group * self.config.ports + turn];
                let link = pointer.choose(&[links]).expect("a queue is noted with an offer");
                linkless &= !(1 << link);
                self.open.clear(1, turn);
                let output = usize::from(self.output_of[turn]);
                let found = Match { group, turn, output, first_iteration: iteration == 0 };
                self.matches[link * self.groups + group] = Some(found);
                let centre = link * self.groups + output / self.config.per_group;
                self.asking.set(centre, group);
            }
        }
    }

    /// Phase 2: each link of a centre module takes one input module.
    fn pass_centre(&mut self, departures: &mut Vec<Departure>) {
        let now = self.line.start_of(self.slot);
        for centre in 0..self.centre_turns.len() {
            let link = centre / self.groups;
            while let Some(group) = self.centre_turns[centre].choose(self.asking.row(centre)) {
                self.asking.clear(centre, group);
                let found = self.matches[link * self.groups + group];
                let found = found.expect("only a matched link asks");
                // Another centre module may have taken the last place at this output.
                if self.egress.has_room(found.output, now) {
                    self.centre_turns[centre].point_beyond(group, self.groups);
                    self.send(link, found, departures);
                    break;
                }
            }
            self.asking.clear_row(centre);
        }
        self.matches.fill(None);
    }

    fn send(&mut self, link: usize, found: Match, departures: &mut Vec<Departure>) {
        let Match { group, turn, output, first_iteration } = found;
        let queue = group * self.config.ports + turn;
        let packet = self.queues.pop(queue).expect("only a queue with a packet asks");
        if self.queues.is_empty(queue) {
            self.requests.clear(group, turn);
        }
        if first_iteration {
            let per_group = self.config.per_group;
            self.link_turns[group * per_group + link].point_beyond(turn, self.config.ports);
            self.queue_turns[queue].point_beyond(link, per_group);
        }
        self.held[group] -= 1;
        self.egress.promise(output);
        departures.push(self.egress.take(packet, self.line.start_of(self.slot)));
    }
}

impl Switch for Crrd {
    fn ports(&self) -> usize {
        self.config.ports
    }

    fn has_room(&self, packet: &Packet) -> bool {
        self.held[self.group(packet.source)]
            < self.config.packets.saturating_mul(self.config.per_group)
    }

    fn admit(&mut self, packet: Packet) {
        let group = self.group(packet.source);
        self.held[group] += 1;
        self.arriving.put(packet);
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        for packet in self.arriving.turn() {
            let group = usize::from(packet.source) / self.config.per_group;
            let turn = usize::from(self.turn_of[usize::from(packet.destination)]);
            self.queues.push(group * self.config.ports + turn, *packet);
            self.requests.set(group, turn);
        }
        let now = self.line.start_of(self.slot);
        for output in 0..self.config.ports {
            let room = self.egress.has_room(output, now);
            self.open.put(0, usize::from(self.turn_of[output]), room);
        }
        (0..self.groups).for_each(|group| self.dispatch(group));
        self.pass_centre(departures);
        self.slot += 1;
    }

    fn held(&self) -> usize {
        self.held.iter().sum()
    }

    fn is_idle(&self) -> bool {
        self.held.iter().all(|&held| held == 0)
    }

    fn skip_to(&mut self, cycle: u64) {
        self.arriving.skip_to(cycle);
        self.slot = cycle;
    }
}
