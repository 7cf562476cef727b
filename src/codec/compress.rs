//! zstd with reused contexts; what does not shrink is stored as it is.
//!
//! A packed blob is `mode u8 | raw length varint | payload`, mode 0 = raw, 1 = one zstd frame.

use zstd::bulk::{Compressor as ZstdCompressor, Decompressor as ZstdDecompressor};

use super::varint::{Reader, put_varint};
use crate::error::Malformed;

const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// No frame holds more raw bytes for each of its own: a block of zstd has at most 128 KiB of raw
/// bytes and at least 4 of its own.
const RATIO_MAX: usize = 32 << 10;

/// Shorter blobs are not worth a frame's header.
const COMPRESS_MIN: usize = 24;

/// Compresses; one for each worker, since the context holds about a megabyte.
pub(crate) struct Compressor {
    level: i32,
    thorough: bool,
    context: Option<ZstdCompressor<'static>>,
    frame: Vec<u8>,
}

impl Compressor {
    /// zstd at `level`; level 0 stores everything raw.
    pub(crate) fn new(level: i32) -> Compressor {
        Compressor { level, thorough: false, context: None, frame: Vec::new() }
    }

    /// The same for bytes that are to stay, so that trying harder pays.
    pub(crate) fn thorough(level: i32) -> Compressor {
        Compressor { thorough: true, ..Compressor::new(level) }
    }

    /// The level; 0 is raw.
    pub(crate) fn level(&self) -> i32 {
        self.level
    }

    /// Whether the bytes are to stay, so that trying harder pays.
    pub(crate) fn is_thorough(&self) -> bool {
        self.thorough
    }

    /// One zstd frame of `raw`, or `None` if that would not be smaller.
    pub(crate) fn frame(&mut self, raw: &[u8]) -> Option<&[u8]> {
        if self.level == 0 || raw.len() < COMPRESS_MIN {
            return None;
        }
        if self.context.is_none() {
            self.context = ZstdCompressor::new(self.level).ok();
        }
        let context = self.context.as_mut()?;
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        let len = context.compress_to_buffer(raw, &mut self.frame).ok()?;
        if len + len / 64 < raw.len() { Some(&self.frame) } else { None }
    }

    /// Appends `raw` as a packed blob.
    pub(crate) fn pack(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        self.pack_if(true, raw, out);
    }

    /// Appends `raw` as a packed blob, which is not compressed unless `compress` is set.
    pub(crate) fn pack_if(&mut self, compress: bool, raw: &[u8], out: &mut Vec<u8>) {
        match if compress { self.frame(raw) } else { None } {
            Some(frame) => put_frame(raw.len(), frame, out),
            None => {
                out.push(RAW);
                put_varint(out, raw.len() as u64);
                out.extend_from_slice(raw);
            }
        }
    }
}

/// Appends the packed blob of a frame of `raw_len` bytes.
pub(super) fn put_frame(raw_len: usize, frame: &[u8], out: &mut Vec<u8>) {
    out.push(ZSTD);
    put_varint(out, raw_len as u64);
    out.extend_from_slice(frame);
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("level", &self.level).finish_non_exhaustive()
    }
}

/// Decompresses; one for each worker.
#[derive(Default)]
pub(crate) struct Decompressor {
    context: Option<ZstdDecompressor<'static>>,
}

impl Decompressor {
    /// The raw bytes of a packed blob, which must fill `blob` and hold at most `max` bytes.
    pub(crate) fn unpack(&mut self, blob: &[u8], max: usize) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        self.unpack_into(blob, max, &mut out)?;
        Ok(out)
    }

    /// Like [`unpack`](Decompressor::unpack), into `out`, which is emptied first.
    pub(crate) fn unpack_into(
        &mut self,
        blob: &[u8],
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut r = Reader::new(blob);
        let mode = r.u8()?;
        let len = r.len(max)?;
        out.clear();
        match mode {
            RAW if r.rest().len() == len => {
                out.extend_from_slice(r.rest());
                Ok(())
            }
            RAW => Err(Malformed("raw bytes of another length")),
            ZSTD => self.decompress(r.rest(), len, out),
            _ => Err(Malformed("unknown compression")),
        }
    }

    /// Like [`unpack_into`](Decompressor::unpack_into) for the blob that is the rest of `r`.
    pub(crate) fn unpack_next(
        &mut self,
        r: &mut Reader<'_>,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        self.unpack_into(r.take(r.rest().len())?, max, out)
    }

    /// Decompresses one frame of exactly `len` bytes, a length that the caller has checked.
    fn decompress(&mut self, frame: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if len > frame.len().saturating_mul(RATIO_MAX) {
            return Err(Malformed("more raw bytes than a frame of this length holds"));
        }
        let context = match &mut self.context {
            Some(context) => context,
            none => {
                none.insert(ZstdDecompressor::new().map_err(|_| Malformed("zstd has no memory"))?)
            }
        };
        out.reserve_exact(len);
        let got = context.decompress_to_buffer(frame, out);
        if got.is_ok_and(|got| got == len) {
            Ok(())
        } else {
            out.clear();
            Err(Malformed("bytes that zstd cannot decompress to their length"))
        }
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn blobs_come_back(raw in prop::collection::vec(0u8..4, 0..500), level in 0i32..4) {
            let mut blob = Vec::new();
            Compressor::new(level).pack(&raw, &mut blob);
            prop_assert!(blob.len() <= raw.len() + 4);
            let mut d = Decompressor::default();
            prop_assert_eq!(d.unpack(&blob, raw.len()), Ok(raw.clone()));
            if !raw.is_empty() {
                prop_assert!(d.unpack(&blob, raw.len() - 1).is_err());
                prop_assert!(d.unpack(&blob[..blob.len() - 1], raw.len()).is_err());
            }
        }

        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Decompressor::default().unpack(&bytes, 1 << 16);
        }
    }

    #[test]
    fn memory_is_taken_for_what_a_frame_can_hold_only() {
        // The densest frame comes back.
        let raw = vec![0u8; 64 << 20];
        for level in [1, 3] {
            let mut blob = Vec::new();
            Compressor::new(level).pack(&raw, &mut blob);
            assert!(blob.len() < 16 << 10, "{} bytes", blob.len());
            assert!(Decompressor::default().unpack(&blob, raw.len()) == Ok(raw.clone()));
        }
        let mut claim = vec![ZSTD];
        put_varint(&mut claim, 64 << 20);
        claim.extend_from_slice(&[0; 20]);
        let mut out = Vec::new();
        assert!(Decompressor::default().unpack_into(&claim, 64 << 20, &mut out).is_err());
        assert_eq!(out.capacity(), 0);
    }

    #[test]
    fn a_frame_that_grows_past_its_length_is_refused() {
        let mut blob = Vec::new();
        Compressor::new(1).pack(&[7u8; 10_000], &mut blob);
        assert!(blob.len() < 100);
        let mut short = vec![ZSTD];
        put_varint(&mut short, 100);
        short.extend_from_slice(&blob[3..]);
        assert!(Decompressor::default().unpack(&short, 1 << 20).is_err());
    }
}
