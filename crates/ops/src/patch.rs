//! Applying patches to many files at once.

use crate::edit::{Run, changeable, refused};
use crate::write_text::{Held, put_bytes, seen};
use std::collections::BTreeMap;
use toolrest_core::{
    CallCx, Change, Changeset, Destination, ErrorKind, Expect, Parents, Removal, Result, ToolError, WsPath,
};
use toolrest_edit::diff;
use toolrest_edit::patch::{Change as NameChange, FilePatch, apply, parse};

/// The most bytes of an explanation: a model has to read it.
const EXPLANATION_BYTES: usize = 4_000;

/// What became of the files of a patch.
#[derive(Debug)]
pub struct Patched {
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
    /// All changes as one unified diff.
    pub diff: String,
    /// What was decided though it could not be known.
    pub warnings: Vec<String>,
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
    let files = parse(text.as_bytes()).map_err(|error| {
        let message = format!("The patch cannot be understood: {error}\nNothing was written");
        ToolError::new(ErrorKind::PatchSyntax, message)
    })?;
    loop {
        let mut stage = Stage {
            cx,
            places: BTreeMap::new(),
            changes: Changeset::default(),
            patched: Vec::new(),
            warnings: Vec::new(),
        };
        stage.apply_all(&files).await?;
        let diff = stage.diff()?;
        let Stage { changes, patched, warnings, .. } = stage;
        if run == Run::ForReal {
            match cx.workspace.commit(changes, cx).await {
                Ok(_) => {}
                // Somebody came between; the patch is placed anew on what they left. The call's deadline bounds this.
                Err(error) if error.kind == ErrorKind::Stale => continue,
                Err(error) => return Err(error),
            }
        }
        return Ok(Patched { files: patched, diff, warnings });
    }
}

/// Files as they will be once the patch is applied.
struct Stage<'a> {
    cx: &'a CallCx,
    places: BTreeMap<WsPath, Place>,
    changes: Changeset,
    patched: Vec<PatchedFile>,
    warnings: Vec<String>,
}

/// What stood at a path, as bytes, and what will.
#[derive(Default)]
struct Place {
    before: Option<Vec<u8>>,
    now: Option<Held>,
}

