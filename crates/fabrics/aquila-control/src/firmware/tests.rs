//! Two TiNs, of which one has a link to the datacenter's network, and a controller's hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aquila::pipeline::plan::{Plan, Version};
use aquila::topology::Shape;
use proptest::prelude::*;

use super::*;
use crate::dhcp::{Kind, Message};
use crate::flash::{self, Code, FACTORY, Flash, GENERATION, Image};
use crate::registers::map::{CLASS_MODE, ID_CHIP, ID_DESCRIPTION, RESPONDER};
use crate::registers::{Status, Word};
use crate::rpc::{Caller, Item, Outcome};
use crate::session::{Addresses, Client, Pieces, Versions};

const CONTROLLER: Addresses = Addresses {
    v4: Ipv4Addr::new(172, 16, 0, 1),
    v6: Some(Ipv6Addr::new(0xfd48, 0, 0, 0, 0, 0, 0, 1)),
};
/// The proxy's port to the target, and the target's to the proxy.
const PORTS_BETWEEN: [u8; 2] = [3, 5];

fn plan() -> Plan {
    Plan::new(&Shape::TINY, 2)
}

fn address(tin: u16) -> Addresses {
    let v6 = Ipv6Addr::new(0xfd47, 0, 0, 3, 0, 0, 0, tin);
    Addresses { v4: Ipv4Addr::new(10, 0, 8, tin as u8), v6: Some(v6) }
}

/// A processor on its chip.
struct Tin {
    chip: Chip,
    firmware: Firmware,
    /// Frames on the wires: when they will have gone.
    wire: Option<(Time, pmos::Frame)>,
}

impl Tin {
    fn new(tin: u16) -> Self {
        let mut chip = Chip::new(plan().ethernet(tin, Interface::Control), 1);
        let firmware = start(&mut chip, Time::ZERO, u64::from(tin));
        Self { chip, firmware, wire: None }
    }
}

fn start(chip: &mut Chip, now: Time, life: u64) -> Firmware {
    let stream = Stream::new(9, "firmware", life);
    Firmware::new(now, chip, Settings::default(), &Memory::default(), stream).unwrap()
}

