//! Toolrest as a library: the core types, the engine, the store, the runtime and the server.
//!
//! [`Runtime`] is everything that tool calls need, without a port. [`Server`] serves it over HTTP.
//!
//! ```
//! use serde_json::json;
//! use toolrest::{Runtime, settings::Settings};
//!
//! # #[tokio::main(flavor = "multi_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let data = tempfile::tempdir()?;
//! # let project = tempfile::tempdir()?;
//! let mut settings = Settings::default();
//! settings.server.data_dir = data.path().to_owned();
//! settings.folders.local_dir = Some(project.path().to_owned());
//! settings.run.enabled = false;
//!
//! let runtime = Runtime::open(settings).await?;
//! let local = runtime.open_local(project.path()).await?;
//! let args = json!({ "filePath": "notes.txt", "content": "remember\n" });
//! let outcome = runtime.call(local.workspace, local.caller, "coding", "write", &args).await?;
//! assert!(outcome.text()?.contains("+remember"));
//! assert_eq!(std::fs::read_to_string(project.path().join("notes.txt"))?, "remember\n");
//! runtime.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A program that embeds Toolrest and lets tools run programs is started again by the sandbox, with `__launcher` as its
//! first argument. It must then call [`launcher_main`] before anything else, and return its result.

mod tool_executor;

pub use tool_executor::{ToolExecutor, ToolResponse, get_tool_executor};
pub use toolrest_core as core;
pub use toolrest_sandbox::launcher_main;
pub use toolrest_server::{
    ApprovalRequest, Approver, ApproverDecision, InProcessServer, Local, Runtime, RuntimeOptions, Server, StartError,
    mcp, operator, python, settings, sign_ins_folder, start_logging, toolchains,
};
pub use toolrest_store as store;
pub use toolrest_toolsets as toolsets;