impl Stage<'_> {
    /// Applies the patch of every file, and tells of all that fail.
    async fn apply_all(&mut self, files: &[FilePatch<'_>]) -> Result<()> {
        let mut failed: Option<ToolError> = None;
        for file in files {
            let Err(error) = self.apply_one(file).await else { continue };
            match &mut failed {
                None => failed = Some(error),
                Some(first) if first.message.len() + error.message.len() < EXPLANATION_BYTES => {
                    first.message = format!("{}\n{}", first.message, error.message);
                }
                Some(_) => {}
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn apply_one(&mut self, file: &FilePatch<'_>) -> Result<()> {
        let (source, target) = (name(file.source())?, name(file.target())?);
        let base = match &source {
            Some(path) => Some(self.existing(path).await?),
            None => None,
        };
        let Some(path) = target.as_ref().or(source.as_ref()).cloned() else {
            return Err(ToolError::new(ErrorKind::PatchSyntax, "A part of the patch names no file"));
        };
        let limit_bytes = self.cx.limits.response_bytes;
        let bytes = base.as_ref().map_or(Ok(Vec::new()), |held| seen(held, &path, limit_bytes))?;
        let applied = apply(file, &bytes, limit_bytes).map_err(|error| refused(&error, &path, None))?;
        self.warnings.extend(applied.warnings.iter().map(|warning| format!("{}: {warning}", path.without_slash())));
        if target.is_some() && target != source {
            self.make_sure_is_free(&path).await?;
        }
        let action = match (&file.change, source) {
            (NameChange::Delete(_), _) => {
                self.changes.changes.push(Change::Remove { path: path.clone(), removal: Removal::File });
                self.set(&path, None);
                PatchAction::Delete
            }
            (NameChange::Rename { .. }, Some(from)) => {
                self.changes.changes.extend(path.parent().map(Change::MakeDir));
                let to = Destination::Exactly(path.clone());
                self.changes.changes.push(Change::Move { from: from.clone(), to });
                self.set(&from, None);
                self.put(&path, base.as_ref(), &bytes, &applied.content)?;
                PatchAction::Move
            }
            (NameChange::Modify(_), _) => {
                self.put(&path, base.as_ref(), &bytes, &applied.content)?;
                PatchAction::Update
            }
            _ => {
                self.put(&path, None, &[], &applied.content)?;
                PatchAction::Add
            }
        };
        self.patched.push(PatchedFile { path, action });
        Ok(())
    }

    /// What a file holds once the parts of the patch before this one are applied.
    async fn existing(&mut self, path: &WsPath) -> Result<Held> {
        if !self.places.contains_key(path) {
            let file = self.cx.workspace.read(path).await?;
            changeable(&file.entry)?;
            let Some(content) = file.content else {
                let message = format!("{path} is a folder; a patch can only change files");
                return Err(ToolError::new(ErrorKind::IsDirectory, message));
            };
            self.changes.expect.extend(file.entry.version.map(|version| Expect::Version(file.entry.id, version)));
            let held = (file.entry.file_type, content);
            let before = Some(seen(&held, path, self.cx.limits.response_bytes)?);
            self.places.insert(path.clone(), Place { before, now: Some(held) });
        }
        let now = self.places.get(path).and_then(|place| place.now.clone());
        now.ok_or_else(|| ToolError::file_not_found(path))
    }

    async fn make_sure_is_free(&mut self, path: &WsPath) -> Result<()> {
        if !self.places.contains_key(path) && self.cx.workspace.stat(path).await?.is_none() {
            self.changes.expect.push(Expect::Absent(path.clone()));
            self.places.insert(path.clone(), Place::default());
        }
        if self.places.get(path).is_some_and(|place| place.now.is_none()) {
            return Ok(());
        }
        let message = format!("{path} is there already, and the patch would make it anew. Nothing was written");
        Err(ToolError::new(ErrorKind::AlreadyExists, message))
    }

    /// Gives a file its new content, if that is another.
    fn put(&mut self, path: &WsPath, base: Option<&Held>, before: &[u8], after: &[u8]) -> Result<()> {
        let put = put_bytes(base, path, after, Parents::Create, self.cx.limits.response_bytes)?;
        self.set(path, Some((put.file_type, put.content.clone())));
        if base.is_none() || before != after {
            self.changes.changes.push(Change::Put(put));
        }
        Ok(())
    }

    fn set(&mut self, path: &WsPath, now: Option<Held>) {
        self.places.entry(path.clone()).or_default().now = now;
    }

    fn diff(&self) -> Result<String> {
        let mut diff = String::new();
        for (path, place) in &self.places {
            let now = place.now.as_ref().map(|held| seen(held, path, self.cx.limits.response_bytes)).transpose()?;
            let name = path.without_slash().as_bytes();
            diff.push_str(&diff::unified(name, place.before.as_deref(), now.as_deref()));
        }
        Ok(diff)
    }
}

/// A name of the patch as a path, which may not leave the workspace.
fn name(name: Option<&[u8]>) -> Result<Option<WsPath>> {
    let Some(name) = name else { return Ok(None) };
    let text = str::from_utf8(name).map_err(|_| {
        let message = format!("The patch names a file in bytes that are no text: {}", String::from_utf8_lossy(name));
        ToolError::new(ErrorKind::InvalidPath, message)
    })?;
    let path = WsPath::relative(text)?;
    if path.is_root() {
        return Err(ToolError::new(ErrorKind::IsDirectory, "The patch names the root folder where a file is needed"));
    }
    Ok(Some(path))
}
