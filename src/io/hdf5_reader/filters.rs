//! What was done to chunks before they were written: shuffled bytes, deflate, a checksum.

use super::fields::Fields;

/// What is undone, first things last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Byte k of all elements of so many bytes, then byte k + 1.
    Shuffle(usize),
    /// A zlib stream.
    Deflate,
    /// Fletcher's checksum of 32 bits behind the bytes.
    Checksum,
}

/// Deflate makes bytes no shorter than a 1032nd part; beside that a stream has some bytes of its own.
const DENSEST: usize = 1032;
const OWN: usize = 64;

/// The filters of a message, in the order in which they were applied; or the number of one that is not read, or stands there
/// twice.
pub(super) fn filters(bytes: &[u8]) -> Option<Result<Vec<Filter>, u64>> {
    let mut fields = Fields(bytes);
    let (version, count) = (fields.byte()?, fields.byte()?);
    fields.take(if version == 1 { 6 } else { 0 })?;
    let mut all = Vec::new();
    for _ in 0..count {
        let number = fields.number(2)?;
        let name = if version == 1 || number >= 256 { fields.length(2)? } else { 0 };
        fields.take(2)?;
        let values = fields.length(2)?;
        fields.take(if version == 1 { name.next_multiple_of(8) } else { name })?;
        let own = fields.take(4 * values)?;
        fields.take(if version == 1 { 4 * (values % 2) } else { 0 })?;
        let filter = match number {
            1 => Filter::Deflate,
            2 => Filter::Shuffle(Fields(own).length(4).filter(|&bytes| bytes > 0)?),
            3 => Filter::Checksum,
            _ => return Some(Err(number)),
        };
        if all.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&filter)) {
            return Some(Err(number));
        }
        all.push(filter);
    }
    (1..=2).contains(&version).then_some(Ok(all))
}

/// Whether so many stored bytes can be a chunk of `length` bytes.
pub(super) fn is_possible(filters: &[Filter], stored: u64, length: usize) -> bool {
    let stored = usize::try_from(stored).unwrap_or(usize::MAX);
    if filters.contains(&Filter::Deflate) {
        return length <= stored.saturating_mul(DENSEST).saturating_add(OWN) && stored <= 2 * length + OWN;
    }
    (length..=length + 4).contains(&stored)
}

/// The `length` bytes of a chunk as they were before the filters, of which bit n of `skipped` leaves out the n-th; or what is
/// wrong with them.
pub(super) fn undone(
    filters: &[Filter],
    skipped: u32,
    mut bytes: Vec<u8>,
    length: usize,
) -> Result<Vec<u8>, &'static str> {
    for (n, filter) in filters.iter().enumerate().rev() {
        if skipped >> n & 1 == 1 {
            continue;
        }
        bytes = match *filter {
            Filter::Shuffle(size) => unshuffled(&bytes, size),
            Filter::Deflate => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&bytes, length + 4)
                .map_err(|_| "a chunk cannot be inflated")?,
            Filter::Checksum => {
                let end = bytes.len().checked_sub(4).ok_or("a chunk is too short")?;
                let sum = Fields(&bytes[end..]).number(4);
                bytes.truncate(end);
                if sum != Some(fletcher32(&bytes)) {
                    return Err("a chunk does not have its Fletcher-32 checksum");
                }
                bytes
            }
        };
    }
    if bytes.len() == length { Ok(bytes) } else { Err("a chunk has another size") }
}

/// Elements of `size` bytes from all first bytes, all second ones and so on. What is no whole element stands at the end.
fn unshuffled(bytes: &[u8], size: usize) -> Vec<u8> {
    let count = bytes.len() / size;
    let (planes, rest) = bytes.split_at(count * size);
    let mut all = vec![0; planes.len()];
    if count > 0 {
        for (k, plane) in planes.chunks_exact(count).enumerate() {
            all.iter_mut().skip(k).step_by(size).zip(plane).for_each(|(to, byte)| *to = *byte);
        }
    }
    all.extend(rest);
    all
}

/// HDF5's Fletcher-32: of big-endian words of 16 bits, a last odd byte being the upper half of one.
fn fletcher32(bytes: &[u8]) -> u64 {
    let (mut sum, mut sums) = (0_u64, 0_u64);
    // So many words leave both sums below 2^64.
    for block in bytes.chunks(1 << 16) {
        for word in block.chunks(2) {
            sum += u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or_default());
            sums += sum;
        }
        (sum, sums) = (folded(sum), folded(sums));
    }
    [sums, sum].into_iter().fold(0, |both, x| both << 16 | (0..4).fold(x, |x, _| folded(x)))
}

/// The same modulo 2^16 - 1, and zero for zero alone.
fn folded(x: u64) -> u64 {
    let x = (x & 0xffff_ffff) + (x >> 32);
    (x & 0xffff) + (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_undone() {
        assert_eq!(unshuffled(b"acebdf!", 2), b"abcdef!");
        assert_eq!(unshuffled(b"ab", 3), b"ab");
        assert_eq!(fletcher32(b""), 0);
        // 0x6162 + 0x6364 = 0xc4c6, and 0x6162 + 0xc4c6 = 0x12628, which is 0x2629 modulo 0xffff.
        assert_eq!(fletcher32(b"abcd"), 0x2629_c4c6);
        let plain: Vec<u8> = (0..3200_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let stored = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 6);
        assert_eq!(undone(&[Filter::Deflate], 0, stored.clone(), plain.len()), Ok(plain.clone()));
        assert!(undone(&[Filter::Deflate], 0, stored.clone(), plain.len() - 1).is_err());
        assert!(undone(&[Filter::Deflate], 0, stored[..100].to_vec(), plain.len()).is_err());
        assert_eq!(undone(&[Filter::Deflate], 1, plain.clone(), plain.len()), Ok(plain));
    }
}
