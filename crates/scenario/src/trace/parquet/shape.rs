//! What the descriptions in a Parquet file are made of: the number and type of each field.
//!
//! Source: `parquet.thrift` of the Parquet format. The library goes by the numbers of fields alone: one
//! whose type is another than it takes for granted makes it read the rest from the wrong place, and there
//! it may find lists of billions of empty entries, which it walks. So types are checked before.
//! Fields that are not listed here are new; the library passes over them by their type, as we do.

use self::Shape::{Binary, Bool, Double, I8, I16, I32, I64, List, Struct};

/// What a value is made of.
pub enum Shape {
    /// True or false.
    Bool,
    /// Numbers.
    I8,
    /// Of sixteen bits.
    I16,
    /// Of 32 bits; also what enumerations are.
    I32,
    /// Of 64 bits.
    I64,
    /// A float.
    Double,
    /// Bytes, or text.
    Binary,
    /// Any number of the same.
    List(&'static Shape),
    /// Fields by number; of a union there is one.
    Struct(&'static [(i16, Shape)]),
}

const EMPTY: Shape = Struct(&[]);
const UNITS: Shape = Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const TIME: Shape = Struct(&[(1, Bool), (2, UNITS)]);

const LOGICAL_TYPE: Shape = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, I32), (2, I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (9, EMPTY),
    (10, Struct(&[(1, I8), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, I8)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, I32)])),
]);

const SCHEMA_ELEMENT: Shape = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Binary),
    (5, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, LOGICAL_TYPE),
]);

const STATISTICS: Shape = Struct(&[
    (1, Binary),
    (2, Binary),
    (3, I64),
    (4, I64),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
    (9, I64),
]);

const KEY_VALUE: Shape = Struct(&[(1, Binary), (2, Binary)]);
const ENCODING_STATISTICS: Shape = Struct(&[(1, I32), (2, I32), (3, I32)]);
const SIZES: Shape = Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))]);

const BOX: Shape = Struct(&[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
]);

const COLUMN_METADATA: Shape = Struct(&[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, List(&KEY_VALUE)),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, STATISTICS),
    (13, List(&ENCODING_STATISTICS)),
    (14, I64),
    (15, I32),
    (16, SIZES),
    (17, Struct(&[(1, BOX), (2, List(&I32))])),
]);

const COLUMN_KEY: Shape = Struct(&[(1, EMPTY), (2, Struct(&[(1, List(&Binary)), (2, Binary)]))]);

const COLUMN_CHUNK: Shape = Struct(&[
    (1, Binary),
    (2, I64),
    (3, COLUMN_METADATA),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
    (8, COLUMN_KEY),
    (9, Binary),
]);

const ROW_GROUP: Shape = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, I64),
    (3, I64),
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))),
    (5, I64),
    (6, I64),
    (7, I16),
]);

const CIPHER: Shape = Struct(&[(1, Binary), (2, Binary), (3, Bool)]);

/// `FileMetaData`.
pub const FILE: Shape = Struct(&[
    (1, I32),
    (2, List(&SCHEMA_ELEMENT)),
    (3, I64),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Binary),
    (7, List(&Struct(&[(1, EMPTY), (2, EMPTY)]))),
    (8, Struct(&[(1, CIPHER), (2, CIPHER)])),
    (9, Binary),
]);

/// `PageHeader`.
pub const PAGE: Shape = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32), (5, STATISTICS)])),
    (6, EMPTY),
    (7, Struct(&[(1, I32), (2, I32), (3, Bool)])),
    (
        8,
        Struct(&[
            (1, I32),
            (2, I32),
            (3, I32),
            (4, I32),
            (5, I32),
            (6, I32),
            (7, Bool),
            (8, STATISTICS),
        ]),
    ),
]);
