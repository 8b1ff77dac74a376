//! The record of a rack: what its shards have seen, put together.
//!
//! The order is by slot, then by channel and sender, so it does not depend on the cut. Which sights are of one cell
//! follows from what its header says and from where it was last.

use std::collections::BTreeMap;

use rack::FlowId;
use rack::trace::{Covered, Hop, LineRecorder, Outcome, Place, Trace};

use super::{LINK_TYPE, Passage, Sight, What};
use crate::rack::Rack;
use crate::wire::Codec;

impl Rack {
    /// What was recorded since.
    pub(crate) fn recorded(&mut self) -> Trace {
        let (mut sights, mut is_full) = (Vec::new(), false);
        let mut lines: Option<LineRecorder> = None;
        for shard in self.shards.iter_mut() {
            let Some(recorder) = shard.recorder.take() else { continue };
            sights.extend(recorder.sights);
            is_full |= recorder.is_full;
            match &mut lines {
                Some(lines) => lines.join(recorder.lines),
                None => lines = Some(recorder.lines),
            }
        }
        sights.sort_by_key(order);
        let mut book = Book::new(self);
        sights.iter().for_each(|sight| book.enter(sight));
        let trace = book.close();
        let lines = lines.map(|lines| lines.close(|port| self.place(port)));
        Trace { is_full, lines: lines.unwrap_or_default(), ..trace }
    }

    /// A port: a channel of a node, or, behind those, the queue of a node for another.
    fn place(&self, port: u32) -> Place {
        let (nodes, channels) = (self.plan.config.nodes, self.plan.config.channels);
        let place = |from: u32, to: String| Place {
            port,
            link_type: LINK_TYPE,
            from: format!("node {from}"),
            to,
        };
        match port.checked_sub(nodes * channels) {
            Some(pair) => place(pair / nodes, format!("node {}", pair % nodes)),
            None if channels == 1 => place(port, "switches".into()),
            None => {
                let (node, channel) = (port / channels, port % channels);
                place(node, format!("switches (link {channel})"))
            }
        }
    }
}

/// By what sights are put in order: what became of a frame behind that it was sent.
fn order(sight: &Sight) -> (u64, bool, u32, u16, u64) {
    let Sight { slot, channel, frame, what } = sight;
    (*slot, matches!(what, What::Gone(..)), *channel, frame.from, frame.cell.word())
}

/// A cell on its way.
struct Way {
    number: u32,
    /// Its hops so far, as places in the list.
    hops: Vec<usize>,
    /// Who sent it last, and in which slot.
    from: u16,
    slot: u64,
    /// Where it is.
    at: u16,
}

/// The record in the making.
struct Book<'a> {
    rack: &'a Rack,
    /// `None`: cells are too short to have bytes.
    codec: Option<Codec>,
    /// By flow and cell.
    under_way: BTreeMap<(FlowId, u64), Vec<Way>>,
    /// By flow: how many of its cells were seen, and which of its bytes have left the source.
    flows: BTreeMap<FlowId, (u32, Covered)>,
    hops: Vec<Hop>,
}

impl<'a> Book<'a> {
    fn new(rack: &'a Rack) -> Self {
        Self {
            rack,
            codec: Codec::of(&rack.plan).ok(),
            under_way: BTreeMap::new(),
            flows: BTreeMap::new(),
            hops: Vec::new(),
        }
    }

    fn enter(&mut self, sight: &Sight) {
        let word = sight.frame.cell.word();
        match &sight.what {
            What::First(flow, passage, bytes) => {
                let hop = self.first(*flow, sight, passage, *bytes);
                let number = hop.packet;
                let hops = vec![self.add(hop)];
                let way = Way { number, hops, from: 0, slot: 0, at: 0 };
                self.goes_on(*flow, sight, way);
            }
            What::Second(flow, passage) => {
                let ways = self.under_way.entry((*flow, word)).or_default();
                // Of several copies the one that was sent last.
                let here = |way: &Way| way.at == sight.frame.from;
                let Some(at) = ways.iter().rposition(here) else { return };
                let mut way = ways.remove(at);
                let hop = self.second(*flow, sight, passage.as_ref(), &way);
                let place = self.add(hop);
                way.hops.push(place);
                self.goes_on(*flow, sight, way);
            }
            What::Gone(flow, why) => {
                let ways = self.under_way.entry((*flow, word)).or_default();
                let is_it = |way: &&mut Way| {
                    (way.from, way.at) == (sight.frame.from, sight.frame.to)
                        && way.slot == sight.slot
                };
                let Some(way) = ways.iter_mut().find(is_it) else { return };
                // Who sent it keeps a copy, and may send that.
                way.at = way.from;
                let last = *way.hops.last().expect("it was sent");
                self.hops[last].outcome = *why;
            }
        }
    }

