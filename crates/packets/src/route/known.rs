//! A cache of routing tables, by what of the network works: all parts of a network need the same table at the
//! same instant.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Live, Tables};
use crate::config::Plan;

/// States of a network whose tables are kept: parts are never far from each other (our choice).
const KEPT: usize = 3;

/// The last tables built.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Vec<(Live, Arc<Tables>)>>);

impl Known {
    /// The tables for what works: whoever asks first waits for them.
    pub(crate) fn tables(&self, plan: &Plan, live: &Live) -> Arc<Tables> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tables)) = kept.iter().find(|(other, _)| other == live) {
            return Arc::clone(tables);
        }
        let tables = Arc::new(Tables::for_routing(&plan.topology, live, plan.config.routing));
        kept.insert(0, (live.clone(), Arc::clone(&tables)));
        kept.truncate(KEPT);
        tables
    }
}
