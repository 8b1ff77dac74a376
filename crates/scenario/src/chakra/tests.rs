use kernel::Span;
use proptest::prelude::*;
use rack::workload::execution::Work;
use rack::workload::operation::Operation;

use super::test_bytes::{message, number, text, varint};
use super::*;

/// A trace of two ranks as Google's Protocol Buffers for Python write it by Chakra's `et_def.proto`:
/// with fields that are passed over, and values of many widths.
const BY_PYTHON: [&str; 2] = [
    "2b0a05302e302e3412220a06736368656d61ea011773796d626f6c69635f74656e736f725f6e6574776f726b\
     6b080112036677641804300338f40342210a055b312c325d12055b5b345d5d1a115b2754656e736f7228666c\
     6f617429275d520e0a0969735f6370755f6f70d80100520c0a076e756d5f6f707348e807520f0a046c6f7373\
     19000000000000e03f52090a017352040a0201025a08ac0212046772616418072201012a0101384d520d0a09\
     636f6d6d5f747970654800520f0a09636f6d6d5f73697a6568808040520e0a0770675f6e616d65ea01026470\
     52150a0c696e766f6c7665645f64696de201040a0201005508ad02120473656e6418052a03ac0201520c0a08\
     636f6d6d5f7372633800520c0a08636f6d6d5f647374780252100a08636f6d6d5f7461679d01090000005215\
     0a09636f6d6d5f73697a65c9010010000000000000",
    "140a12312e312e312d6368616b72612e302e302e343b08ac021204677261641807520d0a09636f6d6d5f7479\
     70656800520f0a09636f6d6d5f73697a6548808040520e0a0770675f6e616d65ea010264704008ad02180652\
     0c0a08636f6d6d5f7372635800520c0a08636f6d6d5f6473745801520c0a08636f6d6d5f7461675809520f0a\
     09636f6d6d5f73697a6588018040",
];

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// An attribute of a node, as `uint64_val`.
fn attribute(name: &str, value: u64) -> Vec<u8> {
    text(10, &[text(1, name.as_bytes()), number(13, value)].concat())
}

fn node(id: u64, kind: u64, after: &[u64], more: &[Vec<u8>]) -> Vec<u8> {
    let after = after.iter().flat_map(|&earlier| number(5, earlier)).collect();
    message(&[number(1, id), text(2, b"it"), number(3, kind), after, more.concat()])
}

fn head() -> Vec<u8> {
    message(&[text(1, b"0.0.4")])
}

fn all(ranks: &[Vec<u8>], groups: Option<&str>, playing: Playing) -> Result<Execution, String> {
    let source = |(rank, bytes)| Source { name: format!("t.{rank}.et"), bytes };
    let sources = ranks.iter().map(Vec::as_slice).enumerate().map(source).collect();
    read(sources, groups.map(|text| ("groups.json", text)), playing, Bytes::new(1 << 20))
}

fn of(ranks: &[Vec<u8>]) -> Result<Execution, String> {
    all(ranks, None, Playing::default())
}

#[test]
fn traces_that_another_library_wrote_are_read() {
    let read = of(&BY_PYTHON.map(bytes_of)).unwrap();
    let grad = |after: &[u64]| Node {
        id: 300,
        after: after.to_vec(),
        work: Work::Collective {
            operation: Operation::AllReduce,
            group: 0,
            size: Bytes::new(1 << 20),
        },
    };
    let forward = Node { id: 1, after: vec![], work: Work::Compute(Span::from_us(500)) };
    let send = Work::Send { to: 1, tag: 9, size: Bytes::new(4_096) };
    let receive = Work::Receive { from: 0, tag: 9 };
    assert_eq!(
        read.ranks,
        [
            vec![forward, grad(&[1]), Node { id: 301, after: vec![1, 300], work: send }],
            vec![grad(&[]), Node { id: 301, after: vec![], work: receive }],
        ]
    );
    assert_eq!(read.groups, [("dp".to_string(), vec![0, 1])]);
    assert!(read.gate().is_ok());
}

