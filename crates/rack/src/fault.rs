//! What breaks, when, and for how long.

use std::fmt;

use kernel::Time;

use crate::{NodeId, Problem};

/// A part of the rack that can fail. Which of them a fabric has, it says itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Component {
    /// A node with its NIC.
    Node(NodeId),
    /// The link between a node and its leaf switch, both directions.
    NodeLink(NodeId),
    /// A leaf switch.
    Leaf(u32),
    /// A spine switch.
    Spine(u32),
    /// One link between a leaf and a spine, both directions; `link` tells parallel links apart.
    LeafSpine {
        /// The leaf switch.
        leaf: u32,
        /// The spine switch.
        spine: u32,
        /// Which of the parallel links between the two.
        link: u32,
    },
    /// A switch of a network whose switches have no tiers, or of any tier: counted over all.
    Switch(u32),
    /// One link between any two vertices of a topology, both directions.
    Link {
        /// One end: hosts count from 0, switches follow.
        a: u32,
        /// The other end.
        b: u32,
        /// Which of the parallel links between the two.
        link: u32,
    },
    /// A piece of equipment that takes others with it.
    Group(Group, u32),
}

/// Equipment that takes with it what is in it or runs through it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// An optical module, with its links.
    Module,
    /// A cable of several links.
    Cable,
    /// A bundle of cables.
    Bundle,
    /// A line card, with its switches.
    Card,
    /// A chassis, with its cards.
    Chassis,
    /// A rack, with its chassis.
    Rack,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Module => "optical module",
            Self::Cable => "cable",
            Self::Bundle => "bundle",
            Self::Card => "line card",
            Self::Chassis => "chassis",
            Self::Rack => "rack",
        })
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "{node}"),
            Self::NodeLink(node) => write!(f, "link of {node}"),
            Self::Leaf(leaf) => write!(f, "leaf {leaf}"),
            Self::Spine(spine) => write!(f, "spine {spine}"),
            Self::LeafSpine { leaf, spine, link } => {
                write!(f, "link {link} of leaf {leaf} to spine {spine}")
            }
            Self::Switch(switch) => write!(f, "switch {switch}"),
            Self::Group(group, index) => write!(f, "{group} {index}"),
            Self::Link { a, b, link } => write!(f, "link {link} of vertex {a} to vertex {b}"),
        }
    }
}

/// One failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What fails.
    pub component: Component,
    /// When it fails.
    pub at: Time,
    /// When it works again; `None`: never in this run.
    pub until: Option<Time>,
}

impl Fault {
    /// Asks of each fault whether its component can fail here.
    ///
    /// # Errors
    /// Each that cannot, and why: its key is the fault's index.
    pub fn check_all<P>(
        faults: &[Self],
        check: impl Fn(Component) -> Result<P, Problem>,
    ) -> Result<(), Vec<Problem>> {
        let wrong = |(index, fault): (usize, &Self)| {
            check(fault.component).err().map(|problem| problem.below(&index.to_string()))
        };
        let problems: Vec<_> = faults.iter().enumerate().filter_map(wrong).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Refuses all of them.
    ///
    /// # Errors
    /// One for each: its key is the fault's index, its message the component and `why` it cannot fail.
    pub fn refuse_all(faults: &[Self], why: &str) -> Result<(), Vec<Problem>> {
        Self::check_all(faults, |component| {
            Err::<(), _>(Problem::new("", format!("{component} {why}")))
        })
    }
}
