//! Attributes of `/`.

use super::fields::{Fields, name};
use super::group::info;
use super::heap::Records;
use super::kind::{Kind, Shape, kind, shape};
use super::object::{ATTRIBUTE, ATTRIBUTE_INFO};
use super::{IoError, Reader};

/// An attribute as it is stored.
#[derive(Debug)]
struct Attribute {
    name: String,
    /// Its type and its shape are messages of their own, which several objects share.
    is_shared: bool,
    kind: Vec<u8>,
    shape: Vec<u8>,
    data: Vec<u8>,
}

/// All attributes of `/`.
#[derive(Debug)]
pub(in crate::io) struct Attributes<'a> {
    reader: &'a Reader<'a>,
    all: Vec<Attribute>,
}

impl Reader<'_> {
    /// The attributes of `/`.
    pub(in crate::io) fn attributes(&self) -> Result<Attributes<'_>, IoError> {
        let root = self.object(self.root)?;
        let broken = || self.broken("attribute", self.root);
        let mut all = root
            .all(ATTRIBUTE)
            .map(|bytes| attribute(bytes).ok_or_else(broken))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(bytes) = root.one(self, ATTRIBUTE_INFO, "list of attributes")?
            && let Some([heap, tree]) = info(bytes, 2).ok_or_else(broken)?
        {
            for bytes in self.kept(heap, tree, Records::ATTRIBUTES)? {
                all.push(attribute(&bytes).ok_or_else(broken)?);
            }
        }
        Ok(Attributes { reader: self, all })
    }
}

impl Attributes<'_> {
    pub(in crate::io) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|attribute| attribute.name == name)
    }

    /// A number that is no less than zero.
    pub(in crate::io) fn integer(&self, name: &str) -> Result<u64, IoError> {
        self.integers(name, &[]).map(|[number]| number)
    }

    /// So many of them.
    pub(in crate::io) fn integers<const N: usize>(
        &self,
        name: &str,
        shape: &[u64],
    ) -> Result<[u64; N], IoError> {
        let (kind, data) = self.value(name, shape)?;
        let Kind::Integer { bytes, is_signed, is_big } = kind else {
            return Err(self.refused(name, "is no whole number"));
        };
        let mut numbers = [0; N];
        for (number, element) in numbers.iter_mut().zip(data.chunks_exact(bytes)) {
            let mut element = element.to_vec();
            if is_big {
                element.reverse();
            }
            if is_signed && element.last().is_some_and(|&byte| byte >= 0x80) {
                return Err(self.refused(name, "is less than zero"));
            }
            *number = Fields(&element).number(bytes).unwrap_or_default();
        }
        // In old headers the data are padded.
        if data.len() >= N * bytes {
            Ok(numbers)
        } else {
            Err(self.refused(name, "is shorter than its type"))
        }
    }

    pub(in crate::io) fn real(&self, name: &str) -> Result<f64, IoError> {
        match self.value(name, &[])? {
            (Kind::Real, data) if data.len() >= 8 => {
                Ok(Fields(data).number(8).map_or(f64::NAN, f64::from_bits))
            }
            _ => Err(self.refused(name, "is no real of 8 bytes, little-endian")),
        }
    }

    pub(in crate::io) fn text(&self, name: &str) -> Result<String, IoError> {
        match self.value(name, &[])? {
            (Kind::Text, data) if data.len() >= 16 => self.reader.text(data),
            _ => Err(self.refused(name, "is no text of variable length")),
        }
    }

    /// Type and bytes of an attribute of this shape.
    fn value(&self, name: &str, expected: &[u64]) -> Result<(Kind, &[u8]), IoError> {
        let attribute = self.all.iter().find(|attribute| attribute.name == name);
        let attribute = attribute
            .ok_or_else(|| IoError::malformed(self.reader.path, format!("there is no attribute {name}")))?;
        if attribute.is_shared {
            return Err(self.refused(name, "has a type that several objects share"));
        }
        match shape(&attribute.shape) {
            Some(Shape::Null) => return Err(self.refused(name, "has no value (a null dataspace)")),
            Some(Shape::Of(shape)) if shape == expected => {}
            Some(Shape::Of(shape)) => {
                return Err(self.refused(name, format!("has the shape {shape:?}, not {expected:?}")));
            }
            None => return Err(self.refused(name, "has no shape")),
        }
        let kind = kind(&attribute.kind).ok_or_else(|| self.refused(name, "has a type that is not read"))?;
        Ok((kind, &attribute.data))
    }

    fn refused(&self, name: &str, what: impl std::fmt::Display) -> IoError {
        self.reader.refused(format!("attribute {name} {what}"))
    }
}

/// An attribute as a message. Up to version 1 its parts are padded to eight bytes.
fn attribute(bytes: &[u8]) -> Option<Attribute> {
    let mut fields = Fields(bytes);
    let (version, flags) = (fields.byte()?, fields.byte()?);
    if !(1..=3).contains(&version) {
        return None;
    }
    let lengths = [fields.length(2)?, fields.length(2)?, fields.length(2)?];
    fields.take(usize::from(version == 3))?;
    let mut part = |length: usize| {
        let part = fields.take(length)?;
        fields.take(if version == 1 { length.wrapping_neg() % 8 } else { 0 })?;
        Some(part.to_vec())
    };
    let [name_bytes, kind, shape] = [part(lengths[0])?, part(lengths[1])?, part(lengths[2])?];
    let is_shared = version > 1 && flags & 3 != 0;
    Some(Attribute { name: name(&name_bytes), is_shared, kind, shape, data: fields.0.to_vec() })
}
