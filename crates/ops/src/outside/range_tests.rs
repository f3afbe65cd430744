use super::*;
use proptest::prelude::*;

#[test]
fn a_range_is_parsed_in_the_usual_notation() {
    for text in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.7/32", "fd00::/8", "::/0", "::1/128"] {
        assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), text);
    }
    assert_eq!("192.0.2.7".parse::<AddressRange>().unwrap().to_string(), "192.0.2.7/32");
}

#[test]
fn a_text_that_is_not_a_range_is_refused() {
    for text in ["", "10", "10.0.0.0/33", "10.0.0.0/4294967295", "::/129", "10.0.0.1/8", "example.com", "10.0.0.0/-1"] {
        let refusal = text.parse::<AddressRange>().unwrap_err();
        assert!(refusal.to_string().contains("10.0.0.0/8"), "{refusal}");
    }
}

#[test]
fn a_range_of_ipv4_contains_its_addresses_in_ipv6_form() {
    let range: AddressRange = "127.0.0.0/8".parse().unwrap();
    assert!(range.contains("::ffff:127.0.0.1".parse().unwrap()));
    assert!(!range.contains("::127.0.0.1".parse().unwrap()));
}

proptest! {
    #[test]
    fn a_range_contains_the_addresses_with_its_first_bits(first: u32, bits in 0..=32_u32, address: u32) {
        let shown = |number: u32| format!("{number:032b}");
        let first = if bits == 0 { 0 } else { first >> (32 - bits) << (32 - bits) };
        let range: AddressRange = format!("{}/{bits}", Ipv4Addr::from_bits(first)).parse().unwrap();
        let near = first | if bits == 32 { 0 } else { address >> bits };
        for address in [address, near] {
            let wanted = shown(first)[..bits as usize] == shown(address)[..bits as usize];
            prop_assert_eq!(range.contains(Ipv4Addr::from_bits(address).into()), wanted);
        }
    }
}
