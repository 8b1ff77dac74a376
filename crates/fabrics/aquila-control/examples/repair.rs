//! A link, a cable and a bundle fail under cells at half load, and a TiN and a cable are drained and put back at 70 Gbps a TiN:
//!
//!     cargo run --release -p rackloom-aquila-control --example repair tiny

use std::ops::ControlFlow;

use aquila::Config;
use aquila::config::{Control, Maintenance, Profile, Sdn};
use aquila::link::classes::Mode;
use aquila::topology::packaging::Part;
use aquila::topology::{Fibres, Topology};
use aquila_control::beside::measure::{Load, carry};
use kernel::{Rate, Span, Time};

#[allow(clippy::print_stdout)]
fn main() {
    let profile = std::env::args().nth(1).unwrap_or_else(|| "tiny".into());
    let profile: Profile = profile.parse().unwrap_or_else(|wrong| panic!("{wrong}"));
    let at = Span::from_us(6);
    let until = |seconds: u64| Some(at + Span::from_us(1_000_000 * seconds));
    let drains = [
        Maintenance { at, until: until(1), drain_tin: Some(3), ..Maintenance::default() },
        Maintenance {
            at: at + Span::from_us(2_000_000),
            until: until(3),
            drain_cable: Some(2),
            ..Maintenance::default()
        },
    ];
    let topology = Topology::new(&profile.shape(), Fibres::Grid).expect("a profile can be wired");
    let global = topology.links().iter().position(|link| link.is_global).expect("pods are linked");
    let cases: [(&str, Option<Part>, &[Maintenance], u64); 4] = [
        ("a link fails", Some(Part::Link(global as u32)), &[], 50),
        ("a cable fails", Some(Part::Cable(1)), &[], 50),
        ("a bundle fails", Some(Part::Bundle(0)), &[], 50),
        ("drained and put back", None, &drains, 70),
    ];
    for (what, part, maintenance, gbps) in cases {
        for mode in [Mode::FullyAdaptive, Mode::MinimalDeterministic] {
            let sdn = Sdn { maintenance: maintenance.to_vec(), ..Sdn::default() };
            let config =
                Config { profile: Some(profile), control: Control::Sdn, sdn, ..Config::default() };
            let plan = config.plan().unwrap_or_else(|wrong| panic!("{wrong:?}"));
            let plan = match part {
                Some(part) => plan.failing(part, Time::ZERO + at),
                None => plan,
            };
            let load = Load { rate: Rate::from_gbps(gbps), class: 7, mode, seed: 1 };
            let found = carry(&plan, &load, |_| ControlFlow::Continue(()));
            println!("{what}, {mode:?}: {found:#?}");
        }
    }
}
