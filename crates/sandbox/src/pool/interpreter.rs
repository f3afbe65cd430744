//! The interpreters that can wait, and how a script is handed to one.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{Error, Result, Stdin};

/// Reads the script from the descriptor it is given and runs it as `python3 -c` would.
const PYTHON: &str = include_str!("bootstrap.py");

/// Reads the script to its end from the descriptor it is given, and runs it in the shell itself. The shell keeps what it
/// closes for a group under the next number from ten on, which is its own: no program that the code starts has it.
const BASH: &str = "{ . /dev/fd/10; } 3<&-";

/// Variables that only count when a program starts: for its loader, its C library or the interpreter itself.
const AT_START: [&str; 8] =
    ["BASHOPTS", "BASH_ENV", "GLIBC_TUNABLES", "LANG", "LANGUAGE", "POSIXLY_CORRECT", "SHELLOPTS", "TZ"];
const AT_START_PREFIXES: [&str; 4] = ["LC_", "LD_", "MALLOC_", "PYTHON"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Bash,
}

/// An interpreter, found once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    language: Language,
    program: PathBuf,
    /// What must be mounted for it to run, beside the system.
    folders: Vec<PathBuf>,
}

/// What an interpreter is to run.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub code: Vec<u8>,
    pub arguments: Vec<OsString>,
    /// Set beside the variables of the place.
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
}

impl Script {
    /// Takes out the variables that an interpreter which waits already would not heed.
    pub(super) fn take_start_env(&mut self) -> Vec<(OsString, OsString)> {
        let counts_at_start = |name: &OsStr| {
            AT_START.iter().any(|other| name == *other)
                || AT_START_PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
        };
        self.env.extract_if(.., |(name, _)| counts_at_start(name)).collect()
    }
}

impl Interpreter {
    /// An interpreter that is already to be found in the place, such as the one of a virtual environment that is
    /// mounted there.
    pub fn new(language: Language, program: impl Into<PathBuf>) -> Self {
        Self { language, program: program.into(), folders: Vec::new() }
    }

    /// Finds the interpreter of the machine: the system's own, which every job sees, else the first in `PATH` that is a
    /// program and not a script that looks for one, with the folder it was installed in.
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

    /// The script as the waiting interpreter reads it.
    pub(super) fn encode(&self, script: &Script) -> Result<Vec<u8>> {
        let strings = script.env.iter().flat_map(|(name, value)| [name, value]).chain(&script.arguments);
        if strings.clone().any(|string| string.as_bytes().contains(&0)) {
            return Err(Error::Invalid("an argument or a variable has a NUL in it"));
        }
        if script.env.iter().any(|(name, _)| name.is_empty() || name.as_bytes().contains(&b'=')) {
            return Err(Error::Invalid("the name of a variable is empty or has a '=' in it"));
        }
        match self.language {
            Language::Python => Ok(python(script)),
            Language::Bash => bash(script),
        }
    }
}

/// The counts and strings that `bootstrap.py` takes apart, each ended by a NUL, then the code.
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

/// The code; where there is something to set up, that and the code on one line, so that the numbers of the code's own
/// lines stay right and a line that is wrong is shown by itself.
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
            // All on one line.
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

/// Where pyenv keeps its interpreters, the newest first; in `PATH` there is only a script that looks for one.
fn pyenv(language: Language) -> Vec<PathBuf> {
    let home = env::var_os("HOME").filter(|_| language == Language::Python);
    let versions = home.and_then(|home| fs::read_dir(Path::new(&home).join(".pyenv/versions")).ok());
    let mut folders: Vec<PathBuf> =
        versions.into_iter().flatten().flatten().map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders
}

/// The program behind all links, unless it is a script itself.
fn real_program(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let mut magic = [0; 4];
    fs::File::open(&path).ok()?.read_exact(&mut magic).ok()?;
    (magic == *b"\x7fELF").then_some(path)
}

#[cfg(test)]
#[path = "interpreter_tests.rs"]
mod interpreter_tests;
