use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{Interpreter, Language, Script, quoted};
use crate::Error;

fn script(code: &str) -> Script {
    Script { code: code.into(), ..Script::default() }
}

#[test]
fn bash_strings_are_quoted() {
    assert_eq!(quoted(OsStr::new("it's $HOME")), br"'it'\''s $HOME'");
    assert_eq!(quoted(OsStr::from_bytes(b"\xff\n")), b"'\xff'$'\\n'''");
}

#[test]
fn set_up_precedes_the_code_only_if_needed() {
    let bash = Interpreter::new(Language::Bash, "/bin/bash");
    let encoded = bash.encode(&Script { arguments: vec!["a b".into()], ..script("echo $1\n") }).unwrap();
    assert_eq!(encoded, br"set -- 'a b'; eval 'echo $1'$'\n'''");
    assert_eq!(bash.encode(&script("echo\n")).unwrap(), b"echo\n");
}

#[test]
fn invalid_variable_names_are_not_executed_by_bash() {
    let bash = Interpreter::new(Language::Bash, "/bin/bash");
    let hostile = Script { env: vec![("a;reboot".into(), "".into())], ..script("true") };
    assert!(matches!(bash.encode(&hostile), Err(Error::Invalid(_))));
}

#[test]
fn invalid_variable_names_are_refused_for_every_language() {
    for language in [Language::Python, Language::Bash] {
        for name in ["", "A=B", "="] {
            let script = Script { env: vec![(name.into(), "c".into())], ..script("") };
            let refused = Interpreter::new(language, "/usr/bin/any").encode(&script);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{language:?} {name:?}");
        }
    }
}

#[test]
fn arguments_with_nul_are_refused() {
    let python = Interpreter::new(Language::Python, "/usr/bin/python3");
    let hostile = Script { arguments: vec!["a\0b".into()], ..script("pass") };
    assert!(matches!(python.encode(&hostile), Err(Error::Invalid(_))));
}

#[test]
fn a_real_python_program_is_found() {
    let python = Interpreter::find(Language::Python).unwrap();
    assert!(python.program().is_absolute());
    assert!(python.folders().is_empty() || !python.program().starts_with("/usr"));
}
