//! What the values of a slot have in common, and their text.

use super::{DIGITS_MAX, SLOT};
use crate::codec::varint::{Reader, put_varint};
use crate::error::Malformed;

const TEXT: u8 = 0;
const RAW: u8 = 1;
const INT: u8 = 2;
const FIXED: u8 = 3;
const HEX_LOWER: u8 = 4;
const HEX_UPPER: u8 = 5;
const CODES: u8 = 6;
const SAME: u8 = 7;
const FIELD: u8 = 8;
/// Added to the kind if some value has no digit.
const NO_DIGIT: u8 = 0x80;

/// The most digits of a hex slot.
pub(super) const HEX_MAX: usize = 4_096;

/// How the values of one slot of one template of a page are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Text; `word` says that all of its bytes are ASCII letters and digits.
    Text {
        /// No other bytes than ASCII letters and digits.
        word: bool,
    },
    /// Decimal numbers, stored in `width` bits less `base`: canonical if `digits` is 0, else
    /// with zeros in front to that many digits.
    Int {
        /// Digits of each value; 0 for as many as it needs.
        digits: u8,
        /// The least value.
        base: u64,
        /// Bits of a packed value.
        width: u8,
    },
    /// Hex digits of one case, two in a byte.
    Hex {
        /// Digits of each value.
        digits: u16,
        /// Whether letters are upper case.
        upper: bool,
    },
    /// Numbers of values in the dictionary of the page.
    Codes {
        /// The first value in the dictionary.
        first: u32,
        /// The number of values.
        count: u16,
    },
    /// The value of an earlier slot of the same template.
    Same {
        /// The number of that slot within the template.
        of: u16,
    },
    /// A piece of the row's value of another column of the block.
    Field {
        /// The number of that column among those to which the page refers.
        column: u8,
        /// Which of the slots that the tokenizer finds in that value.
        piece: u16,
        /// The classes ([`class`]) that all bytes of all pieces have.
        classes: u8,
        /// The length of each piece; 0 if they differ.
        len: u16,
    },
}

impl Slot {
    /// Appends the description; the first value of a dictionary slot follows from the slots
    /// before. `digit` says that every value has a digit.
    pub(super) fn encode(self, digit: bool, out: &mut Vec<u8>) {
        let at = out.len();
        match self {
            Slot::Text { word } => out.push(if word { TEXT } else { RAW }),
            Slot::Int { digits, base, width } => {
                if digits == 0 {
                    out.push(INT);
                } else {
                    out.extend([FIXED, digits]);
                }
                put_varint(out, base);
                out.push(width);
            }
            Slot::Hex { digits, upper } => {
                out.push(if upper { HEX_UPPER } else { HEX_LOWER });
                put_varint(out, u64::from(digits));
            }
            Slot::Codes { count, .. } => {
                out.push(CODES);
                put_varint(out, u64::from(count));
            }
            Slot::Same { of } => {
                out.push(SAME);
                put_varint(out, u64::from(of));
            }
            Slot::Field { column, piece, classes, len } => {
                out.extend([FIELD, column]);
                put_varint(out, u64::from(piece));
                out.push(classes);
                put_varint(out, u64::from(len));
            }
        }
        if let Some(kind) = out.get_mut(at).filter(|_| !digit) {
            *kind |= NO_DIGIT;
        }
    }

    /// Reads the description of a slot, and whether every value has a digit; `first` is where the
    /// next dictionary slot's values begin.
    pub(super) fn decode(r: &mut Reader<'_>, first: u32) -> Result<(Slot, bool), Malformed> {
        let kind = r.u8()?;
        Ok((Slot::decode_kind(kind & !NO_DIGIT, r, first)?, kind & NO_DIGIT == 0))
    }

