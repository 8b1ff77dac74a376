//! `trace.parquet`: one row a hop of a packet, by flow, packet and hop.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringDictionaryBuilder, UInt64Builder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, UInt16Array, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field};
use rack::trace::{Hop, Trace};

use super::Provenance;
use super::cells;
use super::columns::{Column, ColumnWriter};
use crate::files::{AtomicFile, FileError};

/// Rows gathered before they are handed to the encoder. Our choice.
const BATCH_ROWS: usize = 8192;

/// Writes the record of a run to `path`, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_trace(path: &Path, trace: &Trace, origin: &Provenance) -> Result<(), FileError> {
    let file = AtomicFile::create(path)?;
    write(file.handle()?, trace, origin).map_err(|source| FileError::new(path, source))?;
    file.finish()
}

fn write(out: std::fs::File, trace: &Trace, origin: &Provenance) -> io::Result<()> {
    // Records without cells are as they always were.
    let has_cells = trace.hops.iter().any(|hop| hop.cell.is_some());
    let mut columns = columns();
    if has_cells {
        columns.extend(cells::columns());
    }
    let arrays = |hops: &[Hop]| match has_cells {
        true => [arrays(trace, hops), cells::arrays(hops)].concat(),
        false => arrays(trace, hops),
    };
    let mut writer = ColumnWriter::new(out, &columns, origin)?;
    if trace.hops.is_empty() {
        writer.write(arrays(&[]))?;
    }
    for hops in trace.hops.chunks(BATCH_ROWS) {
        writer.write(arrays(hops))?;
    }
    writer.finish()
}

fn words<'a>(words: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int8Type>::new();
    words.for_each(|word| builder.append_value(word));
    Arc::new(builder.finish())
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    names.for_each(|name| builder.append_value(name));
    Arc::new(builder.finish())
}

fn lists<'a>(rows: impl Iterator<Item = Vec<Option<u64>>> + 'a) -> ArrayRef {
    let mut builder = ListBuilder::new(UInt64Builder::new());
    for row in rows {
        builder.append_value(row);
    }
    Arc::new(builder.finish())
}

/// The columns of some rows, in the order of [`columns`].
fn arrays(trace: &Trace, hops: &[Hop]) -> Vec<ArrayRef> {
    let long = |value: fn(&Hop) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(hops.iter().map(value)))
    };
    let int = |value: fn(&Hop) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(hops.iter().map(value)))
    };
    let short = |value: fn(&Hop) -> u16| -> ArrayRef {
        Arc::new(UInt16Array::from_iter_values(hops.iter().map(value)))
    };
    let truth = |value: fn(&Hop) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(hops.iter().map(|hop| Some(value(hop)))))
    };
    let place = |hop: &Hop| &trace.places[hop.place as usize];
    let beside = |value: fn(&(Option<rack::FlowId>, u64)) -> Option<u64>| {
        lists(hops.iter().map(move |hop| hop.beside.iter().map(value).collect()))
    };
    vec![
        long(|hop| hop.flow.get()),
        int(|hop| hop.packet),
        short(|hop| hop.hop),
        truth(|hop| hop.is_data),
        truth(|hop| hop.to_source),
        truth(|hop| hop.is_again),
        long(|hop| hop.offset),
        short(|hop| hop.payload),
        short(|hop| hop.bytes),
        Arc::new(UInt32Array::from_iter_values(hops.iter().map(|hop| place(hop).port))),
        Arc::new(UInt16Array::from_iter_values(hops.iter().map(|hop| place(hop).link_type))),
        names(hops.iter().map(|hop| place(hop).from.as_str())),
        names(hops.iter().map(|hop| place(hop).to.as_str())),
        truth(|hop| hop.is_last),
        words(hops.iter().map(|hop| hop.outcome.as_str())),
        long(|hop| hop.joined.as_ps()),
        long(|hop| hop.started.as_ps()),
        long(|hop| hop.sent.as_ps()),
        long(|hop| hop.arrived.as_ps()),
        long(|hop| hop.propagation.as_ps()),
        long(|hop| hop.own.as_ps()),
        long(|hop| hop.others.as_ps()),
        long(|hop| hop.held().as_ps()),
        int(|hop| hop.found_bytes),
        int(|hop| hop.found_packets),
        truth(|hop| hop.is_marked),
        truth(|hop| hop.is_trimmed),
        beside(|&(flow, _)| flow.map(rack::FlowId::get)),
        beside(|&(_, bytes)| Some(bytes)),
        Arc::new(BinaryArray::from_iter_values(hops.iter().map(|hop| &hop.header))),
    ]
}