/// TiN 0, the proxy; TiN 1, the target; the controller's session with TiN 0, and what it has heard.
struct Pair {
    now: Time,
    tins: [Tin; 2],
    client: Client,
    server: dhcp::Server,
    heard: Vec<Said>,
    /// By which interfaces TiN 0's packets left.
    left_by: Vec<Interface>,
    /// When a firmware wanted to be started again.
    restarts: Vec<(Time, Restart)>,
    /// By which interface the controller's packets come to TiN 0.
    comes_by: Interface,
    /// Over which version of IP it calls.
    version: Version,
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self {
            now: Time::ZERO,
            tins: [Tin::new(0), Tin::new(1)],
            client: Client::new(Time::ZERO, 5, CONTROLLER, address(0)),
            server: dhcp::Server::for_ever(&plan(), CONTROLLER.v4).telling_v6(true),
            heard: Vec::new(),
            left_by: Vec::new(),
            restarts: Vec::new(),
            comes_by: Interface::Ethernet,
            version: Version::V4,
        };
        pair.tell(0, Input::Ethernet { is_up: true });
        for tin in [0, 1] {
            for state in [LinkState::Locked, LinkState::Up] {
                let neighbour = plan().ethernet(1 - tin as u16, Interface::Control);
                pair.tell(tin, Input::Link { port: PORTS_BETWEEN[tin], state, neighbour });
            }
        }
        pair
    }

    fn tell(&mut self, tin: usize, input: Input) {
        let mut out = Vec::new();
        let Tin { chip, firmware, .. } = &mut self.tins[tin];
        firmware.step(self.now, chip, input, &mut out);
        for output in out {
            match output {
                Output::Frame { by: Interface::Ethernet, frame } => {
                    assert_eq!(tin, 0, "TiN 1 has no such link");
                    let message = dhcp::relay(CONTROLLER.v4, &dhcp::from_frame(&frame).unwrap());
                    let answer = self.server.receive(&message.unwrap()).unwrap();
                    let to = Message::decode(&answer).unwrap().client;
                    let frame = dhcp::to_client(CONTROLLER.v4, to, &answer);
                    self.tell(0, Input::Frame(frame));
                }
                Output::Packet { by, packet } => {
                    assert_eq!(tin, 0);
                    self.left_by.push(by);
                    self.client.receive(self.now, packet);
                }
                Output::Restart(restart) => self.restarts.push((self.now, restart)),
                output => panic!("{output:?}"),
            }
        }
        let port = PORTS_BETWEEN[tin];
        while self.tins[tin].firmware.wanting() != 0 {
            let is_free = self.tins[tin].wire.is_none();
            while let Some(frame) = self.tins[tin].firmware.next_frame(port, is_free) {
                if frame.kind.is_data() {
                    let words = pmos::End::words(&frame).count() as u64;
                    let gone = self.now + Span::from_us(10) * words;
                    self.tins[tin].wire = Some((gone, frame));
                    break;
                }
                self.tell(1 - tin, Input::Pmos { port: PORTS_BETWEEN[1 - tin], frame });
            }
        }
    }

    /// A millisecond.
    fn step(&mut self) {
        self.now += Span::from_us(1_000);
        self.client.poll(self.now);
        for tin in [0, 1] {
            if let Some((_, frame)) = self.tins[tin].wire.take_if(|wire| wire.0 <= self.now) {
                // Whole or word by word is the same.
                if frame.data.len() % 2 == 0 {
                    self.tell(1 - tin, Input::Pmos { port: PORTS_BETWEEN[1 - tin], frame });
                } else {
                    for set in pmos::End::words(&frame) {
                        self.tell(1 - tin, Input::Word { port: PORTS_BETWEEN[1 - tin], set });
                    }
                }
                self.tell(tin, Input::Gone { port: PORTS_BETWEEN[tin] });
            }
            if self.tins[tin].firmware.deadline().is_some_and(|deadline| deadline <= self.now) {
                self.tell(tin, Input::Nothing);
            }
        }
        for packet in self.client.packets() {
            // The chip's rule (M808).
            if self.tins[0].chip.traps(ip::addresses(&packet).unwrap().1) {
                self.tell(0, Input::Trapped { by: self.comes_by, packet });
            }
        }
        while let Some(said) = self.client.hear().unwrap() {
            self.heard.push(said);
        }
    }

    #[track_caller]
    fn until<T>(&mut self, seconds: u32, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        for _ in 0..1_000 * seconds {
            if let Some(found) = found(self) {
                return found;
            }
            self.step();
        }
        panic!("nothing after {seconds} s");
    }

    /// TiN 0 has an address and a session.
    fn connect(&mut self) -> Hello {
        self.until(5, |pair| pair.tins[0].chip.trap);
        self.client.call(self.now, self.version);
        self.until(5, |pair| {
            pair.heard.iter().find_map(|said| match said {
                Said::Hello(hello) => Some(*hello),
                _ => None,
            })
        })
    }

    /// What has been heard by PMOS, once.
    fn told_by_target(&mut self) -> Option<(pmos::Kind, Vec<u8>)> {
        let at = self.heard.iter().position(|said| matches!(said, Said::Pmos { .. }))?;
        match self.heard.remove(at) {
            Said::Pmos { port: 3, kind, data } => Some((kind, data)),
            said => panic!("{said:?}"),
        }
    }

    fn tell_target(&mut self, kind: pmos::Kind, data: Vec<u8>) {
        assert!(self.client.say(&Said::Pmos { port: 3, kind, data }));
        self.client.poll(self.now);
    }

    /// The target has an address, of the controller as its relay.
    fn address_target(&mut self) {
        for expected in [Kind::Discover, Kind::Request] {
            let (kind, data) = self.until(70, |pair| {
                pair.told_by_target()
                    .filter(|(_, data)| Message::decode(data).unwrap().kind == expected)
            });
            assert_eq!(kind, pmos::Kind::Dhcp);
            let relayed = dhcp::relay(CONTROLLER.v4, &data).unwrap();
            let answer = self.server.receive(&relayed).unwrap();
            self.tell_target(pmos::Kind::Dhcp, answer);
        }
        self.until(5, |pair| pair.tins[1].chip.trap);
    }

    /// A request to TiN 0, answered over TCP.
    fn ask(&mut self, caller: &mut Caller, items: Vec<Item>) -> Vec<Outcome> {
        let bytes = caller.send(items).unwrap().to_vec();
        for piece in bytes.chunks(crate::session::PIECE_BYTES) {
            assert!(self.client.say(&Said::Rpc(piece.to_vec())));
        }
        self.client.poll(self.now);
        let mut pieces = Pieces::default();
        let answer = self.until(5, |pair| {
            for said in pair.heard.drain(..) {
                let Said::Rpc(piece) = said else { continue };
                pieces.add(&piece).unwrap();
            }
            pieces.take()
        });
        caller.receive(&answer).unwrap().into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// A request to the target, answered by PMOS.
    fn ask_target(&mut self, caller: &mut Caller, items: Vec<Item>) -> Vec<Outcome> {
        let bytes = caller.send(items).unwrap().to_vec();
        for piece in bytes.chunks(crate::session::PIECE_BYTES) {
            self.tell_target(pmos::Kind::Rpc, piece.to_vec());
        }
        let mut pieces = Pieces::default();
        let answer = self.until(60, |pair| {
            while let Some((kind, data)) = pair.told_by_target() {
                assert_eq!(kind, pmos::Kind::Rpc);
                pieces.add(&data).unwrap();
            }
            pieces.take()
        });
        caller.receive(&answer).unwrap().into_iter().map(|pair| pair.1).collect()
    }
}

