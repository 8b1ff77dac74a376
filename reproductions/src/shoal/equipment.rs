//! Power and cost beside a packet-switched network (§5, Fig. 11).

use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};
use serde_json::json;
use shoal::equipment::{Equipment, RETIMING_AREA, SERIAL_LINK_AREA};

use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, level, plot, published, table};
use crate::{Effort, Failure, Findings, Watch};

/// Shoal §5.
const NODES: u32 = 512;
/// Shoal §5: what a circuit switch may cost by its area.
const BY_AREA: f64 = 0.15;
/// Points of each curve (our choice).
const POINTS: u32 = 50;
/// Right end of the curves, as a share of a packet switch (our choice: past both break-evens).
const COST_MAX: f64 = 0.5;

const FITS: &str = "two stages of 64 ports connect 512 nodes";

/// E06: power.
pub(super) fn power(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/power.claims.toml"));
    let both = Equipment::default().compare(NODES).expect(FITS);
    let mut put = |id: &str, value: f64| sheet.measure(id, Measured::one(value));
    put("power.switches-packet", f64::from(both.packet.switches));
    put("power.switches-shoal", f64::from(both.shoal.switches));
    put("power.nic-shoal", both.shoal.nic_watts);
    put("power.nic-packet", both.packet.nic_watts);
    put("power.packet", both.packet.total_watts);
    put("power.shoal", both.shoal.total_watts);
    put("power.saving", both.power_saving);
    let row = |name: &str, power: shoal::equipment::NetworkPower, share: f64| {
        let nics = f64::from(NODES) * power.nic_watts;
        vec![
            json!(name),
            json!(power.switches),
            json!(power.total_watts - nics),
            json!(nics),
            json!(power.total_watts),
            json!(share),
        ]
    };
    let columns = [
        ("network", "Network", Unit::Count),
        ("switches", "Switches", Unit::Count),
        ("switch_watts", "Switches draw", Unit::Watts),
        ("nic_watts", "NICs draw", Unit::Watts),
        ("total_watts", "Together", Unit::Watts),
        ("rack_share", "Of a rack's 15 kW", Unit::Share),
    ];
    let rows = vec![
        row("Packet-switched, 50 Gbps a node", both.packet, both.packet_rack_share),
        row("Shoal, 100 Gbps a node", both.shoal, both.shoal_rack_share),
    ];
    let text = "512 nodes on switches of 64 ports in a folded Clos; Shoal's nodes have twice the \
                bandwidth and so twice the switches (§5).";
    Ok(findings("Power", text, vec![table("", &columns, rows)], sheet))
}

/// E05: cost.
pub(super) fn cost(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig11.claims.toml"));
    let with = |shoal_nic_factor| Equipment { shoal_nic_factor, ..Equipment::default() };
    let cheap = |factor, saving| with(factor).circuit_switch_cost_for(NODES, saving).expect(FITS);
    let relative = |factor, cost| with(factor).relative_cost(NODES, cost).expect(FITS);
    let points = [
        ("fig11.break-even-2", 2.0, 0.0),
        ("fig11.break-even-3", 3.0, 0.0),
        ("fig11.saving-2", 2.0, 0.4),
        ("fig11.saving-3", 3.0, 0.4),
    ];
    for (id, factor, saving) in points {
        sheet.measure(id, Measured::one(cheap(factor, saving)));
    }
    sheet.measure("fig11.area", Measured::one(SERIAL_LINK_AREA * RETIMING_AREA));
    sheet.measure("fig11.saving", Measured::one(1.0 - relative(2.5, BY_AREA)));
    let line = |factor: f64| {
        let at = |index: u32| COST_MAX * f64::from(index) / f64::from(POINTS);
        let points = (0..=POINTS).map(|index| (at(index), relative(factor, at(index)))).collect();
        PlotSeries::new(format!("NIC {factor}×"), SeriesStyle::Line, points)
    };
    let printed = points.map(|(id, _, saving)| (sheet.number(id), 1.0 - saving)).to_vec();
    let series = vec![
        line(2.0),
        line(3.0),
        published("published", printed),
        level("packet-switched network", 0.0, 1.0),
    ];
    let x = Axis::linear("Cost of a circuit switch, of a packet switch", Unit::Share);
    let y = Axis::linear("Cost of Shoal, of the packet network", Unit::Share);
    let figure = plot("Fig. 11", "A Shoal NIC at 2 and 3 times a plain one.", x, y, series);
    let text = "What a circuit switch may cost for Shoal to be cheaper (§5). The paper does not \
                print what a NIC costs; its points follow from 1/128 of a packet switch, but for \
                one.";
    Ok(findings("Cost", text, vec![Block::Plots(vec![figure])], sheet))
}
