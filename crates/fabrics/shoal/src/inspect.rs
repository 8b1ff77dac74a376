//! What an experiment may read while a rack runs; reading changes no result.

use rack::NodeId;

use crate::rack::Rack;

impl Rack {
    /// Cells queued at `node` for its next meetings with `peer`: the paper's Q (§3.3.2).
    ///
    /// # Panics
    /// If the two are the same node or one of them is not in the rack.
    #[must_use]
    pub fn queued(&self, node: NodeId, peer: NodeId) -> u32 {
        let nodes = self.plan.config.nodes;
        assert!(node != peer, "{node} has no queue for itself");
        assert!(node.get().max(peer.get()) < nodes, "{node} or {peer} in a rack of {nodes}");
        let shard = self.shards.get(self.shard_of(node.get()));
        shard.bank.queued_for(node.get(), peer.get())
    }
}