#[test]
fn m803_m808_m615_i83_a_connected_tin_gets_its_addresses_and_answers_by_the_same_interface() {
    let interfaces = [Interface::Ethernet, Interface::Control, Interface::Host0];
    for (by, version) in interfaces.into_iter().flat_map(|by| Plan::VERSIONS.map(|v| (by, v))) {
        let mut pair = Pair::new();
        (pair.comes_by, pair.version) = (by, version);
        let hello = pair.connect();
        assert_eq!(pair.tins[0].chip.trap, Some(address(0)));
        let ethernet = plan().ethernet(0, Interface::Control);
        let links = 1 << 3 | 1 << chip::ETHERNET_PORT;
        let (generation, firmware) = (GENERATION, FACTORY);
        assert_eq!(hello, Hello { boot: 1, ethernet, links, generation, firmware });
        assert_eq!(pair.tins[0].firmware.state(), State::Tcp);
        assert!(pair.left_by.len() >= 2);
        assert!(pair.left_by.iter().all(|&left| left == by), "{:?}", pair.left_by);
    }
}

/// The plan is that of the whole Clique: what a session expects is what the server tells.
#[test]
fn m615_addresses_are_those_of_the_plan() {
    for tin in [0, 1, 17] {
        assert_eq!(Versions::Both.addresses(&plan(), tin), address(tin));
        assert_eq!(Versions::V4.addresses(&plan(), tin), Addresses { v6: None, ..address(tin) });
    }
}

#[test]
fn m603_links_are_in_the_registers_and_the_controller_hears_of_changes() {
    let mut pair = Pair::new();
    pair.connect();
    let [_, registers] = [0, 1].map(|tin| &pair.tins[tin].chip.registers);
    assert_eq!(registers.get(LINK_STATE, [5]), 3);
    assert_eq!(registers.get(LINK_STATE, [6]), 1, "it tries");
    assert_eq!(registers.get(LINK_NEIGHBOUR, [5]), 0x0247_0003_0000);
    let neighbour = [0; 6];
    pair.tell(0, Input::Link { port: 3, state: LinkState::Training, neighbour });
    pair.until(5, |pair| pair.heard.contains(&Said::Links(1 << chip::ETHERNET_PORT)).then_some(()));
    assert_eq!(pair.tins[0].chip.registers.get(LINK_NEIGHBOUR, [3]), 0);
    // What the controller forbids does not come up.
    pair.tins[0].chip.registers.set(LINK_CONTROL, [4], 0);
    pair.tell(0, Input::Link { port: 4, state: LinkState::Up, neighbour });
    assert_eq!(pair.tins[0].chip.registers.get(LINK_STATE, [4]), 0);
}

