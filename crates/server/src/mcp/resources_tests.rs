use super::*;

#[test]
fn every_path_survives_its_address() {
    for name in ["a.txt", "src/main.rs", "with space.txt", "100%.md", "naïve/ß?#[x].txt", "%41"] {
        let address = uri(name);
        assert!(address.is_ascii() && !address.contains(' '), "{address}");
        assert_eq!(path(&address).as_deref(), Some(name));
    }
}

#[test]
fn other_addresses_are_no_files() {
    for address in ["file:///etc/passwd", "toolrest:///", "toolrest:///%zz", "toolrest:///%4", "toolrest:///%FF"] {
        assert_eq!(path(address), None, "{address}");
    }
}
