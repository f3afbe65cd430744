//! Reads the state of files in the folder.

use super::HistoryLimits;
use super::errors::{Attempt, to_tool_error};
use super::reconcile::BaseState;
use std::{
    collections::BTreeSet,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use toolrest_core::{
    Content, ContentHash, Depth, Encoding, EncodingDetector, Entry, ErrorKind, File, FileId, FileType, Form, Listed,
    Listing, ReadSeek, Result, Timestamp, ToolError, WsPath,
};
use toolrest_directory::{Error, ErrorKind as DiskError, Kind, Links, ListOptions, Metadata, Root};
use toolrest_store::not_a_folder;
use toolrest_store::plan::{FileRow, MODE_OF_LINK};

/// Maximum size of a cached file that is read on the calling thread, which is faster than a blocking thread.
const MAX_CACHED_BYTES: usize = 64 << 10;

/// Maximum number of bytes that one commit reads of the files it changes. Other commits wait meanwhile.
const MAX_READ_FOR_COMMIT_BYTES: u64 = 8 << 30;

/// Maximum number of bytes that are read from a file to detect whether it is text.
const MAX_SNIFFED_BYTES: u64 = 4 << 20;

/// Size of the chunks in which these bytes are read.
const SNIFFED_BYTES: usize = 64 << 10;

pub(super) const TYPE_FILE: u32 = 0o100_000;
pub(super) const TYPE_FOLDER: u32 = 0o040_000;

/// An open folder. All operations block.
#[derive(Clone)]
pub(super) struct Disk {
    pub(super) root: Arc<Root>,
    pub(super) limits: HistoryLimits,
}

/// Remaining number of bytes that a commit may read from files as they were before it.
pub(super) struct Budget {
    /// Bytes that may be kept for the history.
    kept_bytes: u64,
    /// Bytes that may be read, whether they are kept or not.
    read_bytes: u64,
}

/// The state of a file or folder on disk, with all that a changeset needs.
pub(super) struct DiskState {
    pub(super) file_type: FileType,
    /// Its type and permissions.
    pub(super) mode: u32,
    pub(super) modified: Timestamp,
    /// `None` for a folder.
    pub(super) content: Option<DiskContent>,
}

/// The content of a file, or the target of a link.
pub(super) struct DiskContent {
    pub(super) hash: ContentHash,
    pub(super) form: Form,
    pub(super) size: i64,
    /// `None` if it is too large to be kept in the history.
    pub(super) content: Option<Content>,
}

/// Whether a mode is that of an ordinary file, which can be created again from its content.
pub(super) fn is_ordinary(mode: u32) -> bool {
    mode & !0o7777 == TYPE_FILE
}

/// Returns the path relative to the root of the folder.
pub(super) fn below_root(path: &WsPath) -> &Path {
    Path::new(if path.is_root() { "" } else { path.without_slash() })
}

impl Disk {
    pub(super) fn stat(&self, path: &WsPath, recorded: Option<Entry>) -> Result<Option<Entry>> {
        let Some(metadata) = self.metadata(path)? else { return Ok(None) };
        let file_type = match metadata.kind {
            Kind::Folder => FileType::Folder,
            _ => self.sniffed(below_root(path)).plain_type(),
        };
        let is_link = self.metadata_with(path, Links::Keep)?.is_some_and(|own| own.kind == Kind::Symlink);
        Ok(Some(Entry { is_link, ..entry(path, file_type, &metadata, None, recorded) }))
    }

    /// Reads a file. A file larger than `max_bytes` is returned without its content.
    pub(super) fn read(&self, path: &WsPath, recorded: Option<Entry>, max_bytes: u64) -> Result<File> {
        let fail = |error| to_tool_error(&error, path, Attempt::Read);
        let found = match self.root.read(below_root(path), max_bytes) {
            Ok(found) => found,
            Err(Error { kind: DiskError::TooLarge { size_bytes, .. }, .. }) => {
                let metadata = self.root.stat(below_root(path), Links::Follow).map_err(fail)?;
                let metadata = Metadata { size_bytes, ..metadata };
                return Ok(File { entry: entry(path, FileType::Document, &metadata, None, recorded), content: None });
            }
            Err(error) if matches!(error.kind, DiskError::IsFolder) => {
                let metadata = self.root.stat(below_root(path), Links::Follow).map_err(fail)?;
                return Ok(File { entry: entry(path, FileType::Folder, &metadata, None, recorded), content: None });
            }
            Err(error) if matches!(error.kind, DiskError::NotAFolder) => return Err(ToolError::file_not_found(path)),
            Err(error) => return Err(fail(error)),
        };
        Ok(file(path, found, recorded))
    }

    /// Opens a file larger than `more_than_bytes`. Returns `None` for a smaller file, and for one that cannot be
    /// opened: the caller then calls `read`, which returns the error.
    pub(super) fn open(&self, path: &WsPath, more_than_bytes: u64) -> Option<(Metadata, Box<dyn ReadSeek>)> {
        let reader = self.root.open_reader(below_root(path)).ok()?;
        let metadata = reader.metadata();
        (metadata.size_bytes > more_than_bytes).then(|| (metadata, Box::new(reader) as Box<dyn ReadSeek>))
    }

    /// Reads a small file if the kernel has it in memory.
    pub(super) fn read_cached(&self, path: &WsPath, recorded: Option<&Entry>, max_bytes: u64) -> Option<File> {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let found = self.root.read_cached(below_root(path), MAX_CACHED_BYTES.min(max_bytes))?;
        Some(file(path, found, recorded.cloned()))
    }

    /// Whether a file is known, without disk access, to have at most `bytes` bytes.
    pub(super) fn is_small(&self, path: &WsPath, bytes: u64) -> bool {
        self.root.stat_cached(below_root(path)).is_some_and(|metadata| metadata.size_bytes <= bytes)
    }

    /// Lists a folder together with the virtual files in it.
    pub(super) fn list(
        &self,
        folder: &WsPath,
        depth: Depth,
        limit: usize,
        virtual_paths: Vec<Listed>,
    ) -> Result<Listing> {
        let fits = |listed: &Listed| match depth {
            Depth::Children => listed.path.parent().as_ref() == Some(folder),
            Depth::Descendants => listed.path.is_below(folder),
        };
        let shown: Vec<Listed> = with_folders(virtual_paths).into_iter().filter(fits).collect();
        let depth = if depth == Depth::Children { 1 } else { usize::MAX };
        let more = limit.saturating_add(1);
        let (listing, skipped) = match self.root.list(below_root(folder), ListOptions { depth, limit: more }) {
            Ok(listing) => (listing.entries, listing.skipped),
            Err(error) if matches!(error.kind, DiskError::NotFound) && !shown.is_empty() => Default::default(),
            Err(error) if matches!(error.kind, DiskError::NotAFolder) => {
                let is_there = self.metadata(folder)?.is_some();
                return Err(if is_there { not_a_folder(folder) } else { ToolError::file_not_found(folder) });
            }
            Err(error) => return Err(to_tool_error(&error, folder, Attempt::Read)),
        };
        let mut entries: Vec<Listed> = Vec::with_capacity(listing.len() + shown.len());
        let mut unnamed = 0;
        for found in listing {
            let Some(path) = named(folder, &found.path) else {
                unnamed += 1;
                continue;
            };
            let is_link = found.kind == Kind::Symlink;
            // A link is listed as its target; a dangling link as a file.
            let behind = if is_link { self.metadata(&path).ok().flatten() } else { None };
            let (kind, size_bytes, modified) = match behind {
                Some(target) => (target.kind, target.size_bytes, target.modified),
                None => (found.kind, found.size_bytes, found.modified),
            };
            let file_type = match kind {
                Kind::Folder => FileType::Folder,
                Kind::File => self.sniffed(below_root(&path)).plain_type(),
                Kind::Symlink | Kind::Other => FileType::File,
            };
            entries.push(Listed {
                path,
                display_name: None,
                file_type,
                is_virtual: false,
                is_link,
                size: if file_type == FileType::Folder { 0 } else { size_of(size_bytes) },
                updated_at: timestamp(modified),
            });
        }
        if !shown.is_empty() {
            let on_disk: BTreeSet<WsPath> = entries.iter().map(|entry| entry.path.clone()).collect();
            entries.extend(shown.into_iter().filter(|shown| !on_disk.contains(&shown.path)));
            entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        }
        let truncated = entries.len() > limit;
        entries.truncate(limit);
        let unreadable = skipped.iter().filter_map(|skipped| named(folder, &skipped.path)).collect();
        Ok(Listing { entries, truncated, unreadable, unnamed })
    }

    /// Returns the paths in a folder, including those of virtual files.
    pub(super) fn names(&self, folder: &WsPath, limit: usize, virtual_paths: Vec<Listed>) -> Result<Vec<WsPath>> {
        let shown = with_folders(virtual_paths).into_iter().map(|shown| shown.path);
        let mut names: BTreeSet<WsPath> = shown.filter(|path| path.parent().as_ref() == Some(folder)).collect();
        match self.root.list(below_root(folder), ListOptions { depth: 1, limit }) {
            Ok(listing) => names.extend(listing.entries.iter().filter_map(|found| named(folder, &found.path))),
            Err(error) if matches!(error.kind, DiskError::NotFound) && !names.is_empty() => {}
            Err(error) => return Err(to_tool_error(&error, folder, Attempt::Read)),
        }
        Ok(names.into_iter().take(limit).collect())
    }

    /// Returns how many bytes of a file the history keeps; zero if there is no file, or if it is over the limit.
    pub(super) fn kept_bytes(&self, path: &WsPath) -> u64 {
        let metadata = self.root.stat(below_root(path), Links::Follow).ok();
        let is_kept = |file: &Metadata| file.kind == Kind::File && file.size_bytes <= self.limits.file_bytes;
        metadata.filter(is_kept).map_or(0, |file| file.size_bytes)
    }

    fn content(&self, path: &WsPath, budget: &mut Budget) -> Result<DiskContent> {
        let fail = |error| to_tool_error(&error, path, Attempt::Read);
        let mut reader = self.root.open_reader(below_root(path)).map_err(fail)?;
        let size = reader.metadata().size_bytes;
        budget.read_bytes = budget.read_bytes.checked_sub(size).ok_or_else(|| too_much(path, size))?;
        if size <= self.limits.file_bytes && size <= budget.kept_bytes {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
            reader.by_ref().take(self.limits.file_bytes + 1).read_to_end(&mut bytes).map_err(ToolError::internal)?;
            budget.kept_bytes = budget.kept_bytes.saturating_sub(bytes.len() as u64);
            return small(Content::of_bytes(bytes));
        }
        let hash = reader.hash().map_err(ToolError::internal)?;
        let form = self.sniffed(below_root(path));
        Ok(DiskContent { hash: ContentHash(hash.0), form, size: size_of(size), content: None })
    }

    fn metadata(&self, path: &WsPath) -> Result<Option<Metadata>> {
        self.metadata_with(path, Links::Follow)
    }

    fn metadata_with(&self, path: &WsPath, links: Links) -> Result<Option<Metadata>> {
        match self.root.stat(below_root(path), links) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if matches!(error.kind, DiskError::NotFound | DiskError::NotAFolder) => Ok(None),
            Err(error) => Err(to_tool_error(&error, path, Attempt::Read)),
        }
    }

    /// Returns the form of a file's content: bytes if it is not text or cannot be read.
    fn sniffed(&self, path: &Path) -> Form {
        self.root.open_reader(path).ok().and_then(|reader| sniff(reader).ok().flatten()).unwrap_or(Form::Bytes)
    }
}