#[test]
fn m809_m810_a_target_gets_address_and_registers_through_a_proxy() {
    let mut pair = Pair::new();
    // Without a proxy's session nobody hears the target.
    (0..3_000).for_each(|_| pair.step());
    assert!(pair.tins[0].firmware.counts().not_heard > 0);
    assert_eq!(pair.tins[1].firmware.state(), State::Asking);
    pair.connect();
    pair.address_target();
    assert_eq!(pair.tins[1].chip.trap, Some(address(1)));
    pair.tell_target(pmos::Kind::Debug, Point::Begin(77).encode());
    let (_, data) = pair.until(5, Pair::told_by_target);
    let ethernet = plan().ethernet(1, Interface::Control);
    let (generation, firmware) = (GENERATION, FACTORY);
    let hello = Hello { boot: 1, ethernet, links: 1 << 5, generation, firmware };
    assert_eq!(Point::decode(&data), Some(Point::Hello(77, hello)));
    assert_eq!(pair.tins[1].firmware.state(), State::Pmos);
    // 9 KB: more than a piece, and than what may be under way in words.
    let mut caller = Caller::new();
    let address = CLASS_MODE.address([0]).unwrap();
    let mut items = vec![Item::Write { address, entry: 2u8.to_entry() }; 1_000];
    items.push(Item::Read { address: ID_CHIP.register().base });
    let outcomes = pair.ask_target(&mut caller, items);
    assert_eq!(outcomes.len(), 1_001);
    assert_eq!(outcomes[1_000], Outcome::Entry(0x7469_6e31u32.to_entry()));
    assert_eq!(pair.tins[1].chip.registers.get(CLASS_MODE, [0]), 2);
    // Each packet that the target has makes room for one more.
    let rooms = pair.heard.iter().filter(|said| matches!(said, Said::Room { port: 3 })).count();
    let pieces = (16 + 1_000 * 7 + 5usize).div_ceil(crate::session::PIECE_BYTES);
    assert_eq!(rooms, 2 + 1 + pieces);
    assert_eq!(pair.tins[0].firmware.counts().malformed, 0);
    assert_eq!(pair.tins[1].firmware.counts().malformed, 0);
}

/// I77: the chip goes on, nobody asks for an address, and the controller is back as soon as it calls.
#[test]
fn m609_i77_a_restarted_processor_is_reached_without_a_bootstrap() {
    let mut pair = Pair::new();
    pair.connect();
    pair.tins[0].chip.registers.set(CLASS_MODE, [4], 3);
    let before = pair.tins[0].chip.clone();
    let asked = pair.server.counts;
    pair.tins[0].firmware = start(&mut pair.tins[0].chip, pair.now, 100);
    pair.tell(0, Input::Ethernet { is_up: true });
    assert!(
        pair.tins[0].chip.registers == before.registers,
        "what the controller sees is as it was"
    );
    assert_eq!(pair.tins[0].chip.trap, before.trap);
    pair.heard.clear();
    let hello = pair.connect();
    assert_eq!(hello.boot, 1);
    (0..2_000).for_each(|_| pair.step());
    assert_eq!(pair.server.counts, asked);
    // The ends of PMOS find together again, too.
    pair.address_target();
}

