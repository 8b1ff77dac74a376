//! `rackloom aquila links`: the links of a Clique, and what operators have set of them.

use aquila_services::cluster::Cluster;
use aquila_services::status::{self, Admin, Wanted, Wish};
use report::{Cell, Column, ResultsTable, Unit};
use serde_json::Value;

use super::super::DONE;
use super::control::{runtime, viewer};
use crate::args::LinksArguments;
use crate::engine::EXIT_INPUT;
use crate::output::Output;

/// Lists them.
pub fn links(arguments: &LinksArguments, output: &mut Output) -> u8 {
    let viewer = match viewer(&arguments.dir, output) {
        Ok(viewer) => viewer,
        Err(code) => return code,
    };
    let tins = viewer.cluster.profile.shape().tins();
    if let Some(tin) = arguments.tin.filter(|&tin| tin >= tins) {
        output
            .error(&format!("--tin {tin}: expected a TiN of this Clique, from 0 to {}", tins - 1));
        return EXIT_INPUT;
    }
    let runtime = runtime();
    let report = runtime.block_on(viewer.report());
    runtime.shutdown_background();
    // What is set is in the base, of which a control plane that does not run says nothing.
    let is_there = report.processes.iter().any(|process| process.pid.is_some());
    let wanted = is_there.then_some(&report.wanted[..]);
    if !is_there {
        output.note("the control plane does not run: what is set of links is not known");
    }
    let table = table(&viewer.cluster, wanted, arguments.tin);
    output.paged(|style| table.to_text(style), || table.to_json());
    DONE
}

/// All links, or those of one TiN; with what is set of them, where that is known.
fn table(cluster: &Cluster, wanted: Option<&[Wanted]>, of: Option<u16>) -> ResultsTable {
    let configuration = cluster.configuration();
    let topology = &configuration.topology;
    let columns = [
        ("link", "Link"),
        ("tin", "TiN"),
        ("port", "Port"),
        ("far_tin", "Far TiN"),
        ("far_port", "Far port"),
        ("joins", "Joins"),
        ("delay_seconds", "Delay"),
        ("state", "State"),
    ];
    let columns = columns.map(|(key, title)| Column::new(key, title));
    let mut table = ResultsTable::new(columns.to_vec());
    for (number, link) in (0..).zip(topology.links()) {
        let (near, far) = match of {
            Some(tin) if link.high.tin == tin => (link.high, link.low),
            _ => (link.low, link.high),
        };
        if of.is_some_and(|tin| near.tin != tin) {
            continue;
        }
        let delay = topology.delay(near.tin, near.port);
        table.push(vec![
            Cell::new(number, Unit::Count),
            Cell::new(near.tin, Unit::Count),
            Cell::new(near.port, Unit::Count),
            Cell::new(far.tin, Unit::Count),
            Cell::new(far.port, Unit::Count),
            Cell::text(if link.is_global { "two pods" } else { "TiNs of a pod" }),
            Cell::new(delay.as_seconds(), Unit::Seconds),
            match wanted {
                Some(wanted) => Cell::text(state(wanted, number)),
                None => Cell::new(Value::Null, Unit::Count),
            },
        ]);
    }
    table
}

/// What operators have set of a link, with what is not yet so.
fn state(wanted: &[Wanted], link: u32) -> String {
    let set = wanted.iter().find_map(|wanted| match wanted.wish {
        Wish::Link(number, admin) if number == link => Some((admin, wanted.is_drained)),
        _ => None,
    });
    match set {
        Some((Admin::Drained, false)) => {
            format!("to be {}, not yet", status::admin(Admin::Drained))
        }
        Some((admin, _)) => status::admin(admin).to_owned(),
        None => status::admin(Admin::InService).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reproductions::aquila::boot::{Profile, Versions};

    use super::*;

    fn tiny() -> Cluster {
        Cluster {
            software: String::new(),
            profile: Profile::Tiny,
            connected: vec![0],
            etcd: None,
            tls: None,
            json_logs: false,
            versions: Versions::default(),
            times: aquila_services::cluster::Times::default(),
            processes: Vec::new(),
        }
    }

    fn rows(wanted: Option<&[Wanted]>, of: Option<u16>) -> Vec<Value> {
        let Value::Array(rows) = table(&tiny(), wanted, of).to_json() else { panic!("no list") };
        rows
    }

    #[test]
    fn each_port_of_a_tin_has_its_link() {
        let shape = tiny().profile.shape();
        let all: u16 = shape.tins();
        for tin in 0..all {
            let rows = rows(Some(&[]), Some(tin));
            assert!(rows.iter().all(|row| row["tin"] == tin && row["far_tin"] != tin));
            let ports: BTreeSet<u64> = rows.iter().filter_map(|row| row["port"].as_u64()).collect();
            assert_eq!(ports, (0..u64::from(shape.external_ports())).collect());
        }
        // Each has two ends.
        let ends = usize::from(all) * usize::from(shape.external_ports());
        assert_eq!(rows(Some(&[]), None).len(), ends / 2);
    }

    #[test]
    fn what_is_set_of_a_link_is_shown() {
        let set = |admin, is_drained| Wanted { wish: Wish::Link(3, admin), is_drained };
        let shown = |wanted| rows(Some(&[wanted]), None)[3]["state"].as_str().unwrap().to_owned();
        assert_eq!(shown(set(Admin::Drained, false)), "to be drained, not yet");
        assert_eq!(shown(set(Admin::Drained, true)), "drained");
        assert_eq!(shown(set(Admin::Off, false)), "off");
        assert_eq!(shown(set(Admin::InService, false)), "in service");
        let tin = Wanted { wish: Wish::Tin(3, Admin::Off), is_drained: false };
        assert_eq!(shown(tin), "in service");
        assert!(rows(None, None).iter().all(|row| row["state"].is_null()), "nothing runs");
    }
}
