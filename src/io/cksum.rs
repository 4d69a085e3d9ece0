//! The CRC of POSIX's `cksum`, which ILDG wants of the links of a file: polynomial 0x04c11db7, the highest bit first, the
//! number of bytes behind them.

/// The remainder of each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut n = 0_u32;
    while n < 256 {
        let (mut crc, mut bit) = (n << 24, 0);
        while bit < 8 {
            crc = if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
            bit += 1;
        }
        table[n as usize] = crc;
        n += 1;
    }
    table
};

/// A checksum under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cksum {
    crc: u32,
    length: u64,
}

impl Cksum {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.crc = bytes.iter().fold(self.crc, |crc, &byte| step(crc, byte));
        self.length += bytes.len() as u64;
    }

    pub(super) fn finish(self) -> u32 {
        let (mut crc, mut length) = (self.crc, self.length);
        while length > 0 {
            crc = step(crc, length.to_le_bytes()[0]);
            length >>= 8;
        }
        !crc
    }
}

fn step(crc: u32, byte: u8) -> u32 {
    crc << 8 ^ TABLE[usize::from((crc >> 24) as u8 ^ byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cksum() {
        let of = |parts: &[&[u8]]| {
            let mut sum = Cksum::default();
            parts.iter().for_each(|part| sum.add(part));
            sum.finish()
        };
        // printf '' | cksum; printf 123456789 | cksum: the check value of CRC-32/CKSUM with the length behind.
        assert_eq!(of(&[]), 4_294_967_295);
        assert_eq!(of(&[b"123456789"]), 930_766_865);
        assert_eq!(of(&[b"1234", b"", b"56789"]), 930_766_865);
        let zeros = vec![0; 100_000];
        assert_eq!(of(&[&zeros]), of(&[&zeros[..1], &zeros[1..]]));
    }
}
