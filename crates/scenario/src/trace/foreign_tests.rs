//! Files as other simulators and earlier runs have them, whose flows are written here by hand.

use kernel::Time;
use proptest::prelude::*;

use super::*;

fn flow(start: u64, src: u32, dst: u32, bytes: u64) -> TraceRow {
    TraceRow { start: Time::from_ps(start), src, dst, bytes, class: 0, after: Vec::new() }
}

fn after(row: TraceRow, after: &[u64]) -> TraceRow {
    TraceRow { after: after.to_vec(), ..row }
}

#[track_caller]
fn reads(format: TraceFormat, text: &str, expected: &[TraceRow]) {
    let rows = read_bytes("t", text.as_bytes().to_vec(), format, 8);
    assert_eq!(rows.expect(text), expected, "for\n{text}");
}

#[track_caller]
fn refuses(format: TraceFormat, text: &str, expected: &str) {
    let bad = read_bytes("t", text.as_bytes().to_vec(), format, 8).expect_err(text);
    let found = bad.to_string();
    assert_eq!(bad.problems().len(), 1, "one message for\n{text}\nfound {found}");
    assert!(found.starts_with(expected), "for\n{text}\nfound {found}");
}

#[test]
fn a_mark_of_byte_order_and_line_ends_of_windows_are_no_part_of_a_list() {
    let expected = [flow(0, 0, 1, 10)];
    let matrix = "\u{feff}Nodes 8\r\nConnections 1\r\n0->1 id 1 start 0 size 10\r\n";
    reads(TraceFormat::Htsim, matrix, &expected);
    reads(
        TraceFormat::Hpcc,
        "\u{feff}1\r\n0 1 3 100 10 0\r\n",
        &[TraceRow { class: 3, ..flow(0, 0, 1, 10) }],
    );
}

#[test]
fn a_connection_matrix_is_its_flows() {
    reads(
        TraceFormat::Htsim,
        "# from gen_permutation.py\nNodes 8\nConnections 3\n\n0->1 id 1 start 0 size 2000000\n\
         7->2 start 1500 size 1\n2->7 id 9 prio 5 start 20 size 3\n"
            .replace("prio 5 ", "")
            .as_str(),
        &[flow(0, 0, 1, 2_000_000), flow(1_500, 7, 2, 1), flow(20, 2, 7, 3)],
    );
}

#[test]
fn a_oneshot_starts_all_its_flows_after_one_and_a_barrier_after_all() {
    let text = "Nodes 8\nConnections 5\nTriggers 2\n\
                0->1 id 1 start 0 size 10 send_done_trigger 1\n\
                1->2 id 2 trigger 1 size 11 recv_done_trigger 2\n\
                1->3 id 3 trigger 1 size 12 recv_done_trigger 2\n\
                2->4 id 4 trigger 2 size 13\n\
                3->4 id 5 start 7 size 14\n\
                trigger id 1 oneshot\ntrigger id 2 barrier count 2\n";
    let expected = [
        flow(0, 0, 1, 10),
        after(flow(0, 1, 2, 11), &[0]),
        after(flow(0, 1, 3, 12), &[0]),
        after(flow(0, 2, 4, 13), &[1, 2]),
        flow(7, 3, 4, 14),
    ];
    reads(TraceFormat::Htsim, text, &expected);
}

#[test]
fn a_flow_comes_after_those_it_waits_for_wherever_its_line_stands() {
    let text = "Nodes 8\nConnections 3\nTriggers 2\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n\
                0->1 id 1 trigger 2 size 10\n\
                0->2 id 2 trigger 1 size 11 send_done_trigger 2\n\
                0->3 id 3 start 5 size 12 send_done_trigger 1\n";
    let expected =
        [flow(5, 0, 3, 12), after(flow(0, 0, 2, 11), &[0]), after(flow(0, 0, 1, 10), &[1])];
    reads(TraceFormat::Htsim, text, &expected);
    let text = text.replace("start 5 size 12", "trigger 2 size 12");
    refuses(
        TraceFormat::Htsim,
        &text,
        "t:6: trigger: waits, through trigger 2, for a flow that waits for it: neither would ever start",
    );
}

