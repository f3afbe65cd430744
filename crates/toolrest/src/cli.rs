//! The command line.

use crate::commands::{
    Output, WorkspaceCommand, backup, failure::Failure, mcp, restore_backup, secrets, terminal::ColorChoice, user,
};
use crate::{
    doctor,
    setup::{self, BackgroundSetup},
    waiting_notices,
};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::{
    error::Error,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use tokio::signal::unix::{SignalKind, signal};
use toolrest::settings::{self, LoadedSettings, Settings, Sources};
use toolrest::{Server, python, start_logging};

/// The settings file that is read, if it exists, without `--config`.
const DEFAULT_CONFIG: &str = "toolrest.toml";

/// A tool server for AI agents.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON document on standard output, where the command has data
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    /// When output has colours
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", help_heading = "Output")]
    color: ColorChoice,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the tools over HTTP.
    Serve {
        #[command(flatten)]
        options: Options,
        /// Also create the Python environment of the data tools, unless it is complete; the server answers meanwhile
        #[arg(long)]
        setup_python: bool,
    },
    /// Serve tools to an agent by the Model Context Protocol, on standard input and output.
    #[command(args_conflicts_with_subcommands = true)]
    Mcp {
        #[command(flatten)]
        options: mcp::Options,
        #[command(flatten)]
        data: DataOptions,
        #[command(subcommand)]
        action: Option<mcp::Action>,
    },
    /// Print all settings with their values and origins; secrets are hidden.
    Config {
        #[command(flatten)]
        options: Options,
        /// Print the reference of all settings instead.
        #[arg(long)]
        reference: bool,
    },
    /// Check whether this machine can run programs in the sandbox, and show what is missing.
    Doctor(Options),
    /// Back up the embedded database and the settings file; servers can keep running.
    Backup {
        /// Folder to create; it must not exist yet
        to: PathBuf,
        #[command(flatten)]
        data: DataOptions,
    },
    /// Restore a backup into a data folder that has no database.
    RestoreBackup {
        /// Folder that `toolrest backup` created
        from: PathBuf,
        #[command(flatten)]
        data: DataOptions,
    },
    /// Manage accounts; running servers apply the changes within two seconds.
    User {
        #[command(subcommand)]
        action: user::Action,
        #[command(flatten)]
        data: DataOptions,
    },
    /// Manage the key that encrypts the secrets of workspaces.
    Secrets {
        #[command(subcommand)]
        action: secrets::Action,
        #[command(flatten)]
        data: DataOptions,
    },
    /// Install what tools need besides the server.
    Setup {
        #[command(subcommand)]
        what: Setup,
    },
    #[command(flatten)]
    Workspace(WorkspaceCommand),
}

#[derive(Subcommand)]
enum Setup {
    /// Create the Python environment of the data tools, unless it is complete.
    Python {
        /// Folder of the environment, instead of `python` in the data folder
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Args)]
struct Options {
    /// Address to listen on [setting server.listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    data: DataOptions,
    /// Address for specification 003, or `none` [setting tool_backend.listen]
    #[arg(long, value_name = "ADDRESS")]
    tool_backend_listen: Option<String>,
    /// Require a token for every call at the address for specification 003 [setting tool_backend.require_token]
    #[arg(long)]
    require_token: bool,
    /// Folder to open as the local workspace [setting folders.local_dir]
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// Folder that any account may open as a workspace, with all folders below it; can be given several times [setting
    /// folders.allowed_roots]
    #[arg(long, value_name = "DIR")]
    allow_root: Vec<PathBuf>,
}

/// The options that name the data of a server.
#[derive(Args, Clone)]
pub(crate) struct DataOptions {
    /// Folder for the embedded database [setting server.data_dir]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<String>,
    /// PostgreSQL to use instead of the embedded database [setting database.url]
    #[arg(long, value_name = "URL", global = true)]
    database_url: Option<String>,
    /// Settings file; ./toolrest.toml is read if it exists
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl Cli {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        let output = Output { json: self.json, color: self.color };
        match self.command {
            Command::Workspace(command) => Ok(command.run(output, Self::command())?),
            _ if output.json => Err(Failure::Usage("this command prints no JSON; leave out --json".to_owned()).into()),
            Command::Serve { options, setup_python } => serve(options.load()?.settings, setup_python),
            Command::Mcp { action: Some(action), .. } => Ok(mcp::install(action)?),
            Command::Mcp { options, data, action: None } => {
                if mcp::relay(&options)? {
                    return Ok(());
                }
                let folder = options.folder()?;
                let flag = ("folders.local_dir", "--dir", Some(folder.display().to_string()));
                mcp::serve(data.load(vec![flag])?.settings, folder, &options)
            }
            Command::Config { reference: true, .. } => {
                print!("{}", settings::reference());
                Ok(())
            }
            Command::Config { options, .. } => {
                print!("{}", options.load()?);
                Ok(())
            }
            Command::Doctor(options) => doctor::run(&options.load()?.settings),
            Command::Backup { to, data } => {
                let (loaded, file) = data.load_with_file()?;
                Ok(backup::run(&loaded.settings, file.as_ref(), &to)?)
            }
            Command::RestoreBackup { from, data } => Ok(restore_backup::run(&data.load(Vec::new())?.settings, &from)?),
            Command::User { action, data } => user::run(action, &data.load(Vec::new())?.settings),
            Command::Secrets { action, data } => secrets::run(action, &data.load(Vec::new())?.settings),
            Command::Setup { what: Setup::Python { to, options } } => {
                let settings = options.load()?.settings;
                Ok(setup::python(&to.unwrap_or_else(|| python::folder(&settings)))?)
            }
        }
    }
}

