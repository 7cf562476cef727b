//! `ipv6_range`: IP addresses as 128-bit numbers.

use std::net::{IpAddr, Ipv6Addr};

/// The longest text of an address.
const MAX_LEN: usize = 45;

/// The address as a number; IPv4 is mapped to `::ffff:a.b.c.d`, a zone is dropped. `None` for
/// anything but a whole address without port and brackets.
pub(crate) fn parse_ip(value: &[u8]) -> Option<u128> {
    if !(2..=MAX_LEN).contains(&value.len()) {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    if let Some((address, zone)) = text.split_once('%') {
        let address: Ipv6Addr = address.parse().ok()?;
        return (!zone.is_empty()).then_some(address.to_bits());
    }
    Some(match text.parse().ok()? {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_refuses() {
        assert_eq!(parse_ip(b"::1"), Some(1));
        assert_eq!(parse_ip(b"1.2.3.4"), Some(0xffff_0102_0304));
        assert_eq!(parse_ip(b"::ffff:1.2.3.4"), parse_ip(b"1.2.3.4"));
        assert_eq!(parse_ip(b"fe80::1%eth0"), parse_ip(b"fe80::1"));
        for bad in ["", ":", "[::1]", "::1:80:", "1.2.3.4:80", "1.2.3.4%e", "fe80::1%", "x"] {
            assert_eq!(parse_ip(bad.as_bytes()), None, "{bad}");
        }
    }
}