/// M617: another version comes block by block over the session, is charged nowhere, and runs after a restart, in which the
/// chip keeps what it holds; a cold start keeps both images.
#[test]
fn m617_another_version_is_sent_chosen_and_started() {
    let mut pair = Pair::new();
    assert_eq!(pair.connect().firmware, FACTORY);
    let mut caller = Caller::new();
    let other = Image::new(2, GENERATION + 1);
    let refused = pair.ask(&mut caller, vec![Item::Stage(other.header)]);
    assert_eq!(refused, [Outcome::Failed(Status::Generation)]);
    assert_eq!(pair.tins[0].firmware.counts().other_generations, 1);
    let image = Image::new(2, GENERATION);
    let used = pair.tins[0].firmware.memory().used();
    let mode = CLASS_MODE.address([3]).unwrap();
    let write = Item::Write { address: mode, entry: 2u8.to_entry() };
    pair.ask(&mut caller, vec![write, Item::Stage(image.header)]);
    for block in 0..image.header.blocks() {
        let (offset, bytes) = (block * flash::BLOCK_BYTES, image.block(block).to_vec());
        let store = Item::Store { offset, bytes };
        while pair.ask(&mut caller, vec![store.clone()]) != [Outcome::Written] {}
    }
    assert_eq!(pair.tins[0].firmware.memory().used(), used);
    while pair.ask(&mut caller, vec![Item::Verify]) != [Outcome::Written] {}
    let activate = Item::Activate { version: 2, restart: Restart::Processor, trial: 30 };
    assert_eq!(pair.ask(&mut caller, vec![activate]), [Outcome::Written]);
    let answered = pair.now;
    let (at, restart) = pair.until(1, |pair| pair.restarts.pop());
    assert_eq!(restart, Restart::Processor);
    assert!(at > answered, "the answer has gone first");
    let trap = pair.tins[0].chip.trap;
    let mut chip = pair.tins[0].chip.clone();
    let firmware = start(&mut chip, pair.now, 2);
    assert_eq!((firmware.version(), chip.trap), (2, trap));
    assert_eq!(chip.registers.get(CLASS_MODE, [3]), 2);
    let mut cold = chip.cold(7);
    assert_eq!(start(&mut cold, pair.now, 3).version(), 2);
    assert_eq!((cold.registers.get(CLASS_MODE, [3]), cold.trap, cold.start), (0, None, 7));
}

/// An image runs on trial until the controller confirms it, in the session in which it says who it is; otherwise its watchdog
/// starts what ran before.
#[test]
fn m617_an_image_on_trial_is_confirmed_or_gives_way() {
    for code in [Code::Whole, Code::Silent] {
        let mut pair = Pair::new();
        pair.connect();
        let mut flash = Flash::default().taking(Span::ZERO);
        let image = Image::new(2, GENERATION).doing(code);
        flash.stage(pair.now, GENERATION, &image.header).unwrap();
        for block in 0..image.header.blocks() {
            flash.store(pair.now, block * flash::BLOCK_BYTES, image.block(block)).unwrap();
        }
        flash.verify(pair.now).unwrap();
        flash.activate(pair.now, 2, 30).unwrap();
        pair.tins[0].chip.flash = flash;
        let registers = pair.tins[0].chip.registers.clone();
        pair.tins[0].firmware = start(&mut pair.tins[0].chip, pair.now, 7);
        let begin = pair.now;
        assert_eq!(pair.tins[0].chip.flash.trial(), Trial::Runs);
        pair.tell(0, Input::Ethernet { is_up: true });
        if code == Code::Whole {
            pair.heard.clear();
            assert_eq!(pair.connect().firmware, 2);
            let mut caller = Caller::new();
            let other = pair.ask(&mut caller, vec![Item::Confirm { version: 3 }]);
            assert_eq!(other, [Outcome::Failed(Status::NotNext)]);
            let confirm = Item::Confirm { version: 2 };
            assert_eq!(pair.ask(&mut caller, vec![confirm]), [Outcome::Written]);
            (0..40_000).for_each(|_| pair.step());
            assert_eq!(
                (&pair.restarts[..], pair.tins[0].chip.flash.trial()),
                (&[][..], Trial::Kept)
            );
            assert_eq!(start(&mut pair.tins[0].chip, pair.now, 8).version(), 2);
            continue;
        }
        pair.client.call(pair.now, Version::V4);
        let restart = pair.until(40, |pair| pair.restarts.pop());
        assert_eq!(restart, (begin + Span::from_us(30_000_000), Restart::Processor));
        assert_eq!(start(&mut pair.tins[0].chip, pair.now, 8).version(), FACTORY);
        assert_eq!(pair.tins[0].chip.flash.trial(), Trial::Back);
        assert!(pair.tins[0].chip.registers == registers, "M609: the chip goes on");
    }
}

