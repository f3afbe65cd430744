//! A program that works on a view of the folder, and what becomes of its changes when it has ended.
//!
//! What it changed lies in a folder of its own. Checking it in takes four steps: what needs no history and is gone, or
//! in the way, is cleared; the rest is committed as any changeset; what needs no history and is new is taken over; and
//! permissions follow. If somebody changes the folder meanwhile, all of it is looked at anew.

use super::findings::{Findings, Keeper};
use crate::folder::FolderWorkspace;
use crate::folder::commit::failed;
use crate::folder::disk::{Disk, path_of};
use crate::folder::errors::{Attempt, told};
use crate::scratch;
use async_trait::async_trait;
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};
use toolrest_core::{
    CallCx, CheckedIn, Checkout, CommitId, Depth, ErrorKind, FileType, Ground, KeepLimits, LeftOut, LeftOutReason,
    Result, ToolError, Workspace, WsPath,
};
use toolrest_directory::{Difference, Links, NotTaken, Root, Turn, WhyNot};

/// How often a check-in is tried while others keep changing the same files.
const TRIES: usize = 8;

/// How many of the files that history knows are looked for in what is ignored.
const TRACKED_MOST: usize = 100_000;

/// A view of the folder for one program.
pub(super) struct Aside {
    workspace: FolderWorkspace,
    keep: KeepLimits,
    private: Private,
    /// What changed in the folder after this, somebody else has changed.
    since: SystemTime,
}

/// A folder of the server's own, removed when it is dropped.
struct Private(PathBuf);

impl Drop for Private {
    fn drop(&mut self) {
        scratch::remove(&self.0);
    }
}

impl Private {
    fn upper(&self) -> PathBuf {
        self.0.join("upper")
    }

    /// Makes the folders of the view for the owner of the folder, whom programs run as.
    fn fill(&self, folder: &Path) -> io::Result<()> {
        let of = fs::metadata(folder)?;
        DirBuilder::new().mode(0o700).create(self.0.join("work"))?;
        DirBuilder::new().mode(0o700).create(self.upper())?;
        // The root of the view looks as the upper folder does.
        fs::set_permissions(self.upper(), Permissions::from_mode(of.mode() & 0o777))?;
        if fs::metadata(&self.0)?.uid() != of.uid() {
            for path in [self.0.join("work"), self.upper(), self.0.clone()] {
                chown(path, Some(of.uid()), Some(of.gid()))?;
            }
        }
        Ok(())
    }

    /// The upper folder, which the program may have closed.
    fn open(&self) -> Result<Root> {
        let upper = self.upper();
        let mode = fs::symlink_metadata(&upper).map_err(ToolError::internal)?.mode() & 0o777;
        if mode & 0o700 != 0o700 {
            fs::set_permissions(&upper, Permissions::from_mode(mode | 0o700)).map_err(ToolError::internal)?;
        }
        Root::open(&upper).map_err(ToolError::internal)
    }

    /// When the upper folder last changed, by the clock that files in the folder get their times from.
    fn moment(&self) -> io::Result<SystemTime> {
        let upper = Root::open(&self.upper()).map_err(io::Error::other)?;
        let found = upper.stat(Path::new(""), Links::Keep).map_err(io::Error::other)?;
        Ok(found.changed)
    }

    /// Forgets what was changed.
    fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.upper())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                scratch::remove(&entry.path());
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        // Renews the time, also if there was nothing in it.
        let mode = fs::metadata(self.upper())?.permissions();
        fs::set_permissions(self.upper(), mode)
    }
}

impl Aside {
    pub(super) fn open(workspace: FolderWorkspace, keep: KeepLimits) -> Result<Self> {
        let private = Private(workspace.scratch.folder().map_err(ToolError::internal)?);
        private.fill(workspace.folder.real_path()).map_err(ToolError::internal)?;
        let since = private.moment().map_err(ToolError::internal)?;
        Ok(Self { workspace, keep, private, since })
    }

    /// Looks at what the program has changed, and decides what becomes of it.
    async fn look(&self, upper: &Arc<Root>, cx: &CallCx) -> Result<Findings> {
        let made_by_the_system = self.workspace.store.virtual_files(self.workspace.access).await?;
        let above = upper.clone();
        let compare = move |disk: &Disk| disk.root.differences(&above).map_err(|error| failed(&error));
        let mut differences = self.workspace.on_disk(compare).await?;
        let tracked = self.tracked(&differences).await?;

        let keeper = Keeper {
            disk: self.workspace.folder.disk.clone(),
            upper: Arc::clone(upper),
            since: self.since,
            keep: self.keep,
            call: cx.id,
            made_by_the_system: with_folders(made_by_the_system.into_iter().map(|listed| listed.path)),
        };
        let decide = move || {
            for path in tracked {
                let found = keeper.disk.root.difference_at(&keeper.upper, Path::new(path.without_slash()));
                let found = found.map_err(|error| told(&error, &path, Attempt::Read))?;
                differences.extend(found.map(|found| Difference { is_ignored: false, ..found }));
            }
            keeper.decide(differences)
        };
        tokio::task::spawn_blocking(decide).await.map_err(ToolError::internal)?
    }

