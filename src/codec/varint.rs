//! LEB128 numbers, zigzag, and a reader of bytes that checks every step.

use crate::error::Malformed;

/// Appends `n` as LEB128: seven bits a byte, low bits first, the high bit says "more follows".
pub(crate) fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    out.push(n.to_le_bytes()[0]);
}

/// Appends a signed number: zigzag, then LEB128.
pub(crate) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put_varint(out, zigzag(n));
}

/// Appends the length of `bytes` and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Maps numbers near zero, of either sign, to small ones: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub(crate) fn zigzag(n: i64) -> u64 {
    (n.cast_unsigned() << 1) ^ (n >> 63).cast_unsigned()
}

/// The inverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -((n & 1).cast_signed())
}

/// Reads encoded bytes from front to back; never past the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed("bytes end early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next byte.
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(Malformed("bytes end early"))?;
        self.rest = rest;
        Ok(first)
    }

    /// The next four bytes, little-endian.
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Malformed("bytes end early"))?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*head))
    }

    /// The next eight bytes, little-endian.
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Malformed("bytes end early"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// A LEB128 number; longer spellings than needed are read, overflowing ones are not.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(Malformed("number too long"))
    }

    /// A zigzag LEB128 number.
    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        Ok(unzigzag(self.varint()?))
    }

    /// A LEB128 number that must be at most `max`.
    pub(crate) fn len(&mut self, max: usize) -> Result<usize, Malformed> {
        let n = usize::try_from(self.varint()?).map_err(|_| Malformed("length over its cap"))?;
        if n > max { Err(Malformed("length over its cap")) } else { Ok(n) }
    }

    /// A LEB128 number of 32 bits.
    pub(crate) fn varint32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("number over 32 bits"))
    }

    /// Bytes behind their length, which must be at most `max`.
    pub(crate) fn bytes(&mut self, max: usize) -> Result<&'a [u8], Malformed> {
        let len = self.len(max)?;
        self.take(len)
    }

    /// Fails unless everything has been read.
    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes left over")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn numbers_come_back(shift in 0u32..64, n in any::<u64>()) {
            let n = n >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, n);
            put_signed(&mut out, n.cast_signed());
            put_bytes(&mut out, b"xyz");
            let mut r = Reader::new(&out);
            prop_assert_eq!(r.varint(), Ok(n));
            prop_assert_eq!(r.signed(), Ok(n.cast_signed()));
            prop_assert_eq!(r.bytes(3), Ok(&b"xyz"[..]));
            prop_assert!(r.finish().is_ok());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let mut r = Reader::new(&bytes);
            while r.varint().is_ok() {}
            let _ = Reader::new(&bytes).bytes(4);
        }
    }

    #[test]
    fn refuses_overflow_and_early_ends() {
        assert!(Reader::new(&[0xff; 10]).varint().is_err());
        let mut max = vec![0xff; 9];
        max.push(1);
        assert_eq!(Reader::new(&max).varint(), Ok(u64::MAX));
        assert!(Reader::new(&[0x80]).varint().is_err());
        assert!(Reader::new(&[5, 1, 2]).bytes(9).is_err());
        assert!(Reader::new(&[5, 1, 2, 3, 4, 5]).bytes(4).is_err());
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        assert_eq!(unzigzag(u64::MAX), i64::MIN);
    }
}
