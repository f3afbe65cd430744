//! A snapshot of a folder from before a program works on it.
//!
//! It has the metadata and the content of every file that is not ignored, so that changes can be undone. Contents that the
//! history has are not kept.

use crate::folder::disk::{Budget, Disk, DiskContent, DiskState, TYPE_FILE, TYPE_FOLDER, below_root, small, timestamp};
use crate::folder::errors::{Attempt, to_tool_error};
use crate::folder::reconcile::BaseState;
use crate::folder::walk;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::SystemTime,
};
use toolrest_core::{
    Content, ContentHash, Depth, FileType, Form, IgnoredFiles, KeepLimits, Result, Timestamp, ToolError, WsPath,
};
use toolrest_directory::{Files, Kind, Links, Metadata, Paths, Reader, Visitor};
use toolrest_store::plan::FileRow;

/// Maximum size of the kept contents, in multiples of the maximum size of a commit.
const COMMITS_KEPT: u64 = 4;

/// The files and folders of a folder at one time.
pub(super) struct Snapshot {
    disk: Disk,
    pub(super) files: BTreeMap<WsPath, SnapshotFile>,
    pub(super) folders: BTreeSet<WsPath>,
    /// Files with the kept contents, one after the other.
    packs: BTreeMap<usize, File>,
    /// Rows of the history with a later time are newer than the snapshot.
    pub(super) taken_at: Timestamp,
    /// A file with this ctime or a later one may have been changed again without a change of its metadata.
    certain_until: SystemTime,
}

/// A file of a snapshot.
#[derive(Clone, Copy)]
pub(super) struct SnapshotFile {
    pub(super) metadata: Metadata,
    pub(super) content: KeptContent,
}

/// Where the content of a file is.
#[derive(Clone, Copy)]
pub(super) enum KeptContent {
    Packed {
        pack: usize,
        offset: u64,
        bytes: usize,
    },
    /// In the history, as a version of the file.
    InHistory(ContentHash, Form),
    /// Not kept, because it is over the limits.
    Nowhere,
}

/// What a walk found.
#[derive(Default)]
pub(super) struct WalkResult {
    pub(super) files: Vec<(WsPath, Metadata)>,
    pub(super) folders: BTreeSet<WsPath>,
}

impl Snapshot {
    /// Takes a snapshot. The contents are kept in files of the private directory.
    pub(super) fn take(disk: Disk, private_dir: &Path, keep: &KeepLimits, file_time: SystemTime) -> Result<Self> {
        let taken_at = toolrest_core::now();
        let collector = SnapshotCollector {
            folders: Folders::default(),
            private_dir: private_dir.to_owned(),
            packs: AtomicUsize::new(0),
            file_bytes: keep.file_bytes,
            bytes_left: AtomicU64::new(keep.commit_bytes.saturating_mul(COMMITS_KEPT)),
        };
        let mut snapshot = Self {
            files: BTreeMap::new(),
            folders: BTreeSet::new(),
            packs: BTreeMap::new(),
            taken_at,
            certain_until: file_time,
            disk,
        };
        for taken in snapshot.disk.walk(&collector)? {
            let SnapshotPart { files, pack, failure } = taken;
            failure.map_or(Ok(()), Err).map_err(ToolError::internal)?;
            snapshot.packs.extend(pack);
            snapshot.files.extend(files);
        }
        snapshot.folders = collector.folders.into_paths();
        Ok(snapshot)
    }

    /// Returns the files and folders that are there now.
    pub(super) fn walk(&self) -> Result<WalkResult> {
        let collector = PathCollector { folders: Folders::default() };
        let found: Vec<Paths> = self.disk.walk(&collector)?.into_iter().flatten().collect();
        let metadata = self.disk.root.describe(Path::new(""), "", &found, threads());
        let metadata = metadata.map_err(|error| walk::failed(&error, &WsPath::root()))?;
        let paths = found.iter().flat_map(|paths| paths.names().map(|name| format!("{}{name}", paths.folder())));
        let files = paths.map(WsPath::from_normal).zip(metadata).filter_map(|(path, metadata)| Some((path, metadata?)));
        let mut walked = WalkResult { files: files.collect(), folders: collector.folders.into_paths() };
        self.add_ignored(&mut walked)?;
        Ok(walked)
    }

