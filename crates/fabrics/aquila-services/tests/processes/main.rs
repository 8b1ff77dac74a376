//! Control planes of real processes, which this program starts itself: what they hold at the end is what simulated time
//! computes, whoever was killed meanwhile.
//!
//! The long one: `cargo test -p rackloom-aquila-services --test processes -- --ignored`.

mod parts;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use aquila_services::cluster::{Profile, Role, Versions};
use aquila_services::status::{Admin, GENERATION, Image, Report, Upgrade, Wish};
use aquila_services::supervisor::Options;
use libtest_mimic::{Arguments, Failed, Trial};

use parts::etcd::Etcd;
use parts::plane::{Plane, options};
use parts::{bases, refusals, simulated};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|argument| argument == "process") {
        return parts::process(&arguments);
    }
    let arguments = Arguments::from_args();
    let test = |name: &str, test: fn() -> Result<(), Failed>| Trial::test(name, test);
    // Where etcd may not be installed the test is there, and reported as left out.
    let with_etcd = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(name, test).with_ignored_flag(Etcd::program().is_none())
    };
    let tests = vec![
        test("i72_i79_a_base_of_our_own_is_one", bases::check_embedded),
        with_etcd("i72_i79_etcd_is_a_base", bases::check_etcd),
        test("i72_a_base_that_was_cut_short_is_whole", bases::check_log),
        test("m701_a_peer_without_a_certificate_is_refused", refusals::check_tls),
        test("m701_messages_that_are_none_are_counted", refusals::check_messages),
        test("m701_a_base_of_another_version_is_refused", refusals::check_layout),
        with_etcd("m701_etcd_of_another_version_is_refused", refusals::check_etcd),
        test("slow_m801_m615_i79_a_mini_clique_boots_over_ipv6_whoever_is_killed", || {
            boot(None, Versions::V6, 1, 1)
        }),
        with_etcd("slow_m701_i79_a_mini_clique_boots_around_etcd", || {
            boot(Some(Etcd::start()?), Versions::V4, 2, 1)
        }),
        Trial::test("soak_twenty_rounds", || boot(None, Versions::Both, 3, 20))
            .with_ignored_flag(true),
    ];
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// How long all may take to be well again. It takes half a minute; several times that where the machine does other
/// things besides, as processes that were killed are started again and wait the longer for one another.
const PATIENCE: Duration = Duration::from_secs(400);

/// Boots a mini Clique, kills processes in so many rounds, and looks at what chips hold.
fn boot(mut etcd: Option<Etcd>, versions: Versions, seed: u64, rounds: u32) -> Result<(), Failed> {
    let address = etcd.as_ref().map(Etcd::address);
    let folder = folder()?;
    let options = Options { etcd: address, versions, ..options(folder.path(), Profile::Mini, 4)? };
    let mut plane = Plane::of(folder, options, seed)?;
    // From power-on, while it boots: each application, leader or not; the base; an agent.
    plane.wait(Duration::from_secs(60), "the first TiN is ready", |report| report.ready() > 0)?;
    for round in 0..rounds {
        for role in [Role::RoutingEngine, Role::FlowManager, Role::FrontEnd, Role::InterBlock] {
            plane.kill_any(role)?;
        }
        match &mut etcd {
            Some(etcd) => etcd.kill_and_start_again()?,
            None => plane.kill((Role::Base, 0))?,
        }
        plane.kill_any(Role::Agent)?;
        if round == 0 {
            plane.kill((Role::Datacenter, 0))?;
        }
        plane.settle(PATIENCE)?;
        // And when all is well: those that lead.
        plane.kill_leader(Role::FrontEnd)?;
        plane.kill_leader(Role::RoutingEngine)?;
        plane.settle(PATIENCE)?;
    }
    upgrade(&mut plane)?;
    operate(&mut plane)?;
    let expected = simulated::registers(&plane.viewer.cluster);
    plane.check_registers(&expected)?;
    plane.stop()
}

/// M617: all TiNs get another version of the firmware, while a front end and an agent are killed; another generation's is
/// refused. What chips hold is as before.
fn upgrade(plane: &mut Plane) -> Result<(), Failed> {
    if plane.upgrade(&Image::new(3, GENERATION + 1), 8).is_ok() {
        return Err("an image of another generation was taken".into());
    }
    let number = plane.upgrade(&Image::new(2, GENERATION), 30)?;
    let of = |report: &Report| report.upgrade.clone().filter(|upgrade| upgrade.number == number);
    plane.wait(Duration::from_secs(60), "the first TiN runs it", |report| {
        of(report).is_some_and(|upgrade| upgrade.done > 0)
    })?;
    plane.kill_leader(Role::FrontEnd)?;
    plane.kill_any(Role::Agent)?;
    let report = plane.wait(Duration::from_secs(300), "all run it", |report| {
        of(report).is_some_and(|upgrade| upgrade.is_over(report.tins))
    })?;
    let is_right = |upgrade: &Upgrade| upgrade.failed.is_empty();
    if !of(&report).as_ref().is_some_and(is_right) {
        return Err(format!("{:?}", report.upgrade).into());
    }
    let report = plane.settle(PATIENCE)?;
    let others = report.sessions.iter().filter(|session| session.firmware != 2).count();
    if others > 0 || report.count(Role::Agent, "restarts") == 0 {
        return Err(format!("{others} TiNs run something else").into());
    }
    Ok(())
}

/// M730, M616: what an operator sets is so also after the front end that took it is gone; what is set back leaves nothing.
fn operate(plane: &mut Plane) -> Result<(), Failed> {
    for nothing in [Wish::Tin(68, Admin::Off), Wish::Link(u32::MAX, Admin::Off)] {
        let refused = plane.set(nothing).err().ok_or("what is not there was set")?;
        let text = refused.message().unwrap_or_default().to_owned();
        if !text.contains("expected 0 to") {
            return Err(format!("{nothing:?}: {text}").into());
        }
    }
    let sidebands = Wish::Sidebands(40, 0b10);
    for wish in [Wish::Tin(21, Admin::Drained), Wish::Link(7, Admin::Drained), sidebands] {
        plane.set(wish)?;
    }
    plane.kill_leader(Role::FrontEnd)?;
    let report = plane.settle(PATIENCE)?;
    let drained = report.wanted.iter().filter(|wanted| wanted.is_drained).count();
    if (report.wanted.len(), drained) != (3, 2) {
        return Err(format!("{:?}", report.wanted).into());
    }
    let away = Wish::Sidebands(40, 0);
    for wish in [Wish::Tin(21, Admin::InService), Wish::Link(7, Admin::InService), away] {
        plane.set(wish)?;
    }
    plane.settle(PATIENCE).map(drop)
}

/// Where a test keeps its files.
fn folder() -> Result<tempfile::TempDir, Failed> {
    Ok(tempfile::TempDir::with_prefix("rackloom-services-")?)
}

/// This program.
fn own() -> Result<PathBuf, Failed> {
    Ok(std::env::current_exe()?)
}
