//! Applying patches to many files at once.

use crate::edit::{EXPLANATION_BYTES, Run, changeable, refused, shortened};
use crate::heavy;
use crate::read::read_bounded;
use crate::write_text::{Held, put_bytes, seen};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toolrest_core::{
    CallCx, Change, Changeset, Destination, ErrorKind, Expect, Parents, Put, Removal, Result, ToolError, WsPath,
};
use toolrest_edit::diff;
use toolrest_edit::patch::{Change as NameChange, FilePatch, apply, parse};

/// No more warnings than this are given.
const MOST_WARNINGS: usize = 100;

/// What became of the files of a patch.
#[derive(Debug)]
pub struct Patched {
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
    /// All changes as one unified diff.
    pub diff: String,
}

/// One file of a patch.
#[derive(Debug)]
pub struct PatchedFile {
    /// Where it is, or was.
    pub path: WsPath,
    /// What happened to it.
    pub action: PatchAction,
}

/// What a patch can do to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchAction {
    /// It is new.
    Add,
    /// Its content changed.
    Update,
    /// It is gone.
    Delete,
    /// It has another name.
    Move,
}

/// Applies a patch: all of it or nothing.
pub async fn patch(cx: &CallCx, text: &str, run: Run) -> Result<Patched> {
    let text: Arc<str> = text.into();
    let named = Arc::clone(&text);
    let paths = heavy::run(text.len(), move || paths_of(&read(&named)?)).await?;
    loop {
        let mut stage = Stage::new(cx.limits.response_bytes);
        let mut size = text.len();
        for path in &paths {
            cx.note_path(path);
            size += stage.load(cx, path).await?;
        }
        let patch = Arc::clone(&text);
        let work = move || {
            stage.apply_all(&read(&patch)?)?;
            let diff = stage.diff()?;
            Ok((stage.changes, Patched { files: stage.patched, diff }, stage.warnings))
        };
        let (changes, patched, warnings) = heavy::run(size, work).await?;
        let done = if run == Run::Dry { Ok(()) } else { cx.workspace.commit(changes, cx).await.map(drop) };
        match done {
            Ok(()) => {
                for warning in warnings {
                    cx.warn(warning);
                }
                return Ok(patched);
            }
            // Somebody came between; the patch is placed anew on what they left. The call's deadline bounds this.
            Err(error) if error.kind == ErrorKind::Stale => {}
            Err(error) => return Err(error),
        }
    }
}

fn read(text: &str) -> Result<Vec<FilePatch<'_>>> {
    parse(text.as_bytes()).map_err(|error| {
        let message = format!("The patch cannot be understood: {error}\nNothing was written");
        ToolError::new(ErrorKind::PatchSyntax, message)
    })
}

