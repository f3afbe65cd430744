//! Workspaces of every kind, as operations use them: files in the database, or in a real folder with their history in
//! the database; and checkouts, through which programs work on either.

mod check_in_room;
mod checkout;
mod database_workspace;
mod discovery;
mod folder;
mod ignored;
mod program_caches;
mod read_room;
mod scratch;
mod stored_history;
mod stored_workspaces;

pub use checkout::CheckoutRetention;
pub use folder::{
    AllowedRoot, FolderOptions, GuardedPath, HistoryLimits, find as find_in_folder, search as search_folder,
};
pub use program_caches::{CacheLimits, Emptied, ProgramCaches, cache_in_use};
pub use scratch::Scratch;
pub use stored_workspaces::StoredWorkspaces;
pub use toolrest_directory::Repositories;
