//! M616: machines are managed through the Clique while their hosts are off.

use std::sync::Arc;

use aquila::pipeline::plan::{EthernetAddress, GATEWAY_ETHERNET, Version};
use aquila::pipeline::sideband::{From, Host, Sideband, To};
use aquila::pipeline::{Interface, Pipeline, Verdict, fields, rewrite};
use aquila::topology::Shape;
use etherparse::PacketBuilder;
use kernel::{Span, Stream, Time};

use super::ends::audit;
use super::world::World;
use crate::apps::operator::Wish;
use crate::firmware::chip::Chip;
use crate::firmware::{Firmware, Input, Output, Settings};
use crate::memory::{Memory, Purpose};
use crate::nc_si::{Packet, settings};
use crate::nib::{Table, Write};
use crate::registers::map::SIDEBAND_ALLOWED;
use crate::sim::path::{Lost, follow};

const BMC: EthernetAddress = [2, 0, 0, 0, 0, 9];
/// Whose host is managed, and from where.
const MANAGED: (u16, Interface) = (7, Interface::Host0);
const MANAGER: (u16, Interface) = (3, Interface::Host1);

/// Chips as the controller has written them.
struct Rack {
    world: World,
    chips: Vec<Chip>,
}

impl Rack {
    /// Operators have said which sidebands they want of the managed TiN, if they have.
    fn new(sidebands: Option<u8>) -> Self {
        let mut world = World::new(&Shape::TINY, 21);
        world.settle();
        if let Some(bits) = sidebands {
            let write = Wish::Sidebands(MANAGED.0, bits).write();
            world.constellation.write(&[write]);
            world.settle();
        }
        audit(&world, &world.condition(&[], &[]));
        let mut rack = Self { world, chips: Vec::new() };
        rack.read();
        rack
    }

    fn read(&mut self) {
        let files = (0..).zip(self.world.files());
        let plan = &self.world.clique.plan;
        let chip = |(tin, file)| Chip::holding(plan.ethernet(tin, Interface::Control), 1, file);
        self.chips = files.map(chip).collect();
    }

    /// A frame with UDP from one host to another, which is to leave with a hop fewer.
    fn udp(&self, (from, to): ((u16, Interface), (u16, Interface)), port: u16) -> Vec<u8> {
        let ip = |(tin, interface)| match self.world.clique.plan.ip(tin, interface, Version::V4) {
            std::net::IpAddr::V4(ip) => ip.octets(),
            std::net::IpAddr::V6(_) => panic!(),
        };
        let sender = if from == MANAGED { BMC } else { [2, 0, 0, 0, 0, 3] };
        let builder = PacketBuilder::ethernet2(sender, GATEWAY_ETHERNET).ipv4(ip(from), ip(to), 9);
        let mut frame = Vec::new();
        builder.udp(623, port).write(&mut frame, &[7; 30]).unwrap();
        frame
    }

    /// A frame comes in at a host's interface of a TiN, and crosses the Clique by what chips hold: where it leaves, and the
    /// packet.
    fn cross(
        &self,
        (tin, interface): (u16, Interface),
        frame: &[u8],
        dead: Option<u16>,
    ) -> Result<(u16, Vec<u8>), Lost> {
        let clique = &self.world.clique;
        let routes = crate::expand::ip::routes(&self.chips[usize::from(tin)].registers).unwrap();
        let mut pipeline = Pipeline::new(tin, &clique.plan, Arc::new(routes));
        let Verdict::Forward(way) = pipeline.receive(Time::ZERO, interface, frame) else {
            return Err(Lost::NoFlow);
        };
        let lives = |at: u16| Some(at) != dead;
        let crosses = |at, port| {
            let far = clique.topology.far(at, port);
            lives(at) && far.is_some_and(|far| lives(far.tin))
        };
        let by = (tin, interface.endpoint());
        let to = (way.to, way.flow_hash.into());
        let passed = follow(&clique.topology, &self.chips, by, to, crosses)?;
        let packet = rewrite::enter(frame, &fields::parse(frame).unwrap()).unwrap();
        Ok((*passed.last().unwrap(), packet))
    }

    /// The managed host's management controller brings its channel up, as Linux does.
    fn bring_up(&mut self) {
        let memory = Memory::default();
        let chip = &mut self.chips[usize::from(MANAGED.0)];
        let stream = Stream::new(1, "firmware", 7);
        let mut firmware =
            Firmware::new(Time::ZERO, chip, Settings::default(), &memory, stream).unwrap();
        let address = [&BMC[..], &[1, 1]].concat();
        let commands: [(u8, u8, &[u8]); 7] = [
            (0x01, 0x1F, &[0, 0, 0, 1]),
            (0x00, 0, &[]),
            (0x0A, 0, &[]),
            (0x0E, 0, &address),
            (0x06, 0, &[]),
            (0x03, 0, &[]),
            (0x08, 0, &[0, 0, 0, 1, 0, 0, 0, 1]),
        ];
        for (instance, (kind, channel, payload)) in (1..).zip(commands) {
            let payload = payload.to_vec();
            let command = Packet { controller: 0, instance, kind, channel, payload };
            let (host, frame) = (0, command.encode());
            let mut out = Vec::new();
            firmware.step(Time::ZERO, chip, Input::Sideband { host, frame }, &mut out);
            let [Output::Sideband { host: 0, frame }] = &out[..] else { panic!("{out:?}") };
            let answer = Packet::decode(frame).unwrap();
            assert_eq!((answer.instance, &answer.payload[..4]), (instance, &[0; 4][..]));
        }
        assert!(memory.used_for(Purpose::Sideband) > 2 * 1_500);
        // A link comes up: it hears of the first. What is hostile is counted.
        let neighbour = [2; 6];
        let state = crate::firmware::chip::LinkState::Up;
        let mut out = Vec::new();
        firmware.step(Time::ZERO, chip, Input::Link { port: 2, state, neighbour }, &mut out);
        let notices = out.iter().filter(|out| matches!(out, Output::Sideband { host: 0, .. }));
        assert_eq!(notices.count(), 1);
        for (host, frame) in [(0, vec![0xFF; 60]), (1, out_of(&out)), (2, vec![]), (0, vec![])] {
            let mut out = Vec::new();
            firmware.step(Time::ZERO, chip, Input::Sideband { host, frame }, &mut out);
            assert!(!out.iter().any(|out| matches!(out, Output::Sideband { .. })));
        }
        assert_eq!(firmware.counts().sideband_refused, 4);
    }

