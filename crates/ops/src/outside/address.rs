//! Classification of addresses that are not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::range::AddressRange;

const fn v4(first: [u8; 4], bits: u32, kind: &'static str) -> (AddressRange, &'static str) {
    (AddressRange::v4(first, bits), kind)
}

const fn v6(first: Ipv6Addr, bits: u32, kind: &'static str) -> (AddressRange, &'static str) {
    (AddressRange::v6(first, bits), kind)
}

const fn at(a: u16, b: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)
}

const PRIVATE: &str = "a private network";
const RESERVED: &str = "a reserved address";
const DOCUMENTATION: &str = "an address for documentation";
/// These embed an IPv4 address and lead to relays of an obsolete protocol.
const TUNNEL: &str = "the address of a tunnel";

/// From IANA's registries of special-purpose addresses. The first match counts.
const KINDS: &[(AddressRange, &str)] = &[
    v4([0, 0, 0, 0], 8, "no address"),
    v4([10, 0, 0, 0], 8, PRIVATE),
    v4([100, 64, 0, 0], 10, "a provider's private network"),
    v4([127, 0, 0, 0], 8, "the server's own machine"),
    v4([169, 254, 0, 0], 16, "a link-local address"),
    v4([172, 16, 0, 0], 12, PRIVATE),
    v4([192, 0, 0, 0], 24, RESERVED),
    v4([192, 0, 2, 0], 24, DOCUMENTATION),
    v4([192, 88, 99, 0], 24, TUNNEL),
    v4([192, 168, 0, 0], 16, PRIVATE),
    v4([198, 18, 0, 0], 15, "an address for benchmarks"),
    v4([198, 51, 100, 0], 24, DOCUMENTATION),
    v4([203, 0, 113, 0], 24, DOCUMENTATION),
    v4([224, 0, 0, 0], 4, "a multicast address"),
    v4([240, 0, 0, 0], 4, RESERVED),
    // The metadata service of Azure, which has a public address. Those of other clouds are link-local, private or
    // reserved.
    v4([168, 63, 129, 16], 32, "a cloud's own service"),
    v6(Ipv6Addr::UNSPECIFIED, 128, "no address"),
    v6(Ipv6Addr::LOCALHOST, 128, "the server's own machine"),
    v6(at(0x2001, 0xdb8), 32, DOCUMENTATION),
    v6(at(0x2001, 0), 32, TUNNEL),
    v6(at(0x2001, 0), 23, RESERVED),
    v6(at(0x2002, 0), 16, TUNNEL),
    v6(at(0x3fff, 0), 20, DOCUMENTATION),
    v6(at(0xfc00, 0), 7, PRIVATE),
    v6(at(0xfe80, 0), 10, "a link-local address"),
    v6(at(0xfec0, 0), 10, PRIVATE),
    v6(at(0xff00, 0), 8, "a multicast address"),
];

/// The public range of IPv6.
const PUBLIC: AddressRange = AddressRange::v6(at(0x2000, 0), 3);

/// The prefix of IPv4 addresses in a network without IPv4 (NAT64).
const TRANSLATED: AddressRange = AddressRange::v6(at(0x64, 0xff9b), 96);

/// Returns the kind of an address; `None` for a public one.
pub(super) fn kind(address: IpAddr) -> Option<&'static str> {
    let address = address.to_canonical();
    if let Some((_, kind)) = KINDS.iter().find(|(range, _)| range.contains(address)) {
        return Some(kind);
    }
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(within) if TRANSLATED.contains(address) => {
            let [.., a, b, c, d] = within.octets();
            kind(Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(_) if PUBLIC.contains(address) => None,
        IpAddr::V6(_) => Some(RESERVED),
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod address_tests;