    fn decode_kind(kind: u8, r: &mut Reader<'_>, first: u32) -> Result<Slot, Malformed> {
        let small = |n: usize| u16::try_from(n).map_err(|_| Malformed("slot over its cap"));
        match kind {
            TEXT => Ok(Slot::Text { word: true }),
            RAW => Ok(Slot::Text { word: false }),
            kind @ (INT | FIXED) => {
                let digits = if kind == FIXED { r.u8()? } else { 0 };
                let (base, width) = (r.varint()?, r.u8()?);
                let digits_fit = if kind == FIXED {
                    (1..=DIGITS_MAX).contains(&usize::from(digits))
                } else {
                    true
                };
                if width > 64 || !digits_fit {
                    return Err(Malformed("slot of numbers that no encoder writes"));
                }
                Ok(Slot::Int { digits, base, width })
            }
            kind @ (HEX_LOWER | HEX_UPPER) => {
                let digits = small(r.len(HEX_MAX)?)?;
                Ok(Slot::Hex { digits, upper: kind == HEX_UPPER })
            }
            CODES => {
                let count = small(r.len(super::CODES_MAX)?)?;
                if count == 0 {
                    return Err(Malformed("dictionary slot without values"));
                }
                Ok(Slot::Codes { first, count })
            }
            SAME => Ok(Slot::Same { of: small(r.len(super::ROW_SLOTS_MAX)?)? }),
            FIELD => Ok(Slot::Field {
                column: r.u8()?,
                piece: small(r.len(super::ROW_SLOTS_MAX)?)?,
                classes: r.u8()?,
                len: small(r.len(super::FIELD_VALUE_MAX)?)?,
            }),
            _ => Err(Malformed("unknown kind of slot")),
        }
    }

    /// The bits, bytes, codes and texts that one row has in a strip.
    #[inline]
    pub(super) fn unit(self) -> u32 {
        match self {
            Slot::Text { .. } | Slot::Codes { .. } | Slot::Field { .. } => 1,
            Slot::Int { width, .. } => u32::from(width),
            Slot::Hex { digits, .. } => u32::from(digits).div_ceil(2),
            Slot::Same { .. } => 0,
        }
    }
}

/// Bits of a byte's class: what a value may consist of.
pub(crate) mod class {
    /// Decimal digits.
    pub(crate) const DIGIT: u8 = 1;
    /// Hex digits, letters in lower case.
    pub(crate) const LOWER: u8 = 2;
    /// Hex digits, letters in upper case.
    pub(crate) const UPPER: u8 = 4;
    /// ASCII letters and digits.
    pub(crate) const WORD: u8 = 8;
    /// Anything but the byte of a slot.
    pub(crate) const TEXT: u8 = 16;
}

const CLASSES: [u8; 256] = {
    let mut classes = [class::TEXT; 256];
    let mut b = 0u8;
    loop {
        let all = class::TEXT | class::WORD;
        #[expect(clippy::indexing_slicing, reason = "an array of 256, indexed by a byte")]
        let to = &mut classes[b as usize];
        *to = match b {
            SLOT => 0,
            b'0'..=b'9' => all | class::DIGIT | class::LOWER | class::UPPER,
            b'a'..=b'f' => all | class::LOWER,
            b'A'..=b'F' => all | class::UPPER,
            b'g'..=b'z' | b'G'..=b'Z' => all,
            _ => class::TEXT,
        };
        if b == 255 {
            break;
        }
        b += 1;
    }
    classes
};

/// The classes that all bytes have.
#[inline]
pub(crate) fn classes_of(bytes: &[u8]) -> u8 {
    bytes.iter().fold(u8::MAX, |all, b| all & CLASSES.get(usize::from(*b)).copied().unwrap_or(0))
}

/// The number that a text of at most 19 digits stands for.
#[inline]
pub(super) fn number_of(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |n, b| n.wrapping_mul(10).wrapping_add(u64::from(b.wrapping_sub(b'0'))))
}

/// Appends a number with zeros in front to `digits` digits; with no more than it needs for 0.
#[inline]
pub(super) fn print_number(mut n: u64, digits: u8, out: &mut Vec<u8>) {
    let mut text = [b'0'; 20];
    let mut at = text.len();
    for to in text.iter_mut().rev() {
        *to = b'0' + (n % 10).to_le_bytes()[0];
        n /= 10;
        at -= 1;
        if n == 0 {
            break;
        }
    }
    if digits > 0 {
        at = text.len() - usize::from(digits).min(text.len());
    }
    out.extend_from_slice(text.get(at..).unwrap_or(&[]));
}