    fn sideband(&self) -> Sideband {
        let mut sideband = Sideband::default();
        sideband.set(settings(&self.chips[usize::from(MANAGED.0)].registers, 0));
        sideband
    }
}

/// A frame that was sent.
fn out_of(out: &[Output]) -> Vec<u8> {
    let mut frames = out.iter().filter_map(|out| match out {
        Output::Sideband { frame, .. } => Some(frame.clone()),
        _ => None,
    });
    frames.next().unwrap()
}

#[test]
fn slow_m616_a_management_controller_answers_while_its_host_is_off() {
    let mut rack = Rack::new(Some(1));
    rack.bring_up();
    let mut sideband = rack.sideband();
    let own = GATEWAY_ETHERNET;
    for host in [Host::Off, Host::Dwells, Host::Runs] {
        let asks = rack.udp((MANAGER, MANAGED), 623);
        let (at, packet) = rack.cross(MANAGER, &asks, None).unwrap();
        assert_eq!(at, MANAGED.0);
        assert_eq!(sideband.leave(Time::ZERO, own, &packet, host), To::Management);
        let (_, heard) = sideband.take(Time::ZERO + Span::from_us(1_000)).unwrap();
        assert_eq!((&heard[..6], &heard[14..]), (&BMC[..], &packet[..]));
        // It answers, and the answer is routed as its host's packets are.
        let answer = rack.udp((MANAGED, MANAGER), 623);
        assert_eq!(sideband.enter(&answer), From::Pipeline);
        assert_eq!(rack.cross(MANAGED, &answer, None).unwrap().0, MANAGER.0);
        // Other packets are the host's, and lost while that is off.
        let (_, other) = rack.cross(MANAGER, &rack.udp((MANAGER, MANAGED), 80), None).unwrap();
        let to = if host == Host::Off { To::Nobody } else { To::Host };
        assert_eq!(sideband.leave(Time::ZERO, own, &other, host), to);
        // With the TiN both are lost.
        for port in [623, 80] {
            let asks = rack.udp((MANAGER, MANAGED), port);
            assert_eq!(rack.cross(MANAGER, &asks, Some(MANAGED.0)).unwrap_err(), Lost::Dead);
        }
    }
    // What is for the control processor goes there, from the same ports too; and nothing of the sideband does.
    let control = rack.udp((MANAGER, (MANAGED.0, Interface::Control)), 623);
    let routes = crate::expand::ip::routes(&rack.chips[usize::from(MANAGED.0)].registers).unwrap();
    let mut pipeline = Pipeline::new(MANAGED.0, &rack.world.clique.plan, Arc::new(routes));
    let asks = rack.udp((MANAGER, MANAGED), 623);
    assert!(matches!(
        pipeline.receive(Time::ZERO, Interface::Ethernet, &control),
        Verdict::Punt(_)
    ));
    assert!(matches!(
        pipeline.receive(Time::ZERO, Interface::Ethernet, &asks),
        Verdict::Forward(_)
    ));
}

#[test]
fn slow_m616_sidebands_are_off_until_operators_want_them_and_off_again() {
    let rack = Rack::new(None);
    let asks = rack.udp((MANAGER, MANAGED), 623);
    let (_, packet) = rack.cross(MANAGER, &asks, None).unwrap();
    let own = GATEWAY_ETHERNET;
    assert_eq!(rack.sideband().leave(Time::ZERO, own, &packet, Host::Off), To::Nobody);
    assert_eq!(rack.sideband().leave(Time::ZERO, own, &packet, Host::Runs), To::Host);
    let written = rack.world.written;
    let mut rack = Rack::new(Some(2));
    assert_eq!(rack.world.written, written + 1, "one entry, and no other");
    let allowed = |rack: &Rack, tin: usize| {
        [0, 1].map(|host| rack.chips[tin].registers.get(SIDEBAND_ALLOWED, [host]))
    };
    for tin in 0..rack.chips.len() {
        let is_managed = tin == usize::from(MANAGED.0);
        assert_eq!(allowed(&rack, tin), [0, u8::from(is_managed)]);
    }
    // A chip that starts cold gets it again, and one that is not to have it any more is told so, by whoever leads.
    rack.world.reset(MANAGED.0);
    rack.world.settle();
    rack.read();
    assert_eq!(allowed(&rack, usize::from(MANAGED.0)), [0, 1]);
    rack.world.disconnect(MANAGED.0, false);
    let write = Write::set(Table::Sideband, &MANAGED.0.to_be_bytes(), &[0]);
    rack.world.constellation.write(&[write]);
    rack.world.settle();
    rack.read();
    assert_eq!(allowed(&rack, usize::from(MANAGED.0)), [0, 1], "nobody has told it");
    rack.world.disconnect(MANAGED.0, true);
    rack.world.settle();
    rack.read();
    assert_eq!(allowed(&rack, usize::from(MANAGED.0)), [0, 0]);
}
