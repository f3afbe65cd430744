use super::*;

/// An index of a version, with hashes of a size and these paths.
fn index(version: u32, hash_bytes: usize, paths: &[&str]) -> Vec<u8> {
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
    for (version, hash_bytes) in [(2, 20), (3, 20), (4, 20), (2, 32), (4, 32)] {
        assert!(is_harmless(&index(version, hash_bytes, &[])), "{version}");
        let paths = [".gitignore", "a", "src/lib.rs", "src/long/path/to/some/file.rs", "src/main.rs", "x.git/y"];
        assert!(is_harmless(&index(version, hash_bytes, &paths)), "{version} {hash_bytes}");
    }
}

#[test]
fn an_index_that_leads_into_a_repository_or_out_of_the_folder_is_not() {
    for path in
        [".git/hooks/post-checkout", "sub/.git/config", ".GIT/x", "../x", "a/../../x", "/etc/x", "a//b", "git~1/config"]
    {
        for (version, hash_bytes) in [(2, 20), (4, 20), (2, 32), (4, 32)] {
            assert!(!is_harmless(&index(version, hash_bytes, &["a", path, "z"])), "{path} {version}");
        }
    }
}

#[test]
fn what_is_no_index_is_not_harmless() {
    let whole = index(2, 20, &["a", "b"]);
    for text in [&b""[..], b"DIRC", b"DIRC\0\0\0\x05\0\0\0\0", b"text", &whole[..60]] {
        assert!(!is_harmless(text), "{text:?}");
    }
}
