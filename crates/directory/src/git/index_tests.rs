use super::*;

use ObjectFormat::{Sha1, Sha256};

/// Returns an index of the given version and hash format with these paths.
fn index(version: u32, format: ObjectFormat, paths: &[&str]) -> Vec<u8> {
    let hash_bytes = format.hash_bytes();
    let mut index = b"DIRC".to_vec();
    index.extend(version.to_be_bytes());
    index.extend(u32::try_from(paths.len()).unwrap().to_be_bytes());
    let mut before = "";
    for path in paths {
        let begin = index.len();
        index.extend(vec![1; STAT_BYTES + hash_bytes]);
        index.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
        if version == 4 {
            let common = before.bytes().zip(path.bytes()).take_while(|(one, other)| one == other).count();
            index.push(u8::try_from(before.len() - common).unwrap());
            index.extend(&path.as_bytes()[common..]);
            index.push(0);
            before = path;
        } else {
            index.extend(path.as_bytes());
            let length = index.len() - begin;
            index.extend(vec![0; 8 - length % 8]);
        }
    }
    index.extend(vec![7; hash_bytes]);
    index
}

#[test]
fn an_index_of_ordinary_paths_is_harmless() {
    for (version, format) in [(2, Sha1), (3, Sha1), (4, Sha1), (2, Sha256), (4, Sha256)] {
        assert!(is_harmless(&index(version, format, &[]), format), "{version}");
        let paths = [".gitignore", "a", "src/lib.rs", "src/long/path/to/some/file.rs", "src/main.rs", "x.git/y"];
        assert!(is_harmless(&index(version, format, &paths), format), "{version} {format:?}");
    }
}

#[test]
fn an_index_with_paths_into_a_repository_or_outside_is_harmful() {
    for path in
        [".git/hooks/post-checkout", "sub/.git/config", ".GIT/x", "../x", "a/../../x", "/etc/x", "a//b", "git~1/config"]
    {
        for (version, format) in [(2, Sha1), (4, Sha1), (2, Sha256), (4, Sha256)] {
            assert!(!is_harmless(&index(version, format, &["a", path, "z"]), format), "{path} {version}");
        }
    }
}

#[test]
fn an_invalid_index_is_harmful() {
    let whole = index(2, Sha1, &["a", "b"]);
    for text in [&b""[..], b"DIRC", b"DIRC\0\0\0\x05\0\0\0\0", b"text", &whole[..60]] {
        assert!(!is_harmless(text, Sha1), "{text:?}");
    }
}

#[test]
fn an_index_is_parsed_with_the_hash_format_of_its_repository() {
    // With SHA-1 the path of the entry is ordinary. With SHA-256 it begins twelve bytes later, and is another one.
    let mut both = b"DIRC".to_vec();
    both.extend(2_u32.to_be_bytes());
    both.extend(1_u32.to_be_bytes());
    both.extend(vec![1; STAT_BYTES + 20]);
    both.extend(12_u16.to_be_bytes());
    both.extend(b"aaaaaaaaaa");
    let hidden = b".git/hooks/x";
    both.extend(u16::try_from(hidden.len()).unwrap().to_be_bytes());
    both.extend(hidden);
    both.extend(vec![0; 64]);
    assert!(is_harmless(&both, Sha1));
    assert!(!is_harmless(&both, Sha256));
}

#[test]
fn the_configuration_names_the_hash_format() {
    for (config, expected) in [
        ("", Some(Sha1)),
        ("[core]\n\trepositoryformatversion = 0\n", Some(Sha1)),
        ("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n", Some(Sha256)),
        ("[Extensions] ObjectFormat=\"SHA256\"", Some(Sha256)),
        ("[extensions]\nobjectformat = sha1\n[remote \"objectformat\"]\n", Some(Sha1)),
        ("[other]\nobjectformat = sha256\n", Some(Sha1)),
        ("[extensions]\nobjectformat = sha256\nobjectformat = sha1\n", Some(Sha1)),
        ("[extensions]\nobjectformat = sha512\n", None),
        ("[extensions]\nobjectformat = sha\\\n256\n", None),
        ("[extensions]\nobjectformat\n", None),
    ] {
        assert_eq!(ObjectFormat::of_config(config.as_bytes()), expected, "{config:?}");
    }
    assert_eq!(ObjectFormat::of_config(b"[user]\nname = \xff\n[extensions]\nobjectformat = sha256"), Some(Sha256));
}