#[test]
fn every_type_of_node_and_operation_is_known_by_its_number() {
    // METADATA, MEM_LOAD, MEM_STORE, COMP, STORAGE, BATCH, CHECKPOINT: of two microseconds.
    for kind in [1, 2, 3, 4, 8, 9, 10] {
        let read = of(&[[head(), node(0, kind, &[], &[number(7, 2)])].concat()]).unwrap();
        assert_eq!(read.ranks[0][0].work, Work::Compute(Span::from_us(2)), "type {kind}");
    }
    let expected = [
        Operation::AllReduce,
        Operation::Reduce { root: 0 },
        Operation::AllGather,
        Operation::Gather { root: 0 },
        Operation::Scatter { root: 0 },
        Operation::Broadcast { root: 0 },
        Operation::AllToAll,
        Operation::ReduceScatter,
        Operation::ReduceScatter,
        Operation::Barrier,
    ];
    for (number, expected) in (0..).zip(expected) {
        let more = [attribute("comm_type", number), attribute("comm_size", 8)];
        let read = of(&[[head(), node(0, 7, &[], &more)].concat()]).unwrap();
        let Work::Collective { operation, .. } = read.ranks[0][0].work else { panic!("{number}") };
        assert_eq!(operation, expected, "comm_type {number}");
    }
}

fn collective(group: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let name = text(10, &[text(1, b"pg_name"), text(29, group.as_bytes())].concat());
    let common = [attribute("comm_type", 5), attribute("comm_size", 8), name];
    node(0, 7, &[], &[&common, more].concat())
}

