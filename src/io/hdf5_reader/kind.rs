//! Types and shapes of attributes and datasets.

use super::fields::Fields;

/// The types that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All bits count; of 8 bytes at most.
    Integer { bytes: usize, is_signed: bool, is_big: bool },
    /// IEEE, little-endian, 8 bytes.
    Real,
    /// `{r: f64, i: f64}`.
    Complex,
    /// Of variable length.
    Text,
}

/// The class of a type and its other bits, in the first four bytes; then its bytes.
const REAL: [u8; 19] = [0x20, 0x3f, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0];

/// The type that a message describes; `None` for all others.
pub(super) fn kind(bytes: &[u8]) -> Option<Kind> {
    let mut fields = Fields(bytes);
    let first = fields.byte()?;
    let (class, version) = (first & 0xf, first >> 4);
    match class {
        0 => {
            let (bits, _, bytes) = (fields.byte()?, fields.take(2)?, fields.length(4)?);
            let place = [fields.length(2)?, fields.length(2)?];
            let is_whole = [1, 2, 4, 8].contains(&bytes) && place == [0, 8 * bytes];
            is_whole.then_some(Kind::Integer { bytes, is_signed: bits & 8 != 0, is_big: bits & 1 != 0 })
        }
        1 => (fields.take(19)? == REAL).then_some(Kind::Real),
        6 => {
            let (members, _, bytes) = (fields.number(2)?, fields.byte()?, fields.number(4)?);
            let is_pair = members == 2
                && bytes == 16
                && member(&mut fields, version)? == (b"r", 0)
                && member(&mut fields, version)? == (b"i", 8);
            is_pair.then_some(Kind::Complex)
        }
        9 => {
            let (bits, _, bytes) = (fields.byte()?, fields.take(2)?, fields.number(4)?);
            (bits & 0xf == 1 && bytes == 16).then_some(Kind::Text)
        }
        _ => None,
    }
}

/// Name and place of a real in a compound; `None` for members of another type.
fn member<'a>(fields: &mut Fields<'a>, version: u8) -> Option<(&'a [u8], u64)> {
    let name = fields.text()?;
    if version < 3 {
        // Names are padded to eight bytes, their zero included.
        fields.take((name.len() + 1).wrapping_neg() % 8)?;
    }
    let place = fields.number(if version < 3 { 4 } else { 1 })?;
    if version == 1 {
        let directions = fields.byte()?;
        fields.take(27).filter(|_| directions == 0)?;
    }
    (fields.byte()? & 0xf == 1 && fields.take(19)? == REAL).then_some((name, place))
}

/// How many elements there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// None: there is no value.
    Null,
    /// Extents, the slowest first; empty for one element.
    Of(Vec<u64>),
}

/// The shape that a message describes.
pub(super) fn shape(bytes: &[u8]) -> Option<Shape> {
    let mut fields = Fields(bytes);
    let (version, directions, _) = (fields.byte()?, fields.byte()?, fields.byte()?);
    let is_null = match version {
        1 => fields.take(5).map(|_| false)?,
        2 => fields.byte()? == 2,
        _ => return None,
    };
    let extents = (0..directions).map(|_| fields.number(8)).collect::<Option<Vec<_>>>()?;
    Some(if is_null { Shape::Null } else { Shape::Of(extents) })
}
