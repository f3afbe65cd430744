//! `toolrest mcp`: serves tools to the agent that starts it.

mod install;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
pub(crate) use install::install;
use tokio::signal::unix::{SignalKind, signal};
use toolrest::mcp::{Folder, Offer, Remote, Stdio};
use toolrest::settings::Settings;
use toolrest::start_logging;

use crate::cli::BLOCKING_THREADS;

#[derive(Args)]
pub(crate) struct Options {
    /// Folder to work in; without it, the agent's first root, or else the current folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Address of a server to pass the messages on to, instead of working in a folder; the variable TOOLREST_TOKEN has the
    /// agent key or the access token
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    server: Option<String>,
    /// Workspace of that server; without it, the one of the agent key
    #[arg(long, value_name = "ID", requires = "server")]
    workspace: Option<String>,
    /// Toolsets to offer, separated by commas; without it, `agent`
    #[arg(long, value_name = "TOOLSETS", value_delimiter = ',')]
    toolset: Vec<String>,
    /// Offer only tools that change nothing
    #[arg(long)]
    read_only: bool,
    /// Give tools output schemas, and their answers the JSON beside the text
    #[arg(long)]
    structured: bool,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Add Toolrest to the configuration of an agent; shows the change and keeps everything else.
    Install {
        /// The agent
        client: install::Client,
        /// Folder to work in, instead of the one that the agent is opened in
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Only print the change
        #[arg(long)]
        print: bool,
    },
}

impl Options {
    /// Returns the real path of the folder to work in.
    pub(crate) fn folder(&self) -> Result<PathBuf, String> {
        let folder = self.dir.as_deref().unwrap_or(Path::new("."));
        let real =
            folder.canonicalize().map_err(|error| format!("cannot open the folder {}: {error}", folder.display()))?;
        Ok(real)
    }
}

/// Passes the messages on to a server, if the options name one; returns whether they do.
pub(crate) fn relay(options: &Options) -> Result<bool, Box<dyn Error>> {
    let Options { server: Some(server), workspace, toolset, read_only, structured, .. } = options else {
        return Ok(false);
    };
    start_logging(&Settings::default().log);
    let token = std::env::var("TOOLREST_TOKEN").map_err(|_| "set the variable TOOLREST_TOKEN to the agent key")?;
    let offer = Offer { toolsets: toolset.clone(), read_only: *read_only, structured: *structured };
    let remote = Remote::new(server, workspace.as_deref(), &token, &offer)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(remote.serve());
    // A thread may still wait for standard input, which cannot be interrupted.
    runtime.shutdown_background();
    Ok(result.map(|()| true)?)
}

/// Serves the tools on standard input and output, until that is closed or the process is asked to end.
pub(crate) fn serve(settings: Settings, folder: PathBuf, options: &Options) -> Result<(), Box<dyn Error>> {
    let Options { toolset, read_only, structured, .. } = options;
    let offer = Offer { toolsets: toolset.clone(), read_only: *read_only, structured: *structured };
    start_logging(&settings.log);
    let folder = if options.dir.is_some() { Folder::Named(folder) } else { Folder::OfClient(folder) };
    let stdio = Stdio::new(settings, folder, &offer)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let served = runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        stdio.serve(stop).await.map_err(Box::<dyn Error>::from)
    });
    // A thread may still wait for standard input, which cannot be interrupted.
    runtime.shutdown_background();
    served
}