impl Options {
    fn load(self) -> Result<LoadedSettings, Box<dyn Error>> {
        let allowed_roots = match &self.allow_root[..] {
            [] => None,
            roots => {
                let joined = std::env::join_paths(roots).map_err(|error| format!("flag --allow-root: {error}"))?;
                Some(joined.into_string().map_err(|_| "flag --allow-root: the path is not valid UTF-8")?)
            }
        };
        self.data.load(vec![
            ("server.listen", "--listen", self.listen),
            ("tool_backend.listen", "--tool-backend-listen", self.tool_backend_listen),
            ("tool_backend.require_token", "--require-token", self.require_token.then(|| "true".to_owned())),
            ("folders.local_dir", "--dir", self.dir),
            ("folders.allowed_roots", "--allow-root", allowed_roots),
        ])
    }
}

/// The path and the text of a settings file.
type ConfigFile = (PathBuf, String);

impl DataOptions {
    /// Loads the settings, with the values of further flags.
    pub(crate) fn load(
        self,
        further: Vec<(&'static str, &'static str, Option<String>)>,
    ) -> Result<LoadedSettings, Box<dyn Error>> {
        let file = read_config(self.config.as_deref())?;
        self.load_from(file, further)
    }

    /// Loads the settings; also returns the settings file, if there is one.
    fn load_with_file(self) -> Result<(LoadedSettings, Option<ConfigFile>), Box<dyn Error>> {
        let file = read_config(self.config.as_deref())?;
        Ok((self.load_from(file.clone(), Vec::new())?, file))
    }

    fn load_from(
        self,
        file: Option<ConfigFile>,
        further: Vec<(&'static str, &'static str, Option<String>)>,
    ) -> Result<LoadedSettings, Box<dyn Error>> {
        let flags =
            [("server.data_dir", "--data-dir", self.data_dir), ("database.url", "--database-url", self.database_url)];
        let flags = flags.into_iter().chain(further);
        let sources = Sources {
            file,
            environment: environment()?,
            flags: flags.filter_map(|(key, flag, value)| Some((key, flag.to_owned(), value?))).collect(),
        };
        let mut loaded = settings::load(sources)?;
        // The default settings file is protected even if it does not exist yet, because creating it changes what the next
        // start allows. With `--dir` that is not needed: the next start refuses a folder that contains the file.
        if loaded.settings.file.is_none() && loaded.settings.folders.local_dir.is_none() {
            loaded.settings.file = Some(std::path::absolute(DEFAULT_CONFIG)?);
        }
        Ok(loaded)
    }
}

/// Returns the environment variables that are UTF-8. One of our own variables that is not UTF-8 is an error.
fn environment() -> Result<Vec<(String, String)>, String> {
    let ours = |name: &str| name.starts_with("TOOLREST__") || name.starts_with("BUILDSCALE__");
    let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    named
        .filter_map(|(name, value)| match value.into_string() {
            Ok(value) => Some(Ok((name, value))),
            Err(_) if ours(&name) => Some(Err(format!("the environment variable {name} is not valid UTF-8"))),
            Err(_) => None,
        })
        .collect()
}

fn read_config(named: Option<&Path>) -> Result<Option<ConfigFile>, String> {
    let path = named.unwrap_or(Path::new(DEFAULT_CONFIG));
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((path.to_owned(), text))),
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => Ok(None),
        Err(error) => Err(format!("cannot read the settings file {}: {error}", path.display())),
    }
}

/// Maximum number of threads for blocking work: files, computations, commits to folders. Most of it is short and can
/// wait for a thread. Long work (computations, searches, commits to folders) has lower limits of its own.
pub(crate) const BLOCKING_THREADS: usize = 256;

fn serve(settings: Settings, setup_python: bool) -> Result<(), Box<dyn Error>> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?.block_on(run_server(settings, setup_python))
}

async fn run_server(settings: Settings, setup_python: bool) -> Result<(), Box<dyn Error>> {
    start_logging(&settings.log);
    let data = match &settings.database.url {
        Some(_) => "PostgreSQL".to_owned(),
        None => settings.server.data_dir.display().to_string(),
    };
    let python = python::folder(&settings);
    let local_dir = settings.folders.local_dir.clone();
    let server = Server::start(settings).await?;
    let base = format!("http://{}", server.address());
    waiting_notices::start(
        &server,
        match &local_dir {
            Some(folder) => format!("--dir '{}' --data-dir '{data}'", folder.display()),
            None => format!("--server {base}"),
        },
    );
    println!("Toolrest is listening on {base}");
    println!("  console {base}/");
    println!("  health  {base}/health");
    println!("  tools   {base}/api/v1/toolsets/workspace");
    println!("  data    {data}");
    if let Some(address) = server.tool_backend_address() {
        println!("  backend http://{address} (specification 003)");
    }
    if let Some(address) = server.metrics_address() {
        println!("  metrics http://{address}/metrics");
    }
    match server.served_folder() {
        Some(folder) => {
            println!("  folder  {base}/api/v1/workspaces/{}", folder.workspace());
            match &folder.key {
                Some(key) => {
                    println!("  key     {key} (for an agent; valid until this server stops, for a day at most)");
                }
                None => println!("  key     none, because the disk of the database is full"),
            }
            println!(
                "  sign in {base}/sign-in?token={} (for you; works once, within 15 minutes)",
                folder.sign_in_token
            );
            println!("Stop with Ctrl-C.");
        }
        None => println!("Next: open {base}/ in a browser and make an account. Stop with Ctrl-C."),
    }
    let _setup = if setup_python {
        BackgroundSetup::start(&python).unwrap_or_else(|error| {
            eprintln!("toolrest: cannot start `toolrest setup python`: {error}");
            None
        })
    } else {
        None
    };
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    server
        .run(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
        .await;
    Ok(())
}