/// Appends two digits a byte, of which the last byte may have one only, in its high half.
pub(super) fn pack_hex(text: &[u8], out: &mut Vec<u8>) {
    let nibble = |b: &u8| if b.is_ascii_digit() { b - b'0' } else { (b | 0x20) - b'a' + 10 };
    out.extend(text.chunks(2).map(|pair| match pair {
        [high, low] => nibble(high) << 4 | nibble(low),
        [high, ..] => nibble(high) << 4,
        [] => 0,
    }));
}

const HEX: [[[u8; 2]; 256]; 2] = {
    let mut table = [[[0u8; 2]; 256]; 2];
    let mut case = 0;
    while case < 2 {
        let letters = if case == 0 { b"0123456789abcdef" } else { b"0123456789ABCDEF" };
        let mut b = 0;
        while b < 256 {
            #[expect(clippy::indexing_slicing, reason = "arrays of the loops' sizes")]
            let pair = [letters[b >> 4], letters[b & 15]];
            #[expect(clippy::indexing_slicing, reason = "arrays of the loops' sizes")]
            let to = &mut table[case][b];
            *to = pair;
            b += 1;
        }
        case += 1;
    }
    table
};

/// Appends the `digits` digits in `packed`.
#[inline]
pub(super) fn print_hex(packed: &[u8], digits: u16, upper: bool, out: &mut Vec<u8>) {
    let [lower_case, upper_case] = &HEX;
    let table = if upper { upper_case } else { lower_case };
    for b in packed {
        out.extend_from_slice(table.get(usize::from(*b)).unwrap_or(&[b'0'; 2]));
    }
    if digits % 2 == 1 {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_come_back() {
        let slots = [
            Slot::Text { word: true },
            Slot::Text { word: false },
            Slot::Int { digits: 0, base: u64::MAX, width: 64 },
            Slot::Int { digits: 19, base: 0, width: 0 },
            Slot::Hex { digits: 64, upper: true },
            Slot::Hex { digits: 2, upper: false },
            Slot::Codes { first: 3, count: 256 },
            Slot::Same { of: 5 },
            Slot::Field { column: 255, piece: 1_024, classes: 31, len: 4_096 },
        ];
        let mut out = Vec::new();
        slots.iter().enumerate().for_each(|(i, slot)| slot.encode(i % 2 == 0, &mut out));
        let mut r = Reader::new(&out);
        for (i, slot) in slots.into_iter().enumerate() {
            assert_eq!(Slot::decode(&mut r, 3), Ok((slot, i % 2 == 0)));
        }
        assert!(r.is_empty());
        for bad in [
            &[9u8][..],
            &[FIELD, 0, 0],
            &[INT, 0, 65],
            &[FIXED, 20, 0, 1],
            &[FIXED, 0, 0, 1],
            &[CODES, 0],
        ] {
            assert!(Slot::decode(&mut Reader::new(bad), 0).is_err());
        }
    }

    #[test]
    fn values_print_as_they_were() {
        let print = |n, digits| {
            let mut out = Vec::new();
            print_number(n, digits, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(print(0, 0), "0");
        assert_eq!(print(u64::MAX, 0), u64::MAX.to_string());
        assert_eq!(print(7, 3), "007");
        assert_eq!(print(1234, 3), "234");
        assert_eq!(print(9_999_999_999_999_999_999, 19), "9999999999999999999");
        assert_eq!(number_of(b"9999999999999999999"), 9_999_999_999_999_999_999);
        for (text, upper) in [("0a", false), ("00FFE", true), ("beef0", false), ("", false)] {
            let (mut packed, mut out) = (Vec::new(), Vec::new());
            pack_hex(text.as_bytes(), &mut packed);
            print_hex(&packed, u16::try_from(text.len()).unwrap(), upper, &mut out);
            assert_eq!(out, text.as_bytes());
        }
        let all = class::DIGIT | class::LOWER | class::UPPER | class::WORD | class::TEXT;
        assert_eq!(classes_of(b"019"), all);
        assert_eq!(classes_of(b"01f"), all & !class::DIGIT & !class::UPPER);
        assert_eq!(classes_of(b"xF"), class::WORD | class::TEXT);
        assert_eq!(classes_of(b"x-"), class::TEXT);
        assert_eq!(classes_of(b"x\0"), 0);
    }
}
