//! The same Clique in simulated time: all instances around one base, chips that answer at once.

use std::sync::Arc;

use aquila::tables::Condition;
use aquila::tables::compute::compute;
use aquila_control::apps::constellation::{Constellation, Outside};
use aquila_control::apps::election::Application;
use aquila_control::apps::front_end::Settings;
use aquila_control::apps::inter_block::Message;
use aquila_control::apps::session::{Over, Session};
use aquila_control::expand::tables;
use aquila_control::flash::Flash;
use aquila_control::memory::Memory;
use aquila_control::registers::file::RegisterFile;
use aquila_control::rpc::Agent;
use aquila_services::cluster::Cluster;
use aquila_services::process::outside;
use kernel::{Span, Time};

/// What chips hold when nothing is left to do.
pub fn registers(cluster: &Cluster) -> Vec<RegisterFile> {
    let clique = cluster.configuration();
    let (topology, tins) = (clique.topology.clone(), clique.topology.shape().tins());
    let mut now = Time::ZERO;
    let mut all = Constellation::new(now, Arc::clone(&clique), Settings::default());
    let mut files = vec![RegisterFile::new(); usize::from(tins)];
    let mut agents: Vec<Agent> =
        files.iter().map(|_| Agent::new(&Memory::default()).expect("room for one")).collect();
    // Of firmware nobody says anything here.
    let mut flash = Flash::default();
    let mut opened = None;
    let mut quiet = 0;
    while quiet < 500 {
        now += Span::from_us(20_000);
        all.tick(now);
        quiet += 1;
        loop {
            while !all.messages().is_empty() {
                all.deliver(now, 0);
            }
            let outside = all.outside();
            if outside.is_empty() {
                break;
            }
            for outside in outside {
                let Outside::Request(instance, request) = outside else { continue };
                quiet = 0;
                let (tin, at) = (request.tin, usize::from(request.tin));
                let answer = agents[at]
                    .receive(now, &mut files[at], &mut flash, &request.bytes)
                    .expect("a request");
                let answer = Session::Answer { tin, bytes: answer.to_vec() };
                all.session(now, instance, answer);
            }
        }
        let leader = all.leader(Application::FrontEnd).map(|(instance, _)| instance);
        if let Some(instance) = leader.filter(|_| opened != leader) {
            opened = leader;
            for tin in 0..tins {
                all.session(
                    now,
                    instance,
                    Session::Up { tin, over: Over::Tcp, boot: 1, firmware: 1 },
                );
            }
        }
        let members = cluster.connected.iter().map(|&tin| (tin, 1)).collect::<Vec<_>>();
        for (shard, prefix) in
            (0..4).flat_map(|shard| outside(cluster.versions).map(move |p| (shard, p)))
        {
            let members = members.clone();
            all.hear(now, &Message::Reach { shard, version: 1, prefix, members }.encode());
        }
    }
    assert!(all.routing_engine().is_some_and(|engine| engine.is_settled()));
    // And that these are right is not said by the same program.
    let expected = compute(&topology, &clique.turns, &Condition::healthy(&topology));
    assert!(tables(topology.shape(), &files).expect("tables") == expected);
    files
}