/// The columns, with what they are.
fn columns() -> Vec<Column> {
    use DataType::{Boolean, UInt16, UInt32, UInt64};
    let word = || DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let name = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let list = || DataType::List(Arc::new(Field::new_list_field(UInt64, true)));
    [
        ("flow_id", UInt64, "", "Number of the flow"),
        (
            "packet",
            UInt32,
            "",
            "Number of the packet among the flow's, in both directions, as they left their hosts; one \
             that is sent again is another",
        ),
        ("hop", UInt16, "", "Hop of the packet, from 0"),
        ("data", Boolean, "", "Whether it carries the flow's bytes, or did before it was trimmed"),
        ("to_source", Boolean, "", "Whether it goes to the flow's source, as acknowledgments do"),
        ("retransmission", Boolean, "", "Whether some of its bytes have left the source before"),
        ("offset_bytes", UInt64, "bytes", "Which byte of the flow is the first in it, of data"),
        ("payload_bytes", UInt16, "bytes", "Application bytes in it as it leaves"),
        ("wire_bytes", UInt16, "bytes", "Its size on the wire as it leaves, headers included"),
        ("port", UInt32, "", "Number of the output port in the network"),
        (
            "link_type",
            UInt16,
            "",
            "What goes on its line, by the number of captures: 1 Ethernet, from 147 on a fabric's cells",
        ),
        ("from", name(), "", "Whose port it is"),
        ("to", name(), "", "Who is at the other end of its line"),
        ("last", Boolean, "", "Whether it leads to the host that the packet is for"),
        (
            "outcome",
            word(),
            "",
            "arrived; or not: no_room, no_route, dead_link, lost (or damaged), refused; or absorbed, by a switch \
             that it was for",
        ),
        (
            "joined_ps",
            UInt64,
            "ps",
            "Since when it waits: joined the queue; of what leaves the flow's source: the flow's packet before \
             it was sent, or the flow began",
        ),
        ("started_ps", UInt64, "ps", "When its first bit went on the line, or it was dropped"),
        ("sent_ps", UInt64, "ps", "When its last bit was on the line"),
        ("arrived_ps", UInt64, "ps", "When the other end could act on it"),
        ("propagation_ps", UInt64, "ps", "Cable and latency of the other end, of that time"),
        ("behind_own_ps", UInt64, "ps", "Of its wait, the line carried the same flow"),
        ("behind_others_ps", UInt64, "ps", "Of its wait, the line carried something else"),
        ("held_ps", UInt64, "ps", "Of its wait, the line was idle"),
        ("found_bytes", UInt32, "bytes", "What waited at the port when it joined the queue"),
        ("found_packets", UInt32, "", "How many packets waited there"),
        ("marked", Boolean, "", "Whether it has an ECN mark as it leaves"),
        ("trimmed", Boolean, "", "Whether its payload was cut off here or before"),
        (
            "beside_flows",
            list(),
            "",
            "Other flows that the line carried while it waited, at most eight, those with most bytes first; null: \
             of no flow",
        ),
        ("beside_bytes", list(), "bytes", "How much of each of them, on the wire"),
        ("header", DataType::Binary, "", "Its frame as it leaves, its payload cut off"),
    ]
    .into_iter()
    .map(Column::filled)
    .collect()
}

