//! `toolrest setup`: installs what tools need besides the server.

#![allow(clippy::disallowed_methods, reason = "an operator's command that no tool reaches; pip must run outside")]

mod background;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io::{self, IsTerminal, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

pub(crate) use background::BackgroundSetup;
use toolrest::python::{MOUNTED_AT, STAMP, is_complete, lock_path, site_packages};

const REQUIREMENTS: &str = include_str!("setup/requirements.txt");

/// A module of the environment, and the line with which every interpreter imports it at its start.
const MATPLOTLIB: &str = include_str!("setup/toolrest_matplotlib.py");
const MATPLOTLIB_FILE: &str = "toolrest_matplotlib.py";
const START_FILE: &str = "toolrest.pth";
const START: &str = "import toolrest_matplotlib\n";

/// The Python interpreters that are visible in the sandbox. The environment links to its interpreter, so others do not
/// work.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "/usr/local/bin/python3"];

/// The versions for which the requirements have wheels.
const VERSIONS: [&str; 3] = ["3.11", "3.12", "3.13"];

/// Interval between two dots that show progress.
const DOT_INTERVAL: Duration = Duration::from_secs(1);

/// Number of output lines shown for a failed step.
const SHOWN_LINES: usize = 20;

/// Why the environment could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("there is no {}; install it with `apt-get install python3 python3-venv`", PYTHONS[0])]
    NoPython,
    #[error("{python} is Python {version}, and the packages are pinned for {}", VERSIONS.join(", "))]
    Version { python: PathBuf, version: String },
    #[error("{0} cannot make virtual environments; install what it lacks with `apt-get install python3-venv`")]
    NoVenv(PathBuf),
    #[error("{0} exists and was not created by this command; remove it or name another folder with --to")]
    NotOurs(PathBuf),
    #[error("{step} failed ({status}):\n{output}")]
    Step { step: &'static str, status: std::process::ExitStatus, output: String },
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Creates the Python environment of the data tools in a folder, unless it is up to date.
pub(crate) fn python(folder: &Path) -> Result<(), SetupError> {
    let (parent, name) = split_path(folder)?;
    let folder = parent.join(&name);
    // An environment that is up to date needs no write permission.
    if !is_current(&folder) {
        renew(&parent, &name)?;
    }
    println!("The Python environment in {} is complete.", folder.display());
    Ok(())
}

/// Creates an environment in a temporary folder and renames it when it is complete, so there is never half of one.
fn renew(parent: &Path, name: &OsStr) -> Result<(), SetupError> {
    // It can be the data folder, which only the server's user may read.
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(on(parent))?;
    let folder = parent.join(name);
    let lock = SetupLock::take(lock_path(&folder))?;
    if is_current(&folder) {
        return Ok(());
    }
    if !is_replaceable(&folder) {
        return Err(SetupError::NotOurs(folder));
    }
    let system = find_python(&lock)?;
    println!("Making the Python environment in {}; this takes a minute.", folder.display());
    let (new, old) = (parent.join(sibling_name(name, "new")), parent.join(sibling_name(name, "old")));
    // Left by a command that was killed.
    remove(&new)?;
    remove(&old)?;
    create(&lock, &system, &new)?;
    match fs::rename(&folder, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(on(&folder)(error)),
        _ => fs::rename(&new, &folder).map_err(on(&folder))?,
    }
    remove(&old)
}

/// Returns the absolute parent folder, and the name in it.
fn split_path(folder: &Path) -> Result<(PathBuf, OsString), SetupError> {
    let full = std::path::absolute(folder).map_err(on(folder))?;
    match (full.parent(), full.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), name.to_owned())),
        _ => Err(SetupError::NotOurs(full)),
    }
}

/// Returns the name of a temporary folder next to the environment.
fn sibling_name(name: &OsStr, what: &str) -> OsString {
    [OsStr::new("."), name, OsStr::new("."), OsStr::new(what)].into_iter().collect()
}

/// Returns the inputs of an environment, which its stamp records.
fn stamp() -> String {
    format!("{REQUIREMENTS}{MATPLOTLIB}{START}{MOUNTED_AT}\n")
}

/// Whether the folder has a complete environment with the packages that this version pins.
pub(crate) fn is_current(folder: &Path) -> bool {
    is_complete(folder) && fs::read_to_string(folder.join(STAMP)).is_ok_and(|made_of| made_of == stamp())
}

/// Whether the folder can be replaced: it is missing, empty, or an environment.
fn is_replaceable(folder: &Path) -> bool {
    let is_empty = || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    fs::symlink_metadata(folder).is_err() || folder.join(STAMP).is_file() || is_empty()
}

/// The lock on an environment. A second command waits for it, and then finds the environment complete.
///
/// Every step inherits the lock file, which is empty, as its standard input. A step that outlives a killed command still
/// holds the lock, so the next command does not work in the same folder at the same time.
struct SetupLock {
    path: PathBuf,
    file: File,
}

impl SetupLock {
    fn take(path: PathBuf) -> Result<Self, SetupError> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.and_then(|file| file.lock().map(|()| file)).map_err(on(&path))?;
        Ok(Self { path, file })
    }

    /// Returns a command that runs Python without its environment variables and without the user's packages. Variables of
    /// pip still apply.
    fn isolated(&self, python: &Path) -> Result<Command, SetupError> {
        let mut command = Command::new(python);
        command.arg("-I").stdin(self.file.try_clone().map_err(on(&self.path))?);
        Ok(command)
    }
}