/// Reads the beginning of a file and returns the form of its text; `None` if it is binary.
fn sniff(reader: impl Read) -> io::Result<Option<Form>> {
    let mut reader = reader.take(MAX_SNIFFED_BYTES);
    let mut piece = Vec::with_capacity(SNIFFED_BYTES);
    let mut read_more = |piece: &mut Vec<u8>| {
        piece.clear();
        reader.by_ref().take(SNIFFED_BYTES as u64).read_to_end(piece)
    };
    read_more(&mut piece)?;
    let has_mark = piece.starts_with("\u{feff}".as_bytes());
    let mut detector = EncodingDetector::new(&piece);
    while !piece.is_empty() {
        if !detector.feed(&piece) {
            return Ok(None);
        }
        read_more(&mut piece)?;
    }
    let is_whole = reader.limit() > 0;
    let encoding = if is_whole { detector.finish() } else { detector.finish_beginning() };
    Ok(encoding.map(|encoding| if encoding == Encoding::Utf8 && !has_mark { Form::Text } else { Form::Encoded }))
}

impl BaseState for Disk {
    fn budget(&self) -> Budget {
        Budget { kept_bytes: self.limits.commit_bytes, read_bytes: MAX_READ_FOR_COMMIT_BYTES }
    }

    /// For a change that removes a link, the state is that of the link; otherwise that of its target.
    fn read_state(&self, path: &WsPath, links: Links, budget: &mut Budget) -> Result<Option<DiskState>> {
        let Some(own) = self.metadata_with(path, Links::Keep)? else { return Ok(None) };
        let behind = match own.kind {
            Kind::Symlink if links == Links::Follow => self.root.stat(below_root(path), Links::Follow).ok(),
            _ => None,
        };
        let metadata = behind.unwrap_or(own);
        let modified = timestamp(metadata.modified);
        let seen = |file_type, kind, content| DiskState { file_type, mode: kind | metadata.mode, modified, content };
        Ok(Some(match metadata.kind {
            Kind::Folder => seen(FileType::Folder, TYPE_FOLDER, None),
            Kind::File => {
                let content = self.content(path, budget)?;
                let file_type = content.form.plain_type();
                seen(file_type, TYPE_FILE, Some(content))
            }
            Kind::Symlink => {
                let target = self
                    .root
                    .read_link(below_root(path))
                    .map_err(|error| to_tool_error(&error, path, Attempt::Read))?;
                seen(FileType::File, MODE_OF_LINK, Some(small(Content::Bytes(target))?))
            }
            Kind::Other => seen(FileType::File, 0, Some(small(Content::Bytes(Vec::new()))?)),
        }))
    }

