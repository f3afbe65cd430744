//! A folder as a tree that fits: folders are opened breadth first, small ones first.

use super::answer::{append, count, push, size};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};
use toolrest_core::{CallCx, Depth, FileType, FindResult, Listed, Result, WsPath};
use toolrest_ops::tree_files;

/// Maximum number of files that are looked at; all are counted.
const MAX_FILES: usize = 200_000;
/// Maximum number of entries of a folder that are compared with the files found.
const MAX_CHILDREN: usize = 20_000;
/// Maximum number of ignored names that the header lists.
const MAX_IGNORED: usize = 8;
/// Room for the header and the notes.
const AROUND_BYTES: usize = 320;
/// Maximum number of entries in the data.
const MAX_ENTRIES: usize = 2_000;

/// A file or folder of a listing.
#[derive(Serialize, JsonSchema)]
pub(super) struct Entry {
    /// The path.
    path: String,
    /// `file` or `folder`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The size of a file in bytes, or the number of files below a folder.
    size: u64,
}

/// A listing.
pub(super) struct Listing {
    pub(super) text: String,
    pub(super) entries: Vec<Entry>,
    pub(super) total: usize,
}

/// A folder with the files below it.
#[derive(Default)]
struct Node {
    folders: BTreeMap<String, Node>,
    files: BTreeMap<String, u64>,
    /// Number of files below it, at any depth.
    count: usize,
    /// Whether what is in it is not listed because it is ignored, or a link.
    is_closed: bool,
    is_open: bool,
    is_unreadable: bool,
}

impl Node {
    fn add(&mut self, below: &str, bytes: u64) {
        self.count += 1;
        match below.split_once('/') {
            Some((folder, rest)) => self.folders.entry(folder.to_owned()).or_default().add(rest, bytes),
            None => {
                self.files.insert(below.to_owned(), bytes);
            }
        }
    }

    fn count_folders(&self) -> usize {
        self.folders.values().map(|folder| 1 + folder.count_folders()).sum()
    }

    /// Returns the size of the lines of what is directly in it.
    fn children_bytes(&self, depth: usize) -> usize {
        let folders = self.folders.keys().map(|name| depth + name.len() + 16);
        let files = self.files.keys().map(|name| depth + name.len() + 7);
        folders.chain(files).sum()
    }

    fn at(&mut self, path: &[String]) -> Option<&mut Self> {
        match path {
            [] => Some(self),
            [first, rest @ ..] => self.folders.get_mut(first)?.at(rest),
        }
    }

    /// Opens folders, level by level and small ones first, while their lines fit.
    fn open(&mut self, mut room: usize) {
        self.is_open = true;
        let mut level: Vec<Vec<String>> = vec![Vec::new()];
        while !level.is_empty() {
            let mut next: Vec<(usize, Vec<String>)> = Vec::new();
            for path in &level {
                let Some(node) = self.at(path).filter(|node| node.is_open) else { continue };
                for (name, folder) in node.folders.iter().filter(|(_, folder)| !folder.is_closed) {
                    next.push((
                        folder.children_bytes(path.len() + 1),
                        [&path[..], std::slice::from_ref(name)].concat(),
                    ));
                }
            }
            next.sort();
            level.clear();
            for (bytes, path) in next {
                if let Some(left) = room.checked_sub(bytes)
                    && let Some(node) = self.at(&path)
                {
                    room = left;
                    node.is_open = true;
                    level.push(path);
                }
            }
        }
    }