/// Every path that a patch names.
fn paths_of(files: &[FilePatch<'_>]) -> Result<BTreeSet<WsPath>> {
    let names = files.iter().flat_map(|file| [file.source(), file.target()]);
    names.filter_map(|named| name(named).transpose()).collect()
}

/// Files as they are, and as they will be once the patch is applied.
struct Stage {
    limit_bytes: usize,
    places: BTreeMap<WsPath, Place>,
    step: Step,
    changes: Changeset,
    patched: Vec<PatchedFile>,
    warnings: Vec<String>,
}

/// One change of a series. Its renames and copies are of what was there before it, whatever else it does to those
/// files, and files may change places in it.
#[derive(Default)]
struct Step {
    /// What stood at the paths that it has changed so far.
    before: BTreeMap<WsPath, Option<Held>>,
    /// The paths from which files are renamed.
    leaving: BTreeSet<WsPath>,
    /// The paths at which files are made.
    arriving: BTreeSet<WsPath>,
}

impl Step {
    fn new(files: &[FilePatch<'_>]) -> Result<Self> {
        let mut step = Self::default();
        for file in files {
            let (source, target) = (name(file.source())?, name(file.target())?);
            if source != target {
                step.arriving.extend(target);
            }
            if let NameChange::Rename { .. } = file.change {
                step.leaving.extend(source);
            }
        }
        Ok(step)
    }
}

/// What stood at a path, as bytes, and what will.
#[derive(Default)]
struct Place {
    before: Option<Vec<u8>>,
    now: Option<Held>,
    /// Why a patch cannot change what is here.
    refusal: Option<ToolError>,
}

impl Stage {
    fn new(limit_bytes: usize) -> Self {
        let (step, changes) = (Step::default(), Changeset::default());
        Self { limit_bytes, places: BTreeMap::new(), step, changes, patched: Vec::new(), warnings: Vec::new() }
    }

    /// Looks at a path that the patch names, and expects it to stay as it is; tells how much is there.
    async fn load(&mut self, cx: &CallCx, path: &WsPath) -> Result<usize> {
        let place = match read_bounded(cx, path).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.changes.expect.push(Expect::Absent(path.clone()));
                Place::default()
            }
            Err(error) => return Err(error),
            Ok(file) => {
                let entry = file.entry;
                match (changeable(&entry), file.content) {
                    (Err(refusal), _) => Place { refusal: Some(refusal), ..Place::default() },
                    (Ok(()), None) => {
                        let message = format!("{path} is a folder; a patch can only change files");
                        let refusal = Some(ToolError::new(ErrorKind::IsDirectory, message));
                        Place { refusal, ..Place::default() }
                    }
                    (Ok(()), Some(content)) => {
                        self.changes.expect.extend(Expect::unchanged(&entry));
                        let held = (entry.file_type, content);
                        Place { before: Some(seen(&held, path, self.limit_bytes)?), now: Some(held), refusal: None }
                    }
                }
            }
        };
        let size = place.before.as_ref().map_or(0, Vec::len);
        self.places.insert(path.clone(), place);
        Ok(size)
    }

    /// Applies the patch of every file, and tells of all that fail.
    fn apply_all(&mut self, files: &[FilePatch<'_>]) -> Result<()> {
        let mut failed: Option<ToolError> = None;
        for step in files.chunk_by(|one, next| one.step == next.step) {
            self.step = Step::new(step)?;
            for file in step {
                let Err(error) = self.apply_one(file) else { continue };
                match &mut failed {
                    None => failed = Some(error),
                    Some(first) if first.message.len() + error.message.len() < EXPLANATION_BYTES => {
                        first.message = format!("{}\n{}", first.message, error.message);
                    }
                    Some(_) => {}
                }
            }
        }
        let unsaid = self.warnings.len().saturating_sub(MOST_WARNINGS);
        if unsaid > 0 {
            self.warnings.truncate(MOST_WARNINGS);
            self.warnings.push(format!("and {unsaid} more warnings"));
        }
        failed.map_or(Ok(()), |error| Err(short(error)))
    }

    fn apply_one(&mut self, file: &FilePatch<'_>) -> Result<()> {
        let (source, target) = (name(file.source())?, name(file.target())?);
        let Some(path) = target.as_ref().or(source.as_ref()).cloned() else {
            return Err(ToolError::new(ErrorKind::PatchSyntax, "A part of the patch names no file"));
        };
        refuse_links(file, &path)?;
        let executable = match (file.old_mode.unwrap_or(PLAIN_MODE), file.new_mode) {
            (was, Some(mode)) if mode != was => Some(mode & 0o111 != 0),
            _ => None,
        };
        let base = source.as_ref().map(|path| self.source(file, path)).transpose()?;
        let bytes = base.as_ref().map_or(Ok(Vec::new()), |held| seen(held, &path, self.limit_bytes))?;
        let applied = apply(file, &bytes, self.limit_bytes).map_err(|error| refused(&error, &path, None))?;
        self.warnings.extend(applied.warnings.iter().map(|warning| format!("{}: {warning}", path.without_slash())));
        if target.is_some() && target != source {
            self.make_sure_is_free(&path)?;
        }
        let action = match (&file.change, source) {
            (NameChange::Delete(_), _) => {
                self.changes.changes.push(Change::Remove { path: path.clone(), removal: Removal::File });
                self.set(&path, None);
                PatchAction::Delete
            }
            (NameChange::Rename { .. }, Some(from)) if self.changes_places(&from, &path) => {
                if !self.is_written(&from) {
                    // What arrives there later is put over it.
                    if !self.step.arriving.contains(&from) {
                        self.changes.changes.push(Change::Remove { path: from.clone(), removal: Removal::File });
                    }
                    self.set(&from, None);
                }
                self.put(&path, None, &[], &applied.content, executable)?;
                PatchAction::Move
            }
            (NameChange::Rename { .. }, Some(from)) => {
                self.changes.changes.extend(path.parent().map(Change::MakeDir));
                let to = Destination::Exactly(path.clone());
                self.changes.changes.push(Change::Move { from: from.clone(), to });
                self.set(&from, None);
                self.put(&path, base.as_ref(), &bytes, &applied.content, executable)?;
                PatchAction::Move
            }
            (NameChange::Modify(_), _) => {
                self.put(&path, base.as_ref(), &bytes, &applied.content, executable)?;
                PatchAction::Update
            }
            _ => {
                self.put(&path, None, &[], &applied.content, executable)?;
                PatchAction::Add
            }
        };
        self.patched.push(PatchedFile { path, action });
        Ok(())
    }

    /// What a part of the patch starts from.
    fn source(&self, file: &FilePatch<'_>, path: &WsPath) -> Result<Held> {
        match (&file.change, self.step.before.get(path)) {
            (NameChange::Rename { .. } | NameChange::Copy { .. }, Some(before)) => {
                before.clone().ok_or_else(|| ToolError::file_not_found(path))
            }
            _ => self.existing(path),
        }
    }

    /// Whether a renamed file leaves its path to another, or takes the path of one that is itself renamed.
    fn changes_places(&self, from: &WsPath, to: &WsPath) -> bool {
        let taken = self.places.get(to).is_some_and(|place| place.now.is_some());
        taken || self.is_written(from) || self.step.arriving.contains(from)
    }

    /// Whether this step of the patch has given a path a content.
    fn is_written(&self, path: &WsPath) -> bool {
        self.step.before.contains_key(path) && self.places.get(path).is_some_and(|place| place.now.is_some())
    }

    /// What a file holds once the parts of the patch before this one are applied.
    fn existing(&self, path: &WsPath) -> Result<Held> {
        let place = self.places.get(path);
        if let Some(refusal) = place.and_then(|place| place.refusal.clone()) {
            return Err(refusal);
        }
        place.and_then(|place| place.now.clone()).ok_or_else(|| ToolError::file_not_found(path))
    }

    fn make_sure_is_free(&self, path: &WsPath) -> Result<()> {
        if self.step.leaving.contains(path) && !self.is_written(path) {
            return Ok(());
        }
        if self.places.get(path).is_none_or(|place| place.now.is_none() && place.refusal.is_none()) {
            return Ok(());
        }
        let message = format!("{path} is there already, and the patch would make it anew. Nothing was written");
        Err(ToolError::new(ErrorKind::AlreadyExists, message))
    }

    /// Gives a file its new content and mode, if they are others.
    fn put(
        &mut self,
        path: &WsPath,
        base: Option<&Held>,
        before: &[u8],
        after: &[u8],
        executable: Option<bool>,
    ) -> Result<()> {
        let put = Put { executable, ..put_bytes(base, path, after, Parents::Create, self.limit_bytes)? };
        self.set(path, Some((put.file_type, put.content.clone())));
        if base.is_none() || before != after || executable.is_some() {
            self.changes.changes.push(Change::Put(put));
        }
        Ok(())
    }

    fn set(&mut self, path: &WsPath, now: Option<Held>) {
        let before = std::mem::replace(&mut self.places.entry(path.clone()).or_default().now, now);
        self.step.before.entry(path.clone()).or_insert(before);
    }

    fn diff(&self) -> Result<String> {
        let mut diff = String::new();
        for (path, place) in &self.places {
            let now = place.now.as_ref().map(|held| seen(held, path, self.limit_bytes)).transpose()?;
            let name = path.without_slash().as_bytes();
            diff.push_str(&diff::unified(name, place.before.as_deref(), now.as_deref()));
        }
        Ok(diff)
    }
}

/// The mode of a file of which a patch says nothing else.
const PLAIN_MODE: u32 = 0o100_644;

/// Refuses what a patch says of symbolic links and submodules: its lines would be written to a file.
fn refuse_links(file: &FilePatch<'_>, path: &WsPath) -> Result<()> {
    let is_link = |mode: &u32| matches!(mode & 0o170_000, 0o120_000 | 0o160_000);
    let Some(mode) = [file.old_mode, file.new_mode].into_iter().flatten().find(is_link) else { return Ok(()) };
    let message = format!(
        "{path} is a symbolic link or a submodule in the patch (mode {mode:o}); a patch can only change files. \
         Nothing was written"
    );
    Err(ToolError::new(ErrorKind::WrongType, message))
}

/// The error with a message that is not too long.
fn short(mut error: ToolError) -> ToolError {
    error.message = shortened(&error.message, EXPLANATION_BYTES).into_owned();
    error
}

/// A name of the patch as a path, which may not leave the workspace.
fn name(name: Option<&[u8]>) -> Result<Option<WsPath>> {
    let Some(name) = name else { return Ok(None) };
    let text = str::from_utf8(name).map_err(|_| {
        let message = format!("The patch names a file in bytes that are no text: {}", String::from_utf8_lossy(name));
        short(ToolError::new(ErrorKind::InvalidPath, message))
    })?;
    let has_blanks_around = text.trim() != text && !text.starts_with('/');
    let exactly = if has_blanks_around { Cow::Owned(format!("./{text}/")) } else { Cow::Borrowed(text) };
    let path = WsPath::relative(&exactly).map_err(short)?;
    if path.is_root() {
        return Err(ToolError::new(ErrorKind::IsDirectory, "The patch names the root folder where a file is needed"));
    }
    Ok(Some(path))
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
