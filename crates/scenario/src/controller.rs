//! Aquila's controller beside its fabric: neither knows that it stands in a scenario, and the fabric does not know it.

use std::sync::Arc;

use aquila::Plan;
use aquila::config::Control;

/// The plan with what the controller writes in its run, where it has one (`control = "sdn"`).
pub(crate) fn complete(plan: Plan, seed: u64) -> Plan {
    match plan.config.control {
        Control::Ideal => plan,
        Control::Sdn => {
            let journal = Some(Arc::new(aquila_control::beside::journal(&plan, seed)));
            Plan { journal, ..plan }
        }
    }
}
