//! How much a controller has to install (§4.2; X10, X11; A19, A20): counted in what the routing engine writes for the
//! full Clique, and in tables that are computed port by port and address by address.

use aquila::address::ENDPOINTS_MAX;
use aquila::pipeline::compute::each;
use aquila::tables::components;
use aquila::tables::compute::input;
use aquila::tables::flows::{Flow, InputClass};
use aquila::tables::{Condition, ROUTING_VCS, Tables, compute::compute};
use aquila::topology::Shape;
use aquila_control::apps::rows::{NONE, decode_flows, split_key};
use aquila_control::nib::Table;
use aquila_control::registers::map::ROUTE;
use report::Unit;
use report::page::Block;
use serde_json::json;

use super::control::Alone;
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::{Effort, Failure, Findings, Watch};

/// Flows of one kind: by input port, and by class of input ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cells {
    by_port: u64,
    by_class: u64,
}

impl Cells {
    fn ratio(self) -> f64 {
        self.by_port as f64 / self.by_class as f64
    }
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counted {
    /// Flows of IP, one for each address at each TiN, and those of the routing engine.
    ip: [u64; 2],
    /// Routes of cells that lead somewhere.
    routes: Cells,
    /// Tables, one for each routing channel: of ports by which cells come, and on which they come.
    tables: Cells,
    /// Tables of all ports or classes on all routing channels.
    all_tables: Cells,
}

/// Tables of input ports, and their rows that lead somewhere.
fn by_port(alone: &Alone, tables: &Tables) -> (u64, u64) {
    let topology = &alone.clique.topology;
    let (shape, condition) = (topology.shape(), Condition::healthy(topology));
    let (mut blocks, mut rows) = (0, 0);
    for (tin, port) in (0..shape.tins()).flat_map(|t| (0..shape.ports()).map(move |p| (t, p))) {
        let Some((class, _)) = input(topology, &condition, tin, port) else { continue };
        for rvc in class.channels() {
            let block = tables.block(tin, port, rvc);
            let leads = |&at: &u16| !tables.by_index(tables.entry(block, at)).is_empty();
            blocks += 1;
            rows += (0..components(shape)).filter(leads).count() as u64;
        }
    }
    (blocks, rows)
}

/// Rows of the base that hold tables of classes of ports, and flows in them that lead somewhere.
fn by_class(alone: &Alone) -> (u64, u64) {
    let all = components(alone.clique.topology.shape());
    let (mut blocks, mut flows) = (0, 0);
    for change in alone.nib.since(0, &[Table::GnetFlow]).changes {
        let is_escape = split_key(&change.key.1).is_none_or(|(_, rest)| rest[0] == NONE);
        let Some(value) = change.value.filter(|_| !is_escape) else { continue };
        let decoded = decode_flows(&value, all).expect("the routing engine has written it");
        blocks += 1;
        flows += decoded.iter().filter(|flow| Flow::all(flow) != 0).count() as u64;
    }
    (blocks, flows)
}

fn count(alone: &Alone) -> Counted {
    let clique = &alone.clique;
    let shape = clique.topology.shape();
    let tins = u64::from(shape.tins());
    // Each TiN has them all.
    let address = (0..shape.tins()).map(|_| each(&clique.plan, &|_, _| true).flows() as u64).sum();
    let indexed = alone.nib.since(0, &[Table::IpFlow]).changes.len() as u64;
    let condition = Condition::healthy(&clique.topology);
    let tables = compute(&clique.topology, &clique.turns, &condition);
    let ((port_tables, port_rows), (class_tables, class_flows)) =
        (by_port(alone, &tables), by_class(alone));
    let rvcs = tins * u64::from(ROUTING_VCS);
    let classes = InputClass::ALL.len() as u64;
    Counted {
        ip: [address, indexed],
        routes: Cells { by_port: port_rows, by_class: class_flows },
        tables: Cells { by_port: port_tables, by_class: class_tables },
        all_tables: Cells { by_port: rvcs * u64::from(shape.ports()), by_class: rvcs * classes },
    }
}

/// Readings of what one flow is for: whose tables, and how many destinations of each.
fn readings(counted: &Counted, shape: &Shape) -> Vec<(String, Cells)> {
    let places = u64::from(ROUTE.register().dimensions[2]);
    let parts = u64::from(components(shape));
    let destinations = [
        (parts - 2, "other pods and TiNs"),
        (parts, "pods and TiNs of the pod"),
        (places, "values of the two fields of an address"),
    ];
    let tables = [
        (counted.tables, "channels on which cells come"),
        (counted.all_tables, "all three routing channels"),
    ];
    let mut all = Vec::new();
    for (tables, whose) in tables {
        for (count, what) in destinations {
            let cells =
                Cells { by_port: tables.by_port * count, by_class: tables.by_class * count };
            all.push((format!("{whose}, {count} {what}"), cells));
        }
    }
    all
}

/// Counts what is installed.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/state.claims.toml"));
    if watch.hear(0.0, "state").is_break() {
        return Err(Failure::Interrupted);
    }
    let mut alone = Alone::new(&Shape::FULL);
    alone.settle();
    let counted = count(&alone);
    let shape = &Shape::FULL;
    let [address, indexed] = counted.ip.map(|count| count as f64);
    let sizes = alone.nib.sizes();
    let places = u64::from(ROUTE.register().dimensions[2]);
    let fields = Cells {
        by_port: counted.tables.by_port * places,
        by_class: counted.tables.by_class * places,
    };
    for (id, value) in [
        ("state.ip", address),
        ("state.ip-indexed", address / indexed),
        ("state.by-port", counted.routes.by_port as f64),
        ("state.by-class", counted.routes.by_class as f64),
        ("state.fewer", counted.routes.ratio()),
        ("state.by-port-fields", fields.by_port as f64),
        ("state.by-class-fields", fields.by_class as f64),
        ("state.compressed", sizes.stored as f64 / sizes.raw as f64),
    ] {
        sheet.measure(id, Measured::one(value));
    }
    let text = "The routing engine computes the full Clique from nothing; what it writes into its base is counted row by \
                row, and beside it the tables that are computed for each input port, and a flow for each address. The \
                second table says what the two published figures for cells could count: each of six readings is a number \
                of tables times a number of destinations.";
    let blocks = vec![counts(&counted, &alone), reading_table(&readings(&counted, shape))];
    Ok(findings("What a controller has to install", text, blocks, sheet))
}