#[test]
fn a_multishot_that_its_own_flows_fire_is_a_chain() {
    let chain = "Nodes 8\nConnections 3\nTriggers 1\n\
                 0->1 id 1 start 0 size 10 send_done_trigger 1\n\
                 0->2 id 2 trigger 1 size 11 send_done_trigger 1\n\
                 0->3 id 3 trigger 1 size 12 send_done_trigger 1\n\
                 trigger id 1 multishot\n";
    let expected =
        [flow(0, 0, 1, 10), after(flow(0, 0, 2, 11), &[0]), after(flow(0, 0, 3, 12), &[1])];
    reads(TraceFormat::Htsim, chain, &expected);
    let two_at_a_time = chain.replace("2 trigger 1", "2 start 0");
    refuses(
        TraceFormat::Htsim,
        &two_at_a_time,
        "t:7: trigger: trigger 1 is multishot and not one flow",
    );
    let broken = chain.replace("11 send_done_trigger 1", "11");
    refuses(TraceFormat::Htsim, &broken, "t:7: trigger: trigger 1 is multishot and a flow that it");
}

#[test]
fn what_a_connection_matrix_may_not_say_is_named_by_line() {
    let whole = "Nodes 8\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 9 send_done_trigger 3\n\
                 1->0 id 2 trigger 3 size 9\ntrigger id 3 oneshot\n";
    reads(TraceFormat::Htsim, whole, &[flow(0, 0, 1, 9), after(flow(0, 1, 0, 9), &[0])]);
    for (from, to, expected) in [
        ("Nodes 8", "Nodes 9", "t: is for 9 nodes and the rack has 8; expected at most as many"),
        ("Connections 2", "Connections 4", "t: its head says Connections 4, and there are 2"),
        ("Connections 2\n", "", "t: has no line Connections; expected \"Connections 2\""),
        ("Triggers 1", "Triggers 2", "t: its head says Triggers 2, and there are 1"),
        (
            "start 0",
            "start 0.5",
            "t:4: start: found \"0.5\"; expected a whole number of picoseconds",
        ),
        (
            "start 0 size",
            "start size",
            "t:4: start: found \"size\"; expected a whole number of picoseconds",
        ),
        ("start 0 ", "", "t:4: found neither start nor trigger; expected one of them"),
        ("trigger 3 s", "trigger 3 start 1 s", "t:5: found both start and trigger; expected one"),
        ("size 9\n", "\n", "t:5: size: found no size; expected the flow's bytes"),
        ("size 9\n", "size -9\n", "t:5: size: found \"-9\"; expected a whole number from 0"),
        ("size 9\n", "size\n", "t:5: size: value missing"),
        ("0->1", "0->0", "t:4: dst: found a flow from node 0 to itself; expected two nodes"),
        ("0->1", "0->8", "t:4: dst: found node 8; expected one from 0 to 7, the rack has 8 nodes"),
        ("0->1", "->1", "t:4: src: found \"\"; expected a whole number from 0"),
        ("0->1 id", "0->1 start_bcast", "t:4: found \"start_bcast\"; expected one of id, start"),
        ("size 9\n", "size 9 prio 4\n", "t:5: prio: found flows of several priorities; htsim's"),
        ("send_done_trigger 3", "", "t:5: trigger: waits for trigger 3, which no flow fires"),
        ("trigger id 3", "trigger id 4", "t:4: trigger: found trigger 3, which no line describes"),
        ("oneshot", "barrier count 2", "t:6: trigger: barrier 3 waits for 2 ends and 1 flows"),
        ("oneshot", "twice", "t:6: trigger: found \"twice\"; expected id, count, oneshot"),
        ("id 3 oneshot", "id 3", "t:6: trigger: expected a number and a kind, such as"),
        ("oneshot\n", "oneshot", "t:6: the last line is torn: it does not end in a line break"),
        ("Triggers 1", "Failures 1", "t:3: found failures; what breaks is no part of a trace"),
        ("Triggers 1", "Grp 0 1 2", "t:3: found \"Grp\"; expected a line of a connection matrix"),
    ] {
        assert!(whole.contains(from), "{from}");
        refuses(TraceFormat::Htsim, &whole.replacen(from, to, 1), expected);
    }
    let twice = whole.replace("Triggers 1", "Triggers 2") + "trigger id 3 oneshot\n";
    refuses(TraceFormat::Htsim, &twice, "t:7: trigger: trigger 3 is also on line 6; remove one");
    let fired_twice = whole.replace("trigger 3 size 9", "trigger 3 size 9 recv_done_trigger 3");
    refuses(
        TraceFormat::Htsim,
        &fired_twice,
        "t:6: trigger: trigger 3 is oneshot and 2 flows fire it",
    );
}

