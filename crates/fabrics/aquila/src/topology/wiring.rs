//! Which port is plugged into which (M008, M009; our choice).

use super::{Far, Link, LocalWiring, Shape};

/// The links inside all pods, by pod, lower place, higher place and copy. Ports of a TiN are taken in that
/// order, too: links to the first of its peers come first.
pub(super) fn local(shape: &Shape) -> Vec<Link> {
    let tins = shape.tins_per_pod;
    let mut links = Vec::new();
    for pod in 0..shape.pods {
        let mut used = vec![0u8; usize::from(tins)];
        for low in 0..tins {
            for high in low + 1..tins {
                for _ in 0..copies(shape, low, high) {
                    let mut end = |place: u16| {
                        let next = &mut used[usize::from(place)];
                        *next += 1;
                        Far { tin: shape.tin(pod, place), port: *next - 1 }
                    };
                    let (low, high) = (end(low), end(high));
                    links.push(Link { low, high, is_global: false });
                }
            }
        }
    }
    links
}

/// How many links join two places of a pod, the lower first (M008).
fn copies(shape: &Shape, low: u16, high: u16) -> u16 {
    let (tins, ports) = (shape.tins_per_pod, u16::from(shape.local_ports));
    let (each, over) = (ports / (tins - 1), ports % (tins - 1));
    let extra = match shape.local_wiring {
        LocalWiring::Uniform => 0,
        LocalWiring::CardMate if low / 2 == high / 2 => over,
        LocalWiring::CardMate => 0,
        // Each place has two neighbours; what is over, is less than there are peers.
        LocalWiring::Ring if high - low == 1 || (low == 0 && high == tins - 1) => over / 2,
        LocalWiring::Ring => 0,
    };
    each + extra
}

/// The links between pods, by lower pod, higher pod and copy. The link of a copy leaves a pod where [`ends`]
/// says, by how far the other pod is ahead; so it is at both of its ends.
pub(super) fn global(shape: &Shape) -> Vec<Link> {
    let ends = ends(shape);
    let mut links = Vec::new();
    for low in 0..shape.pods {
        for high in low + 1..shape.pods {
            for copy in 0..shape.links_per_pair() {
                let end = |pod: u16, distance: u16| {
                    let (place, port) = ends.of(distance, copy);
                    Far { tin: shape.tin(pod, place), port: shape.local_ports + port }
                };
                let (ahead, back) = (high - low, shape.pods - (high - low));
                links.push(Link { low: end(low, ahead), high: end(high, back), is_global: true });
            }
        }
    }
    links
}

/// Place in the pod and global port, by distance and copy.
struct Ends {
    copies: usize,
    ends: Vec<(u16, u8)>,
}

impl Ends {
    fn of(&self, distance: u16, copy: u16) -> (u16, u8) {
        self.ends[usize::from(distance - 1) * self.copies + usize::from(copy)]
    }
}

fn ends(shape: &Shape) -> Ends {
    let (tins, copies) = (shape.tins_per_pod, shape.links_per_pair());
    let turns = shape.pods.saturating_sub(1).div_ceil(tins);
    // Copies of a pair are as far apart as they can be: two, half a pod.
    let preferred = |distance: u16, copy: u16| (distance - 1 + copy * tins / copies) % tins;
    let has_room = copies <= tins && copies * turns <= u16::from(shape.global_ports);
    let mut ends = Vec::new();
    let mut used = vec![0u8; usize::from(tins)];
    for distance in 1..shape.pods {
        // The TiNs and line cards that have a copy of this distance.
        let mut has = vec![0u8; usize::from(tins)];
        for copy in 0..copies {
            let wish = preferred(distance, copy);
            if has_room {
                ends.push((wish, (turns * copy + (distance - 1) / tins) as u8));
                continue;
            }
            // No such pattern fits the ports: the TiN with the fewest links of this pair, then of all, then
            // on a card without one. Loads so differ by one at the most, and no TiN has too many.
            let cost = |place: u16| {
                let mate = has.get(usize::from(place ^ 1)).copied().unwrap_or(0);
                let place_used = (has[usize::from(place)], used[usize::from(place)]);
                (place_used, mate, (place + tins - wish) % tins)
            };
            let place = (0..tins).min_by_key(|&place| cost(place)).expect("a pod has a TiN");
            ends.push((place, used[usize::from(place)]));
            used[usize::from(place)] += 1;
            has[usize::from(place)] += 1;
        }
    }
    Ends { copies: usize::from(copies), ends }
}
