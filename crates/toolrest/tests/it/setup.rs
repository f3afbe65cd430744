//! The Python environment of `toolrest setup python`.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::process::{Pid, Signal};
use toolrest::python;
use toolrest_sandbox::{Access, CellSpec, Job, Mount, Options, Report, Sandbox, Source, Stdin};

use crate::command::{BINARY, stderr, stdout, toolrest};

/// The environment that `make python` has set up.
fn environment() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python");
    let folder = folder.canonicalize().unwrap_or_default();
    assert!(python::is_complete(&folder), "there is no Python environment in target/python; run `make python`");
    folder
}

/// Runs Python of the environment in the sandbox, in an empty folder, and gives the folder too.
async fn run(code: &str) -> (Report, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(Options { program: BINARY.into(), ..Options::default() }).unwrap();
    let target = PathBuf::from(python::MOUNTED_AT);
    let interpreter = target.join("bin/python3");
    let mount = Mount::Folder {
        source: Source::open(environment()).unwrap(),
        target,
        access: Access::ReadOnly,
        frozen: Vec::new(),
    };
    let place = CellSpec::new(Source::open(home.path()).unwrap(), "/workspace").mount(mount);
    let job = Job::new(place, [interpreter.as_os_str(), "-".as_ref()]).stdin(Stdin::Bytes(code.into()));
    let report = sandbox.spawn(job).await.unwrap().wait().await.unwrap();
    (report, home)
}

#[tokio::test]
async fn pandas_reads_a_table_in_the_sandbox() {
    let code = "import io, pandas, numpy\n\
                table = pandas.read_csv(io.StringIO('a,b\\n1,2\\n3,4\\n'))\n\
                print(table.b.sum(), numpy.linalg.det(numpy.eye(3)), pandas.__file__)";
    let (report, _home) = run(code).await;
    let printed_text = report.stdout.text();
    assert!(printed_text.starts_with("6 1.0 /opt/toolrest/python/lib/"), "{printed_text}{}", report.stderr.text());
}

#[tokio::test]
async fn a_plot_needs_no_search_for_fonts_and_leaves_nothing_but_its_image() {
    let code = "import logging; logging.basicConfig(level=logging.DEBUG)\n\
                import matplotlib.pyplot as plot\n\
                plot.plot([1, 2, 3]); plot.title('Größe'); plot.savefig('plot.png')";
    let (report, home) = run(code).await;
    assert!(report.success(), "{}", report.stderr.text());
    assert!(!report.stderr.text().contains("generated new fontManager"), "{}", report.stderr.text());
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["plot.png"]);
    assert!(fs::read(home.path().join("plot.png")).unwrap().starts_with(b"\x89PNG"));
}

#[tokio::test]
async fn packages_are_not_compiled_again_in_the_sandbox() {
    let code = "import sys, os, pandas, matplotlib.pyplot\n\
                files = [m.__spec__ for m in list(sys.modules.values()) if getattr(m, '__spec__', None)]\n\
                print([s.name for s in files if (s.origin or '').startswith('/opt/toolrest') \
                and s.cached and not os.path.exists(s.cached)])";
    let (report, _home) = run(code).await;
    assert_eq!(report.stdout.text(), "[]\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn a_script_that_plots_nothing_gets_no_folder_for_matplotlib() {
    let (report, _home) = run("import os, pandas; print(os.listdir('/tmp'), 'MPLCONFIGDIR' in os.environ)").await;
    assert_eq!(report.stdout.text(), "[] False\n", "{}", report.stderr.text());
}

#[test]
fn a_complete_environment_is_left_alone() {
    let folder = environment();
    let made = fs::metadata(folder.join(python::STAMP)).unwrap().modified().unwrap();
    let mut command = toolrest(&folder, &["setup", "python", "--to", folder.to_str().unwrap()]);
    // So that one of other versions fails the test instead of being replaced by it.
    let output = command.env("PIP_NO_INDEX", "1").env_remove("PIP_FIND_LINKS").output().unwrap();
    let printed_text = stdout(&output);
    assert!(output.status.success() && printed_text.contains("is complete"), "run `make python`: {output:?}");
    assert_eq!(fs::metadata(folder.join(python::STAMP)).unwrap().modified().unwrap(), made);
}

#[test]
fn a_server_answers_while_the_environment_is_set_up_and_after_a_failure() {
    let home = tempfile::tempdir().unwrap();
    let mut command = toolrest(home.path(), &["serve", "--setup-python", "--listen", "127.0.0.1:0"]);
    command.env("PIP_NO_INDEX", "1").env_remove("PIP_FIND_LINKS").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.next().unwrap();
    let address = listening.rsplit('/').next().unwrap();
    let shown: Vec<String> = lines.by_ref().take_while(|line| !line.contains("cannot be used")).collect();
    let is_shown = |text: &str| shown.iter().any(|line| line.starts_with("[setup python]") && line.contains(text));
    assert!(is_shown("Making the Python environment") && is_shown("with pip failed"), "{shown:?}");
    TcpStream::connect(address).unwrap();
    let pid = Pid::from_raw(server.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_failing_pip_shows_its_output_and_leaves_no_environment() {
    let home = tempfile::tempdir().unwrap();
    let mut command = toolrest(home.path(), &["setup", "python"]);
    let output = command.env("PIP_NO_INDEX", "1").env_remove("PIP_FIND_LINKS").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed_text = stderr(&output);
    assert!(
        printed_text.contains("with pip failed") && printed_text.contains("No matching distribution found"),
        "{printed_text}"
    );
    assert!(!home.path().join("data/python").exists());
    let mode = fs::metadata(home.path().join("data")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the data folder is for the server's own eyes");
}
