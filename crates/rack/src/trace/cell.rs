//! Cells, where packets go in cells inside of switches.

use std::borrow::Cow;

use kernel::Span;

/// What a cell is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Purpose {
    /// It asks its destination to be asked for data.
    Request,
    /// It asks for data, of whoever has them.
    Solicitation,
    /// It brings what was asked for.
    Payload,
    /// It says that nothing will come of it, or that something has ended.
    Notice,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Request, Self::Solicitation, Self::Payload, Self::Notice];

    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Solicitation => "solicitation",
            Self::Payload => "payload",
            Self::Notice => "notice",
        }
    }

    /// The purpose of this word; `None` if there is none.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.as_str() == word)
    }
}

/// A hop of a cell: an output of a switch inside, or, at first, the line from an endpoint into its switch. What it waited
/// for adds up to [`Hop::wait`](super::Hop::wait), but for the first hop, where that is the endpoint's to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellHop {
    /// Which of the packet's cells, counted from 0 as they left their endpoints.
    pub number: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// What kind of cell, in the fabric's word.
    pub kind: Cow<'static, str>,
    /// The virtual channel that it leaves on.
    pub vc: u8,
    /// Behind other cells in the FIFO of its input.
    pub fifo: Span,
    /// At the head of that, for room in its queue at the output.
    pub room: Span,
    /// At the head, for its turn at the crossbar: its input or its output was busy.
    pub crossbar: Span,
    /// In its queue at the output, while the line was busy.
    pub line: Span,
    /// There, while the line was idle: for credit of its virtual channel, or the endpoint did not take it.
    pub credit: Span,
}
