//! A program that works on a view of the folder, and what becomes of its changes when it has ended.
//!
//! What it changed lies in a folder of its own. Checking it in takes three steps: it is committed as any changeset, and
//! together with that goes what needs no history and is gone, or in the way; what needs no history and is new is taken
//! over; and permissions follow. If somebody changes the folder meanwhile, all of it is looked at anew.

use super::findings::{Findings, Keeper};
use super::moves::Moves;
use super::private::Private;
use crate::check_in_room::CheckInRoom;
use crate::conflict_name::beside;
use crate::folder::FolderWorkspace;
use crate::folder::cleared::Cleared;
use crate::folder::commit::{Besides, Job, MadeBy, failed};
use crate::folder::disk::{Disk, below_root, path_of, shown};
use crate::folder::errors::{Attempt, told};
use crate::scratch::held;
use async_trait::async_trait;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{
    Attribution, CallCx, CheckedIn, Checkout, CommitId, Depth, ErrorKind, FileType, Ground, KeepLimits, LeftOutReason,
    Notice, Result, ToolError, WorkspaceSettings, WsPath,
};
use toolrest_directory::{
    Beginning, Difference, Differences, Kind, NotTaken, Root, Staying, Turn, WhyNot, leads_into_repository,
};
use toolrest_store::disk_fault::disk_fault;

/// How often a check-in is tried while others keep changing the same files.
const TRIES: usize = 8;

/// How many of the files that history knows are looked for in what is ignored.
const TRACKED_MOST: usize = 100_000;

/// How many of the files that could not be brought over are warned of one by one.
const MOST_WARNINGS: usize = 10;

/// A view of the folder for one program.
pub(super) struct Aside {
    workspace: FolderWorkspace,
    settings: WorkspaceSettings,
    keep: KeepLimits,
    private: Arc<Private>,
    beginning: Arc<Beginning>,
}

impl Aside {
    pub(super) fn open(workspace: FolderWorkspace, settings: WorkspaceSettings, keep: KeepLimits) -> Result<Self> {
        let private = Arc::new(Private::new(&workspace.scratch)?);
        let owner = workspace.folder.disk.root.metadata().map_err(|error| failed(&error))?;
        private.fill(&owner).map_err(disk_fault)?;
        let beginning = Arc::new(begin(&workspace, &private)?);
        Ok(Self { workspace, settings, keep, private, beginning })
    }