#[test]
fn a_barrier_of_many_by_many_is_refused_before_memory_is_taken() {
    let mut text =
        "Nodes 8\nConnections 40000\nTriggers 1\ntrigger id 1 barrier count 20000\n".to_string();
    text.push_str(&"0->1 start 0 size 1 send_done_trigger 1\n".repeat(20_000));
    text.push_str(&"1->0 trigger 1 size 1\n".repeat(20_000));
    refuses(TraceFormat::Htsim, &text, "t: holds 40000 flows or more, which take some");
}

#[test]
fn a_list_of_hpcc_is_as_many_flows_as_it_says() {
    let text = "3\n2 1 3 100 200000000 2\n3 1 0 100 1 2.000000001\n\n4 7 7 5 6 1.5e-3\n5 6 3 1 9 2\n\
                First line: # of flows\n";
    let class = |class, row| TraceRow { class, ..row };
    let expected = [
        class(3, flow(2_000_000_000_000, 2, 1, 200_000_000)),
        flow(2_000_000_001_000, 3, 1, 1),
        class(7, flow(1_500_000_000, 4, 7, 6)),
    ];
    reads(TraceFormat::Hpcc, text, &expected);
    for (text, expected) in [
        ("src dst\n", "t:1: found \"src dst\"; expected how many flows there are"),
        ("2\n0 1 3 100 5 0\n", "t: ends after 1 flows; its first line says 2: it is cut off"),
        ("1\n0 1 3 100 5 0", "t:2: the last line is torn: it does not end in a line break"),
        ("1\n0 1 3 5 0\n", "t:2: found 5 values; expected 6: src dst priority port bytes start"),
        ("1\n0 1 3 100 5 -1\n", "t:2: start: found \"-1\"; expected a time in s"),
        ("1\n0 1 3 100 5 nan\n", "t:2: start: found \"nan\"; expected a time in s"),
        ("1\n0 1 3 100 5 1e300\n", "t:2: start: found \"1e300\"; expected a time in s"),
        ("1\n0 1 300 100 5 0\n", "t:2: class: found 300; expected at most 255"),
        ("1\n0 8 3 100 5 0\n", "t:2: dst: found node 8; expected one from 0 to 7"),
        ("1\n0 1 3 100 0 0\n", "t:2: bytes: found 0; expected at least 1"),
        ("0\n", "t: holds no flow; expected at least one line with a flow"),
    ] {
        refuses(TraceFormat::Hpcc, text, expected);
    }
}

#[test]
fn hosts_may_be_numbered_from_another_number() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("flow.txt");
    std::fs::write(&path, "2\n1 8 3 100 5 0\n8 9 3 100 5 0\n").unwrap();
    let (format, memory) = (TraceFormat::Hpcc, MEMORY_DEFAULT);
    let capturing = super::Capturing::default();
    let reading = Reading { format, first_node: 1, nodes: 9, memory, capturing };
    let rows = super::read(&path, reading.clone()).unwrap().rows;
    assert_eq!((rows[0].src, rows[0].dst, rows[1].src, rows[1].dst), (0, 7, 7, 8));
    let bad = super::read(&path, Reading { nodes: 8, ..reading }).unwrap_err().to_string();
    assert!(bad.ends_with("found node 9; expected one from 1 to 8, the rack has 8 nodes"), "{bad}");
}

