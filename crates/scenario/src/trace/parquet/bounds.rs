//! What a Parquet file claims, held against what it is, before its reader takes memory for it.
//!
//! A file of two kilobytes may claim pages of gigabytes, a billion rows in a run-length code, or
//! a dictionary of as many entries: the reader trusts each of them. So the footer is walked for lists
//! that claim more than is there, and the head of each page for its sizes and counts.

use std::io::Read as _;

use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::ChunkReader;
use flate2::read::MultiGzDecoder;

use super::shape;
use super::thrift::{Malformed, Read, Reader, kind};

/// Largest footer, in bytes. Our choice: that of thousands of row groups.
const FOOTER_MAX: u64 = 1 << 22;
/// Most columns of a file that is read at all; a trace has no more than eight.
const COLUMNS_MAX: u64 = 64;
/// A page may claim this many bytes however few it has in the file. Our choice: sixteen times what
/// writers aim at.
const PAGE_FREE: u64 = 16 << 20;
/// A longer one must have one byte in the file for so many that it claims. Our choice: above what numbers
/// compress to.
const PAGE_RATIO: u64 = 64;
/// Longest head of a page: its statistics may quote two values. Our choice.
const HEAD_MAX: u64 = 1 << 16;

/// Why a file is not read.
pub enum Refused {
    /// It contradicts itself.
    Damaged(String),
    /// It is well-formed and asks for what is not given.
    Unsuitable(String),
}

impl From<Malformed> for Refused {
    fn from(_: Malformed) -> Self {
        Self::damaged("its description is not well-formed")
    }
}

impl Refused {
    fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged(why.into())
    }
}

/// Checks the footer: its lists claim no more than is there.
///
/// # Errors
/// When they do, or there is none.
pub fn check_footer<R: ChunkReader>(file: &R) -> Result<(), Refused> {
    let length = file.len();
    // The last eight bytes: the footer's length and the format's mark.
    let tail = length.checked_sub(8).ok_or_else(|| Refused::damaged("it is too short"))?;
    let bytes = bytes(file, tail, 4)?;
    let size = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let start = tail.checked_sub(size);
    let start = start.ok_or_else(|| Refused::damaged("its description is longer than the file"))?;
    if size > FOOTER_MAX {
        let message = format!("its description takes {size} bytes; at most {FOOTER_MAX} are read");
        return Err(Refused::Unsuitable(message));
    }
    let footer = self::bytes(file, start, size)?;
    Reader::new(&footer).check(&shape::FILE, kind::STRUCT)?;
    let mut columns = 0;
    Reader::new(&footer).fields(|reader, id, kind| {
        // FileMetaData: 2 is the schema, a list of structs, the first of them its root.
        if (id, kind) == (2, kind::LIST) {
            let mut list = Reader::new(&footer[reader.position()..]);
            columns = list.list()?.0;
        }
        Ok(Read::No)
    })?;
    if columns > COLUMNS_MAX {
        let message = format!("has {columns} columns; a trace has at most eight");
        return Err(Refused::Unsuitable(message));
    }
    Ok(())
}

fn bytes<R: ChunkReader>(file: &R, start: u64, count: u64) -> Result<bytes::Bytes, Refused> {
    let count = usize::try_from(count).map_err(|_| Refused::damaged("a size beyond all memory"))?;
    file.get_bytes(start, count).map_err(|error| Refused::Damaged(error.to_string()))
}

/// How many rows there are, by the footer.
///
/// # Errors
/// When a number is negative, or they do not add up.
pub fn rows(metadata: &ParquetMetaData) -> Result<u64, Refused> {
    let counts = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let total = counts.sum::<Option<u64>>();
    let stated = u64::try_from(metadata.file_metadata().num_rows()).ok();
    total.filter(|_| total == stated).ok_or_else(|| Refused::damaged("its rows do not add up"))
}

/// Checks the head of each page of each column.
///
/// # Errors
/// When a page claims what cannot be.
pub fn check_pages<R: ChunkReader>(file: &R, metadata: &ParquetMetaData) -> Result<(), Refused> {
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        for column in group.columns() {
            let name = column.column_descr().name().to_string();
            if column.column_descr().max_rep_level() > 0 {
                return Err(Refused::Unsuitable(format!(
                    "column {name} holds lists; expected one value a row"
                )));
            }
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
            let end = range.and_then(|(start, size)| start.checked_add(size));
            let Some((start, end)) =
                range.map(|(start, _)| start).zip(end.filter(|&end| end <= file.len()))
            else {
                return Err(Refused::damaged(format!("column {name} lies outside of it")));
            };
            let chunk = Chunk { file, name, rows, codec: column.compression() };
            chunk.check(start, end)?;
        }
    }
    Ok(())
}

/// The pages of one column in one row group.
struct Chunk<'a, R> {
    file: &'a R,
    name: String,
    rows: u64,
    codec: Compression,
}

