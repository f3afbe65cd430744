//! Undo of commits.

mod conflict;
mod merged;

pub use conflict::{ChangedSince, UndoError};

use crate::net_change::{NetChange, net_effects};
use conflict::explained;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use toolrest_core::{
    CallCx, Change, Changeset, Commit, CommitId, CommitInfo, Destination, Effect, EffectKind, ErrorKind, Expect,
    FileId, Page, Put, Removal, Result, ToolError, VersionId, WsPath,
};

/// Maximum number of files in the error message.
const MAX_NAMED: usize = 50;
/// How often an undo is tried, while others change the files.
const MAX_TRIES: usize = 4;
/// Maximum number of versions of a file that are compared with the current one.
const MAX_VERSIONS: u32 = 500;

/// Whether to undo a commit that may contain changes of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    #[default]
    No,
    Yes,
}

/// Options of [`undo`].
#[derive(Clone, Copy, Debug)]
pub struct UndoOptions<'a> {
    /// Only files at or below these paths; all if there are none.
    pub paths: &'a [WsPath],
    /// Whether to undo what others may have changed.
    pub force: Force,
}

/// A finished undo.
#[derive(Debug)]
pub struct Undone {
    /// The commit that undoes the others; none if nothing was left to undo.
    pub commit: Option<Commit>,
    /// Files that had changed since, in other regions: those changes stay.
    pub merged: Vec<WsPath>,
}

/// The effects on one file that are undone, newest first, and how.
struct FileUndo<'e> {
    effects: Vec<&'e Effect>,
    net: NetChange,
    way: Way,
}

/// How the changes of a file are undone.
enum Way {
    /// By the inverse of each effect. The file must have the version that the newest effect left.
    Inverse,
    /// The same, from this version, which has the same content.
    InverseFrom(VersionId),
    /// By a new content, in which later changes of other regions stay.
    Merged(Box<Put>, Vec<Expect>),
    /// There is nothing to undo.
    Nothing,
}

/// Undoes commits, given newest first, as one commit or not at all. A text that has changed since is merged if the changes
/// are in other regions.
pub async fn undo(cx: &CallCx, commits: &[CommitInfo], options: &UndoOptions<'_>) -> Result<Undone, UndoError> {
    if let Some(commit) = commits.iter().find(|commit| commit.is_of_folder() && options.force == Force::No) {
        return Err(unknown_author(commit).into());
    }
    let commits = without_undone(commits);
    let effects = selected(&commits, options.paths);
    let mut files = by_file(&effects);
    if commits.len() > 1 {
        for file in files.values_mut().filter(|file| file.changes_nothing()) {
            file.way = Way::Nothing;
        }
        skip_same_contents(cx, &mut files).await?;
    }
    let undoes = match &commits[..] {
        [only] if options.paths.is_empty() => Some(only.id),
        _ => None,
    };
    let mut found = if files.values().any(|file| file.net.is_interrupted) {
        merged::resolve(cx, &commits, &mut files).await
    } else {
        Ok(())
    };
    for _ in 0..MAX_TRIES {
        if let Err(error) = found {
            return Err(explained(cx, undoes, error).await);
        }
        let inverse = inverse(&effects, &files, undoes);
        if inverse.changes.is_empty() {
            return match &commits[..] {
                [only] => Err(nothing_to_undo(only).into()),
                _ => Ok(Undone { commit: None, merged: Vec::new() }),
            };
        }
        found = match cx.workspace.commit(inverse, cx).await {
            Ok(commit) => {
                let merged = files.values().filter_map(|file| match &file.way {
                    Way::Merged(put, _) => Some(put.path.clone()),
                    _ => None,
                });
                return Ok(Undone { merged: merged.collect(), commit: Some(commit) });
            }
            Err(error) if error.kind == ErrorKind::Stale => {
                // What was undone already is not merged: it would change nothing.
                if let undone @ UndoError::Undone { .. } = explained(cx, undoes, error.clone().into()).await {
                    return Err(undone);
                }
                match merged::resolve(cx, &commits, &mut files).await {
                    // What the caller may not read is not merged.
                    Err(UndoError::Failed(refused)) if refused.kind == ErrorKind::Forbidden => Err(error.into()),
                    resolved => resolved,
                }
            }
            Err(error) => Err(error.into()),
        };
    }
    Err(explained(cx, undoes, found.err().unwrap_or_else(busy)).await)
}

