//! What several commits did to each file together.

use crate::commit_diff::{DiffSide, SMALL_BYTES, make_room, version_before};
use crate::read::too_large;
use std::collections::{BTreeMap, BTreeSet};
use toolrest_core::{
    CallCx, CommitId, CommitInfo, Effect, EffectKind, ErrorKind, FileId, FileType, Page, Result, ToolError, WsPath,
};

/// Maximum number of versions of a file that are looked through.
const MAX_VERSIONS: u32 = 100;

/// What several commits did to one file.
#[derive(Clone, Debug)]
pub struct NetChange {
    /// The file.
    pub file: FileId,
    /// Its path before the first effect; none if it was not there.
    pub path_before: Option<WsPath>,
    /// The number of its version before the first effect.
    pub seq_before: Option<i64>,
    /// Its path after the last effect; none if it was removed.
    pub path_after: Option<WsPath>,
    /// The number of its version after the last effect.
    pub seq_after: Option<i64>,
    /// Its mode before, if that changed.
    pub mode_before: Option<u32>,
    /// Its mode after, if that changed.
    pub mode_after: Option<u32>,
    /// Whether other commits changed its content in between.
    pub is_interrupted: bool,
}

impl NetChange {
    fn begin(effect: &Effect) -> Self {
        let (path_before, seq_before) = match effect.op {
            EffectKind::Create | EffectKind::Restore => (None, None),
            EffectKind::Update => (Some(effect.path.clone()), effect.before),
            EffectKind::Move => (effect.from.clone(), effect.after),
            EffectKind::Remove | EffectKind::Touch => (Some(effect.path.clone()), effect.after),
        };
        Self {
            file: effect.file_id,
            path_before,
            seq_before,
            path_after: None,
            seq_after: seq_before,
            mode_before: None,
            mode_after: None,
            is_interrupted: false,
        }
    }

    fn add(&mut self, effect: &Effect) {
        let found = if effect.op == EffectKind::Update { effect.before } else { effect.after };
        let is_known = !matches!(effect.op, EffectKind::Create) && self.seq_after.is_some();
        self.is_interrupted |= is_known && found != self.seq_after;
        self.path_after = (effect.op != EffectKind::Remove).then(|| effect.path.clone());
        self.seq_after = effect.after.or(self.seq_after);
        if effect.op == EffectKind::Update {
            self.mode_before = self.mode_before.or(effect.mode_before);
            self.mode_after = effect.mode_after.or(self.mode_after);
        }
    }
}

/// Returns what commits, newest first, did to each file, in the order of their first effects.
pub fn net_changes(commits: &[CommitInfo]) -> Vec<NetChange> {
    net_effects(commits.iter().rev().flat_map(|commit| &commit.changes))
}

/// Returns what effects, oldest first, did to each file.
pub(crate) fn net_effects<'e>(effects: impl Iterator<Item = &'e Effect>) -> Vec<NetChange> {
    let mut found: Vec<NetChange> = Vec::new();
    let mut at: BTreeMap<FileId, usize> = BTreeMap::new();
    for effect in effects {
        let index = *at.entry(effect.file_id).or_insert_with(|| {
            found.push(NetChange::begin(effect));
            found.len() - 1
        });
        found[index].add(effect);
    }
    found
}

/// A file before the first of several commits and now.
#[derive(Debug)]
pub struct NetDiff {
    /// Before the first of the commits.
    pub before: DiffSide,
    /// Now.
    pub now: DiffSide,
    /// Other commits that changed it meanwhile, newest first.
    pub by_others: Vec<CommitId>,
}

/// Returns what became of a file since the first of the commits that changed it. Folders have no content.
pub async fn net_diff(cx: &CallCx, change: &NetChange, own: &BTreeSet<CommitId>) -> Result<NetDiff> {
    let before = match (&change.path_before, change.seq_before) {
        (Some(path), Some(seq)) => {
            let version = version_before(cx, change.file, Some(seq + 1)).await?;
            let version = version.ok_or_else(|| ToolError::file_not_found(path))?;
            let (mut version, mut content) = cx.workspace.version(change.file, version, SMALL_BYTES).await?;
            if content.is_none() && version.size > SMALL_BYTES {
                let max_bytes = make_room(cx, &[version.size]).await?;
                (version, content) = cx.workspace.version(change.file, version.id, max_bytes).await?;
            }
            if version.seq != seq {
                let message = format!("Version {seq} of {path} is no longer kept");
                return Err(ToolError::new(ErrorKind::NotFound, message));
            }
            DiffSide { path: Some(path.clone()), content, mode: change.mode_before }
        }
        (path, _) => DiffSide { path: path.clone(), ..DiffSide::default() },
    };
    let entry = match cx.workspace.file_by_id(change.file, 0).await {
        Ok(file) => Some(file.entry).filter(|entry| entry.deleted_at.is_none()),
        Err(error) if error.kind == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let now = match entry {
        None => DiffSide::default(),
        Some(entry) => match cx.workspace.read(&entry.path, cx.limits.response_bytes as u64).await {
            Ok(file) if file.entry.size > 0 && file.content.is_none() && file.entry.file_type != FileType::Folder => {
                return Err(too_large(&entry.path, file.entry.size, cx.limits.response_bytes));
            }
            Ok(file) => DiffSide { path: Some(entry.path), content: file.content, mode: change.mode_after },
            Err(error) if error.kind == ErrorKind::NotFound => DiffSide::default(),
            Err(error) => return Err(error),
        },
    };
    let mut by_others = Vec::new();
    if change.seq_after.is_some() {
        let versions = cx.workspace.versions(change.file, Page { before: None, limit: MAX_VERSIONS }).await?;
        let later = versions.iter().take_while(|version| change.seq_before.is_none_or(|before| version.seq > before));
        for version in later.filter(|version| !own.contains(&version.commit_id)) {
            if !by_others.contains(&version.commit_id) {
                by_others.push(version.commit_id);
            }
        }
    }
    Ok(NetDiff { before, now, by_others })
}