    /// Adds the files of the snapshot that are ignored by now: they keep their history.
    fn add_ignored(&self, walked: &mut WalkResult) -> Result<()> {
        let present: BTreeSet<&WsPath> = walked.files.iter().map(|(path, _)| path).collect();
        let mut hidden = Vec::new();
        for path in self.files.keys().filter(|path| !present.contains(path)) {
            if let Some(metadata) = self.now(path)?.filter(|now| now.kind == Kind::File) {
                walked.folders.extend(path.ancestors().into_iter().filter(|above| !above.is_root()));
                hidden.push((path.clone(), metadata));
            }
        }
        walked.files.extend(hidden);
        Ok(())
    }

    /// Returns what is at a path now.
    pub(super) fn now(&self, path: &WsPath) -> Result<Option<Metadata>> {
        self.disk.root.stat_real(below_root(path)).map_err(|error| to_tool_error(&error, path, Attempt::Read))
    }

    /// Removes paths that are gone and have no kept content, or that tools removed.
    pub(super) fn forget(&mut self, paths: &[WsPath]) {
        for path in paths {
            self.files.remove(path);
            self.folders.remove(path);
        }
    }

    /// Whether a file is certainly as it is in the snapshot.
    pub(super) fn is_unchanged(&self, path: &WsPath, metadata: &Metadata) -> bool {
        self.files.get(path).is_some_and(|noted| noted.metadata == *metadata) && metadata.changed < self.certain_until
    }

    /// Returns the hash of a file; none if its content is not kept.
    pub(super) fn hash(&self, noted: &SnapshotFile) -> Result<Option<ContentHash>> {
        Ok(match noted.content {
            KeptContent::Packed { .. } => self.bytes(noted)?.map(|bytes| ContentHash::of(&bytes)),
            KeptContent::InHistory(hash, _) => Some(hash),
            KeptContent::Nowhere => None,
        })
    }

    fn bytes(&self, noted: &SnapshotFile) -> Result<Option<Vec<u8>>> {
        let KeptContent::Packed { pack, offset, bytes } = noted.content else { return Ok(None) };
        let Some(pack) = self.packs.get(&pack) else { return Ok(None) };
        let mut content = vec![0; bytes];
        pack.read_exact_at(&mut content, offset).map_err(ToolError::internal)?;
        Ok(Some(content))
    }

    /// Brings the snapshot up to date.
    pub(super) fn update(
        &mut self,
        notes: Vec<(WsPath, Option<SnapshotFile>)>,
        walked: WalkResult,
        at: Timestamp,
        file_time: SystemTime,
    ) {
        for (path, noted) in notes {
            match noted {
                Some(now) => self.files.insert(path, now),
                None => self.files.remove(&path),
            };
        }
        (self.folders, self.taken_at, self.certain_until) = (walked.folders, at, file_time);
    }

    fn disk_state(&self, noted: &SnapshotFile) -> Result<Option<DiskState>> {
        let size = i64::try_from(noted.metadata.size_bytes).unwrap_or(i64::MAX);
        let content = match noted.content {
            KeptContent::InHistory(hash, form) => DiskContent { hash, form, size, content: None },
            KeptContent::Packed { .. } => match self.bytes(noted)? {
                Some(bytes) => small(Content::of_bytes(bytes))?,
                None => return Ok(None),
            },
            KeptContent::Nowhere => return Ok(None),
        };
        let file_type = content.form.plain_type();
        let (mode, modified) = (TYPE_FILE | noted.metadata.mode, timestamp(noted.metadata.modified));
        Ok(Some(DiskState { file_type, mode, modified, content: Some(content) }))
    }
}

impl BaseState for Snapshot {
    fn budget(&self) -> Budget {
        self.disk.budget()
    }

    fn read_state(&self, path: &WsPath, _: Links, _: &mut Budget) -> Result<Option<DiskState>> {
        match self.files.get(path) {
            Some(noted) => self.disk_state(noted),
            None => self.stat_kind(path),
        }
    }

    fn stat_kind(&self, path: &WsPath) -> Result<Option<DiskState>> {
        let state = |file_type, mode| DiskState { file_type, mode, modified: self.taken_at, content: None };
        if self.folders.contains(path) {
            // The snapshot has no modes of folders. The current one rarely differs.
            let mode = self.disk.root.stat(Path::new(path.without_slash()), Links::Keep).map_or(0o755, |now| now.mode);
            return Ok(Some(state(FileType::Folder, TYPE_FOLDER | mode)));
        }
        Ok(self.files.get(path).map(|noted| state(FileType::File, TYPE_FILE | noted.metadata.mode)))
    }