    fn stat_kind(&self, path: &WsPath) -> Result<Option<DiskState>> {
        // A dangling link blocks the path like a file.
        let metadata = match self.metadata(path)? {
            None => self.metadata_with(path, Links::Keep)?,
            there => there,
        };
        let Some(metadata) = metadata else { return Ok(None) };
        let modified = timestamp(metadata.modified);
        let (file_type, kind) = match metadata.kind {
            Kind::Folder => (FileType::Folder, TYPE_FOLDER),
            _ => (FileType::File, TYPE_FILE),
        };
        Ok(Some(DiskState { file_type, mode: kind | metadata.mode, modified, content: None }))
    }

    fn paths_below(&self, folder: &WsPath) -> Result<(Vec<WsPath>, usize)> {
        self.paths_below_that(folder, |_| true)
    }

    fn is_older_than(&self, _: &FileRow) -> bool {
        false
    }
}

impl Disk {
    /// Returns the paths below a folder that the filter `counts` accepts, and the number of accepted entries whose
    /// names are not valid in workspace paths (for example because they are not UTF-8).
    pub(super) fn paths_below_that(
        &self,
        folder: &WsPath,
        counts: impl Fn(&Path) -> bool,
    ) -> Result<(Vec<WsPath>, usize)> {
        let everything = ListOptions { depth: usize::MAX, limit: usize::MAX };
        let listing = match self.root.list(below_root(folder), everything) {
            Ok(listing) => listing,
            Err(error) if matches!(error.kind, DiskError::NotFound | DiskError::NotAFolder) => {
                return Ok((Vec::new(), 0));
            }
            Err(error) => return Err(to_tool_error(&error, folder, Attempt::Read)),
        };
        let counted = || listing.entries.iter().filter(|entry| counts(&below_root(folder).join(&entry.path)));
        let paths: Vec<WsPath> = counted().filter_map(|entry| named(folder, &entry.path)).collect();
        let unnamed = counted().count() - paths.len();
        Ok((paths, unnamed))
    }
}

