//! Good traces in every format, and each way in which a trace can be bad.

use std::sync::Arc;

use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use kernel::Time;

use super::rows::{AFTER_BYTES, BAD_ROWS_MAX, PROBLEMS_MAX, ROW_BYTES};
use super::*;

fn read_csv(name: &str, bytes: &[u8], nodes: u32) -> Result<Vec<TraceRow>, BadInput> {
    read_bytes(name, bytes.to_vec(), TraceFormat::Csv, nodes)
}

fn read_parquet(name: &str, bytes: Vec<u8>, nodes: u32) -> Result<Vec<TraceRow>, BadInput> {
    read_bytes(name, bytes, TraceFormat::Parquet, nodes)
}

/// Reads a file for a rack of eight nodes.
fn read(path: &Path, memory: Bytes) -> Result<Vec<TraceRow>, BadInput> {
    let format = TraceFormat::of_path(path).unwrap_or(TraceFormat::Csv);
    let capturing = super::Capturing::default();
    let reading = Reading { format, first_node: 0, nodes: 8, memory, capturing };
    super::read(path, reading).map(|contents| contents.rows)
}

fn row(start: u64, src: u32, dst: u32, bytes: u64) -> TraceRow {
    TraceRow { start: Time::from_ps(start), src, dst, bytes, class: 0, after: Vec::new() }
}

#[track_caller]
fn refuses(text: &str, expected: &[&str]) {
    let bad = read_csv("t.csv", text.as_bytes(), 8).expect_err(text);
    let found: Vec<_> = bad.problems().iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "for\n{text}");
}

#[test]
fn csv_starts_may_carry_any_unit_and_columns_any_order() {
    let expected = vec![row(1_500_000, 0, 1, 100), row(2_000_000, 7, 2, 9_000_000_000)];
    for text in [
        "start,src,dst,bytes\n1.5 us,0,1,100\n2 us,7,2,9000000000\n",
        "start_ns,src,dst,bytes\n1500,0,1,100\n2000.0,7,2,9000000000\n",
        "bytes, dst, src, start_ps\r\n100, 1, 0, 1500000\r\n9000000000, 2, 7, 2000000\r\n",
        "start_us,src,dst,bytes\n1.5,0,1,100\n2.0000000000000004,7,2,9000000000\n",
        "start_ms,src,dst,bytes\n0.0015,0,1,100\n2e-3,7,2,9000000000\n",
        "start_s,src,dst,bytes\n1.5E-6,0,1,100\n0.000002,7,2,9000000000\n",
        "# from a spreadsheet\n\nstart;src;dst;bytes\n1.5 us;0;1;100\n# ;\n2 us;7;2;9000000000\n",
        "\u{feff}start\tsrc\tdst\tbytes\r\n1.5 us\t0\t1\t100\r\n\r\n2 us\t7\t2\t9000000000\r\n",
    ] {
        assert_eq!(read_csv("t.csv", text.as_bytes(), 8).unwrap(), expected, "for\n{text}");
    }
}

#[test]
fn starts_that_are_computed_numbers_are_rounded_to_a_picosecond() {
    // 0.1 + 0.2 in binary, and halves of picoseconds.
    let text = "start_ns,src,dst,bytes\n0.30000000000000004,0,1,5\n1.0004,0,1,5\n1.0006,0,1,5\n";
    let expected = [row(300, 0, 1, 5), row(1_000, 0, 1, 5), row(1_001, 0, 1, 5)];
    assert_eq!(read_csv("t.csv", text.as_bytes(), 8).unwrap(), expected);
    refuses(
        "start_us,src,dst,bytes\n-1,0,1,5\nNaN,0,1,5\n1e300,0,1,5\nsoon,0,1,5\n",
        &[
            "t.csv:2: start_us: found \"-1\"; expected a time in us, from 0, such as 2.000001",
            "t.csv:3: start_us: found \"NaN\"; expected a time in us, from 0, such as 2.000001",
            "t.csv:4: start_us: found \"1e300\"; expected a time in us, from 0, such as 2.000001",
            "t.csv:5: start_us: found \"soon\"; expected a time in us, from 0, such as 2.000001",
        ],
    );
}

#[test]
fn class_and_after_may_be_there_or_left_empty() {
    let text = "start,src,dst,bytes,class,after\n0 ns,0,1,5,,\n1 ns,1,0,6,2,0\n2 ns,1,0,6,,0; 1\n";
    let rows = read_csv("t.csv", text.as_bytes(), 8).unwrap();
    let second = TraceRow { class: 2, after: vec![0], ..row(1_000, 1, 0, 6) };
    let third = TraceRow { after: vec![0, 1], ..row(2_000, 1, 0, 6) };
    assert_eq!(rows, [row(0, 0, 1, 5), second, third]);
}