#[cfg(test)]
mod tests {
    use kernel::{Span, Time};
    use proptest::prelude::*;
    use rack::FlowId;
    use rack::trace::{CellHop, Outcome, Place, Purpose};

    use super::*;
    use crate::parquet::{TraceIndex, read_trace};

    /// Hops of any kind; every field is another number.
    fn hops() -> impl Strategy<Value = Vec<Hop>> {
        let hop = (any::<[u16; 4]>(), any::<[bool; 6]>(), 0usize..7, 0u64..1 << 40, 0u32..3);
        let hop = hop.prop_map(|([a, b, c, d], bits, outcome, at, place)| {
            let time = |later: u64| Time::from_ps(at + later);
            let cell = CellHop {
                number: b.into(),
                purpose: Purpose::ALL[usize::from(c % 4)],
                kind: ["RTS", "DATA"][usize::from(c / 4 % 2)].into(),
                vc: d as u8,
                fifo: Span::from_ps(a.into()),
                room: Span::from_ps(b.into()),
                crossbar: Span::from_ps(c.into()),
                line: Span::from_ps(d.into()),
                credit: Span::from_ps(at),
            };
            Hop {
                flow: FlowId::new(0),
                packet: 0,
                hop: a,
                cell: (bits[0] && c % 3 > 0).then(|| Box::new(cell)),
                is_data: bits[0],
                to_source: bits[1],
                is_again: bits[2],
                offset: at / 3,
                payload: b,
                bytes: c,
                place,
                is_last: bits[3],
                is_marked: bits[4],
                is_trimmed: bits[5],
                outcome: Outcome::ALL[outcome],
                joined: time(0),
                started: time(u64::from(a) + u64::from(b)),
                sent: time(u64::from(a) + u64::from(b) + 7),
                arrived: time(u64::from(a) + u64::from(b) + 9),
                propagation: Span::from_ps(2),
                own: Span::from_ps(a.into()),
                others: Span::from_ps(b.into()),
                found_bytes: u32::from(d) * 3,
                found_packets: d.into(),
                beside: vec![(None, at), (Some(FlowId::new(at)), 5)][..usize::from(d % 3)].to_vec(),
                header: vec![a as u8; usize::from(d % 90)],
            }
        });
        prop::collection::vec(hop, 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn what_is_written_is_read(hops in hops()) {
            let place = |port: u32| {
                let (from, link_type) = (format!("node {port}"), 137 + port as u16);
                Place { port, link_type, from, to: "leaf 0".into() }
            };
            let mut used: Vec<u32> = hops.iter().map(|hop| hop.place).collect();
            used.sort_unstable();
            used.dedup();
            let number = |(number, hop): (u32, Hop)| {
                let place = used.partition_point(|&port| port < hop.place) as u32;
                Hop { packet: number, flow: FlowId::new(u64::from(number) / 5), place, ..hop }
            };
            let hops: Vec<Hop> = (0..).zip(hops).map(number).collect();
            let places = used.iter().map(|port| place(10 + port)).collect();
            let trace = Trace { places, hops, ..Trace::default() };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("trace.parquet");
            let origin = Provenance::of_a_test();
            write_trace(&path, &trace, &origin).unwrap();
            prop_assert_eq!(&read_trace(&path).unwrap(), &trace);
            let index = TraceIndex::read(&path).unwrap();
            prop_assert_eq!(index.flows(), trace.flows());
            for flow in (0..9).map(FlowId::new) {
                let own = index.of(flow).unwrap();
                prop_assert_eq!(index.has(flow), !own.hops.is_empty());
                // Of one flow fewer ports are known, so their numbers are others.
                let of = |trace: &Trace| -> Vec<(Place, Hop)> {
                    let hops = trace.of(flow).iter();
                    let told = |hop: &Hop| {
                        (trace.places[hop.place as usize].clone(), Hop { place: 0, ..hop.clone() })
                    };
                    hops.map(told).collect()
                };
                prop_assert_eq!(of(&own), of(&trace));
            }
        }
    }
}