/// What the head of a page says.
#[derive(Default)]
struct Head {
    uncompressed: i64,
    compressed: i64,
    values: i64,
    encodings: Vec<i64>,
    is_dictionary: bool,
    /// Bytes before the values that are never compressed.
    levels: i64,
    is_plain: bool,
}

impl<R: ChunkReader> Chunk<'_, R> {
    fn check(&self, mut at: u64, end: u64) -> Result<(), Refused> {
        while at < end {
            let window = bytes(self.file, at, (end - at).min(HEAD_MAX))?;
            let (head, length) = Head::read(&window)?;
            at += length as u64;
            let size = self.check_page(&head, end - at)?;
            if matches!(self.codec, Compression::GZIP(_)) && !head.is_plain {
                self.check_gzip(&head, at, size)?;
            }
            at += size;
        }
        Ok(())
    }

    /// Checks one page, of whose column `left` bytes are left; its size in the file.
    fn check_page(&self, head: &Head, left: u64) -> Result<u64, Refused> {
        let Self { name, rows, .. } = self;
        let numbers = [head.uncompressed, head.compressed, head.values, head.levels];
        let [uncompressed, compressed, values, levels] = numbers.map(u64::try_from);
        let (Ok(uncompressed), Ok(compressed), Ok(values), Ok(levels)) =
            (uncompressed, compressed, values, levels)
        else {
            return Err(Refused::damaged(format!("a page of column {name} has a negative size")));
        };
        if compressed > left || levels > compressed.min(uncompressed) {
            return Err(Refused::damaged(format!(
                "a page of column {name} is longer than its column"
            )));
        }
        if uncompressed > PAGE_FREE.max(compressed.saturating_mul(PAGE_RATIO)) {
            let message = format!(
                "a page of column {name} claims {uncompressed} bytes and has {compressed} in the file"
            );
            return Err(Refused::Damaged(message));
        }
        // An entry of a dictionary takes four bytes at least, a value of a page its share of a run.
        let most = if head.is_dictionary { uncompressed / 4 } else { *rows };
        if values > most {
            let message =
                format!("a page of column {name} claims {values} values, of at most {most}");
            return Err(Refused::Damaged(message));
        }
        let delta = [Encoding::DELTA_LENGTH_BYTE_ARRAY as i64, Encoding::DELTA_BYTE_ARRAY as i64];
        if head.encodings.iter().any(|encoding| delta.contains(encoding)) {
            let message = format!(
                "column {name} holds text as differences, which are not read here; write it plain or with \
                 a dictionary"
            );
            return Err(Refused::Unsuitable(message));
        }
        Ok(compressed)
    }

    /// The reader unpacks gzip to its end, whatever the page claims; so its end is looked for first.
    fn check_gzip(&self, head: &Head, at: u64, size: u64) -> Result<(), Refused> {
        let packed = bytes(self.file, at + head.levels as u64, size - head.levels as u64)?;
        let expected = (head.uncompressed - head.levels) as u64;
        let mut unpacked = MultiGzDecoder::new(&packed[..]).take(expected + 1);
        let found = std::io::copy(&mut unpacked, &mut std::io::sink());
        // An empty part may be left out altogether.
        if expected > 0 && found.is_ok_and(|found| found > expected) {
            let message = format!("a page of column {} holds more than it claims", self.name);
            return Err(Refused::Damaged(message));
        }
        Ok(())
    }
}

impl Head {
    /// Reads the head at the start of `bytes`; also how long it is.
    fn read(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let mut head = Self::default();
        Reader::new(bytes).check(&shape::PAGE, kind::STRUCT)?;
        let mut reader = Reader::new(bytes);
        reader.fields(|reader, id, found| {
            // PageHeader: 2 and 3 are the sizes; 5, 7 and 8 the heads of data, dictionary, data again.
            match (id, found) {
                (2, kind::I32) => head.uncompressed = reader.integer()?,
                (3, kind::I32) => head.compressed = reader.integer()?,
                (5 | 7 | 8, kind::STRUCT) => head.body(reader, id)?,
                (2 | 3 | 5 | 7 | 8, _) => return Err(Malformed),
                _ => return Ok(Read::No),
            }
            Ok(Read::Yes)
        })?;
        Ok((head, reader.position()))
    }

