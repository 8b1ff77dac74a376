//! Routes by class of input port, as a controller writes them.
//!
//! Models: Aquila §4.2 (M724): all terminal ports have the same routes, all global ones have, and local ones
//! by the type of the hop that arrives: six classes of input ports. A flow names output ports as a set; what
//! must not go back where it came from is taken out when it is installed for a port ([`super::compute`]).

use super::{ROUTING_VCS, components};
use crate::topology::Shape;
use crate::turns::HopType;

/// Classes of input ports (§4.2).
pub const CLASSES: usize = 6;

/// A class of input ports, which have the same routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputClass {
    /// From an endpoint of the TiN.
    Terminal,
    /// From another pod.
    Global,
    /// From the pod, by the type of the hop that arrives.
    Local(HopType),
}

impl InputClass {
    /// All six.
    pub const ALL: [Self; CLASSES] = [
        Self::Terminal,
        Self::Global,
        Self::Local(HopType::OddDown),
        Self::Local(HopType::OddUp),
        Self::Local(HopType::EvenDown),
        Self::Local(HopType::EvenUp),
    ];

    /// Its number, below [`CLASSES`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Terminal => 0,
            Self::Global => 1,
            Self::Local(hop) => 2 + hop as usize,
        }
    }

    /// The routing channels on which cells can come in.
    #[must_use]
    pub const fn channels(self) -> std::ops::Range<u8> {
        match self {
            Self::Terminal => 0..1,
            // A cell crosses two global links, on channels 0 and 1.
            Self::Global => 0..2,
            Self::Local(_) => 0..ROUTING_VCS,
        }
    }
}

/// Where cells of a class, channel and destination may go: output ports, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// Ports on shortest ways.
    pub minimal: u64,
    /// Ports on other ways.
    pub others: u64,
}

impl Flow {
    /// Ports of either kind.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.minimal | self.others
    }

    /// The same without some ports.
    #[must_use]
    pub const fn without(&self, ports: u64) -> Self {
        Self { minimal: self.minimal & !ports, others: self.others & !ports }
    }
}

/// The flows of all switches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flows {
    shape: Shape,
    flows: Vec<Flow>,
}

impl Flows {
    /// No way anywhere.
    #[must_use]
    pub fn new(shape: &Shape) -> Self {
        let tins = usize::from(shape.tins());
        let each = CLASSES * usize::from(ROUTING_VCS) * usize::from(components(shape));
        Self { shape: *shape, flows: vec![Flow::default(); tins * each] }
    }

    /// How many of everything there are.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// A flow.
    ///
    /// # Panics
    /// If there is no such TiN or channel.
    #[must_use]
    pub fn get(&self, tin: u16, class: InputClass, rvc: u8, component: u16) -> Flow {
        self.flows[self.place(tin, class, rvc, component)]
    }

    /// Writes a flow.
    ///
    /// # Panics
    /// If there is no such TiN or channel.
    pub fn set(&mut self, tin: u16, class: InputClass, rvc: u8, component: u16, flow: Flow) {
        let place = self.place(tin, class, rvc, component);
        self.flows[place] = flow;
    }

    /// Takes all flows of a TiN out.
    ///
    /// # Panics
    /// If there is no such TiN.
    pub fn clear(&mut self, tin: u16) {
        let each = CLASSES * usize::from(ROUTING_VCS) * usize::from(components(&self.shape));
        let first = usize::from(tin) * each;
        self.flows[first..first + each].fill(Flow::default());
    }

    /// All flows of a TiN, by class, channel and component.
    ///
    /// # Panics
    /// If there is no such TiN.
    #[must_use]
    pub fn of(&self, tin: u16) -> &[Flow] {
        let each = CLASSES * usize::from(ROUTING_VCS) * usize::from(components(&self.shape));
        let first = usize::from(tin) * each;
        &self.flows[first..first + each]
    }

    fn place(&self, tin: u16, class: InputClass, rvc: u8, component: u16) -> usize {
        let class = usize::from(tin) * CLASSES + class.index();
        let channel = class * usize::from(ROUTING_VCS) + usize::from(rvc);
        channel * usize::from(components(&self.shape)) + usize::from(component)
    }
}