#[test]
fn m617_a_processor_without_a_whole_image_does_not_start() {
    let ethernet = plan().ethernet(0, Interface::Control);
    let mut chip = Chip::new(ethernet, 1);
    chip.registers.set(ID_DESCRIPTION, [], u32::from(GENERATION) + 1);
    let (settings, stream) = (Settings::default(), Stream::new(9, "firmware", 0));
    let start = Firmware::new(Time::ZERO, &mut chip, settings, &Memory::default(), stream);
    assert_eq!(start.unwrap_err(), NotStarted::NoImage(GENERATION + 1));
    // With firmware of its own it does.
    let mut chip = Chip::new(ethernet, 1).of_generation(GENERATION + 1);
    let firmware = super::tests::start(&mut chip, Time::ZERO, 0);
    assert_eq!(firmware.hello(&chip).generation, GENERATION + 1);
}

#[test]
fn m605_listed_registers_come_periodically() {
    let mut pair = Pair::new();
    pair.connect();
    let address = ID_CHIP.register().base;
    pair.client.say(&Said::List { seconds: 2, addresses: vec![address, 0xFFFF_FFFF] });
    let begin = pair.now;
    let report = Said::Report { address, entry: b"tin1".to_vec() };
    let count = |pair: &Pair| pair.heard.iter().filter(|said| **said == report).count();
    pair.until(30, |pair| (count(pair) == 5).then_some(()));
    let seconds = (pair.now - begin).as_seconds();
    assert!((10.0..10.1).contains(&seconds), "{seconds}");
    pair.client.say(&Said::List { seconds: 0, addresses: vec![] });
    (0..5_000).for_each(|_| pair.step());
    assert_eq!(count(&pair), 5);
}

#[test]
fn m612_answers_stand_in_registers() {
    use aquila::pipeline::control::answer;
    use aquila::pipeline::{Reason, fields, plan as addresses};
    // Its own answers are the outside truth: they were tested against Linux's.
    let plan = plan();
    let mut registers = crate::registers::file::RegisterFile::new();
    let IpAddr::V4(asked) = plan.ip(7, Interface::Host0, addresses::Version::V4) else { panic!() };
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [0xFF; 6]);
    let request = etherparse::ArpEthIpv4Packet {
        operation: etherparse::ArpOperation::REQUEST,
        sender_mac: [2, 0, 0, 0, 0, 9],
        sender_ipv4: [10, 0, 0, 3],
        target_mac: [0; 6],
        target_ipv4: asked.octets(),
    };
    let mut question = Vec::new();
    builder.arp(etherparse::ArpPacket::from(request)).write(&mut question).unwrap();
    assert_eq!(responder::answer(&registers, &question), None);
    let mut entry = chip::prefix_entry("10.0.0.0/8".parse().unwrap());
    entry[18..24].copy_from_slice(&addresses::GATEWAY_ETHERNET);
    registers.set(RESPONDER, [63], entry);
    let fields = fields::parse(&question).unwrap();
    let expected =
        answer(&plan, 3, (Interface::Host0, Reason::WhoHas), &question, &fields).unwrap();
    assert_eq!(responder::answer(&registers, &question), Some(expected.frame));
    // A longer prefix is another's.
    let mut entry = chip::prefix_entry("10.0.0.0/24".parse().unwrap());
    entry[18..24].copy_from_slice(&[6; 6]);
    registers.set(RESPONDER, [1], entry);
    assert_eq!(responder::answer(&registers, &question).unwrap()[6..12], [6; 6]);
    // An address that the table has nothing for.
    let other = request_for(&question, [11, 0, 0, 1]);
    assert_eq!(responder::answer(&registers, &other), None);
    // Who looks for its own.
    let own = request_for(&question, [10, 0, 0, 3]);
    assert_eq!(responder::answer(&registers, &own), None);
}

fn request_for(question: &[u8], asked: [u8; 4]) -> Vec<u8> {
    let mut other = question.to_vec();
    other[38..42].copy_from_slice(&asked);
    other
}

