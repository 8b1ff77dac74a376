//! Racks, line cards, optical modules, cables and bundles.

use super::Length;

/// Pods of a rack (App. A).
pub const PODS_PER_RACK: u16 = 2;

/// The fibre between two pods on the grid of racks (U11): two rows.
pub(super) fn fibre(pods: u16, from: u16, to: u16) -> Length {
    /// From rack to rack of a row (our choice, U11). Unit: cm.
    const PITCH: u32 = 80;
    /// From row to row: an aisle and a rack (our choice). Unit: cm.
    const ROW: u32 = 240;
    /// Slack at both ends (our choice, U11). Unit: cm.
    const SLACK: u32 = 2 * 1_000;
    let columns = pods.div_ceil(PODS_PER_RACK).div_ceil(2).max(1);
    let place = |pod: u16| (pod / PODS_PER_RACK / columns, pod / PODS_PER_RACK % columns);
    let ((row, column), (other_row, other_column)) = (place(from), place(to));
    let rows = u32::from(row.abs_diff(other_row)) * ROW;
    Length::from_cm(SLACK + rows + u32::from(column.abs_diff(other_column)) * PITCH)
}
