//! Interpreters, and the encoding of scripts for them.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{Error, Result, Stdin};

/// Reads the script from descriptor 3 and runs it like `python3 -c`.
const PYTHON: &str = include_str!("bootstrap.py");

/// Reads the whole script from descriptor 3 and runs it in the shell itself. `3<&-` closes the descriptor for the group;
/// until the group ends, bash keeps a copy as number 10, which programs started by the script do not inherit.
const BASH: &str = "{ . /dev/fd/10; } 3<&-";

/// Variables that are read only at program start: by the loader, the C library or the interpreter.
const STARTUP_VARIABLES: [&str; 8] =
    ["BASHOPTS", "BASH_ENV", "GLIBC_TUNABLES", "LANG", "LANGUAGE", "POSIXLY_CORRECT", "SHELLOPTS", "TZ"];
const STARTUP_PREFIXES: [&str; 4] = ["LC_", "LD_", "MALLOC_", "PYTHON"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Bash,
}

/// An interpreter and the folders it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    language: Language,
    program: PathBuf,
    /// Folders that must be mounted for it to run, in addition to the system.
    folders: Vec<PathBuf>,
}

/// A script with its arguments, variables and input.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub code: Vec<u8>,
    pub arguments: Vec<OsString>,
    /// Added to the variables of the cell.
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
}

impl Script {
    /// Removes and returns the variables that an idle interpreter would ignore, because they are read at program start.
    pub(super) fn take_startup_env(&mut self) -> Vec<(OsString, OsString)> {
        let is_startup_variable = |name: &OsStr| {
            STARTUP_VARIABLES.iter().any(|other| name == *other)
                || STARTUP_PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
        };
        self.env.extract_if(.., |(name, _)| is_startup_variable(name)).collect()
    }
}

impl Interpreter {
    /// Returns an interpreter that exists in the cell, such as one of a mounted virtual environment.
    pub fn new(language: Language, program: impl Into<PathBuf>) -> Self {
        Self { language, program: program.into(), folders: Vec::new() }
    }

    /// Finds the machine's interpreter: the system's own, which every cell contains; otherwise the first in `PATH` that
    /// is a real program and not a wrapper script, with the folder it is installed in.
    pub fn find(language: Language) -> Result<Self> {
        let name = match language {
            Language::Python => "python3",
            Language::Bash => "bash",
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let system = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from);
        let candidates = system.into_iter().chain(env::split_paths(&path)).chain(pyenv(language));
        let program = candidates.map(|folder| folder.join(name)).find_map(|program| real_program(&program));
        let program = program.ok_or(Error::NoInterpreter(name))?;
        let prefix = program.parent().and_then(Path::parent).map(Path::to_path_buf);
        let folders = prefix.filter(|prefix| !prefix.starts_with("/usr")).into_iter().collect();
        Ok(Self { language, program, folders })
    }

    pub fn language(&self) -> Language {
        self.language
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    pub(super) fn argv(&self) -> Vec<OsString> {
        let code = match self.language {
            Language::Python => PYTHON,
            Language::Bash => BASH,
        };
        vec![self.program.clone().into(), "-c".into(), code.into()]
    }

    /// Encodes the script for an idle interpreter.
    pub(super) fn encode(&self, script: &Script) -> Result<Vec<u8>> {
        let strings = script.env.iter().flat_map(|(name, value)| [name, value]).chain(&script.arguments);
        if strings.clone().any(|string| string.as_bytes().contains(&0)) {
            return Err(Error::Invalid("an argument or a variable contains a NUL"));
        }
        if script.env.iter().any(|(name, _)| name.is_empty() || name.as_bytes().contains(&b'=')) {
            return Err(Error::Invalid("the name of a variable is empty or contains '='"));
        }
        match self.language {
            Language::Python => Ok(python(script)),
            Language::Bash => bash(script),
        }
    }
}

/// Encodes counts and strings, each terminated by NUL, followed by the code. `bootstrap.py` decodes them.
fn python(script: &Script) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut push = |bytes: &[u8]| {
        encoded.extend_from_slice(bytes);
        encoded.push(0);
    };
    push(script.arguments.len().to_string().as_bytes());
    script.arguments.iter().for_each(|argument| push(argument.as_bytes()));
    push(script.env.len().to_string().as_bytes());
    script.env.iter().for_each(|(name, value)| push(&[name.as_bytes(), value.as_bytes()].join(&b'=')));
    encoded.extend_from_slice(&script.code);
    encoded
}

/// Returns the code. Arguments and variables are set on the same line as the quoted code, so that line numbers in error
/// messages stay right and the messages show only the faulty line.
fn bash(script: &Script) -> Result<Vec<u8>> {
    if script.arguments.is_empty() && script.env.is_empty() {
        return Ok(script.code.clone());
    }
    let mut encoded = b"set --".to_vec();
    for argument in &script.arguments {
        encoded.push(b' ');
        encoded.extend(quoted(argument));
    }
    for (name, value) in &script.env {
        if !is_identifier(name) {
            return Err(Error::Invalid("bash cannot set a variable of that name"));
        }
        encoded.extend_from_slice(b"; export ");
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(b'=');
        encoded.extend(quoted(value));
    }
    encoded.extend_from_slice(b"; eval ");
    encoded.extend(quoted(OsStr::from_bytes(&script.code)));
    Ok(encoded)
}

fn quoted(string: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in string.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            // The result must stay on one line.
            b'\n' => quoted.extend_from_slice(br"'$'\n''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

fn is_identifier(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(|byte| !byte.is_ascii_digit()) && bytes.iter().all(is_part)
}

/// Returns the folders of pyenv's interpreters, the newest first. In `PATH`, pyenv only has wrapper scripts.
fn pyenv(language: Language) -> Vec<PathBuf> {
    let home = env::var_os("HOME").filter(|_| language == Language::Python);
    let versions = home.and_then(|home| fs::read_dir(Path::new(&home).join(".pyenv/versions")).ok());
    let mut folders: Vec<PathBuf> =
        versions.into_iter().flatten().flatten().map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders
}

/// Resolves links and returns the program, unless it is a script.
fn real_program(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let mut magic = [0; 4];
    fs::File::open(&path).ok()?.read_exact(&mut magic).ok()?;
    (magic == *b"\x7fELF").then_some(path)
}

#[cfg(test)]
#[path = "interpreter_tests.rs"]
mod interpreter_tests;
