//! `toolrest doctor`: checks whether this machine can run programs in the sandbox.

use std::{
    error::Error,
    fmt, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use toolrest::{python, settings::Settings, toolchains};
use toolrest_sandbox::{CellSpec, Interpreter, Job, Language, Layer, Mount, Options, Sandbox, Source, State};

use crate::setup;

/// Prints the findings; fails if programs cannot be run.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let mut table = Table::default();
    let can_run = check_sandbox(&mut table, settings).await;
    table.section("Interpreters");
    for (name, language) in [("python3", Language::Python), ("bash", Language::Bash)] {
        match Interpreter::find(language) {
            Ok(found) => table.row(name, State::Present, found.program().display()),
            Err(error) => {
                table.row(name, State::Missing, error);
                table.remedy(format!("Install it with `apt-get install {name}`."));
            }
        }
    }
    table.section("Toolchains");
    add_toolchains(&mut table, settings);
    table.section("Data tools");
    check_python_environment(&mut table, &python::folder(settings));
    print!("{table}");
    if can_run {
        Ok(())
    } else {
        Err("programs cannot be run on this machine; the table above shows what is missing".into())
    }
}

/// Adds the rows about the sandbox, and returns whether programs can be run.
async fn check_sandbox(table: &mut Table, settings: &Settings) -> bool {
    let data_dir: &Path = &settings.server.data_dir;
    table.section("Sandbox");
    let accept_missing = if settings.run.accept_missing_landlock { vec![Layer::Landlock] } else { Vec::new() };
    let options = Options { accept_missing: accept_missing.into_iter().collect(), ..Options::default() };
    let probed = match Sandbox::start(options) {
        Ok(sandbox) => sandbox.probe().await.map(|probe| (sandbox, probe)),
        Err(error) => Err(error),
    };
    let (sandbox, probe) = match probed {
        Ok(probed) => probed,
        Err(error) => {
            table.row("all layers", State::Missing, error);
            return false;
        }
    };
    for finding in &probe.findings {
        table.row(finding.layer.name(), finding.state, &finding.detail);
        if finding.state == State::Missing {
            table.remedy(finding.layer.remedy());
        }
    }
    if probe.verify().is_err() {
        return false;
    }
    if probe.shared.is_empty() {
        table.row("tenants", State::Present, "many: each program has a user and a control group of its own");
    } else {
        table.row("tenants", State::Present, format!("one only: {}", probe.shared.join("; ")));
        table
            .remedy("For users who do not trust each other, run the server as root, where it may make control groups.");
    }
    table.section("Data folder");
    let mounts = match MountTest::create(data_dir) {
        Ok(mounts) => mounts,
        Err(error) => {
            table.row("files", State::Missing, format!("{}: {error}", data_dir.display()));
            table.remedy("Let the server write there, or name another folder with --data-dir.");
            return false;
        }
    };
    let shown = data_dir.display();
    let can_use = match run_in(&sandbox, mounts.folder()).await {
        Ok(()) => {
            table.row("files", State::Present, format!("programs can work on files in {shown}"));
            true
        }
        Err(error) => {
            table.row("files", State::Missing, format!("in {shown}: {error}"));
            false
        }
    };
    match run_in(&sandbox, mounts.overlay()).await {
        Ok(()) => table.row("overlay", State::Present, format!("changes of programs are isolated in {shown}")),
        Err(error) => {
            table.row("overlay", State::Missing, format!("in {shown}: {error}"));
            table.remedy(format!("{} Programs are refused in workspaces that are folders.", Layer::Overlay.remedy()));
        }
    }
    can_use
}

async fn run_in(sandbox: &Sandbox, place: toolrest_sandbox::Result<CellSpec>) -> Result<(), String> {
    let run = async {
        let job = Job::new(place?, ["sh", "-c", "echo there > file"]);
        sandbox.spawn(job).await?.wait().await
    };
    match run.await {
        Ok(report) if report.success() => Ok(()),
        Ok(report) => Err(format!("a program could not write a file: {}", report.stderr.text().trim_end())),
        Err(error) => Err(error.to_string()),
    }
}