/// Returns the workspace path of a path relative to the root; `None` if it is not valid as a workspace path.
pub(super) fn path_of(path: &Path) -> Option<WsPath> {
    if path.as_os_str().is_empty() { Some(WsPath::root()) } else { named(&WsPath::root(), path) }
}

/// Returns a path relative to the root as reports show it. Invalid UTF-8 is replaced.
pub(super) fn shown(path: &Path) -> String {
    format!("/{}", path.to_string_lossy())
}

/// Returns the workspace path of an entry below a folder; `None` if its name is not valid in a workspace path.
fn named(folder: &WsPath, below: &Path) -> Option<WsPath> {
    let below = str::from_utf8(below.as_os_str().as_bytes()).ok()?;
    folder.descend(below).ok()
}

/// Adds the folders above virtual files.
fn with_folders(files: Vec<Listed>) -> Vec<Listed> {
    let mut folders: BTreeSet<WsPath> = BTreeSet::new();
    let mut listed = Vec::with_capacity(files.len() + 1);
    for file in files {
        for folder in file.path.ancestors().into_iter().skip(1) {
            if folders.insert(folder.clone()) {
                listed.push(Listed {
                    path: folder,
                    display_name: None,
                    file_type: FileType::Folder,
                    is_virtual: false,
                    is_link: false,
                    size: 0,
                    updated_at: file.updated_at,
                });
            }
        }
        listed.push(file);
    }
    listed
}