    /// Looks at what the program has changed, and decides what becomes of it. Gives also the room for the contents.
    async fn look(&self, upper: &Arc<Root>, cx: &CallCx) -> Result<(Findings, CheckInRoom)> {
        let made_by_the_system = self.workspace.store.virtual_files(self.workspace.access).await?;
        let (above, beginning) = (Arc::clone(upper), Arc::clone(&self.beginning));
        let compare = move |disk: &Disk| disk.root.differences(&above, &beginning).map_err(|error| failed(&error));
        let Differences { found: mut differences, put_there } = self.workspace.on_disk(compare).await?;
        let tracked = self.tracked(&differences).await?;
        let bytes = contents_bytes(&differences, self.keep);
        let room = self.workspace.check_ins.reserve(self.workspace.access.user, bytes).await;
        let keeper = Keeper {
            disk: self.workspace.folder.disk.clone(),
            upper: Arc::clone(upper),
            beginning: Arc::clone(&self.beginning),
            put_there,
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
        let findings = tokio::task::spawn_blocking(decide).await.map_err(ToolError::internal)??;
        Ok((findings, room))
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
        // Whatever history knows of a repository, what programs do in one is judged by other rules.
        tracked.retain(|path| !leads_into_repository(below_root(path)));
        Ok(tracked)
    }

    /// Does what was decided.
    async fn carry_out(&self, upper: &Arc<Root>, findings: &mut Findings, cx: &CallCx) -> Result<Option<CommitId>> {
        let changes = findings.changeset(Moves::Told);
        let mut cleared = Cleared::default();
        cleared.add(std::mem::take(&mut findings.cleared));
        let commit = if changes.changes.is_empty() {
            self.workspace.in_turn(cx, move |_, turn| cleared.clear(turn)).await?;
            None
        } else {
            self.workspace.commit_on_disk(changes, Besides { cleared, made_by: MadeBy::Program }, cx).await?.id
        };
        if let Some(id) = commit {
            cx.recorded_with(id);
        }

        if !findings.taken_over.is_empty() || !findings.dressed.is_empty() || !findings.names.is_empty() {
            // The commit stands, whatever becomes of the rest: it is told, and not tried anew without the commit.
            let targets: Vec<PathBuf> = findings.taken_over.iter().map(|(_, to)| to.clone()).collect();
            match self.take_over(upper, findings, cx).await {
                Ok(not_taken) => tell(findings, not_taken, cx),
                Err(error) if commit.is_none() => return Err(error),
                Err(error) => {
                    let not_taken = |why: &str| format!("What has no versions may not have reached the folder: {why}");
                    cx.warn(Notice::of_error(&error, not_taken));
                    for path in &targets {
                        findings.leave_out(path, LeftOutReason::Unreadable);
                    }
                }
            }
        }
        Ok(commit)
    }

    /// Brings what the program has changed to the folder.
    async fn bring_over(&self, cx: &CallCx) -> Result<CheckedIn> {
        self.workspace.store.authorise(self.workspace.access).await?;
        let upper = Arc::new(self.private.open()?);
        let mut tries = 1;
        loop {
            let (mut findings, _room) = self.look(&upper, cx).await?;
            match self.carry_out(&upper, &mut findings, cx).await {
                Ok(commit) => return Ok(findings.into_checked_in(commit, Attribution::Program)),
                Err(error) if is_refused(error.kind) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes over what needs no history, and gives permissions to what has one.
    async fn take_over(&self, upper: &Arc<Root>, findings: &mut Findings, cx: &CallCx) -> Result<Vec<NotTaken>> {
        let taken_over = std::mem::take(&mut findings.taken_over);
        let (settled, durable) = (std::mem::take(&mut findings.settled), std::mem::take(&mut findings.durable));
        let (dressed, put_there) = (std::mem::take(&mut findings.dressed), std::mem::take(&mut findings.put_there));
        let names = std::mem::take(&mut findings.names).into_values().filter(|names| names.len() > 1);
        let names: Vec<Vec<PathBuf>> = names.collect();
        let (upper, root) = (Arc::clone(upper), Arc::clone(&self.workspace.folder.disk.root));
        let (beginning, call) = (Arc::clone(&self.beginning), cx.id);
        let take = move |_: &Job, turn: &mut Turn<'_>| {
            let mut not_taken = Vec::new();
            let is_free = |path: &WsPath| matches!(root.stat_real(below_root(path)), Ok(None));
            let beside = |path: &Path| {
                let path = path_of(path)?;
                Some(below_root(&beside(&path.parent()?, path.name(), call, is_free)?).to_owned())
            };
            let staying = Staying { settled: &settled, beginning: &beginning, put_there: &put_there, beside: &beside };
            for (from, to) in taken_over {
                not_taken.extend(turn.take_over(&upper, &from, &to, &staying).map_err(|error| failed(&error))?);
            }
            for (path, left, owner) in dressed {
                // What became of it since is somebody else's.
                let _ = turn.dress(&path, &left, owner);
            }
            // Names that could not be linked lead to files of the same content.
            if let Err(error) = turn.link_names(&names) {
                tracing::warn!(%error, "hard links of a program could not be made");
            }
            turn.make_durable(&durable).map_err(|error| failed(&error))?;
            Ok(not_taken)
        };
        self.workspace.in_turn(cx, take).await
    }
}

#[async_trait]
impl Checkout for Aside {
    fn ground(&self) -> Ground {
        Ground::Overlay { lower: held(&self.workspace.folder.disk.root), private: held(self.private.root()) }
    }

    fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    async fn check_in(&mut self, cx: &CallCx) -> Result<CheckedIn> {
        let checked_in = self.bring_over(cx).await?;
        let (workspace, private) = (self.workspace.clone(), Arc::clone(&self.private));
        let begin_anew = move || {
            private.empty().map_err(ToolError::internal)?;
            begin(&workspace, &private)
        };
        self.beginning = Arc::new(tokio::task::spawn_blocking(begin_anew).await.map_err(ToolError::internal)??);
        Ok(checked_in)
    }

    async fn finish(self: Box<Self>, cx: &CallCx) -> Result<CheckedIn> {
        let checked_in = self.bring_over(cx).await;
        // No other program comes: nothing that fails from here on may hide what was committed.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
        checked_in
    }
}

/// The most bytes that are read of a program's changes and of what they take the place of.
fn contents_bytes(differences: &[Difference], keep: KeepLimits) -> u64 {
    let sides = differences.iter().filter(|found| !found.is_ignored).flat_map(|found| [found.upper, found.lower]);
    let files = sides.flatten().filter(|side| side.kind == Kind::File && side.size_bytes <= keep.file_bytes);
    files.map(|file| file.size_bytes).sum::<u64>().min(keep.commit_bytes)
}

/// How the folder stands now, before a program works on a view of it.
fn begin(workspace: &FolderWorkspace, private: &Private) -> Result<Beginning> {
    let folders = workspace.folder.disk.root.note_folders();
    Ok(Beginning::new(private.moment()?, folders))
}

/// Whether a commit is refused because of what stands there: it may well succeed when that is looked at again.
pub(super) fn is_refused(kind: ErrorKind) -> bool {
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

/// Tells of what was not taken over.
fn tell(findings: &mut Findings, all: Vec<NotTaken>, cx: &CallCx) {
    let mut failures = Vec::new();
    for NotTaken { path, why } in all {
        match why {
            WhyNot::Special => findings.leave_out(&path, LeftOutReason::Special),
            WhyNot::GitConfig => findings.leave_out(&path, LeftOutReason::GitConfig),
            WhyNot::ChangedByOthers { kept_as } => findings.others_changed(&path, kept_as.as_deref()),
            WhyNot::RepositoryChanged => findings.others_changed(&path, None),
            WhyNot::Failed(error) => {
                findings.leave_out(&path, LeftOutReason::Unreadable);
                let name = shown(&path);
                let text = format!("{name} could not be brought to the folder, or only a part of it: {error}");
                failures.push(Notice { text, paths: vec![name] });
            }
        }
    }
    for warning in the_first_of(failures) {
        tracing::warn!(warning = warning.text, "what a program left could not be taken over");
        cx.warn(warning);
    }
}

/// No more warnings than anybody reads, and how many there are beside them.
fn the_first_of(mut warnings: Vec<Notice>) -> Vec<Notice> {
    let unsaid = warnings.len().saturating_sub(MOST_WARNINGS);
    if unsaid > 0 {
        warnings.truncate(MOST_WARNINGS);
        warnings.push(format!("and {unsaid} more that could not be brought to the folder").into());
    }
    warnings
}

#[cfg(test)]
#[path = "aside_tests.rs"]
mod aside_tests;
