//! `rackloom aquila set`: what an operator wants of a control plane that runs.

use std::time::Duration;

use aquila_services::cluster::Cluster;
use aquila_services::status::{self, Admin, NotTaken, Viewer, Wish};
use serde_json::json;

use super::super::DONE;
use super::control::{runtime, viewer};
use crate::args::{LinkName, SetArguments, SetHosts, SetState, SetWhat};
use crate::engine::{EXIT_BROKEN, EXIT_INPUT, EXIT_INTERRUPTED};
use crate::interrupt;
use crate::output::Output;

/// How often it is looked whether it is so.
const LOOK: Duration = Duration::from_millis(500);

/// Tells the controller, and waits until it is so.
pub fn set(arguments: &SetArguments, output: &mut Output) -> u8 {
    let viewer = match viewer(&arguments.dir, output) {
        Ok(viewer) => viewer,
        Err(code) => return code,
    };
    let (wish, name) = match wish(&arguments.what, &viewer.cluster) {
        Ok(wish) => wish,
        Err(why) => {
            output.error(&why);
            return EXIT_INPUT;
        }
    };
    let runtime = runtime();
    let taken = runtime.block_on(viewer.want(wish));
    if let Err(why) = taken {
        output.error(&format!("nothing was set: {why}"));
        return if matches!(why, NotTaken::Refused(_)) { EXIT_INPUT } else { EXIT_BROKEN };
    }
    let is_so = runtime.block_on(wait(&viewer, wish));
    runtime.shutdown_background();
    if !is_so {
        output.note("it is set, and not yet so; rackloom aquila status says when it is");
        return EXIT_INTERRUPTED;
    }
    let text = format!("{name} {}", meaning(wish));
    output.result(|_| text, || json!(status::Wished::from(wish)));
    DONE
}

/// What is wanted, and what it is wanted of.
fn wish(what: &SetWhat, cluster: &Cluster) -> Result<(Wish, String), String> {
    let clique = cluster.configuration();
    let admin = |state: SetState| match state {
        SetState::InService => Admin::InService,
        SetState::Drained => Admin::Drained,
        SetState::Off => Admin::Off,
    };
    let (wish, name) = match *what {
        SetWhat::Tin { tin, state } => (Wish::Tin(tin, admin(state)), format!("TiN {tin}")),
        SetWhat::Link { link, state } => {
            let number = match link {
                LinkName::Number(number) => number,
                LinkName::End(tin, port) => {
                    let tins = clique.topology.shape().tins();
                    let link = (tin < tins).then(|| clique.topology.link(tin, port)).flatten();
                    link.ok_or_else(|| no_link(cluster, tin, port))?
                }
            };
            (Wish::Link(number, admin(state)), format!("link {number}"))
        }
        SetWhat::Sideband { tin, hosts } => {
            let (bits, name) = match hosts {
                SetHosts::None => (0b00, "neither host"),
                SetHosts::First => (0b01, "host 0"),
                SetHosts::Second => (0b10, "host 1"),
                SetHosts::Both => (0b11, "both hosts"),
            };
            (Wish::Sidebands(tin, bits), format!("{name} of TiN {tin}"))
        }
    };
    wish.check(&clique).map_err(|why| why.to_string())?;
    let ends = match wish {
        Wish::Link(number, _) => {
            let link = &clique.topology.links()[number as usize];
            let ((a, p), (b, q)) = ((link.low.tin, link.low.port), (link.high.tin, link.high.port));
            format!(", from port {p} of TiN {a} to port {q} of TiN {b},")
        }
        _ => String::new(),
    };
    Ok((wish, name + &ends))
}

fn no_link(cluster: &Cluster, tin: u16, port: u8) -> String {
    let shape = cluster.profile.shape();
    let (tins, ports) = (shape.tins() - 1, shape.external_ports() - 1);
    format!(
        "{tin}:{port}: no link ends there; expected a TiN from 0 to {tins}, a port from 0 to {ports}"
    )
}

fn meaning(wish: Wish) -> &'static str {
    match wish {
        Wish::Tin(_, Admin::InService) | Wish::Link(_, Admin::InService) => "is in service",
        Wish::Tin(_, Admin::Drained) | Wish::Link(_, Admin::Drained) => {
            "is drained: nothing passes it, and it may be taken out"
        }
        Wish::Tin(_, Admin::Off) | Wish::Link(_, Admin::Off) => "is taken for dead",
        Wish::Sidebands(_, 0b00 | 0b11) => "can be managed through the Clique",
        Wish::Sidebands(..) => "can be managed through the Clique, and no other",
    }
}

/// Waits until it is so; whether it is, as waiting may be interrupted.
async fn wait(viewer: &Viewer, wish: Wish) -> bool {
    loop {
        let report = viewer.report().await;
        if viewer.is_so(wish, &report).await.unwrap_or(false) {
            return true;
        }
        if interrupt::is_asked() {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
}
