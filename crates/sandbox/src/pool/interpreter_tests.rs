use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{Interpreter, Language, Script, quoted};
use crate::Error;

fn script(code: &str) -> Script {
    Script { code: code.into(), ..Script::default() }
}

#[test]
fn what_bash_gets_is_quoted() {
    assert_eq!(quoted(OsStr::new("it's $HOME")), br"'it'\''s $HOME'");
    assert_eq!(quoted(OsStr::from_bytes(b"\xff\n")), b"'\xff'$'\\n'''");
}

#[test]
fn only_what_is_set_up_stands_before_the_code() {
    let bash = Interpreter::new(Language::Bash, "/bin/bash");
    let encoded = bash.encode(&Script { arguments: vec!["a b".into()], ..script("echo $1\n") }).unwrap();
    assert_eq!(encoded, br"set -- 'a b'; eval 'echo $1'$'\n'''");
    assert_eq!(bash.encode(&script("echo\n")).unwrap(), b"echo\n");
}

#[test]
fn a_name_that_is_no_name_is_refused_and_not_run() {
    let bash = Interpreter::new(Language::Bash, "/bin/bash");
    let hostile = Script { env: vec![("a;reboot".into(), "".into())], ..script("true") };
    assert!(matches!(bash.encode(&hostile), Err(Error::Invalid(_))));
}

#[test]
fn a_variable_without_a_proper_name_is_refused_for_every_language() {
    for language in [Language::Python, Language::Bash] {
        for name in ["", "A=B", "="] {
            let script = Script { env: vec![(name.into(), "c".into())], ..script("") };
            let refused = Interpreter::new(language, "/usr/bin/any").encode(&script);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{language:?} {name:?}");
        }
    }
}

#[test]
fn a_nul_cannot_smuggle_a_string_in() {
    let python = Interpreter::new(Language::Python, "/usr/bin/python3");
    let hostile = Script { arguments: vec!["a\0b".into()], ..script("pass") };
    assert!(matches!(python.encode(&hostile), Err(Error::Invalid(_))));
}

#[test]
fn python_is_found_and_is_no_script() {
    let python = Interpreter::find(Language::Python).unwrap();
    assert!(python.program().is_absolute());
    assert!(python.folders().is_empty() || !python.program().starts_with("/usr"));
}
