//! The columns of `trace.parquet` that are about cells, where packets go in cells inside of switches.

use std::io;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, RecordBatch, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use kernel::Span;
use rack::trace::{CellHop, Hop, Purpose};

use super::columns::Column;
use super::read::foreign;

/// The columns of some rows that are about cells: null where a row is about a packet.
pub(super) fn arrays(hops: &[Hop]) -> Vec<ArrayRef> {
    let cells = || hops.iter().map(|hop| hop.cell.as_deref());
    let text = |value: fn(&CellHop) -> &str| -> ArrayRef {
        let mut builder = StringDictionaryBuilder::<Int8Type>::new();
        cells().for_each(|cell| builder.append_option(cell.map(value)));
        Arc::new(builder.finish())
    };
    let span = |value: fn(&CellHop) -> Span| -> ArrayRef {
        Arc::new(UInt64Array::from_iter(cells().map(|cell| cell.map(|cell| value(cell).as_ps()))))
    };
    vec![
        Arc::new(UInt32Array::from_iter(cells().map(|cell| cell.map(|cell| cell.number)))),
        text(|cell| &cell.kind),
        text(|cell| cell.purpose.as_str()),
        Arc::new(UInt8Array::from_iter(cells().map(|cell| cell.map(|cell| cell.vc)))),
        span(|cell| cell.fifo),
        span(|cell| cell.room),
        span(|cell| cell.crossbar),
        span(|cell| cell.line),
        span(|cell| cell.credit),
    ]
}

/// The columns about cells, with what they are.
pub(super) fn columns() -> Vec<Column> {
    use DataType::{UInt8, UInt32, UInt64};
    let word = || DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    [
        (
            "cell",
            UInt32,
            "",
            "Number of the cell among its packet's, as they left their endpoints; null: the row is about the \
             packet itself",
        ),
        ("cell_kind", word(), "", "What kind of cell, in the fabric's word"),
        (
            "cell_purpose",
            word(),
            "",
            "request: to be asked for data; solicitation: asks for them; payload: brings them; notice: other",
        ),
        ("vc", UInt8, "", "The virtual channel that it leaves on"),
        ("wait_fifo_ps", UInt64, "ps", "Of its wait, behind other cells in the FIFO of its input"),
        ("wait_room_ps", UInt64, "ps", "Of its wait, for room in its queue at the output"),
        ("wait_crossbar_ps", UInt64, "ps", "Of its wait, for its turn at the crossbar"),
        ("wait_line_ps", UInt64, "ps", "Of its wait, in its queue at the output: the line was busy"),
        (
            "wait_credit_ps",
            UInt64,
            "ps",
            "Of its wait, there: the line was idle, and its channel had no credit",
        ),
    ]
    .into_iter()
    .map(Column::nullable)
    .collect()
}

/// What rows say of cells.
pub(super) struct Cells<'a> {
    number: &'a PrimitiveArray<UInt32Type>,
    kind: Vec<Option<&'a str>>,
    purpose: Vec<Option<&'a str>>,
    vc: &'a PrimitiveArray<UInt8Type>,
    waits: [&'a PrimitiveArray<UInt64Type>; 5],
}

impl<'a> Cells<'a> {
    /// Those of a batch; `None` if it has no such columns.
    pub(super) fn of(batch: &'a RecordBatch) -> io::Result<Option<Self>> {
        if batch.column_by_name("cell").is_none() {
            return Ok(None);
        }
        let found = |name: &str| {
            let missing = || foreign(&format!("has no column {name:?}"));
            batch.column_by_name(name).map(|column| &**column).ok_or_else(missing)
        };
        let wrong = |name: &str| foreign(&format!("its column {name:?} holds no numbers"));
        let long =
            |name: &str| found(name)?.as_primitive_opt::<UInt64Type>().ok_or_else(|| wrong(name));
        Ok(Some(Self {
            number: found("cell")?.as_primitive_opt().ok_or_else(|| wrong("cell"))?,
            kind: words(found("cell_kind")?)?,
            purpose: words(found("cell_purpose")?)?,
            vc: found("vc")?.as_primitive_opt().ok_or_else(|| wrong("vc"))?,
            waits: [
                long("wait_fifo_ps")?,
                long("wait_room_ps")?,
                long("wait_crossbar_ps")?,
                long("wait_line_ps")?,
                long("wait_credit_ps")?,
            ],
        }))
    }

    /// What a row says of a cell; `None` if it is about none.
    pub(super) fn cell(&self, row: usize) -> io::Result<Option<Box<CellHop>>> {
        if self.number.is_null(row) {
            return Ok(None);
        }
        let unknown = || foreign("does not say what a cell is");
        let purpose = self.purpose[row].and_then(Purpose::of_word).ok_or_else(unknown)?;
        let [fifo, room, crossbar, line, credit] =
            self.waits.map(|column| Span::from_ps(column.value(row)));
        Ok(Some(Box::new(CellHop {
            number: self.number.value(row).min(u32::MAX - 1),
            purpose,
            kind: self.kind[row].ok_or_else(unknown)?.to_string().into(),
            vc: self.vc.value(row),
            fifo,
            room,
            crossbar,
            line,
            credit,
        })))
    }
}

/// The words of all rows.
fn words(column: &dyn Array) -> io::Result<Vec<Option<&str>>> {
    let wrong = || foreign("holds no words where it says what cells are");
    let dictionary = column.as_any_dictionary_opt().ok_or_else(wrong)?;
    let values = dictionary.values().as_string_opt::<i32>().ok_or_else(wrong)?;
    if values.is_empty() {
        return Ok(vec![None; column.len()]);
    }
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    Ok(keys.map(|(row, key)| column.is_valid(row).then(|| values.value(key))).collect())
}
