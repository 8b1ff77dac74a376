use std::fs::{self, OpenOptions};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, StringArray};
use kernel::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rack::{Class, Flow, FlowId, NodeId};

use super::*;

const STAGES: &[Stage] = &[
    Stage { name: "source_queue", meaning: "Waiting at the source." },
    Stage { name: "propagation", meaning: "On the wire." },
];

fn origin() -> Provenance {
    Provenance {
        version: "0.1.0".into(),
        scenario_hash: "c0ffee".into(),
        seed: 7,
        scenario: "seed = 7\n".into(),
    }
}

fn flow(id: u64) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(1),
        dst: NodeId::new(2),
        size: Bytes::new(100 + id),
        start: Time::from_ps(1000 * id),
        class: Class::new(0),
    }
}

/// Records flow `id`; every tenth fails, every tenth plus one is unfinished.
fn record(sink: &mut impl FlowSink, id: u64) -> io::Result<()> {
    let flow = flow(id);
    let at = flow.start + Span::from_ps(300 + id);
    let spans = [Span::from_ps(100), Span::from_ps(200 + id)];
    let end = match id % 10 {
        0 => FlowEnd::Failed { at, why: Failure::DestinationDied },
        1 => FlowEnd::Unfinished { delivered: Bytes::new(id), ideal: Span::from_ps(150) },
        _ => FlowEnd::Completed { at, ideal: Span::from_ps(150), stages: &spans },
    };
    sink.record(&FlowRecord { flow: &flow, measured: !id.is_multiple_of(3), end })
}

fn write(path: &Path, flows: u64) {
    let mut writer = FlowWriter::create(path, STAGES, &origin()).unwrap();
    for id in 0..flows {
        record(&mut writer, id).unwrap();
    }
    writer.finish().unwrap();
}

fn read(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> &'a arrow_array::UInt64Array {
    batch.column_by_name(name).unwrap().as_primitive::<UInt64Type>()
}

fn words(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap().as_dictionary::<Int8Type>();
    let typed = column.downcast_dict::<StringArray>().unwrap();
    typed.into_iter().map(|word| word.map(String::from)).collect()
}

#[test]
fn every_flow_comes_back_as_it_was_recorded() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("flows.parquet");
    // More than one batch, and a last one that is not full.
    let count = 2 * BATCH_ROWS as u64 + 17;
    write(&path, count);
    let mut id = 0;
    for batch in read(&path) {
        let (status, failure) = (words(&batch, "status"), words(&batch, "failure"));
        let slowdown = batch.column_by_name("slowdown").unwrap().as_primitive::<Float64Type>();
        let measured = batch.column_by_name("measured").unwrap().as_boolean();
        let src = batch.column_by_name("src").unwrap().as_primitive::<UInt32Type>();
        for row in 0..batch.num_rows() {
            let get = |name| {
                let column = numbers(&batch, name);
                column.is_valid(row).then(|| column.value(row))
            };
            assert_eq!(get("flow_id"), Some(id));
            assert_eq!(src.value(row), 1);
            assert_eq!(get("size_bytes"), Some(100 + id));
            assert_eq!(get("start_ps"), Some(1000 * id));
            let done = id % 10 > 1;
            assert_eq!(get("end_ps"), (id % 10 != 1).then_some(1000 * id + 300 + id));
            assert_eq!(get("fct_ps"), done.then_some(300 + id));
            assert_eq!(get("ideal_fct_ps"), (id % 10 != 0).then_some(150));
            let delivered = [None, Some(id)].get(id as usize % 10).copied();
            assert_eq!(get("delivered_bytes"), delivered.unwrap_or(Some(100 + id)));
            assert_eq!(measured.value(row), !id.is_multiple_of(3));
            assert_eq!(get("stage_source_queue_ps"), done.then_some(100));
            assert_eq!(get("stage_propagation_ps"), done.then_some(200 + id));
            assert_eq!(slowdown.is_valid(row), done);
            if done {
                assert_eq!(slowdown.value(row), (300 + id) as f64 / 150.0);
            }
            let ends = match id % 10 {
                0 => ("failed", Some("destination_died")),
                1 => ("unfinished", None),
                _ => ("completed", None),
            };
            assert_eq!((status[row].as_deref().unwrap(), failure[row].as_deref()), ends);
            id += 1;
        }
    }
    assert_eq!(id, count);
}

#[test]
fn the_file_says_what_it_holds_and_whence_it_came() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("flows.parquet");
    write(&path, 3);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    for field in reader.schema().fields() {
        assert!(!field.metadata()["description"].is_empty(), "{}", field.name());
        let unit = if field.name().ends_with("_ps") { "ps" } else { &field.metadata()["unit"] };
        assert_eq!(field.metadata()["unit"], unit, "{}", field.name());
    }
    let file = reader.metadata().file_metadata();
    assert_eq!(file.created_by(), Some("rackloom 0.1.0"));
    let value = |key: &str| {
        let entries = file.key_value_metadata().unwrap();
        entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.clone())
    };
    assert_eq!(value("scenario_hash").as_deref(), Some("c0ffee"));
    assert_eq!(value("seed").as_deref(), Some("7"));
    assert_eq!(value("scenario").as_deref(), Some("seed = 7\n"));
    let columns: serde_json::Value = serde_json::from_str(&value("columns").unwrap()).unwrap();
    assert_eq!(columns["fct_ps"]["unit"], "ps");
}

#[test]
fn the_same_flows_give_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    write(&first, 20_000);
    write(&second, 20_000);
    assert!(fs::read(first).unwrap() == fs::read(second).unwrap());
}

#[test]
fn no_flows_make_an_empty_table() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("flows.parquet");
    write(&path, 0);
    assert_eq!(read(&path).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("flows.parquet");
    let mut writer = FlowWriter::create(&path, STAGES, &origin()).unwrap();
    record(&mut writer, 5).unwrap();
    drop(writer);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_says_so() {
    // The kernel's device that is always full.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let outcome = Rows::new(full, STAGES, &origin()).and_then(|mut rows| {
        for id in 0..300_000 {
            record(&mut rows, id)?;
        }
        rows.finish()
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    let message = FileError::new(Path::new("flows.parquet"), error).to_string();
    assert!(message.starts_with("flows.parquet: no space left"), "{message}");
}

#[test]
fn memory_is_bounded_by_a_row_group() {
    let mut rows = Rows::new(io::sink(), STAGES, &origin()).unwrap();
    let mut largest = 0;
    for id in 0..400_000 {
        record(&mut rows, id).unwrap();
        largest = largest.max(rows.out.memory_bytes());
    }
    assert!(largest < 64 << 20, "{largest} bytes held");
    assert!(rows.out.row_groups() >= 3, "{} row groups", rows.out.row_groups());
}
