//! Just enough of Thrift's compact protocol to look at what a Parquet file claims before its reader
//! takes memory for it.
//!
//! Source: the Thrift compact protocol specification. Leaves out: everything that Parquet's metadata
//! does not use.

use super::shape::Shape;

/// The types of fields and of elements.
pub mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const I8: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
    pub const UUID: u8 = 13;
}

/// Structs within structs; Parquet's are a handful deep (our choice).
const DEPTH_MAX: usize = 16;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// Reads values one after another.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), Malformed> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return Err(Malformed);
        }
        self.at += count as usize;
        Ok(())
    }

    /// An unsigned number in groups of seven bits, the lowest first.
    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// A signed number: its sign is the lowest bit.
    pub fn integer(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a struct; `visit` is shown the number and type of each field and reads it, or says that it
    /// did not, whereupon it is skipped.
    pub fn fields(
        &mut self,
        mut visit: impl FnMut(&mut Self, i16, u8) -> Result<Read, Malformed>,
    ) -> Result<(), Malformed> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            let (delta, kind) = (head >> 4, head & 0xf);
            if head == 0 {
                return Ok(());
            }
            id = match delta {
                0 => i16::try_from(self.integer()?).map_err(|_| Malformed)?,
                delta => id.checked_add(i16::from(delta)).ok_or(Malformed)?,
            };
            if visit(self, id, kind)? == Read::No {
                self.skip(kind, 0)?;
            }
        }
    }

    /// The head of a list: how many elements of which type. Each takes at least a byte, so no more are
    /// claimed than there are bytes.
    pub fn list(&mut self) -> Result<(u64, u8), Malformed> {
        let head = self.byte()?;
        let count = match head >> 4 {
            0xf => self.varint()?,
            short => u64::from(short),
        };
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Malformed);
        }
        Ok((count, head & 0xf))
    }

    /// Passes over a value of type `kind` that must be of this shape; what is not part of the shape is passed
    /// over by its type.
    pub fn check(&mut self, shape: &Shape, kind: u8) -> Result<(), Malformed> {
        let expected = match shape {
            Shape::Struct(fields) if kind == kind::STRUCT => {
                return self.fields(|reader, id, kind| {
                    let Some((_, shape)) = fields.iter().find(|(known, _)| *known == id) else {
                        return Ok(Read::No);
                    };
                    reader.check(shape, kind).map(|()| Read::Yes)
                });
            }
            Shape::List(element) if kind == kind::LIST => {
                let (count, kind) = self.list()?;
                return (0..count).try_for_each(|_| self.check(element, kind));
            }
            // A field's truth is its type.
            Shape::Bool if kind == kind::TRUE || kind == kind::FALSE => return Ok(()),
            Shape::I8 => kind::I8,
            Shape::I16 => kind::I16,
            Shape::I32 => kind::I32,
            Shape::I64 => kind::I64,
            Shape::Double => kind::DOUBLE,
            Shape::Binary => kind::BINARY,
            Shape::Bool | Shape::List(_) | Shape::Struct(_) => return Err(Malformed),
        };
        if kind == expected { self.skip(kind, 0) } else { Err(Malformed) }
    }

    /// Passes over a value of type `kind`; lists in it claim no more than is there.
    pub fn skip(&mut self, kind: u8, depth: usize) -> Result<(), Malformed> {
        if depth > DEPTH_MAX {
            return Err(Malformed);
        }
        match kind {
            // A field's truth is its type.
            kind::TRUE | kind::FALSE => Ok(()),
            kind::I8 => self.skip_bytes(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.skip_bytes(8),
            kind::UUID => self.skip_bytes(16),
            kind::BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)
            }
            kind::LIST | kind::SET => {
                let (count, kind) = self.list()?;
                self.elements(count, kind, depth)
            }
            kind::MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                for _ in 0..count {
                    self.elements(1, kinds >> 4, depth)?;
                    self.elements(1, kinds & 0xf, depth)?;
                }
                Ok(())
            }
            kind::STRUCT => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Ok(());
                }
                if head >> 4 == 0 {
                    self.integer()?;
                }
                self.skip(head & 0xf, depth + 1)?;
            },
            _ => Err(Malformed),
        }
    }

    /// Passes over `count` elements of a list.
    fn elements(&mut self, count: u64, kind: u8, depth: usize) -> Result<(), Malformed> {
        // An element's truth takes a byte by the specification and none by the library, which would walk any
        // number of them; a footer has no such list.
        if matches!(kind, kind::TRUE | kind::FALSE) && count > 0 {
            return Err(Malformed);
        }
        (0..count).try_for_each(|_| self.skip(kind, depth + 1))
    }
}

/// Whether a visitor has read a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_numbered_by_their_distance_or_in_full() {
        // 1: i32 = -1; 16 (in full): i64 = 300; 17: struct { 1: true }; 18: list of 2 i32.
        let bytes = [0x15, 1, 0x06, 32, 0xd8, 4, 0x1c, 0x11, 0, 0x19, 0x25, 2, 4, 0];
        let (mut numbers, mut ids) = (Vec::new(), Vec::new());
        let mut reader = Reader::new(&bytes);
        let read = reader.fields(|reader, id, kind| {
            ids.push((id, kind));
            if matches!(kind, kind::I32 | kind::I64) {
                numbers.push(reader.integer()?);
                return Ok(Read::Yes);
            }
            Ok(Read::No)
        });
        assert_eq!(read, Ok(()));
        assert_eq!(numbers, [-1, 300]);
        assert_eq!(ids, [(1, kind::I32), (16, kind::I64), (17, kind::STRUCT), (18, kind::LIST)]);
        assert_eq!(reader.position(), bytes.len());
    }

    #[test]
    fn a_list_claims_no_more_than_is_there_and_nothing_is_endlessly_deep() {
        // Two thousand million elements in seven bytes.
        let mut reader = Reader::new(&[0xf5, 0xff, 0xff, 0xff, 0xff, 7, 0]);
        assert_eq!(reader.list(), Err(Malformed));
        let deep = vec![0x1c; 1_000_000];
        assert_eq!(Reader::new(&deep).skip(kind::STRUCT, 0), Err(Malformed));
        // A map of 2^60 pairs of truths.
        let map = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x11];
        assert_eq!(Reader::new(&map).skip(kind::MAP, 0), Err(Malformed));
    }
}
