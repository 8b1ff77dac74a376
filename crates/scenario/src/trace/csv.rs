//! Traces in CSV, first line the column heads.

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::{At, Rows};
use crate::tree::Place;

/// Reads all rows into `rows`, problems included.
pub fn read(bytes: &[u8], rows: &mut Rows<'_>) {
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(bytes);
    let heads = match reader.headers() {
        Ok(heads) => heads.clone(),
        Err(error) => return rows.complain_whole(format!("not readable as CSV: {error}")),
    };
    if !rows.heads(Place::Line(1), heads.iter()) {
        return;
    }
    // A value cut short may still look whole, so a last line without its end is not trusted.
    let unended = !bytes.ends_with(b"\n");
    let mut record = StringRecord::new();
    loop {
        let line = reader.position().line() as usize;
        match reader.read_record(&mut record) {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => {
                let what = match error.kind() {
                    ErrorKind::Utf8 { .. } => "not text in UTF-8".to_string(),
                    _ => format!("not readable as CSV: {error}"),
                };
                return rows.complain(At::Line(line), "", what);
            }
        }
        let line = record.position().map_or(line, |position| position.line() as usize);
        let last = reader.position().byte() as usize >= bytes.len();
        if last && unended {
            let message = "the last line is torn: it does not end in a line break; write it whole, \
                           or cut it off";
            rows.complain(At::Line(line), "", message);
        } else if record.len() == heads.len() {
            rows.row(At::Line(line), |column| record.get(column));
        } else {
            let message = format!("found {} values; expected {}", record.len(), heads.len());
            rows.complain(At::Line(line), "", message);
        }
    }
}
