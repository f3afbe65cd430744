//! The part of a listing that could not be read.

use crate::text::{push_left_out, push_line};
use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{Listing, WsPath};

/// The maximum number of folders that are named.
const MAX_FOLDERS: usize = 100;

/// Entries that a listing leaves out, and why.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct NotListed {
    /// Folders that could not be read, at most 100 of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    unreadable: Vec<String>,
    /// Number of files and folders that were left out because of an invalid name: not UTF-8, or with control
    /// characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    unnamed: Option<u64>,
}

impl NotListed {
    /// Adds what a listing leaves out to the listing as a text.
    pub(crate) fn push_to(&self, text: &mut String) {
        for folder in &self.unreadable {
            push_line(text, &format!("[{folder} could not be read]"));
        }
        push_left_out(text, &[(self.unnamed, "with an invalid name")]);
    }

    /// Returns what a listing leaves out, if anything. `shown` writes paths in the form of the toolset.
    pub(crate) fn of(listing: &Listing, shown: impl Fn(&WsPath) -> String) -> Option<Self> {
        let unreadable: Vec<String> = listing.unreadable.iter().take(MAX_FOLDERS).map(shown).collect();
        let unnamed = crate::counted(listing.unnamed);
        (!unreadable.is_empty() || unnamed.is_some()).then_some(Self { unreadable, unnamed })
    }
}
