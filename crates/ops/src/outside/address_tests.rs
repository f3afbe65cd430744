use super::*;
use proptest::prelude::*;

fn of(address: &str) -> Option<&'static str> {
    kind(address.parse().unwrap())
}

#[test]
fn public_addresses_have_no_special_kind() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001:81b::200e",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ] {
        assert_eq!(of(address), None, "{address}");
    }
}

#[test]
fn every_special_address_has_its_kind() {
    for (address, kind) in [
        ("0.0.0.0", "no address"),
        ("0.1.2.3", "no address"),
        ("10.1.2.3", PRIVATE),
        ("172.16.0.1", PRIVATE),
        ("172.31.255.255", PRIVATE),
        ("192.168.1.1", PRIVATE),
        ("127.0.0.1", "the server's own machine"),
        ("127.255.255.254", "the server's own machine"),
        ("100.64.0.1", "a provider's private network"),
        ("100.100.100.200", "a provider's private network"),
        ("169.254.169.254", "a link-local address"),
        ("168.63.129.16", "a cloud's own service"),
        ("192.0.0.192", RESERVED),
        ("192.0.2.1", DOCUMENTATION),
        ("198.51.100.1", DOCUMENTATION),
        ("203.0.113.1", DOCUMENTATION),
        ("198.19.255.255", "an address for benchmarks"),
        ("224.0.0.1", "a multicast address"),
        ("240.0.0.1", RESERVED),
        ("255.255.255.255", RESERVED),
        ("::", "no address"),
        ("::1", "the server's own machine"),
        ("fe80::1", "a link-local address"),
        ("febf::1", "a link-local address"),
        ("fec0::1", PRIVATE),
        ("fc00::1", PRIVATE),
        ("fd00:ec2::254", PRIVATE),
        ("fd20:ce::254", PRIVATE),
        ("ff02::1", "a multicast address"),
        ("2001:db8::1", DOCUMENTATION),
        ("3fff::1", DOCUMENTATION),
        ("2001:2::1", RESERVED),
        ("100::1", RESERVED),
        ("4000::1", RESERVED),
        ("::ffff:127.0.0.1", "the server's own machine"),
        ("::ffff:169.254.169.254", "a link-local address"),
        ("::127.0.0.1", RESERVED),
        ("2002:7f00:1::", TUNNEL),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", TUNNEL),
        ("64:ff9b::10.0.0.1", PRIVATE),
        ("64:ff9b::169.254.169.254", "a link-local address"),
        ("64:ff9b:1::8.8.8.8", RESERVED),
    ] {
        assert_eq!(of(address), Some(kind), "{address}");
    }
}

proptest! {
    #[test]
    fn an_ipv4_address_has_the_same_kind_in_every_notation(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let [a, b] = [bits >> 16, bits & 0xffff].map(|half| u16::try_from(half).unwrap());
        prop_assert_eq!(kind(address.to_ipv6_mapped().into()), kind(address.into()));
        prop_assert_eq!(kind(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b).into()), kind(address.into()));
        // Similar forms and tunnel addresses are refused whatever address they contain.
        prop_assert!(kind(Ipv6Addr::new(0, 0, 0, 0, 0, 0, a, b).into()).is_some());
        prop_assert!(kind(Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1).into()).is_some());
        prop_assert!(kind(Ipv6Addr::new(0x2001, 0, a, b, 0, 0, !a, !b).into()).is_some());
    }

    #[test]
    fn addresses_that_the_standard_library_calls_special_are_not_public(v4: u32, v6: u128) {
        let v4 = Ipv4Addr::from_bits(v4);
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
            || v4.is_documentation() || v4.is_multicast() || v4.is_unspecified();
        prop_assert!(!special || kind(v4.into()).is_some(), "{}", v4);
        // Addresses near the special ranges, which random addresses would never hit.
        for prefix in [0xfc00, 0xfe80, 0xff00, 0x2001_u128] {
            let v6 = Ipv6Addr::from_bits(prefix << 112 | v6 >> 9);
            let special = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast()
                || v6.is_unique_local() || v6.is_unicast_link_local();
            prop_assert!(!special || kind(v6.into()).is_some(), "{}", v6);
        }
    }
}