    fn goes_on(&mut self, flow: FlowId, sight: &Sight, way: Way) {
        let (from, at, slot) = (sight.frame.from, sight.frame.to, sight.slot);
        let key = (flow, sight.frame.cell.word());
        self.under_way.entry(key).or_default().push(Way { from, at, slot, ..way });
    }

    fn add(&mut self, hop: Hop) -> usize {
        self.hops.push(hop);
        self.hops.len() - 1
    }

    fn first(
        &mut self,
        flow: FlowId,
        sight: &Sight,
        passage: &Passage,
        [offset, payload]: [u64; 2],
    ) -> Hop {
        let (count, covered) = self.flows.entry(flow).or_default();
        let packet = *count;
        *count += 1;
        let is_again = covered.add(offset, payload) < payload;
        let line = u32::from(sight.frame.from) * self.rack.plan.config.channels + sight.channel;
        let hop = self.hop(flow, sight, line, Some(passage));
        let header = self.header(sight, payload);
        Hop { packet, is_again, offset, payload: payload as u16, header, ..hop }
    }

    fn second(&mut self, flow: FlowId, sight: &Sight, passage: Option<&Passage>, way: &Way) -> Hop {
        let started = self.rack.plan.times().start_of(sight.slot);
        let before = &mut self.hops[*way.hops.last().expect("it was sent")];
        // What is lost may be sent again before it would have arrived (Appendix D).
        before.arrived = before.arrived.min(started);
        before.propagation = before.propagation.min(before.arrived - before.started);
        let Hop { is_again, offset, payload, arrived, .. } = *before;
        let config = &self.rack.plan.config;
        let [from, to] = [sight.frame.from, sight.frame.to].map(u32::from);
        let queue = config.nodes * config.channels + from * config.nodes + to;
        let hop = self.hop(flow, sight, queue, passage);
        let joined = passage.map_or(arrived, |passage| passage.joined);
        let header = self.header(sight, payload.into());
        let (packet, number) = (way.number, way.hops.len() as u16);
        Hop { packet, hop: number, is_again, offset, payload, joined, header, ..hop }
    }

    /// A hop without what the two kinds of hops have of their own.
    fn hop(&self, flow: FlowId, sight: &Sight, port: u32, passage: Option<&Passage>) -> Hop {
        let (plan, times) = (&self.rack.plan, self.rack.plan.times());
        let started = times.start_of(sight.slot);
        let bytes = plan.config.cell.get();
        let found = passage.map_or(0, |passage| passage.found);
        Hop {
            flow,
            packet: 0,
            hop: 0,
            cell: None,
            is_data: true,
            to_source: false,
            is_again: false,
            offset: 0,
            payload: 0,
            bytes: u16::try_from(bytes).unwrap_or(u16::MAX),
            place: port,
            is_last: u32::from(sight.frame.to) == sight.frame.cell.destination(),
            is_marked: false,
            is_trimmed: false,
            outcome: Outcome::Arrived,
            joined: passage.map_or(started, |passage| passage.joined),
            started,
            // The guard band is the cell's, too: nothing else goes in its slot.
            sent: started + times.slot,
            arrived: started + times.hop,
            propagation: plan.latency,
            own: passage.map_or(kernel::Span::ZERO, |passage| passage.own),
            others: passage.map_or(kernel::Span::ZERO, |passage| passage.others),
            found_bytes: u32::try_from(u64::from(found) * bytes).unwrap_or(u32::MAX),
            found_packets: found,
            beside: passage.map_or(Vec::new(), |passage| passage.beside.clone()),
            header: Vec::new(),
        }
    }

    /// The cell as it leaves, without so many bytes at its end.
    fn header(&self, sight: &Sight, payload: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(codec) = &self.codec {
            codec.encode(&sight.frame, None, &mut bytes);
            bytes.truncate(bytes.len().saturating_sub(payload as usize));
        }
        bytes
    }

    /// The record, in order, with the names of its ports.
    fn close(self) -> Trace {
        Trace::of_hops(self.hops, |port| self.rack.place(port))
    }
}
