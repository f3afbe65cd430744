//! Toolrest as a library: the core types, the engine, the store and the server.
//!
//! ```no_run
//! use toolrest::{Server, settings::Settings};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(Settings::default()).await?;
//! println!("listening on {}", server.address());
//! server.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

pub use toolrest_core as core;
pub use toolrest_sandbox::launcher_main;
pub use toolrest_server::{Local, Server, StartError, operator, python, settings, start_logging};
pub use toolrest_store as store;
pub use toolrest_toolsets as toolsets;
