//! Choices from the bytes of a fuzzer.

/// Bytes that are used up from the front; behind the end come zeros.
#[derive(Debug, Clone)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Input<'a> {
        Input { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from(self.u8()) | u16::from(self.u8()) << 8
    }

    /// A number below `n`, which is at least 1.
    pub(super) fn below(&mut self, n: usize) -> usize {
        if n <= 256 { usize::from(self.u8()) % n } else { usize::from(self.u16()) % n }
    }

    /// The next `len` bytes, or fewer.
    pub(super) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Bytes behind their length of 16 bits.
    pub(super) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.u16());
        self.take(len)
    }
}

/// The opposite of [`Input::bytes`].
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).expect("seeds are small");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}