/// Returns the changeset that undoes a commit of files that have not changed since.
pub fn inverse_of_commit(commit: &CommitInfo) -> Changeset {
    let effects = selected(slice::from_ref(commit), &[]);
    inverse(&effects, &by_file(&effects), Some(commit.id))
}

fn busy() -> UndoError {
    ToolError::new(ErrorKind::Conflict, "The files are being changed by others at the moment; try again").into()
}

fn nothing_to_undo(commit: &CommitInfo) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("Commit {} changed nothing to undo", commit.id))
}

/// Leaves out commits together with the commits among them that undo them.
fn without_undone(commits: &[CommitInfo]) -> Vec<CommitInfo> {
    let all: BTreeSet<CommitId> = commits.iter().map(|commit| commit.id).collect();
    let mut left_out = BTreeSet::new();
    for commit in commits {
        if let Some(undone) = commit.undoes.filter(|undone| all.contains(undone))
            && !left_out.contains(&commit.id)
        {
            left_out.extend([commit.id, undone]);
        }
    }
    commits.iter().filter(|commit| !left_out.contains(&commit.id)).cloned().collect()
}

/// Returns the effects, newest first, on files that were or are at or below one of the paths.
fn selected<'e>(commits: &'e [CommitInfo], paths: &[WsPath]) -> Vec<&'e Effect> {
    let all = || commits.iter().flat_map(|commit| commit.changes.iter().rev());
    let is_named = |path: &WsPath| paths.iter().any(|named| path == named || path.is_below(named));
    let files: BTreeSet<FileId> = all()
        .filter(|effect| paths.is_empty() || is_named(&effect.path) || effect.from.as_ref().is_some_and(is_named))
        .map(|effect| effect.file_id)
        .collect();
    all().filter(|effect| files.contains(&effect.file_id)).collect()
}

fn by_file<'e>(effects: &[&'e Effect]) -> BTreeMap<FileId, FileUndo<'e>> {
    let nets = net_effects(effects.iter().rev().copied());
    let mut files: BTreeMap<FileId, FileUndo> =
        nets.into_iter().map(|net| (net.file, FileUndo { effects: Vec::new(), net, way: Way::Inverse })).collect();
    for effect in effects {
        if let Some(file) = files.get_mut(&effect.file_id) {
            file.effects.push(effect);
        }
    }
    files
}

impl FileUndo<'_> {
    /// Whether the effects together leave the file as it was.
    fn changes_nothing(&self) -> bool {
        let NetChange { path_before, path_after, seq_before, seq_after, mode_before, .. } = &self.net;
        let is_moved = self.effects.iter().any(|effect| effect.op == EffectKind::Move);
        let is_there = path_before.is_some();
        !is_moved && path_before == path_after && (!is_there || (seq_before == seq_after && mode_before.is_none()))
    }

    /// Whether only the content was changed.
    fn is_of_content(&self) -> bool {
        self.effects.iter().all(|effect| matches!(effect.op, EffectKind::Update | EffectKind::Touch))
    }

    fn newest(&self) -> &Effect {
        // Every file has at least one effect.
        self.effects[0]
    }
}