#[test]
fn groups_are_those_of_a_file_or_who_names_them() {
    let trace = |group: &str| [head(), collective(group, &[])].concat();
    let three = [trace("a"), trace("b"), trace("a")];
    let read = of(&three).unwrap();
    assert_eq!(read.groups, [("a".into(), vec![0, 2]), ("b".into(), vec![1])]);
    let listed = all(&three, Some(r#"{"a": [2, 0], "b": [1], "c": [0]}"#), Playing::default());
    assert_eq!(listed.unwrap().groups, [("a".into(), vec![2, 0]), ("b".into(), vec![1])]);
    // Without a name: all.
    assert_eq!(of(&[trace(""), trace("")]).unwrap().groups, [(String::new(), vec![0, 1])]);
    // A root is a rank, and in a group a place.
    let rooted = [head(), collective("a", &[attribute("root_rank", 2)])].concat();
    let read = of(&[rooted.clone(), head(), rooted.clone()]).unwrap();
    let Work::Collective { operation, .. } = read.ranks[0][0].work else { panic!() };
    assert_eq!(operation, Operation::Broadcast { root: 1 });
    let error = of(&[rooted.clone(), rooted, head()]).unwrap_err();
    assert_eq!(error, "t.0.et: node 0: its root is rank 2, which group \"a\" ([0, 1]) has not");
    for (file, expected) in [
        ("[1]", "groups.json: invalid type"),
        (r#"{"a": []}"#, "groups.json: group \"a\" has no ranks"),
        (r#"{"a": [3]}"#, "groups.json: group \"a\" has rank 3; the trace has ranks 0 to 2"),
        (r#"{"a": [1, 1]}"#, "groups.json: group \"a\" has rank 1 twice"),
        (r#"{"a": [0, 2]}"#, "groups.json: has no group \"b\", which rank 1 names"),
    ] {
        let error = all(&three, Some(file), Playing::default()).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn operations_count_where_no_duration_is_stated() {
    let trace = [[head(), node(0, 4, &[], &[attribute("num_ops", 3_000)])].concat()];
    let at = |rate| all(&trace, None, Playing { compute_rate: Some(rate), ..Playing::default() });
    assert_eq!(at(1e9).unwrap().ranks[0][0].work, Work::Compute(Span::from_us(3)));
    let error = of(&trace).unwrap_err();
    let expected = "t.0.et: byte 9: node 0 (\"it\"): states 3000 operations (num_ops) and no duration; give \
                    compute_rate, how many a rank does a second";
    assert_eq!(error, expected);
    assert!(at(1e-9).unwrap_err().contains("more than the 30 days of a run"));
}

#[test]
fn what_is_wrong_is_said_with_file_and_place() {
    let after_head = |more: Vec<u8>| [head(), more].concat();
    let send = |to: u64, from: u64| {
        let more = [attribute("comm_dst", to), attribute("comm_src", from)];
        after_head(node(7, 5, &[], &more))
    };
    for (bytes, expected) in [
        (vec![], "t.0.et: the file is empty; expected an execution trace of Chakra"),
        (
            b"start,src,dst\n".to_vec(),
            "t.0.et: byte 1: the file ends after 13 bytes of a message of 115",
        ),
        (vec![0xff; 12], "t.0.et: byte 0: found no length of a message"),
        (vec![0xff; 5], "t.0.et: byte 0: the file ends within the length of a message"),
        (
            after_head(vec![9, 8, 1]),
            "t.0.et: byte 9: the file ends after 2 bytes of a message of 9",
        ),
        (after_head(varint(1 << 40)), "t.0.et: byte 8: found a message of 1099511627776 bytes"),
        (after_head(vec![2, 8, 0x80]), "t.0.et: byte 9: failed to decode"),
        (message(&[number(1, 5)]), "t.0.et: byte 0: failed to decode"),
        (message(&[text(1, b"0.0.3")]), "t.0.et: byte 0: found version \"0.0.3\" of the schema"),
        (after_head(node(7, 0, &[], &[])), "t.0.et: byte 9: node 7 (\"it\"): is of type 0"),
        (
            after_head(node(7, 7, &[], &[])),
            "t.0.et: byte 9: node 7 (\"it\"): has no attribute comm_type",
        ),
        (
            after_head(node(7, 7, &[], &[attribute("comm_type", 10)])),
            "t.0.et: byte 9: node 7 (\"it\"): comm_type is 10; expected one of Chakra's",
        ),
        (
            send(1, 1),
            "t.0.et: byte 9: node 7 (\"it\"): comm_src is 1, and this is the trace of rank 0",
        ),
        (send(1, 0), "t.0.et: byte 9: node 7 (\"it\"): has no attribute comm_size"),
        (
            after_head(node(7, 4, &[], &[number(7, u64::MAX)])),
            "t.0.et: byte 9: node 7 (\"it\"): takes 18446744073709551615 us; a run ends after 30 days",
        ),
    ] {
        let error = of(&[bytes]).unwrap_err();
        assert!(error.starts_with(expected), "{error}\ninstead of\n{expected}");
    }
    let many: Vec<u8> = (0..9_000).flat_map(|id| node(id, 4, &[], &[])).collect();
    let error = of(&[after_head(many)]).unwrap_err();
    assert!(error.contains("takes more memory than there may be, 1.0 MiB"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_are_more_than_can_be_read(bytes: Vec<u8>, cut in 0usize..300, flip in 0usize..300, to: u8) {
        _ = of(&[[head(), bytes].concat()]);
        let mut python = bytes_of(BY_PYTHON[0]);
        python[flip] = to;
        python.truncate(cut);
        if let Ok(read) = of(&[python]) {
            _ = read.gate();
        }
    }
}

#[test]
fn files_of_ranks_are_found_in_order_and_gaps_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("llama");
    let error = files(&prefix).unwrap_err();
    assert!(error.starts_with("found no llama.0.et in "), "{error}");
    for rank in [0, 1, 10, 2] {
        fs::write(folder.path().join(format!("llama.{rank}.et")), "").unwrap();
    }
    fs::write(folder.path().join("llama.x.et"), "").unwrap();
    let error = files(&prefix).unwrap_err();
    assert!(error.starts_with("found llama.10.et and no llama.3.et in "), "{error}");
    fs::remove_file(folder.path().join("llama.10.et")).unwrap();
    let names: Vec<_> = files(&prefix).unwrap();
    let expected = [0, 1, 2].map(|rank| folder.path().join(format!("llama.{rank}.et")));
    assert_eq!(names, expected);
}