#[test]
fn rows_no_rack_can_carry_are_named_by_line() {
    refuses(
        "start,src,dst,bytes\n0 ns,3,3,5\n0 ns,0,8,5\n0 ns,0,1,0\n0 ns,0,1,many\n0,0,1,5\n1 ns,,1,5\n",
        &[
            "t.csv:2: dst: found a flow from node 3 to itself; expected two nodes",
            "t.csv:3: dst: found node 8; expected one from 0 to 7, the rack has 8 nodes",
            "t.csv:4: bytes: found 0; expected at least 1",
            "t.csv:5: bytes: found \"many\"; expected a whole number from 0",
            "t.csv:6: start: \"0\" has no unit: a time is written with one of s, ms, us, ns, ps, \
             such as \"2.75 ns\"",
            "t.csv:7: src: value missing",
        ],
    );
    refuses(
        "start,src,dst,bytes,after\n0 ns,0,1,5,0\n",
        &["t.csv:2: after: found row 0; expected one before this row 0"],
    );
}

#[test]
fn a_torn_last_line_is_refused_even_if_it_looks_whole() {
    refuses("start,src,dst,bytes\n0 ns,0,1,5\n1 ns,0\n", &["t.csv:3: found 2 values; expected 4"]);
    refuses(
        "start,src,dst,bytes\n0 ns,0,1,5\n1 ns,0,1,15",
        &["t.csv:3: the last line is torn: it does not end in a line break; write it whole, or \
           cut it off"],
    );
}

#[test]
fn wrong_columns_are_named() {
    refuses(
        "time,src,dest,bytes\n0 ns,0,1,5\n",
        &[
            "t.csv:1: time: unknown column; expected one of \"start\", \"start_s\", \"start_ms\", \
             \"start_us\", \"start_ns\", \"start_ps\", \"src\", \"dst\", \"bytes\", \"class\", \"after\"",
            "t.csv:1: dest: unknown column; did you mean \"dst\"?",
            "t.csv:1: found 0 of the columns start (with a unit), start_s, start_ms, start_us, \
             start_ns and start_ps; expected one",
            "t.csv:1: dst: column missing",
        ],
    );
    refuses(
        "start,src,dst,bytes\n",
        &["t.csv: holds no flow; expected at least one row below the column heads"],
    );
}

#[test]
fn a_flood_of_problems_is_cut() {
    let text = format!("start,src,dst,bytes\n{}", "0 ns,1,1,5\n".repeat(1_000));
    let bad = read_csv("t.csv", text.as_bytes(), 8).unwrap_err();
    assert_eq!(bad.problems().len(), PROBLEMS_MAX + 1);
    let last = bad.problems().last().unwrap().to_string();
    assert_eq!(last, "t.csv: and 990 more problems of this kind");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let bad = read(Path::new("no/such/trace.csv"), MEMORY_DEFAULT).unwrap_err().to_string();
    assert!(bad.starts_with("no/such/trace.csv: cannot be read: "), "{bad}");
}

/// A small Parquet trace.
fn parquet_bytes(dst: i64) -> Vec<u8> {
    let schema = "message trace { required binary start (UTF8); required int64 src;
                  required int64 dst; required int64 bytes; optional int32 class; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut index = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                let starts = [ByteArray::from("0 ns"), ByteArray::from("1.5 us")];
                writer.write_batch(&starts, None, None).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(writer) => {
                let values = [[0, 2], [1, dst], [100, 200]][index - 1];
                writer.write_batch(&values, None, None).unwrap();
            }
            ColumnWriter::Int32ColumnWriter(writer) => {
                writer.write_batch(&[3], Some(&[0, 1]), None).unwrap();
            }
            _ => panic!("a column of another type"),
        }
        column.close().unwrap();
        index += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn parquet_reads_like_csv() {
    let rows = read_parquet("t.parquet", parquet_bytes(1), 8).unwrap();
    let second = TraceRow { class: 3, ..row(1_500_000, 2, 1, 200) };
    assert_eq!(rows, [row(0, 0, 1, 100), second]);
    let bad = read_parquet("t.parquet", parquet_bytes(2), 8).unwrap_err().to_string();
    let expected = "t.parquet: row 1: dst: found a flow from node 2 to itself; expected two nodes";
    assert_eq!(bad, expected);
}

