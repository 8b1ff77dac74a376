//! `rackloom aquila upgrade`: another version of the firmware for a control plane that runs.

use std::time::Duration;

use aquila_services::status::{Image, NotTaken, Upgrade, Viewer};

use super::super::DONE;
use super::control::{runtime, viewer};
use crate::args::UpgradeArguments;
use crate::engine::{EXIT_BROKEN, EXIT_INPUT, EXIT_INTERRUPTED};
use crate::interrupt;
use crate::output::Output;

/// How often it is looked how far it is.
const LOOK: Duration = Duration::from_millis(500);

/// Asks for it, and tells how far it is until nothing more comes of it.
pub fn upgrade(arguments: &UpgradeArguments, output: &mut Output) -> u8 {
    let viewer = match viewer(&arguments.dir, output) {
        Ok(viewer) => viewer,
        Err(code) => return code,
    };
    let runtime = runtime();
    let image = Image::new(arguments.to, arguments.generation);
    let number = match runtime.block_on(viewer.upgrade(&image, arguments.at_once)) {
        Ok(number) => number,
        Err(why) => {
            output.error(&format!("the upgrade has not begun: {why}"));
            let is_ours = matches!(why, NotTaken::Refused(_));
            return if is_ours { EXIT_INPUT } else { EXIT_BROKEN };
        }
    };
    let ended = runtime.block_on(watch(&viewer, number, output));
    runtime.shutdown_background();
    let Some((upgrade, tins)) = ended else {
        output.note("it goes on without this command; rackloom aquila status says how far it is");
        return EXIT_INTERRUPTED;
    };
    let text = format!("{} of {tins} TiNs run version {}", upgrade.done, upgrade.version);
    output.result(|_| text, || serde_json::to_value(&upgrade).unwrap_or_default());
    let Some((tin, why)) = upgrade.failed.first_key_value() else { return DONE };
    output.error(&format!("it ended with TiN {tin}: {why}; what ran there goes on"));
    EXIT_BROKEN
}

/// Tells how far it is until nothing more comes of it; `None`: interrupted.
async fn watch(viewer: &Viewer, number: u32, output: &Output) -> Option<(Upgrade, u16)> {
    let mut told = None;
    loop {
        let report = viewer.report().await;
        let upgrade = report.upgrade.filter(|upgrade| upgrade.number == number);
        if let Some(upgrade) = upgrade {
            let state = (upgrade.done, upgrade.sending.len(), upgrade.restarting.len());
            if told.replace(state) != Some(state) {
                let (done, sending, restarting) = state;
                output.note(&format!(
                    "{done} of {} TiNs done; images go to {sending}, {restarting} restart",
                    report.tins
                ));
            }
            if upgrade.is_over(report.tins) {
                return Some((upgrade, report.tins));
            }
        }
        if interrupt::is_asked() {
            return None;
        }
        tokio::time::sleep(LOOK).await;
    }
}