/// Leaves out files whose content is the same before and after the commits.
async fn skip_same_contents(cx: &CallCx, files: &mut BTreeMap<FileId, FileUndo<'_>>) -> Result<()> {
    for (id, file) in files.iter_mut() {
        let (Some(before), Some(after)) = (file.net.seq_before, file.net.seq_after) else { continue };
        if !file.is_of_content() || before == after || file.net.mode_before.is_some() {
            continue;
        }
        let page = Page { before: Some(after + 1), limit: MAX_VERSIONS };
        let versions = cx.workspace.versions(*id, page).await?;
        let hash = |seq: i64| versions.iter().find(|version| version.seq == seq).map(|version| version.hash);
        if hash(before).is_some() && hash(before) == hash(after) {
            file.way = Way::Nothing;
        }
    }
    Ok(())
}

/// Returns the changeset that undoes the effects, given newest first.
fn inverse(effects: &[&Effect], files: &BTreeMap<FileId, FileUndo>, undoes: Option<CommitId>) -> Changeset {
    let mut inverse = Changeset { undoes, ..Changeset::default() };
    let mut begun = BTreeSet::new();
    for effect in effects {
        let Some(file) = files.get(&effect.file_id) else { continue };
        // The newest effect on a file determines what is expected of it.
        let is_first = begun.insert(effect.file_id);
        match &file.way {
            Way::Nothing => continue,
            Way::Merged(put, expect) => {
                if is_first {
                    inverse.expect.extend(expect.iter().cloned());
                    inverse.changes.push(Change::Put((**put).clone()));
                }
                continue;
            }
            Way::Inverse if is_first => inverse.expect.extend(expectations(effect, effect.version_id)),
            Way::InverseFrom(version) if is_first => inverse.expect.extend(expectations(effect, Some(*version))),
            _ => {}
        }
        inverse.changes.extend(inverse_of(effect, file));
    }
    inverse
}

/// Returns the conditions that a file has not changed since.
fn expectations(effect: &Effect, version: Option<VersionId>) -> Vec<Expect> {
    let file = effect.file_id;
    let at = Expect::At(file, effect.path.clone());
    let version = version.map(|version| Expect::Version(file, version));
    match effect.op {
        EffectKind::Create | EffectKind::Restore => version.into_iter().chain([at]).collect(),
        EffectKind::Update => version.into_iter().collect(),
        EffectKind::Move => vec![at],
        EffectKind::Remove => vec![Expect::InTrash(file, effect.path.clone(), effect.version_id)],
        EffectKind::Touch => Vec::new(),
    }
}

fn inverse_of(effect: &Effect, file: &FileUndo) -> Option<Change> {
    let (id, path) = (effect.file_id, effect.path.clone());
    match effect.op {
        EffectKind::Create | EffectKind::Restore => Some(Change::Remove { path, removal: Removal::Single }),
        EffectKind::Update => {
            // The oldest update has the content from before all of them.
            let is_oldest = file.effects.iter().rfind(|other| other.op == EffectKind::Update) == Some(&effect);
            let seq = effect.before.filter(|_| is_oldest)?;
            Some(Change::Revert { file: id, seq, mode: file.net.mode_before })
        }
        EffectKind::Move => effect.from.clone().map(|from| Change::Move { from: path, to: Destination::Exactly(from) }),
        EffectKind::Remove => Some(Change::Restore(id)),
        // The update of a time is not undone.
        EffectKind::Touch => None,
    }
}

/// Creates the error for undoing changes whose author is unknown: a background process, or others while it ran.
fn unknown_author(commit: &CommitInfo) -> ToolError {
    let paths: BTreeSet<&str> = commit.changes.iter().map(|effect| effect.path.as_str()).collect();
    let mut named: Vec<&str> = paths.iter().copied().take(MAX_NAMED).collect();
    let more = paths.len() - named.len();
    let rest = format!("and {more} more");
    named.extend((more > 0).then_some(&*rest));
    let message = format!(
        "Commit {} contains all changes to the folder {}; it is not known which are from the process and which from \
         others. Undoing it undoes all of them: {}. To do that, send {{\"force\": true}}",
        commit.id,
        commit.tool,
        named.join(", ")
    );
    ToolError::new(ErrorKind::Conflict, message).detail("paths", paths.into_iter().collect::<Vec<_>>())
}
