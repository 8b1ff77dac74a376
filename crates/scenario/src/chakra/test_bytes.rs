//! What the format is made of, apart from the reader's library: numbers of seven bits a byte, fields with a
//! number and a wire type, messages after their length. For tests, here and of the crate.

/// A number, seven bits a byte.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut out = vec![];
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A field that is a number.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that is text, bytes or a message of its own.
pub fn text(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A message of a trace.
pub fn message(fields: &[Vec<u8>]) -> Vec<u8> {
    let fields = fields.concat();
    [varint(fields.len() as u64), fields].concat()
}
