//! What a listing could not show.

use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{Listing, WsPath};

/// How many folders are named.
const NAMED_MOST: usize = 100;

/// What a listing leaves out, and why.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct NotListed {
    /// Folders that could not be entered; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    unreadable: Vec<String>,
    /// How many files and folders have a name that no path can have: not UTF-8, or with control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    unnamed: Option<u64>,
}

impl NotListed {
    /// What a listing leaves out, if anything, with paths as the toolset shows them.
    pub(crate) fn of(listing: &Listing, shown: impl Fn(&WsPath) -> String) -> Option<Self> {
        let unreadable: Vec<String> = listing.unreadable.iter().take(NAMED_MOST).map(shown).collect();
        let unnamed = crate::counted(listing.unnamed);
        (!unreadable.is_empty() || unnamed.is_some()).then_some(Self { unreadable, unnamed })
    }
}
