//! A long run takes no more memory than a short one.
//!
//! `cargo test --release -p rackloom-packets -- --ignored --nocapture a_million`

use kernel::Stream;
use rack::topology::ThreeTier;

use super::*;

/// Bytes of the flows: four packets.
const SIZE: u64 = 5_840;
const HOSTS: u32 = 128;
/// Mean time from one flow to the next: together they load 128 hosts of 50 Gbps to 0.4.
const GAP: u64 = 18_750;

/// Offers flows between random hosts at random times, a few ahead at a time.
struct Source {
    network: Network<LineRate>,
    draw: Stream,
    start: u64,
    offered: u64,
}

impl Source {
    fn offer_up_to(&mut self, count: u64) {
        while self.offered < count {
            for _ in 0..1_000 {
                let src = self.draw.below(HOSTS.into()) as u32;
                let dst = (src + 1 + self.draw.below(u64::from(HOSTS) - 1) as u32) % HOSTS;
                self.start += self.draw.below(2 * GAP);
                self.network.offer(&flow(self.offered, src, dst, SIZE, self.start));
                self.offered += 1;
            }
            self.network.advance(Time::from_ps(self.start), &mut ());
        }
    }
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "takes a quarter of a minute"]
fn a_million_short_flows_take_no_more_memory_than_the_first_two_hundred_thousand() {
    let shape = ThreeTier { hosts: HOSTS, radix: 8, ..Default::default() };
    let queues = endless();
    let config = Config { topology: Shape::ThreeTier(shape), queues, ..Config::default() };
    let network = raw(plan(&config, &[]), Recovery::None, 1);
    let draw = Stream::new(1, "test/long", 0);
    let mut source = Source { network, draw, start: 0, offered: 0 };
    let mut sizes = Vec::new();
    for count in [200_000, 1_000_000] {
        source.offer_up_to(count);
        let net = source.network.net();
        let open = source.network.desk.ledger.open;
        assert!(open < 5_000, "{open} flows are open: the load is too high to say anything");
        sizes.push(peak());
        eprintln!(
            "{count} flows: {} KiB; room for {} packets, {} flows; {} hops",
            peak(),
            net.arena.capacity(),
            net.halves.places(),
            net.counts.hops
        );
    }
    // A busier moment than any before may still double some list.
    assert!(sizes[1] < sizes[0] + 1_024, "{sizes:?} KiB");
    source.network.advance(Time::NEVER, &mut ());
    assert_eq!(source.network.totals().delivered, Bytes::new(1_000_000 * SIZE));
    source.network.check().unwrap();
}