#[test]
fn flows_of_an_earlier_run_are_its_flows_in_the_order_of_their_numbers() {
    let head = "flow_id,src,dst,class,size_bytes,start_ps,end_ps,measured,seed,status\n";
    let text =
        format!("{head}2,3,1,2,77,9000,,true,4,unfinished\n0,0,1,0,5,10,20,true,4,completed\n");
    let last = TraceRow { class: 2, ..flow(9_000, 3, 1, 77) };
    reads(TraceFormat::Csv, &text, &[flow(10, 0, 1, 5), last]);
    let again = format!("{text}2,0,1,0,5,10,20,true,4,completed\n");
    refuses(TraceFormat::Csv, &again, "t: flow 2 is there twice; expected the flows of one run");
    let seeds = format!("{text}3,0,1,0,5,10,20,true,5,completed\n");
    refuses(TraceFormat::Csv, &seeds, "t: holds flows of runs with several seeds, 4 and 5");
    let empty = format!("{head}0,0,1,0,0,10,20,true,4,completed\n");
    refuses(TraceFormat::Csv, &empty, "t:2: size_bytes: found 0; expected at least 1");
    let none = text.replace("size_bytes", "size");
    refuses(TraceFormat::Csv, &none, "t:1: size_bytes: column missing");
}

#[test]
fn a_name_tells_the_format_or_nothing() {
    for (name, expected) in [
        ("a.csv", Some(TraceFormat::Csv)),
        ("a.PARQUET", Some(TraceFormat::Parquet)),
        ("a.cm", Some(TraceFormat::Htsim)),
        ("flow.txt", None),
        ("csv", None),
    ] {
        assert_eq!(TraceFormat::of_path(Path::new(name)), expected, "{name}");
    }
}

#[test]
fn endless_lines_are_refused() {
    let long = format!("1\n0 1 3 100 {} 0\n", "5".repeat(1 << 17));
    refuses(TraceFormat::Hpcc, &long, "t:2: cannot be read: a line is longer than 65536 bytes");
}

/// Words that these formats are made of, and some that they are not.
const WORDS: [&str; 24] = [
    "Nodes",
    "Connections",
    "Triggers",
    "Failures",
    "0->1",
    "1->0",
    "7->9",
    "id",
    "start",
    "size",
    "trigger",
    "send_done_trigger",
    "recv_done_trigger",
    "oneshot",
    "multishot",
    "barrier",
    "count",
    "0",
    "1",
    "2",
    "1.5",
    "-3",
    "99999999999999999999",
    "\n",
];

proptest! {
    #[test]
    fn any_words_are_read_or_refused(
        words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..60),
    ) {
        let text = words.join(" ");
        for format in [TraceFormat::Htsim, TraceFormat::Hpcc] {
            let _ = read_bytes("t", text.clone().into_bytes(), format, 8);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in [TraceFormat::Htsim, TraceFormat::Hpcc] {
            let _ = read_bytes("t", bytes.clone(), format, 8);
        }
    }

    #[test]
    fn any_triggers_are_earlier_rows_or_refused(
        flows in prop::collection::vec((0u64..4, 0u64..4, 0u64..4), 1..8),
        kinds in prop::collection::vec(0usize..3, 3),
    ) {
        let mut text = format!("Nodes 8\nConnections {}\nTriggers 3\n", flows.len());
        for (starts, first, second) in &flows {
            let begin = if *starts == 0 { "start 1".into() } else { format!("trigger {starts}") };
            text.push_str(&format!("0->1 {begin} size 1"));
            for fires in [first, second].into_iter().filter(|&&fires| fires > 0) {
                text.push_str(&format!(" send_done_trigger {fires}"));
            }
            text.push('\n');
        }
        for (index, kind) in kinds.iter().enumerate() {
            let id = index as u64 + 1;
            let fires = |each: &&(u64, u64, u64)| u64::from(each.1 == id) + u64::from(each.2 == id);
            let count: u64 = flows.iter().map(|each| fires(&each)).sum();
            let kind = ["oneshot".into(), "multishot".into(), format!("barrier count {count}")][*kind].clone();
            text.push_str(&format!("trigger id {id} {kind}\n"));
        }
        if let Ok(rows) = read_bytes("t", text.into_bytes(), TraceFormat::Htsim, 8) {
            prop_assert_eq!(rows.len(), flows.len());
            for (index, row) in rows.iter().enumerate() {
                prop_assert!(row.after.iter().all(|&earlier| earlier < index as u64));
            }
        }
    }
}