#[test]
fn m612_neighbours_of_ipv6_are_answered_as_by_the_pipeline() {
    use aquila::pipeline::control::answer;
    use aquila::pipeline::{Reason, fields, plan as addresses};
    let plan = plan();
    let mut registers = crate::registers::file::RegisterFile::new();
    let mut entry = chip::prefix_entry("fd47::/16".parse().unwrap());
    entry[18..24].copy_from_slice(&addresses::GATEWAY_ETHERNET);
    registers.set(RESPONDER, [0], entry);
    let ip = |tin| match plan.ip(tin, Interface::Host0, addresses::Version::V6) {
        IpAddr::V6(ip) => ip.octets(),
        IpAddr::V4(_) => panic!(),
    };
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [0x33; 6]);
    let builder = builder.ipv6(ip(3), ip(7), 255).icmpv6_raw(135, 0, [0; 4]);
    let mut question = Vec::new();
    builder.write(&mut question, &ip(7)).unwrap();
    let fields = fields::parse(&question).unwrap();
    let expected = answer(&plan, 3, (Interface::Host0, Reason::Trapped), &question, &fields);
    assert_eq!(responder::answer(&registers, &question), expected.map(|answer| answer.frame));
    for at in 0..question.len() {
        let mut damaged = question.clone();
        damaged[at] ^= 0x40;
        let _ = responder::answer(&registers, &damaged);
        let _ = responder::answer(&registers, &question[..at]);
    }
}

#[test]
fn m601_i74_a_tin_of_the_full_clique_fits_with_all_its_links() {
    let mut chip = Chip::new([2; 6], 1);
    let memory = Memory::default();
    let stream = || Stream::new(1, "firmware", 0);
    let mut firmware =
        Firmware::new(Time::ZERO, &mut chip, Settings::default(), &memory, stream()).unwrap();
    for port in 0..46 {
        let input = Input::Link { port, state: LinkState::Up, neighbour: [3; 6] };
        firmware.step(Time::ZERO, &mut chip, input, &mut Vec::new());
    }
    assert_eq!(firmware.ports.open_ports().count_ones(), 46);
    assert!(memory.peak() <= 2 << 20);
    // Without memory it does not start, and says so.
    let small = Memory::new(100 << 10);
    assert!(Firmware::new(Time::ZERO, &mut chip, Settings::default(), &small, stream()).is_err());
    assert_eq!(small.used(), 0);
}

fn inputs() -> impl Strategy<Value = Input> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..120);
    let frame = (0..5usize, any::<u8>(), any::<u16>(), bytes()).prop_map(
        |(kind, sequence, session, data)| pmos::Frame {
            kind: pmos::Kind::ALL[kind],
            sequence: sequence % 4,
            session,
            data,
        },
    );
    prop_oneof![
        bytes().prop_map(Input::Frame),
        bytes().prop_map(|packet| Input::Trapped { by: Interface::Ethernet, packet }),
        bytes().prop_map(|frame| Input::WhoHas { by: Interface::Host0, frame }),
        (any::<u8>(), frame).prop_map(|(port, frame)| Input::Pmos { port: port % 9, frame }),
        (any::<u8>(), any::<[bool; 2]>(), any::<[u8; 8]>()).prop_map(
            |(port, [is_first, is_last], bytes)| {
                let [channel, sequence, data @ ..] = bytes;
                let (channel, sequence) = (channel % 3, sequence % 8);
                Input::Word {
                    port: port % 9,
                    set: OrderedSet::Management { is_first, is_last, channel, sequence, data },
                }
            }
        ),
        (any::<u8>(), 0..4usize).prop_map(|(port, state)| Input::Link {
            port,
            state: [LinkState::Down, LinkState::Training, LinkState::Locked, LinkState::Up][state],
            neighbour: [7; 6],
        }),
        any::<u8>().prop_map(|port| Input::Gone { port }),
    ]
}

proptest! {
    /// Whatever comes at its wires: no panic, no register of the controller's changed, memory within bounds, and it still
    /// gets its address and its session.
    #[test]
    fn i74_hostile_inputs_harm_no_firmware(inputs in prop::collection::vec(inputs(), 0..60)) {
        let mut pair = Pair::new();
        let before = pair.tins[0].chip.registers.clone();
        for input in inputs {
            let Tin { chip, firmware, .. } = &mut pair.tins[0];
            firmware.step(pair.now, chip, input, &mut Vec::new());
            prop_assert!(firmware.memory().peak() <= 2 << 20);
        }
        let Tin { chip, .. } = &pair.tins[0];
        for register in crate::expand::owned() {
            prop_assert!(chip.registers.differing(&before, register).is_empty());
        }
        pair.connect();
    }
}