fn find_python(lock: &SetupLock) -> Result<PathBuf, SetupError> {
    let python = PYTHONS.iter().map(PathBuf::from).find(|python| python.exists()).ok_or(SetupError::NoPython)?;
    let code = "import sys; print('%d.%d' % sys.version_info[:2])";
    let version =
        run("asking for the version of Python", lock.isolated(&python)?.args(["-c", code]))?.trim().to_owned();
    if !VERSIONS.contains(&version.as_str()) {
        return Err(SetupError::Version { python, version });
    }
    // On Debian both are in a separate package.
    match run("looking for venv", lock.isolated(&python)?.args(["-c", "import ensurepip, venv"])) {
        Ok(_) => Ok(python),
        Err(SetupError::Step { .. }) => Err(SetupError::NoVenv(python)),
        Err(error) => Err(error),
    }
}

/// Shows the name of a step, and on a terminal a dot a second until the step is done.
fn with_progress<T>(step: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        let _ = writeln!(io::stderr(), "  {step}");
        return work();
    }
    let _ = write!(io::stderr(), "  {step} ");
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(DOT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let _ = write!(io::stderr(), ".");
            }
            let _ = writeln!(io::stderr());
        });
        let result = work();
        drop(done);
        result
    })
}

fn create(lock: &SetupLock, system: &Path, new: &Path) -> Result<(), SetupError> {
    run_shown("making the virtual environment", lock.isolated(system)?.args(["-m", "venv", "--symlinks"]).arg(new))?;
    let python = new.join("bin/python3");
    let requirements = new.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).map_err(on(&requirements))?;
    let options = ["--require-hashes", "--only-binary=:all:", "--no-compile", "--no-input", "--progress-bar=off"];
    let mut pip = lock.isolated(&python)?;
    pip.args(["-m", "pip", "install", "--disable-pip-version-check"]).args(options).arg("--requirement");
    run_shown("installing the packages with pip", pip.arg(&requirements))?;

    let packages = site_packages(new).ok_or_else(|| SetupError::NoVenv(system.to_owned()))?;
    for (name, text) in [(MATPLOTLIB_FILE, MATPLOTLIB), (START_FILE, START)] {
        let path = packages.join(name);
        fs::write(&path, text).map_err(on(&path))?;
    }
    find_fonts(lock, &python, new)?;
    remove_scripts(&new.join("bin"))?;
    // Compiled files are checked by content and not by time, so that a copied environment works too. A failure is ignored:
    // a package may contain a file for another Python version.
    let mut compile = lock.isolated(&python)?;
    compile.args(["-m", "compileall", "-q", "-j0", "--invalidation-mode=unchecked-hash", "-p", MOUNTED_AT, "-s"]);
    let _ = run_shown("compiling the packages", compile.args([new, &new.join("lib")]));
    let path = new.join(STAMP);
    fs::write(&path, stamp()).map_err(on(&path))?;
    // After a power failure, the stamp must not exist without the rest.
    let made = File::open(new).map_err(on(new))?;
    rustix::fs::syncfs(made).map_err(|errno| on(new)(errno.into()))
}

/// Imports the packages, which checks them and lets matplotlib create its font cache.
fn find_fonts(lock: &SetupLock, python: &Path, new: &Path) -> Result<(), SetupError> {
    let mut import = lock.isolated(python)?;
    import.args(["-c", "import numpy, pandas, matplotlib.pyplot, matplotlib.font_manager"]);
    import.env("MPLCONFIGDIR", new.join("matplotlib"));
    // Programs do not see fonts in a home folder.
    import.env("HOME", new).env_remove("XDG_DATA_HOME").env_remove("XDG_CACHE_HOME").env_remove("XDG_CONFIG_HOME");
    run_shown("importing the packages", &mut import).map(drop)
}

/// Removes scripts, whose first lines name the temporary folder of the interpreter.
fn remove_scripts(bin: &Path) -> Result<(), SetupError> {
    for entry in fs::read_dir(bin).map_err(on(bin))? {
        let entry = entry.map_err(on(bin))?;
        if !entry.file_name().as_encoded_bytes().starts_with(b"python") {
            fs::remove_file(entry.path()).map_err(on(&entry.path()))?;
        }
    }
    Ok(())
}

/// Runs a step that takes a while, and shows its progress.
fn run_shown(step: &'static str, command: &mut Command) -> Result<String, SetupError> {
    with_progress(step, || run(step, command))
}

/// Runs a step, and returns its output.
fn run(step: &'static str, command: &mut Command) -> Result<String, SetupError> {
    let output = command.output().map_err(on(Path::new(command.get_program())))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(printed.into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = printed.lines().chain(errors.lines()).collect();
    let end = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    Err(SetupError::Step { step, status: output.status, output: end.join("\n") })
}

fn remove(folder: &Path) -> Result<(), SetupError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(on(folder)(error)),
        _ => Ok(()),
    }
}

fn on(path: &Path) -> impl Fn(io::Error) -> SetupError {
    move |source| SetupError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod setup_tests;
