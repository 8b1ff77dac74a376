//! What operators want: of TiNs and links whether they are to be used (Aquila §4.2, M730), of hosts whether they are managed
//! through the Clique (App. A, M616).

use super::Clique;
use super::rows::Admin;
use crate::nib::{Nib, Table, Write};

/// Hosts of a TiN (§3.1).
pub const HOSTS: u8 = 2;

/// One of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Whether a TiN is to be used.
    Tin(u16, Admin),
    /// Whether a link is to be used, by its number in the topology.
    Link(u32, Admin),
    /// Which management sidebands of a TiN's hosts are to be on: a bit for each host.
    Sidebands(u16, u8),
}

/// What it is about is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no {what} {number}; expected 0 to {last}")]
pub struct NotThere {
    /// What.
    pub what: &'static str,
    /// Which was asked for.
    pub number: u32,
    /// The last that there is.
    pub last: u32,
}

impl Wish {
    /// Whether a Clique has what it is about.
    ///
    /// # Errors
    /// It has not.
    pub fn check(self, clique: &Clique) -> Result<(), NotThere> {
        let tins = u32::from(clique.topology.shape().tins());
        let links = clique.topology.links().len() as u32;
        let all_hosts = (1 << HOSTS) - 1;
        let (what, number, count) = match self {
            Self::Sidebands(_, hosts) if hosts > all_hosts => ("host", hosts.ilog2(), HOSTS.into()),
            Self::Tin(tin, _) | Self::Sidebands(tin, _) => ("TiN", tin.into(), tins),
            Self::Link(link, _) => ("link", link, links),
        };
        let last = count.saturating_sub(1);
        if number <= last { Ok(()) } else { Err(NotThere { what, number, last }) }
    }

    /// Its row.
    #[must_use]
    pub fn write(self) -> Write {
        match self {
            Self::Tin(tin, admin) => Write::set(Table::Node, &tin.to_be_bytes(), &[admin as u8]),
            Self::Link(link, admin) => Write::set(Table::Link, &link.to_be_bytes(), &[admin as u8]),
            Self::Sidebands(tin, hosts) => {
                Write::set(Table::Sideband, &tin.to_be_bytes(), &[hosts])
            }
        }
    }

    /// All that a base has, in the order of TiNs and links.
    #[must_use]
    pub fn all(base: &Nib) -> Vec<Self> {
        let changes = base.since(0, &[Table::Node, Table::Link, Table::Sideband]).changes;
        let mut rows: Vec<_> =
            changes.into_iter().filter_map(|c| Some((c.key, c.value?))).collect();
        rows.sort_unstable();
        let read = |((table, place), value): ((Table, Vec<u8>), Vec<u8>)| match (table, &place[..])
        {
            (Table::Node, &[a, b]) => {
                Some(Self::Tin(u16::from_be_bytes([a, b]), Admin::decode(&value)?))
            }
            (Table::Link, &[a, b, c, d]) => {
                Some(Self::Link(u32::from_be_bytes([a, b, c, d]), Admin::decode(&value)?))
            }
            (Table::Sideband, &[a, b]) => {
                Some(Self::Sidebands(u16::from_be_bytes([a, b]), *value.first()?))
            }
            _ => None,
        };
        rows.into_iter().filter_map(read).collect()
    }

    /// Whether the routing engine says that nothing passes what is to be drained any more, so that it may be taken out.
    #[must_use]
    pub fn is_drained(self, base: &Nib) -> bool {
        let Write { key: (table, place), .. } = self.write();
        let drained = [&place[..], &[1]].concat();
        matches!(table, Table::Node | Table::Link) && base.get(table, &drained).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::world::World;
    use super::*;
    use aquila::topology::Shape;

    #[test]
    fn m730_m616_wishes_come_back_from_their_rows() {
        let wishes = [
            Wish::Tin(0x102, Admin::Drained),
            Wish::Tin(0x201, Admin::Off),
            Wish::Link(0x0102_0304, Admin::InService),
            Wish::Sidebands(3, 0b10),
        ];
        let mut base = Nib::new();
        for wish in wishes.iter().rev() {
            base.write(&[wish.write()]).unwrap();
        }
        // What the routing engine answers is no wish.
        base.write(&[Write::set(Table::Node, &[1, 2, 1], &[1])]).unwrap();
        assert_eq!(Wish::all(&base), wishes);
        assert_eq!(wishes.map(|wish| wish.is_drained(&base)), [true, false, false, false]);
    }

    #[test]
    fn wishes_about_what_is_not_there_are_refused() {
        let clique = World::new(&Shape::TINY, 1).clique;
        let last = clique.topology.links().len() as u32 - 1;
        for wish in [Wish::Tin(17, Admin::Off), Wish::Link(last, Admin::Off), Wish::Sidebands(0, 3)]
        {
            assert_eq!(wish.check(&clique), Ok(()));
        }
        let refused = |wish: Wish| wish.check(&clique).unwrap_err().to_string();
        assert_eq!(refused(Wish::Tin(18, Admin::Off)), "there is no TiN 18; expected 0 to 17");
        assert_eq!(refused(Wish::Sidebands(18, 1)), "there is no TiN 18; expected 0 to 17");
        assert_eq!(refused(Wish::Sidebands(0, 4)), "there is no host 2; expected 0 to 1");
        let text = refused(Wish::Link(last + 1, Admin::Off));
        assert_eq!(text, format!("there is no link {}; expected 0 to {last}", last + 1));
    }
}