    /// Reads the head that belongs to the page's kind.
    fn body(&mut self, reader: &mut Reader<'_>, page: i16) -> Result<(), Malformed> {
        self.is_dictionary |= page == 7;
        reader.fields(|reader, id, found| {
            match (page, id, found) {
                (_, 1, kind::I32) => self.values = self.values.max(reader.integer()?),
                (5 | 7, 2, kind::I32) | (8, 4, kind::I32) => {
                    let encoding = reader.integer()?;
                    self.encodings.push(encoding);
                }
                // Two lengths of levels, which stand before the values.
                (8, 5 | 6, kind::I32) => {
                    let length = reader.integer()?;
                    let length = i32::try_from(length).map_err(|_| Malformed)?;
                    self.levels += i64::from(length);
                    if length < 0 {
                        return Err(Malformed);
                    }
                }
                (8, 7, kind::FALSE) => {
                    self.is_plain = true;
                    return Ok(Read::No);
                }
                (_, 1, _) | (5 | 7, 2, _) | (8, 4..=6, _) => return Err(Malformed),
                _ => return Ok(Read::No),
            }
            Ok(Read::Yes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn varint(value: i64, into: &mut Vec<u8>) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            into.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        into.push(rest as u8);
    }

    /// A page with this head and body: its kind by the field of its own head.
    fn page(field: u8, uncompressed: i64, values: i64, encoding: i64, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, 0];
        for number in [uncompressed, body.len() as i64] {
            bytes.push(0x15);
            varint(number, &mut bytes);
        }
        bytes.push((field - 3) << 4 | kind::STRUCT);
        for number in [values, encoding] {
            bytes.push(0x15);
            varint(number, &mut bytes);
        }
        bytes.extend([0, 0]);
        bytes.extend(body);
        bytes
    }

    fn check(codec: Compression, rows: u64, bytes: Vec<u8>) -> Result<(), String> {
        let end = bytes.len() as u64;
        let file = bytes::Bytes::from(bytes);
        let chunk = Chunk { file: &file, name: "src".into(), rows, codec };
        chunk.check(0, end).map_err(|refused| match refused {
            Refused::Damaged(why) | Refused::Unsuitable(why) => why,
        })
    }

    #[test]
    fn pages_that_are_what_they_claim_pass() {
        let plain = [page(7, 400, 100, 0, &[0; 400]), page(5, 64, 1_000, 8, &[0; 64])].concat();
        assert_eq!(check(Compression::UNCOMPRESSED, 1_000, plain), Ok(()));
        // A page of 80 MB, as some writers make them, of numbers that compress well.
        assert_eq!(
            check(Compression::SNAPPY, 1 << 24, page(5, 80 << 20, 1 << 24, 0, &[0; 2 << 20])),
            Ok(())
        );
    }

    /// A footer whose field 6, the name of the writer, is of another type: the library read on from the wrong
    /// place and walked a list of thousands of millions of truths.
    #[test]
    fn a_field_of_another_type_is_refused() {
        let bytes = [
            1, 5, 0, 42, 0, 13, 98, 250, 98, 0, 9, 98, 98, 9, 0, 106, 241, 98, 41, 1, 74, 241, 255,
            255, 255, 74, 74, 74, 0, 126, 255, 0, 0, 25, 0, 0, 0, 80, 65, 82, 49,
        ];
        let refused = check_footer(&bytes::Bytes::copy_from_slice(&bytes));
        assert!(matches!(refused, Err(Refused::Damaged(why)) if why.contains("not well-formed")));
        // The same in the head of a page: its first field a list of two thousand million truths.
        let page = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0];
        assert!(Head::read(&page).is_err());
        // And in a field that nobody knows.
        let mut unknown = vec![0x15, 0];
        unknown.extend([0xc9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]);
        assert!(Head::read(&unknown).is_err());
    }

    #[test]
    fn what_a_page_cannot_hold_is_refused() {
        let refused = |rows, page, part: &str| {
            let why = check(Compression::SNAPPY, rows, page).unwrap_err();
            assert!(why.contains(part), "{why:?} lacks {part:?}");
        };
        refused(10, page(5, 1 << 30, 10, 0, &[0; 100]), "claims 1073741824 bytes and has 100");
        refused(10, page(5, 100, 11, 0, &[0; 100]), "claims 11 values, of at most 10");
        refused(10, page(7, 100, 26, 0, &[0; 100]), "claims 26 values, of at most 25");
        refused(10, page(5, -1, 10, 0, &[0; 100]), "negative size");
        refused(10, page(5, 100, 10, 0, &[0; 100])[..50].to_vec(), "longer than its column");
        for encoding in [6, 7] {
            refused(10, page(5, 100, 10, encoding, &[0; 100]), "text as differences");
        }
        // A head that ends nowhere.
        refused(10, vec![0x15], "not well-formed");
    }

    #[test]
    fn what_gzip_unpacks_to_is_looked_at_without_keeping_it() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&vec![0; 1 << 20]).unwrap();
        let packed = packed.finish().unwrap();
        let gzip = Compression::GZIP(Default::default());
        assert_eq!(check(gzip, 10, page(5, 1 << 20, 10, 0, &packed)), Ok(()));
        let why = check(gzip, 10, page(5, 1 << 19, 10, 0, &packed)).unwrap_err();
        assert!(why.contains("holds more than it claims"), "{why}");
    }
}