    fn paths_below(&self, folder: &WsPath) -> Result<(Vec<WsPath>, usize)> {
        let below = |paths: &BTreeSet<WsPath>| paths.iter().filter(|path| path.is_below(folder)).cloned().collect();
        let mut paths: Vec<WsPath> = below(&self.folders);
        paths.extend(self.files.keys().filter(|path| path.is_below(folder)).cloned());
        Ok((paths, 0))
    }

    fn is_older_than(&self, row: &FileRow) -> bool {
        row.updated_at > self.taken_at
    }
}

impl Disk {
    fn walk<V: Visitor>(&self, visitor: &V) -> Result<Vec<V::Thread>> {
        let top = WsPath::root();
        let options = walk::options(&top, Depth::Descendants, IgnoredFiles::LeaveOut, threads());
        self.root.walk(Path::new(""), options, visitor).map_err(|error| walk::failed(&error, &top))
    }
}

fn threads() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// The folders that a walk reads.
#[derive(Default)]
struct Folders(Mutex<BTreeSet<WsPath>>);

impl Folders {
    fn add(&self, folder: &str) {
        let folder = folder.trim_end_matches('/');
        if !folder.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(WsPath::from_normal(folder.to_owned()));
        }
    }

    fn into_paths(self) -> BTreeSet<WsPath> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a path is that of a git repository.
fn is_git(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| toolrest_directory::is_git(name.as_ref()))
}

/// Collects paths only.
struct PathCollector {
    folders: Folders,
}

impl Visitor for PathCollector {
    type Thread = Vec<Paths>;

    fn enters(&self, folder: &str) -> bool {
        !is_git(folder)
    }

    fn on_folder(&self, folder: &str) {
        self.folders.add(folder);
    }

    fn accepts(&self, file: &str) -> bool {
        !is_git(file)
    }

    fn visit(&self, files: &mut Files<'_>, found: &mut Self::Thread) {
        found.push(files.paths());
    }
}

/// Collects files with their contents.
struct SnapshotCollector {
    folders: Folders,
    private_dir: PathBuf,
    packs: AtomicUsize,
    file_bytes: u64,
    bytes_left: AtomicU64,
}

/// The files that one thread has collected.
#[derive(Default)]
struct SnapshotPart {
    files: Vec<(WsPath, SnapshotFile)>,
    /// The file for its contents, with the number of that.
    pack: Option<(usize, File)>,
    failure: Option<io::Error>,
}

impl Visitor for SnapshotCollector {
    type Thread = SnapshotPart;

    fn enters(&self, folder: &str) -> bool {
        !is_git(folder)
    }

    fn on_folder(&self, folder: &str) {
        self.folders.add(folder);
    }

    fn accepts(&self, file: &str) -> bool {
        !is_git(file)
    }

    fn visit(&self, files: &mut Files<'_>, thread: &mut Self::Thread) {
        for place in 0..files.len() {
            // A file that cannot be read has no history.
            let Ok(Some(reader)) = files.open(place) else { continue };
            let metadata = reader.metadata();
            match self.keep(reader, &metadata, &mut thread.pack) {
                Ok(content) => {
                    thread.files.push((WsPath::from_normal(files.path(place)), SnapshotFile { metadata, content }));
                }
                Err(error) => thread.failure = Some(error),
            }
        }
    }
}

impl SnapshotCollector {
    fn keep(&self, reader: Reader, metadata: &Metadata, pack: &mut Option<(usize, File)>) -> io::Result<KeptContent> {
        let size = metadata.size_bytes;
        let take = |left: u64| left.checked_sub(size).filter(|_| size <= self.file_bytes);
        if self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Ok(KeptContent::Nowhere);
        }
        let (pack, file) = match pack {
            Some(pack) => pack,
            None => pack.insert(self.new_pack()?),
        };
        let offset = file.seek(SeekFrom::End(0))?;
        let bytes = io::copy(&mut reader.into_file().take(size), file)?;
        Ok(usize::try_from(bytes).map_or(KeptContent::Nowhere, |bytes| KeptContent::Packed {
            pack: *pack,
            offset,
            bytes,
        }))
    }

    fn new_pack(&self) -> io::Result<(usize, File)> {
        let number = self.packs.fetch_add(1, Ordering::Relaxed);
        let path = self.private_dir.join(format!("pack-{number}"));
        Ok((number, File::options().read(true).write(true).create_new(true).open(path)?))
    }
}