    fn write(&self, text: &mut String, depth: usize) {
        let indent = " ".repeat(depth);
        let mut folders = self.folders.iter().peekable();
        let mut files = self.files.iter().peekable();
        loop {
            let is_folder = match (folders.peek(), files.peek()) {
                (Some((folder, _)), Some((file, _))) => folder <= file,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return,
            };
            if is_folder && let Some((name, folder)) = folders.next() {
                if folder.is_open && folder.count > 0 {
                    push(text, format!("{indent}{name}/"));
                    folder.write(text, depth + 1);
                } else if folder.is_unreadable {
                    push(text, format!("{indent}{name}/ could not be read"));
                } else if folder.count == 0 {
                    push(text, format!("{indent}{name}/ empty"));
                } else {
                    push(text, format!("{indent}{name}/ {}", count(folder.count, "file")));
                }
            } else if let Some((name, bytes)) = files.next() {
                push(text, format!("{indent}{name} {}", size(*bytes)));
            }
        }
    }

    /// Writes the first level where even that does not fit: the folders, and the files counted by extension.
    fn write_counts(&self, text: &mut String) {
        for (name, folder) in &self.folders {
            push(text, format!("{name}/ {}", count(folder.count, "file")));
        }
        let mut by_extension: BTreeMap<String, usize> = BTreeMap::new();
        for name in self.files.keys() {
            let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
            let group =
                extension.map_or_else(|| "(no extension)".to_owned(), |(_, extension)| format!("*.{extension}"));
            *by_extension.entry(group).or_default() += 1;
        }
        for (group, number) in by_extension {
            push(text, format!("{group} {}", count(number, "file")));
        }
    }

    /// Returns the first folder, from the top, that is not opened.
    fn first_closed(&self, path: &str) -> Option<String> {
        let below = |name: &str| if path == "." { name.to_owned() } else { format!("{path}/{name}") };
        let closed = self.folders.iter().find(|(_, folder)| !folder.is_open && !folder.is_closed && folder.count > 0);
        closed.map(|(name, _)| below(name)).or_else(|| {
            self.folders
                .iter()
                .filter(|(_, folder)| folder.is_open)
                .find_map(|(name, folder)| folder.first_closed(&below(name)))
        })
    }
}

/// Lists a folder as deep as fits, or the files that a glob matches.
pub(super) async fn listing(cx: &CallCx, folder: &WsPath, glob: Option<&str>, budget: usize) -> Result<Listing> {
    let mut found = tree_files(cx, folder, glob, MAX_FILES).await?;
    for warning in std::mem::take(&mut found.warnings) {
        cx.warn(warning);
    }
    match glob {
        Some(glob) => by_glob(cx, folder, glob, found, budget).await,
        None => tree(cx, folder, found, budget).await,
    }
}

async fn tree(cx: &CallCx, folder: &WsPath, found: FindResult, budget: usize) -> Result<Listing> {
    let mut root = Node::default();
    for file in &found.files {
        let below = folder.part_below(file.path.as_str()).unwrap_or_default();
        root.add(below, u64::try_from(file.size).unwrap_or(0));
    }
    let children = cx.workspace.list(folder, Depth::Children, MAX_CHILDREN).await?;
    let ignored = add_others(cx, &mut root, &children.entries, folder).await;
    let name = folder.without_slash();
    let total = found.total;
    let mut text = format!("== {name} {}, {}", count(total, "file"), count(root.count_folders(), "folder"));
    if !ignored.is_empty() {
        let more = ignored.len().saturating_sub(MAX_IGNORED);
        let shown = ignored.iter().take(MAX_IGNORED).cloned().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        append(&mut text, format!("; ignored: {shown}{more}"));
    }
    let left = budget.saturating_sub(AROUND_BYTES);
    let first_level = root.children_bytes(0);
    if first_level > left {
        root.write_counts(&mut text);
        push(&mut text, format!(".. too many names for one answer: ls {}", json!({ "path": name, "glob": "*.EXT" })));
    } else {
        root.open(left - first_level);
        root.write(&mut text, 0);
        if let Some(closed) = root.first_closed(name) {
            push(&mut text, format!(".. folders with a count are not opened: ls {}", json!({ "path": closed })));
        }
    }
    let unlisted = total.saturating_sub(found.files.len());
    if unlisted > 0 {
        push(&mut text, format!(".. {} are counted but not in the tree", count(unlisted, "more file")));
    }
    push_unreadable(&mut text, &found);
    let mut entries = Vec::new();
    collect(&root, if folder.is_root() { "" } else { name }, &mut entries);
    Ok(Listing { text, entries, total })
}