    /// The files among what is ignored that history knows all the same.
    async fn tracked(&self, differences: &[Difference]) -> Result<Vec<WsPath>> {
        let mut tracked = Vec::new();
        let (store, access) = (&self.workspace.store, self.workspace.access);
        for ignored in differences.iter().filter(|difference| difference.is_ignored) {
            let Some(path) = path_of(&ignored.path).filter(|path| path.name() != ".git") else { continue };
            match store.stat(access, &path).await? {
                Some(entry) if entry.file_type != FileType::Folder => tracked.push(path),
                Some(_) => {
                    let listing = store.list(access, &path, Depth::Descendants, TRACKED_MOST).await?;
                    let files = listing.entries.into_iter().filter(|listed| listed.file_type != FileType::Folder);
                    tracked.extend(files.map(|listed| listed.path));
                }
                None => {}
            }
        }
        Ok(tracked)
    }

    /// Does what was decided.
    async fn carry_out(&self, upper: &Arc<Root>, findings: &mut Findings, cx: &CallCx) -> Result<Option<CommitId>> {
        let cleared = std::mem::take(&mut findings.cleared);
        if !cleared.is_empty() {
            let clear = move |turn: &mut Turn<'_>| {
                cleared.iter().try_for_each(|path| turn.clear(path).map_err(|error| failed(&error)))
            };
            self.workspace.past_history(clear).await?;
        }
        let changes = findings.changeset();
        let commit = if changes.changes.is_empty() { None } else { self.workspace.commit(changes, cx).await?.id };

        let taken_over = std::mem::take(&mut findings.taken_over);
        let settled = std::mem::take(&mut findings.settled);
        let dressed = std::mem::take(&mut findings.dressed);
        if !taken_over.is_empty() || !dressed.is_empty() {
            let upper = Arc::clone(upper);
            let take = move |turn: &mut Turn<'_>| {
                let mut not_taken = Vec::new();
                for (from, to) in taken_over {
                    not_taken.extend(turn.take_over(&upper, &from, &to, &settled).map_err(|error| failed(&error))?);
                }
                for (path, left, owner) in dressed {
                    // What became of it since is somebody else's.
                    let _ = turn.dress(&path, &left, owner);
                }
                Ok(not_taken)
            };
            let not_taken = self.workspace.past_history(take).await?;
            findings.left_out.extend(not_taken.into_iter().map(left_out));
        }
        Ok(commit)
    }
}

#[async_trait]
impl Checkout for Aside {
    fn ground(&self) -> Ground {
        Ground::Overlay { lower: self.workspace.folder.real_path().to_owned(), private: self.private.0.clone() }
    }

    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn> {
        self.workspace.store.authorise(self.workspace.access).await?;
        let upper = Arc::new(self.private.open()?);
        let mut tries = 1;
        let checked_in = loop {
            let mut findings = self.look(&upper, cx).await?;
            match self.carry_out(&upper, &mut findings, cx).await {
                Ok(commit) => break findings.into_checked_in(commit),
                Err(error) if came_between(error.kind) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        };
        self.private.empty().map_err(ToolError::internal)?;
        self.since = self.private.moment().map_err(ToolError::internal)?;
        Ok(checked_in)
    }
}

/// Whether a commit that is refused so may well succeed when what stands there is looked at again.
fn came_between(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Stale
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::NotEmpty
            | ErrorKind::IsDirectory
            | ErrorKind::ThroughFile
    )
}

/// Paths with the folders that lead to them.
fn with_folders(paths: impl Iterator<Item = WsPath>) -> BTreeSet<WsPath> {
    let mut all = BTreeSet::new();
    for path in paths {
        all.extend(path.ancestors());
        all.insert(path);
    }
    all
}

fn left_out(not_taken: NotTaken) -> LeftOut {
    let reason = match not_taken.why {
        WhyNot::Special => LeftOutReason::Special,
        WhyNot::GitConfig => LeftOutReason::GitConfig,
        WhyNot::Failed(error) => {
            tracing::warn!(path = %not_taken.path.display(), %error, "a program's file could not be taken over");
            LeftOutReason::Unreadable
        }
    };
    LeftOut { path: shown(&not_taken.path), reason }
}

/// A path as reports have it. Names that are not text are made readable.
pub(super) fn shown(path: &Path) -> String {
    format!("/{}", path.to_string_lossy())
}
