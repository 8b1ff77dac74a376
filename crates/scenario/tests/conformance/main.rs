//! What every fabric has to hold, with every transport: one test for each fabric, transport and property, over
//! the registry. A new fabric has them for nothing:
//!
//!     cargo test -p rackloom-scenario --test conformance -- shoal
//!
//! Each run is held against the books by its driver besides: flows end once, bytes are conserved, nothing is
//! faster than its ideal or goes back in time.

mod loopback;
mod properties;
#[path = "../racks/mod.rs"]
mod racks;

use libtest_mimic::{Arguments, Trial};
use scenario::Registry;

fn main() {
    let arguments = Arguments::from_args();
    let registry = Registry::standard();
    let racks = racks::all(&registry);
    let mut trials = Vec::new();
    for (property, holds) in properties::ALL {
        for rack in &racks {
            let rack = rack.clone();
            let is_ignored = !properties::applies(property, &rack, &registry);
            let trial = Trial::test(format!("{}::{property}", rack.name), move || {
                holds(&rack, &registry).map_err(Into::into)
            });
            trials.push(trial.with_ignored_flag(is_ignored));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