/// Returns a content that is kept in full, with its hash, form and size.
pub(super) fn small(content: Content) -> Result<DiskContent> {
    let size = match &content {
        Content::Text(text) => text.len(),
        Content::Encoded(text) => text.as_bytes().len(),
        Content::Bytes(bytes) => bytes.len(),
        Content::Json(json) => json.as_str().len(),
    };
    let size = i64::try_from(size).map_err(ToolError::internal)?;
    Ok(DiskContent { hash: content.hash()?, form: content.form(), size, content: Some(content) })
}

fn file(path: &WsPath, found: toolrest_directory::Content, recorded: Option<Entry>) -> File {
    let content = Content::of_bytes(found.bytes);
    let hash = Some(ContentHash(found.hash.0));
    File { entry: entry(path, content.form().plain_type(), &found.metadata, hash, recorded), content: Some(content) }
}

fn too_much(path: &WsPath, size: u64) -> ToolError {
    let message = format!(
        "{path} has {size} bytes, and a commit reads at most {MAX_READ_FOR_COMMIT_BYTES} to record what it \
         changes; change fewer files at once, or this one without the server. Nothing was written"
    );
    ToolError::new(ErrorKind::PayloadTooLarge, message).at_path(path)
}

/// Returns the entry of a file on disk. The id and creation time come from the recorded entry, if there is one, and the
/// version only if the hashes are equal.
pub(super) fn entry(
    path: &WsPath,
    file_type: FileType,
    metadata: &Metadata,
    hash: Option<ContentHash>,
    recorded: Option<Entry>,
) -> Entry {
    let is_folder = |file_type| file_type == FileType::Folder;
    let recorded = recorded.filter(|recorded| is_folder(recorded.file_type) == is_folder(file_type));
    let updated_at = timestamp(metadata.modified);
    let current = recorded.as_ref().filter(|recorded| hash.is_some() && recorded.hash == hash);
    Entry {
        // A file that is not recorded has no id yet; this placeholder id is not shown to callers.
        id: recorded.as_ref().map_or_else(FileId::new, |recorded| recorded.id),
        path: path.clone(),
        display_name: None,
        file_type,
        is_virtual: false,
        is_link: false,
        size: if is_folder(file_type) { 0 } else { size_of(metadata.size_bytes) },
        version: current.and_then(|recorded| recorded.version),
        hash,
        created_at: recorded.as_ref().map_or(updated_at, |recorded| recorded.created_at),
        updated_at,
        deleted_at: None,
    }
}

fn size_of(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    let micros = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    };
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}