/// Adds the compilers and interpreters of the `PATH` that are outside of `/usr`, and the settings that show them to programs.
fn add_toolchains(table: &mut Table, settings: &Settings) {
    let found = toolchains::found(settings, &|name| std::env::var_os(name));
    let run = &settings.run;
    for folder in &found.path {
        let is_shown = run.host_toolchains || run.path.contains(folder);
        table.row("programs", if is_shown { State::Present } else { State::Missing }, folder.display());
        if !is_shown {
            table.remedy("Show it to programs with the setting run.host_toolchains = true, or with the lines below.");
        }
    }
    if found.path.is_empty() {
        table.row("programs", State::Present, "the PATH has none outside of /usr, which programs see");
    } else if !run.host_toolchains && run.read_only.is_empty() {
        let list = |paths: &[PathBuf]| {
            let quoted: Vec<String> = paths.iter().map(|path| format!("{:?}", path.display().to_string())).collect();
            quoted.join(", ")
        };
        table.row("settings", State::Unknown, format!("[run] read_only = [{}]", list(&found.folders)));
        table.remedy(format!("path = [{}]", list(&found.path)));
    }
}

fn check_python_environment(table: &mut Table, folder: &Path) {
    const NAME: &str = "python packages";
    let shown = folder.display();
    if setup::is_current(folder) {
        table.row(NAME, State::Present, shown);
    } else if python::is_complete(folder) {
        table.row(NAME, State::Present, format!("{shown}, of other versions than this server pins"));
        table.remedy("Renew them with `toolrest setup python`.");
    } else {
        table.row(NAME, State::Missing, format!("not in {shown}"));
        table.remedy("Get them with `toolrest setup python`. Without them, only the data tools cannot run.");
    }
}

/// Temporary folders for trying mounts, on the file system of the data folder.
struct MountTest {
    home: TempDir,
}

impl MountTest {
    fn create(data_dir: &Path) -> io::Result<Self> {
        let data_dir = std::path::absolute(data_dir)?;
        let existing = data_dir.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        let home = tempfile::Builder::new().prefix(".doctor-").tempdir_in(existing)?;
        let mounts = Self { home };
        for folder in ["folder", "lower", "private", "private/upper", "private/work"] {
            fs::create_dir(mounts.path(folder))?;
        }
        Ok(mounts)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn folder(&self) -> toolrest_sandbox::Result<CellSpec> {
        Ok(CellSpec::new(Source::open(self.path("folder"))?, "/workspace"))
    }

    fn overlay(&self) -> toolrest_sandbox::Result<CellSpec> {
        let (lower, private) = (vec![Source::open(self.path("lower"))?], Source::open(self.path("private"))?);
        let mount = Mount::Overlay { lower, private, target: "/workspace".into() };
        Ok(CellSpec { mounts: vec![mount], ..self.folder()? })
    }
}

impl Drop for MountTest {
    fn drop(&mut self) {
        // The overlay leaves a folder without permissions, which could not be removed.
        let _ = fs::set_permissions(self.path("private/work/work"), fs::Permissions::from_mode(0o700));
    }
}

/// A table in sections, with aligned columns.
#[derive(Default)]
struct Table {
    sections: Vec<(&'static str, Vec<Row>)>,
}

struct Row {
    name: String,
    state: State,
    detail: String,
    remedy: Option<String>,
}

impl Table {
    fn section(&mut self, title: &'static str) {
        self.sections.push((title, Vec::new()));
    }

    fn row(&mut self, name: &str, state: State, detail: impl fmt::Display) {
        let row = Row { name: name.to_owned(), state, detail: detail.to_string(), remedy: None };
        if let Some((_, rows)) = self.sections.last_mut() {
            rows.push(row);
        }
    }

    /// Adds a remedy to the last row.
    fn remedy(&mut self, remedy: impl Into<String>) {
        if let Some(row) = self.sections.last_mut().and_then(|(_, rows)| rows.last_mut()) {
            row.remedy = Some(remedy.into());
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = || self.sections.iter().flat_map(|(_, rows)| rows);
        let names = rows().map(|row| row.name.len()).max().unwrap_or_default();
        let states = rows().map(|row| row.state.to_string().len()).max().unwrap_or_default();
        for (index, (title, rows)) in self.sections.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            writeln!(f, "{gap}{title}")?;
            for Row { name, state, detail, remedy } in rows {
                writeln!(f, "{}", format!("  {name:<names$}  {state:<states$}  {detail}").trim_end())?;
                if let Some(remedy) = remedy {
                    writeln!(f, "  {:names$}  {:states$}  {remedy}", "", "")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod doctor_tests;