#[test]
fn a_parquet_file_that_claims_more_than_it_holds_is_refused_before_memory_is_taken() {
    // Two kilobytes whose first dictionary claims 4.9 thousand million entries.
    let bytes = include_bytes!("../../tests/inputs/claims-gigabytes.parquet");
    let bad = read_parquet("t.parquet", bytes.to_vec(), 8).unwrap_err().to_string();
    // The number takes more than the ten bytes that a number may have.
    let expected = "t.parquet: not a whole Parquet file (its description is not well-formed)";
    assert!(bad.starts_with(expected), "{bad}");
}

#[test]
fn a_trace_that_takes_more_memory_than_there_is_is_refused_with_what_it_takes() {
    let place = tempfile::tempdir().unwrap();
    let rows = "0 ns,0,1,5\n".repeat(1_000);
    let csv = place.path().join("t.csv");
    std::fs::write(&csv, format!("start,src,dst,bytes\n{rows}")).unwrap();
    let parquet = place.path().join("t.parquet");
    std::fs::write(&parquet, parquet_bytes(1)).unwrap();
    for (path, needed) in [(&csv, 1_000 * ROW_BYTES), (&parquet, 2 * ROW_BYTES)] {
        assert!(read(path, Bytes::new(needed)).is_ok());
        let bad = read(path, Bytes::new(needed - 1)).unwrap_err();
        assert_eq!(bad.problems().len(), 1, "{bad}");
        let says = bad.to_string();
        let takes =
            format!("which take some {} of memory", rack::memory::binary(Bytes::new(needed)));
        assert!(says.contains(&takes), "{says}");
    }
    // Rows that wait for many others take more.
    let after = (0..999).map(|row| row.to_string()).collect::<Vec<_>>().join(" ");
    let rows = format!("start,src,dst,bytes,after\n{}", "0 ns,0,1,5,\n".repeat(999));
    std::fs::write(&csv, format!("{rows}0 ns,0,1,5,{after}\n")).unwrap();
    let needed = Bytes::new(1_000 * ROW_BYTES + 999 * AFTER_BYTES);
    assert!(read(&csv, needed).is_ok() && read(&csv, needed - Bytes::new(1)).is_err());
}

#[test]
fn endless_lines_and_what_is_no_file_are_refused() {
    let long = format!("start,src,dst,bytes\n0 ns,0,1,{}\n", "5".repeat(3 << 20));
    refuses(&long, &["t.csv:2: cannot be read: a line is longer than 1048576 bytes"]);
    let place = tempfile::tempdir().unwrap();
    let bad = read(place.path(), MEMORY_DEFAULT).unwrap_err().to_string();
    assert!(bad.ends_with("cannot be read: not a file"), "{bad}");
}

#[test]
fn a_file_of_bad_rows_is_not_read_to_its_end() {
    let text = format!("start,src,dst,bytes\n{}", "0 ns,1,1,5\n".repeat(50_000));
    let bad = read_csv("t.csv", text.as_bytes(), 8).unwrap_err();
    let last = bad.problems().last().unwrap().to_string();
    assert_eq!(
        last,
        format!("t.csv: and {BAD_ROWS_MAX} more problems of this kind; the rest was not read")
    );
}

#[test]
fn a_truncated_parquet_file_is_refused_wherever_it_is_cut() {
    let whole = parquet_bytes(1);
    for length in 0..whole.len() {
        let bad = read_parquet("t.parquet", whole[..length].to_vec(), 8).expect_err("truncated");
        let message = bad.to_string();
        assert!(message.starts_with("t.parquet: not a whole Parquet file ("), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_as_csv(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_csv("t.csv", &bytes, 8);
        let mut with_heads = b"start,src,dst,bytes,class,after\n".to_vec();
        with_heads.extend(bytes);
        let _ = read_csv("t.csv", &with_heads, 8);
    }

    #[test]
    fn a_mutated_csv_is_read_or_refused(at in 0usize..60, byte in any::<u8>()) {
        let mut bytes = b"start,src,dst,bytes,class,after\n0 ns,0,1,5,,\n1 ns,1,0,6,2,0\n".to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(rows) = read_csv("t.csv", &bytes, 8) {
            for row in rows {
                prop_assert!(row.src != row.dst && row.src < 8 && row.dst < 8 && row.bytes > 0);
            }
        }
    }

    #[test]
    fn a_mutated_parquet_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = parquet_bytes(1);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read_parquet("t.parquet", bytes, 8);
    }
}
