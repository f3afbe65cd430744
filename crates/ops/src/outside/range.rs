//! Ranges of addresses in the usual notation: `10.0.0.0/8`, `fd00::/8`, `192.0.2.7`.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// Number of bits before an IPv4 address in its IPv6 form.
const MAPPED_BITS: u32 = 96;

/// Addresses with the same first bits. A range of IPv4 also contains these addresses in their IPv6 form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// The first address, as IPv6.
    first: u128,
    /// Number of common bits.
    bits: u32,
}

/// The error for a text that is not a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no range of addresses; expected one such as 10.0.0.0/8, fd00::/8 or 192.0.2.7")]
pub struct BadRange(String);

impl AddressRange {
    pub(super) const fn v4(first: [u8; 4], bits: u32) -> Self {
        let [a, b, c, d] = first;
        Self { first: Ipv4Addr::new(a, b, c, d).to_ipv6_mapped().to_bits(), bits: MAPPED_BITS + bits }
    }

    pub(super) const fn v6(first: Ipv6Addr, bits: u32) -> Self {
        Self { first: first.to_bits(), bits }
    }

    /// Returns the range of all addresses.
    pub(super) const fn all() -> Self {
        Self::v6(Ipv6Addr::UNSPECIFIED, 0)
    }

    pub const fn contains(&self, address: IpAddr) -> bool {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        begins_with_zeros(address.to_bits() ^ self.first, self.bits)
    }
}

/// Whether the first `bits` bits are zero.
const fn begins_with_zeros(difference: u128, bits: u32) -> bool {
    bits == 0 || difference >> (u128::BITS - bits) == 0
}

impl FromStr for AddressRange {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let bad = || BadRange(text.to_owned());
        let (first, bits) = match text.split_once('/') {
            Some((first, bits)) => (first, Some(bits.parse::<u8>().map_err(|_| bad())?.into())),
            None => (text, None),
        };
        let range = match first.parse().map_err(|_| bad())? {
            IpAddr::V4(first) => Self::v4(first.octets(), bits.unwrap_or(32)),
            IpAddr::V6(first) => Self::v6(first, bits.unwrap_or(128)),
        };
        // An address with bits beyond those that count was not meant as the beginning of a range.
        let is_first = range.first.checked_shl(range.bits).is_none_or(|rest| rest == 0);
        if range.bits <= u128::BITS && is_first { Ok(range) } else { Err(bad()) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = Ipv6Addr::from_bits(self.first);
        match first.to_ipv4_mapped() {
            Some(first) if self.bits >= MAPPED_BITS => write!(f, "{first}/{}", self.bits - MAPPED_BITS),
            _ => write!(f, "{first}/{}", self.bits),
        }
    }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod range_tests;
