//! Which tree each source takes next: all in turn (§3.2, claim M11).

use rack::NodeId;

/// The next tree of each source.
#[derive(Clone, Debug)]
pub struct Turns {
    trees: u8,
    next: Vec<u8>,
}

impl Turns {
    /// All sources begin with their first tree.
    #[must_use]
    pub fn new(nodes: u32, trees: u8) -> Self {
        Self { trees, next: vec![0; nodes as usize] }
    }

    /// The tree for the next broadcast of a source.
    pub fn take(&mut self, source: NodeId) -> u8 {
        let next = &mut self.next[source.index()];
        let tree = *next;
        *next = (tree + 1) % self.trees;
        tree
    }
}
