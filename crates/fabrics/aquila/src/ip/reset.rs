//! A TiN as it is when it begins, and when it comes back after it has died (M922).

use std::collections::VecDeque;

use super::clearing::Budget;
use super::egress::Egress;
use super::ingress::{Ingress, Outgoing};
use super::unsolicited::Unsolicited;
use super::{Engine, GROUPS, Group, Loss, NEVER, Settings, Tin};
use crate::link::classes::Half;
use crate::switch::Wishes;

impl Tin {
    /// An idle one.
    pub(super) fn new(id: u16, settings: &Settings) -> Self {
        let group = || Group {
            budget: Budget::new(settings),
            line_free: 0,
            leaving: VecDeque::new(),
            turn: super::Turn::default(),
            stalled: [false; 2],
        };
        Self {
            id,
            ingress: Ingress::default(),
            outgoing: Outgoing::default(),
            queues: Default::default(),
            groups: [group(), group(), group()],
            egress: Egress::default(),
            unsolicited: Unsolicited::default(),
            armed: NEVER,
            bytes_at: NEVER,
        }
    }
}

impl Engine {
    /// A TiN has died: nothing is left of what it had. Counts of its places go on, so that nothing is taken for
    /// another's when it is back.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn reset(&mut self, tin: u16, wishes: &mut Wishes) {
        let place = self.places[usize::from(tin)] as usize;
        let state = &mut self.tins[place];
        for group in 0..GROUPS {
            for half in [Half::LowLatency, Half::Bulk] {
                state.stall(group, half, false, wishes);
            }
        }
        let (ingress, egress) = (state.ingress.clear_all(), state.egress.clear_all());
        let lost = [ingress, egress, state.unsolicited.clear_all()].concat();
        let (ingress, egress) =
            (std::mem::take(&mut state.ingress), std::mem::take(&mut state.egress));
        let unsolicited = std::mem::take(&mut state.unsolicited);
        *state = Tin { ingress, egress, unsolicited, ..Tin::new(tin, &self.settings) };
        lost.into_iter().for_each(|packet| self.lose(tin, packet, Loss::Died));
    }
}
