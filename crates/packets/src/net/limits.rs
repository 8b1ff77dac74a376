//! The checked `queues` table as the integers that a port works with.

use kernel::Bytes;

use crate::config::{Deficit, FlowControl, Marking, Overflow, Pfc, Queues, Scheduling};
use crate::packet::PRIORITIES;

/// Denominator of alpha.
pub(crate) const ALPHA_ONE: u64 = 1024;

/// Marking with a probability that rises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedLimits {
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// Probability just below `max`, in 2⁻³².
    pub(crate) probability: u64,
}

/// Trimming.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrimLimits {
    pub(crate) header_buffer: u32,
    pub(crate) header: u16,
    pub(crate) ratio: u16,
    pub(crate) overflow: Overflow,
}

/// Pauses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseLimits {
    /// Bit `p`: priority `p` is never dropped but paused.
    pub(crate) lossless: u16,
    pub(crate) threshold: Threshold,
}

impl PauseLimits {
    /// Whether a priority is never dropped but paused.
    #[inline]
    pub(crate) fn is_lossless(self, priority: u8) -> bool {
        self.lossless >> priority & 1 == 1
    }
}

/// What a port and priority may hold before its sender is paused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threshold {
    /// So much, and resumed at `xon`.
    Fixed { xoff: u32, xon: u32 },
    /// `share` parts in `whole` of what is free, and resumed `gap` below.
    Free { share: u64, whole: u64, gap: u64 },
}

/// What a switch port goes by.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) port_buffer: u32,
    /// Shared memory of a switch, and alpha in 1/1024.
    pub(crate) shared: Option<(u64, u64)>,
    /// A packet that finds more is marked.
    pub(crate) step: Option<u32>,
    pub(crate) red: Option<RedLimits>,
    pub(crate) trim: Option<TrimLimits>,
    pub(crate) pause: Option<PauseLimits>,
    /// Bytes that a queue with a weight may send in a round, by priority; 0: strictly first.
    pub(crate) quanta: Option<[u32; PRIORITIES as usize]>,
    /// Whether a full output queue drops: not where credits or windows bound what comes in.
    pub(crate) drops: bool,
}

fn count(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

impl Threshold {
    fn new(pfc: &Pfc, mtu: Bytes) -> Self {
        let gap = Pfc::gap(mtu);
        match (pfc.xoff, pfc.xon) {
            (Bytes::ZERO, _) => {
                let (share, whole) = pfc.share();
                Self::Free { share, whole, gap: gap.get() }
            }
            (xoff, Bytes::ZERO) => {
                Self::Fixed { xoff: count(xoff), xon: count(xoff).saturating_sub(count(gap)) }
            }
            (xoff, xon) => Self::Fixed { xoff: count(xoff), xon: count(xon) },
        }
    }
}

impl Limits {
    pub(crate) fn new(queues: &Queues, mtu: Bytes) -> Self {
        let (step, red) = match &queues.marking {
            Marking::None => (None, None),
            Marking::Step(step) => (Some(count(step.threshold)), None),
            Marking::Red(red) => {
                let probability = (red.probability * (1u64 << 32) as f64) as u64;
                (None, Some(RedLimits { min: count(red.min), max: count(red.max), probability }))
            }
        };
        let trim = queues.trimming.as_ref().map(|trim| TrimLimits {
            header_buffer: count(trim.header_buffer),
            header: trim.header.get() as u16,
            ratio: trim.ratio.min(u32::from(u16::MAX)) as u16,
            overflow: trim.overflow,
        });
        let pause = match &queues.flow_control {
            FlowControl::Pfc(pfc) => Some(PauseLimits {
                lossless: pfc.priorities.iter().fold(0, |mask, &p| mask | 1 << p),
                threshold: Threshold::new(pfc, mtu),
            }),
            _ => None,
        };
        let quanta = match &queues.scheduling {
            Scheduling::Strict => None,
            Scheduling::Deficit(Deficit { weights }) => {
                let mut quanta = [0; PRIORITIES as usize];
                for (quantum, &weight) in quanta.iter_mut().zip(weights) {
                    *quantum = weight * count(mtu);
                }
                Some(quanta)
            }
        };
        let shared = (queues.shared_buffer > Bytes::ZERO)
            .then(|| (queues.shared_buffer.get(), (queues.alpha * ALPHA_ONE as f64) as u64));
        let bounded =
            matches!(queues.flow_control, FlowControl::Credit(_) | FlowControl::PerFlow(_));
        Self {
            port_buffer: count(queues.port_buffer),
            shared,
            step,
            red,
            trim,
            pause,
            quanta,
            drops: !bounded,
        }
    }
}