fn push_unreadable(text: &mut String, found: &FindResult) {
    if found.unreadable > 0 {
        push(text, format!(".. {} could not be read", count(usize::try_from(found.unreadable).unwrap_or(0), "folder")));
    }
    if found.unnamed > 0 {
        push(text, format!(".. {} left out: no path can have their names", found.unnamed));
    }
}

/// Adds what is directly in the folder and has no files that are found: empty folders. Returns the names of what is ignored.
async fn add_others(cx: &CallCx, root: &mut Node, children: &[Listed], folder: &WsPath) -> Vec<String> {
    let mut ignored = BTreeSet::new();
    for child in children {
        let name = folder.part_below(child.path.as_str()).unwrap_or_default().to_owned();
        if name == ".git" {
            continue;
        }
        if child.file_type != FileType::Folder {
            if !root.files.contains_key(&name) && root.count < MAX_FILES {
                ignored.insert(name);
            }
        } else if let Place::Vacant(place) = root.folders.entry(name) {
            let names = if child.is_link { None } else { Some(cx.workspace.names(&child.path, 1).await) };
            match names {
                Some(Ok(names)) if names.is_empty() => {
                    place.insert(Node { is_closed: true, ..Node::default() });
                }
                // The walk has counted it as unreadable, unless it is ignored.
                Some(Err(_)) => {
                    place.insert(Node { is_closed: true, is_unreadable: true, ..Node::default() });
                }
                _ => {
                    ignored.insert(format!("{}/", place.key()));
                }
            }
        }
    }
    ignored.into_iter().collect()
}

/// Adds what the tree shows to the data.
fn collect(node: &Node, path: &str, entries: &mut Vec<Entry>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    for (name, folder) in &node.folders {
        if entries.len() >= MAX_ENTRIES {
            return;
        }
        entries.push(Entry { path: below(name), kind: "folder", size: folder.count as u64 });
        if folder.is_open {
            collect(folder, &below(name), entries);
        }
    }
    for (name, bytes) in &node.files {
        if entries.len() < MAX_ENTRIES {
            entries.push(Entry { path: below(name), kind: "file", size: *bytes });
        }
    }
}

async fn by_glob(cx: &CallCx, folder: &WsPath, glob: &str, found: FindResult, budget: usize) -> Result<Listing> {
    let of = if folder.is_root() { String::new() } else { format!(" in {}", folder.without_slash()) };
    let mut text = if found.total == 0 {
        let all = tree_files(cx, folder, None, 1).await?.total;
        format!("== no file fits {glob}{of} ({} looked at)", count(all, "file"))
    } else {
        let fit = if found.total == 1 { "fits" } else { "fit" };
        format!("== {} {fit} {glob}{of}", count(found.total, "file"))
    };
    let mut shown = 0;
    for file in &found.files {
        let line = file.path.without_slash();
        if text.len() + line.len() + 1 > budget.saturating_sub(AROUND_BYTES) {
            break;
        }
        push(&mut text, line);
        shown += 1;
    }
    if shown < found.total {
        let more = count(found.total - shown, "more file");
        push(&mut text, format!(".. {more}: narrow with path or a longer glob"));
    }
    if found.ignored > 0 && found.total == 0 {
        push(&mut text, format!(".. {} ignored by .gitignore; name a path in them to look there", found.ignored));
    }
    push_unreadable(&mut text, &found);
    let entry = |file: &toolrest_core::FoundFile| Entry {
        path: file.path.without_slash().to_owned(),
        kind: "file",
        size: u64::try_from(file.size).unwrap_or(0),
    };
    let entries = found.files.iter().take(MAX_ENTRIES).map(entry).collect();
    Ok(Listing { text, entries, total: found.total })
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