fn counts(counted: &Counted, alone: &Alone) -> Block {
    let shape = alone.clique.topology.shape();
    let escape = 2 * u64::from(shape.tins()) * u64::from(shape.tins());
    let sizes = alone.nib.sizes();
    let Counted { ip, routes, .. } = *counted;
    let rows = [
        ("Flows of IP, one for each address", json!(ip[0]), Unit::Count),
        ("Flows of IP to indexed groups", json!(ip[1]), Unit::Count),
        ("Routes of cells that lead somewhere, by input port", json!(routes.by_port), Unit::Count),
        ("The same by class of input ports", json!(routes.by_class), Unit::Count),
        ("Of the escape channels, in a row a TiN", json!(escape), Unit::Count),
        (
            "Endpoints of a TiN, whose ports are no flow of the base",
            json!(ENDPOINTS_MAX),
            Unit::Count,
        ),
        ("Rows of the base", json!(sizes.rows), Unit::Count),
        ("Their values, raw", json!(sizes.raw), Unit::Bytes),
        ("Their values, as kept", json!(sizes.stored), Unit::Bytes),
    ];
    let text = |(what, count, unit): (&str, serde_json::Value, Unit)| {
        vec![json!(what), json!(unit.show(&count))]
    };
    let columns = [("what", "Counted in the full Clique", Unit::Count), ("count", "", Unit::Count)];
    table("Rows of the base and of tables", &columns, rows.into_iter().map(text).collect())
}

fn reading_table(readings: &[(String, Cells)]) -> Block {
    let row = |(what, cells): &(String, Cells)| {
        vec![json!(what), json!(cells.by_port), json!(cells.by_class), json!(cells.ratio())]
    };
    let columns = [
        ("reading", "Tables, and destinations of each", Unit::Count),
        ("by_port", "By input port; almost 5 million (§4.2)", Unit::Count),
        ("by_class", "By class; about 700,000 (§4.2)", Unit::Count),
        ("ratio", "Ratio; 7.1", Unit::Ratio),
    ];
    table("What the published figures could count", &columns, readings.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a mini Clique has 18 + 8 ports outwards and 18 to endpoints; cells come from endpoints on one channel, from
    /// other pods on two, from the pod on three. A table without a way is not written: after even-, which is the last
    /// phase of P1, cells on the last channel may only go to a lower place an even distance away, and places 0 and 1
    /// of a pod's four have none.
    #[test]
    fn x11_tables_are_those_of_ports_and_channels_on_which_cells_come() {
        let mut alone = Alone::new(&Shape::MINI);
        alone.settle();
        let counted = count(&alone);
        let ports = u64::from(Shape::MINI.ports());
        let terminals = ports - 18 - 8;
        assert_eq!(counted.tables.by_port, 68 * (terminals + 2 * 8 + 3 * 18));
        assert_eq!(counted.tables.by_class, 68 * 15 - 17 * 2);
        // 16 other pods and 3 other TiNs of the pod.
        assert!(counted.routes.by_class <= 19 * counted.tables.by_class);
        assert!(counted.routes.by_port <= 19 * counted.tables.by_port);
        // Three addresses of two versions a TiN, at each of 68.
        assert_eq!(counted.ip, [68 * 68 * 6, 68 * 6]);
    }
}
