//! The paper's own arithmetic (§2, §7).

use kernel::{Bytes, Rate, Span};
use report::Unit;
use serde_json::json;

use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::{Effort, Failure, Findings, Watch};

/// §2: end-to-end round trip of 64 B.
const ROUND_TRIP: Span = Span::from_us(5);

/// §2 and §7, worked out again.
pub(super) fn run(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/section2.claims.toml"));
    let [fast, slow] = [100, 10].map(Rate::from_gbps);
    let buffer = Bytes::new(2_000_000);
    let drain = fast.send_time(buffer);
    // "2 Mbits" each.
    let transfers = buffer.bits() / 2_000_000;
    // Six transfers of a round trip's bytes from each of 64 units.
    let overrun = |rate: Rate| 64 * 6 * rate.bytes_in(ROUND_TRIP).get();
    let burst = 128.0 / (4.0 * 1_500.0);
    let small = 128.0 / (4.0 * 64.0);
    let rows = [
        ("fast", fast.bytes_in(ROUND_TRIP).get() as f64, Unit::Bytes),
        ("slow", slow.bytes_in(ROUND_TRIP).get() as f64, Unit::Bytes),
        ("drain", drain.as_seconds(), Unit::Seconds),
        ("transfers", transfers as f64, Unit::Count),
        ("overrun", overrun(fast) as f64, Unit::Bytes),
        ("overrun-slow", overrun(slow) as f64, Unit::Bytes),
        ("burst", burst, Unit::Share),
        ("small", small, Unit::Share),
    ];
    for (word, value, _) in rows {
        sheet.measure(&format!("section2.{word}"), Measured::one(value));
    }
    let cells =
        rows.iter().map(|&(word, value, unit)| vec![json!(word), json!(unit.format(value))]);
    let columns = [("row", "Row", Unit::Count), ("value", "Value", Unit::Count)];
    let blocks = vec![table("The rows", &columns, cells.collect())];
    Ok(findings("What buffers and round trips hold", "Arithmetic alone.", blocks, sheet))
}
