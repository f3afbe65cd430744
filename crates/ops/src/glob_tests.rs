use super::*;

#[track_caller]
fn chooses(pattern: &str, folder: &str, bare: SlashlessPattern, chosen: &[&str], others: &[&str]) {
    let glob = Glob::new(pattern, WsPath::posix(folder).unwrap(), bare).unwrap();
    for path in chosen {
        assert!(glob.accepts(path), "{pattern} in {folder} should choose {path}");
    }
    for path in others {
        assert!(!glob.accepts(path), "{pattern} in {folder} should not choose {path}");
    }
}

#[test]
fn one_star_matches_within_a_name_and_two_across_folders() {
    chooses("*.py", "/", SlashlessPattern::Path, &["/a.py", "/.py"], &["/x/a.py", "/a.pyc"]);
    chooses("**/*.py", "/", SlashlessPattern::Path, &["/a.py", "/x/y/a.py"], &["/a.rs"]);
    chooses("src/**/*", "/", SlashlessPattern::Path, &["/src/a", "/src/x/y"], &["/lib/a", "/src"]);
    chooses("*/*.ts", "/", SlashlessPattern::Path, &["/a/b.ts"], &["/b.ts", "/a/b/c.ts"]);
    chooses("src/**", "/", SlashlessPattern::Path, &["/src/a", "/src/a/b"], &["/src2/a"]);
}

#[test]
fn braces_classes_and_negation_are_supported() {
    chooses("**/*.{ts,tsx}", "/", SlashlessPattern::Path, &["/a.ts", "/x/b.tsx"], &["/a.js"]);
    chooses("[a-c]?.md", "/", SlashlessPattern::Path, &["/a1.md"], &["/d1.md", "/a.md"]);
    chooses("!**/*.rs", "/", SlashlessPattern::Path, &["/a.md", "/x/b.py"], &["/a.rs", "/x/b.rs"]);
    chooses("!*.rs", "/", SlashlessPattern::Name, &["/a.md"], &["/x/y/b.rs"]);
}

#[test]
fn a_pattern_is_relative_to_its_folder() {
    chooses("*.py", "/src", SlashlessPattern::Path, &["/src/a.py"], &["/a.py", "/src/x/a.py", "/srcx/a.py"]);
    chooses("*.py", "/src", SlashlessPattern::Name, &["/src/a.py", "/src/x/a.py"], &["/a.py"]);
    chooses("./x/*", "/src", SlashlessPattern::Name, &["/src/x/a"], &["/src/a", "/x/a"]);
}

#[test]
fn the_error_for_an_invalid_pattern_explains_it() {
    let nested = format!("{}a{}", "{".repeat(1_000), "}".repeat(1_000));
    let long = "a".repeat(5_000);
    assert_eq!(Glob::new(&nested, WsPath::root(), SlashlessPattern::Path).unwrap_err().kind, ErrorKind::InvalidPattern);
    assert_eq!(Glob::new(&long, WsPath::root(), SlashlessPattern::Path).unwrap_err().kind, ErrorKind::InvalidPattern);
    for pattern in ["[a", "{a", "a[z-a]"] {
        let error = Glob::new(pattern, WsPath::root(), SlashlessPattern::Path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidPattern, "{pattern}");
        assert!(error.message.contains(pattern), "{error}");
    }
}

#[test]
fn folders_without_possible_matches_are_not_entered() {
    let enters = |pattern: &str, bare: SlashlessPattern, folder: &str| {
        Glob::new(pattern, WsPath::posix("/top").unwrap(), bare).unwrap().enters(folder)
    };
    for (pattern, entered, others) in [
        ("src/**/*.rs", &["/top/src", "/top/src/a/b"][..], &["/top/lib", "/top/srcs", "/top/lib/src"][..]),
        ("src/*.rs", &["/top/src"], &["/top/src/a", "/top/lib"]),
        ("*/x/*.rs", &["/top/a", "/top/a/x"], &["/top/a/x/b"]),
        ("a/b", &["/top/a"], &["/top/b", "/top/a/b"]),
        ("{a/b,c}/d/*", &["/top/a", "/top/c", "/top/a/b/d"], &[]),
        ("a/{b/c,d}", &["/top/a", "/top/a/b"], &["/top/b"]),
        ("**/*.rs", &["/top/a", "/top/a/b/c"], &[]),
        ("*.rs", &[], &["/top/a"]),
        ("!a/*.rs", &["/top/b", "/top/b/c"], &[]),
    ] {
        for folder in entered {
            assert!(enters(pattern, SlashlessPattern::Path, folder), "{pattern} should enter {folder}");
        }
        for folder in others {
            assert!(!enters(pattern, SlashlessPattern::Path, folder), "{pattern} should not enter {folder}");
        }
    }
    assert!(enters("*.rs", SlashlessPattern::Name, "/top/a/b") && enters("!x", SlashlessPattern::Name, "/top/a"));
}

proptest::proptest! {
    #[test]
    fn the_folders_above_a_match_are_entered(
        pattern in "!?([ab*]|\\*\\*|[{]a,b/a[}]|[\\[]ab[\\]])(/([ab*]|\\*\\*|[{]a,b/a[}]|[ab][*])){0,3}",
        path in "/[ab]{1,2}(/[ab]{1,2}){0,4}",
    ) {
        for bare in [SlashlessPattern::Path, SlashlessPattern::Name] {
            let glob = Glob::new(&pattern, WsPath::root(), bare).unwrap();
            let path = WsPath::posix(&path).unwrap();
            if glob.accepts(path.as_str()) {
                for folder in path.ancestors().iter().skip(1) {
                    proptest::prop_assert!(glob.enters(folder.as_str()), "{} below {}", pattern, folder);
                }
                proptest::prop_assert!(glob.is_deep() || path.ancestors().len() == 1);
            }
        }
    }
}
