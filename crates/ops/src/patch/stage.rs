//! The files of a patch in memory, before and after the patch.

use super::{Names, short};
use crate::document::Editable;
use crate::edit::{EXPLANATION_BYTES, changeable, to_tool_error};
use crate::read::{read_bounded, too_large};
use crate::write_text::{TypedContent, put_bytes, visible_bytes};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::string::FromUtf8Error;
use std::sync::Arc;
use toolrest_core::{CallCx, Content, ContentHash, ErrorKind, Expect, File, Form, Parents, Result, ToolError, WsPath};
use toolrest_edit::Limits;
use toolrest_edit::diff::Origin;
use toolrest_edit::patch::{Change as NameChange, Content as PatchContent, FilePatch, apply};

/// Maximum number of warnings.
const MAX_WARNINGS: usize = 100;

/// The default mode of a file.
const DEFAULT_MODE: u32 = 0o100_644;

/// Maximum size of the contents before and after the patch, as a multiple of the size of an answer.
const MAX_ANSWERS: usize = 3;

/// Files up to this total size are read at once; larger ones after memory for all was reserved.
const FREE_BYTES: u64 = 256 << 10;

pub(super) struct StagedPatch {
    pub(super) limit_bytes: usize,
    /// Size of the contents before the patch.
    loaded_bytes: usize,
    /// Size of the contents that the patch creates.
    made_bytes: usize,
    pub(super) names: Arc<Names>,
    pub(super) paths: BTreeMap<WsPath, PathState>,
    pub(super) expect: Vec<Expect>,
    /// The paths of the parts of the patch, in order.
    pub(super) order: Vec<WsPath>,
    pub(super) warnings: Vec<String>,
    step: Step,
}

/// The state of a path before and after the patch.
#[derive(Default)]
pub(super) struct PathState {
    pub(super) before: Option<Arc<TypedContent>>,
    pub(super) now: Option<FileAfter>,
    pub(super) is_folder: bool,
    /// Why a patch cannot change this path.
    refusal: Option<ToolError>,
}

/// A file after the patch.
#[derive(Clone)]
pub(super) struct FileAfter {
    pub(super) held: Arc<TypedContent>,
    /// Its old path, or the path that it was copied from, if that differs.
    pub(super) origin: Option<(WsPath, Origin)>,
    /// The modes before and after, if the patch changes the mode.
    pub(super) modes: Option<(Option<u32>, u32)>,
}

/// One step of a patch series. Its renames and copies refer to the files before the step, whatever else the step does
/// to them; files may swap names.
#[derive(Default)]
struct Step {
    /// The state of the changed paths before the step.
    before: BTreeMap<WsPath, Option<FileAfter>>,
    /// The paths from which files are renamed or deleted.
    leaving: BTreeSet<WsPath>,
    /// The paths at which files are created.
    arriving: BTreeSet<WsPath>,
}

/// The facts about a part of a patch that determine its memory.
pub(super) struct PatchPart {
    source: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    /// Whether the target gets its own content.
    is_rewritten: bool,
}

impl PatchPart {
    pub(super) fn of(file: &FilePatch<'_>) -> Self {
        let has_hunks = !matches!(&file.content, PatchContent::Text(hunks) if hunks.is_empty());
        Self {
            source: file.source().map(<[u8]>::to_vec),
            target: file.target().map(<[u8]>::to_vec),
            is_rewritten: has_hunks || matches!(file.change, NameChange::Copy { .. }),
        }
    }
}

impl StagedPatch {
    pub(super) fn new(names: Arc<Names>, limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            loaded_bytes: 0,
            made_bytes: 0,
            names,
            paths: BTreeMap::new(),
            expect: Vec::new(),
            order: Vec::new(),
            warnings: Vec::new(),
            step: Step::default(),
        }
    }

    /// Returns the size of all contents before and after the patch.
    pub(super) fn bytes(&self) -> usize {
        self.loaded_bytes.saturating_add(self.made_bytes)
    }

    /// Reads the files of the patch, and adds expectations that they do not change. Large files are read after the
    /// total size was checked.
    pub(super) async fn load(
        &mut self,
        cx: &CallCx,
        parts: &[PatchPart],
        expected: &BTreeMap<WsPath, ContentHash>,
        patch_bytes: usize,
    ) -> Result<()> {
        let names = Arc::clone(&self.names);
        let paths: BTreeSet<&WsPath> = names.values().collect();
        let (mut sizes, mut large, mut free) = (BTreeMap::new(), Vec::new(), FREE_BYTES);
        for path in paths {
            cx.note_path(path);
            let found = cx.workspace.read(path, free).await;
            let size = found.as_ref().map_or(0, |file| u64::try_from(file.entry.size).unwrap_or(0));
            sizes.insert(path, size);
            if size > self.limit_bytes as u64 {
                return Err(too_large(path, size.try_into().unwrap_or(i64::MAX), self.limit_bytes));
            }
            if size > free && found.as_ref().is_ok_and(|file| file.content.is_none()) {
                large.push(path);
            } else {
                free = free.saturating_sub(size);
                self.put_down(path, found, expected.get(path))?;
            }
        }
        let made = bytes_made(sizes.clone(), parts, &self.names).saturating_add(patch_bytes as u64);
        let loaded: u64 = sizes.values().sum();
        self.check_bytes(loaded.saturating_add(made))?;
        let most = loaded.max(made);
        cx.workspace.make_room(if most > FREE_BYTES { most } else { 0 }).await?;
        for path in large {
            self.put_down(path, read_bounded(cx, path).await, expected.get(path))?;
            self.check_bytes(self.loaded_bytes as u64)?;
        }
        Ok(())
    }

    /// Refuses contents that are too large together.
    fn check_bytes(&self, bytes: u64) -> Result<()> {
        let most = self.limit_bytes.saturating_mul(MAX_ANSWERS);
        if bytes <= most as u64 {
            return Ok(());
        }
        let message = format!(
            "The files of the patch have {bytes} bytes together, before and after it, over the limit of {most}; apply it \
             in several parts. Nothing was written"
        );
        Err(ToolError::new(ErrorKind::PayloadTooLarge, message))
    }

    /// Stores what was found at a path of the patch.
    fn put_down(&mut self, path: &WsPath, found: Result<File>, expected: Option<&ContentHash>) -> Result<()> {
        let mut hash = None;
        let state = match found {
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.expect.push(Expect::Absent(path.clone()));
                PathState::default()
            }
            Err(error) => return Err(error),
            Ok(file) => {
                let entry = file.entry;
                hash = entry.hash;
                match (changeable(&entry), file.content) {
                    (Err(refusal), _) => PathState { refusal: Some(refusal), ..PathState::default() },
                    (Ok(()), None) => PathState::folder(path),
                    (Ok(()), Some(content)) => {
                        self.loaded_bytes = self.loaded_bytes.saturating_add(content.stored().len());
                        self.expect.extend(Expect::unchanged(&entry));
                        PathState::of((entry.file_type, content))
                    }
                }
            }
        };
        if expected.is_some_and(|expected| hash != Some(*expected)) {
            return Err(ToolError::stale(path, hash));
        }
        self.paths.insert(path.clone(), state);
        Ok(())
    }

    /// Applies the parts of the patch, and reports all failures.
    pub(super) fn apply_all(&mut self, files: &[FilePatch<'_>], limits: Limits<'_>) -> Result<()> {
        let mut failed: Option<ToolError> = None;
        for step in files.chunk_by(|one, next| one.step == next.step) {
            self.step = self.step_of(step)?;
            for file in step {
                let Err(error) = self.apply_one(file, limits) else { continue };
                if limits.stop.is_set() || self.check_bytes(self.bytes() as u64).is_err() {
                    return Err(error);
                }
                match &mut failed {
                    None => failed = Some(error),
                    Some(first) if first.message.len() + error.message.len() < EXPLANATION_BYTES => {
                        first.message = format!("{}\n{}", first.message, error.message);
                    }
                    Some(_) => {}
                }
            }
        }
        let unsaid = self.warnings.len().saturating_sub(MAX_WARNINGS);
        if unsaid > 0 {
            self.warnings.truncate(MAX_WARNINGS);
            self.warnings.push(format!("and {unsaid} more warnings"));
        }
        failed.map_or(Ok(()), |error| Err(short(error)))
    }

    fn step_of(&self, files: &[FilePatch<'_>]) -> Result<Step> {
        let mut step = Step::default();
        for file in files {
            let (source, target) = (self.path(file.source())?, self.path(file.target())?);
            if source != target {
                step.arriving.extend(target);
            }
            if let NameChange::Rename { .. } | NameChange::Delete(_) = file.change {
                step.leaving.extend(source);
            }
        }
        Ok(step)
    }

    fn path(&self, name: Option<&[u8]>) -> Result<Option<WsPath>> {
        let known = |name| self.names.get(name).cloned().ok_or_else(|| ToolError::internal("a name was not read"));
        name.map(known).transpose()
    }

    fn apply_one(&mut self, file: &FilePatch<'_>, limits: Limits<'_>) -> Result<()> {
        let (source, target) = (self.path(file.source())?, self.path(file.target())?);
        let Some(path) = target.as_ref().or(source.as_ref()).cloned() else {
            return Err(ToolError::new(ErrorKind::PatchSyntax, "A part of the patch names no file"));
        };
        refuse_links(file, &path)?;
        self.refuse_submodule(file, &path)?;
        let base = source.as_ref().map(|path| self.source(file, path)).transpose()?;
        let held = self.applied(file, base.as_ref().map(|base| &base.held), &path, limits)?;
        if target.is_some() && target != source {
            self.make_sure_is_free(&path)?;
        }
        let now = |origin: Option<(WsPath, Origin)>, base: Option<&FileAfter>| FileAfter {
            held,
            origin,
            modes: modes_of(file).or(base.and_then(|base| base.modes)),
        };
        match (&file.change, &source) {
            (NameChange::Delete(_), _) => {
                if !self.has_arrived(&path) {
                    self.set(&path, None);
                }
            }
            (NameChange::Rename { .. }, Some(from)) => {
                let origin = self.origin_of(from, base.as_ref());
                let now = now(origin, base.as_ref());
                if !self.is_written(from) {
                    self.set(from, None);
                }
                self.set(&path, Some(now));
            }
            (NameChange::Modify(_), _) => {
                let origin = base.as_ref().and_then(|base| base.origin.clone());
                self.set(&path, Some(now(origin, base.as_ref())));
            }
            (NameChange::Copy { .. }, Some(from)) => {
                let origin = Some((from.clone(), Origin::Copied));
                self.set(&path, Some(now(origin, None)));
            }
            _ => self.set(&path, Some(now(None, None))),
        }
        self.order.extend(target);
        self.order.extend(source);
        self.check_bytes(self.bytes() as u64)
    }

    /// Refuses the text that git writes for a submodule without a mode. An ordinary file may contain such a line too.
    fn refuse_submodule(&self, file: &FilePatch<'_>, path: &WsPath) -> Result<()> {
        let is_file = self.paths.get(path).is_some_and(|state| state.now.is_some());
        if is_file || !file.is_of_submodule() {
            return Ok(());
        }
        let message = format!("{path} is a submodule in the patch; a patch can only change files. Nothing was written");
        Err(ToolError::new(ErrorKind::WrongType, message))
    }

    /// Returns the content of a file after its part of the patch.
    fn applied(
        &mut self,
        file: &FilePatch<'_>,
        base: Option<&Arc<TypedContent>>,
        path: &WsPath,
        limits: Limits<'_>,
    ) -> Result<Arc<TypedContent>> {
        // A binary patch applies to the bytes, also if they are text.
        let is_binary = matches!(file.content, PatchContent::Binary(_));
        let as_bytes = match base.map(Arc::as_ref) {
            Some((_, content)) if is_binary && content.form() != Form::Json => Some(content.stored()),
            _ => None,
        };
        let is_raw = as_bytes.is_some();
        let bytes = match (as_bytes, base) {
            (Some(bytes), _) => bytes,
            (None, Some(held)) => visible_bytes(held, path, self.limit_bytes)?,
            (None, None) => Cow::Borrowed(&[][..]),
        };
        let applied = apply(file, &bytes, limits).map_err(|error| to_tool_error(&error, path, None))?;
        self.warnings.extend(applied.warnings.iter().map(|warning| format!("{}: {warning}", path.without_slash())));
        if is_raw {
            let content = Content::of_bytes(applied.content);
            return Ok(Arc::new((content.form().plain_type(), content)));
        }
        // A copy takes over only the text.
        let base = base.filter(|_| !matches!(file.change, NameChange::Copy { .. }));
        let text = String::from_utf8(applied.content);
        if let (Some(held), Ok(text)) = (base, &text)
            && text.as_bytes() == &*bytes
        {
            return Ok(Arc::clone(held));
        }
        match (base.map(Arc::as_ref), text) {
            // The encoding is preserved, but a byte order mark may be added or removed.
            (Some((file_type, content @ (Content::Json(_) | Content::Encoded(_)))), Ok(text)) => {
                let content = Editable::of(content.clone(), *file_type, path, self.limit_bytes)?.put_back(text)?;
                let is_json = content.form() == Form::Json;
                Ok(Arc::new((if is_json { *file_type } else { content.form().plain_type() }, content)))
            }
            (base, text) => {
                let bytes = text.map_or_else(FromUtf8Error::into_bytes, String::into_bytes);
                let put = put_bytes(base, path, &bytes, Parents::Create, self.limit_bytes)?;
                Ok(Arc::new((put.file_type, put.content)))
            }
        }
    }

    /// Returns the content that a part of the patch starts from.
    fn source(&self, file: &FilePatch<'_>, path: &WsPath) -> Result<FileAfter> {
        let was_there_before = match file.change {
            NameChange::Rename { .. } | NameChange::Copy { .. } => true,
            NameChange::Delete(_) => self.has_arrived(path),
            _ => false,
        };
        match self.step.before.get(path).filter(|_| was_there_before) {
            Some(before) => before.clone().ok_or_else(|| ToolError::file_not_found(path)),
            None => self.existing(path),
        }
    }

    /// Returns the old path of a renamed file.
    fn origin_of(&self, from: &WsPath, base: Option<&FileAfter>) -> Option<(WsPath, Origin)> {
        let was_there = self.paths.get(from).is_some_and(|state| state.before.is_some());
        match base.and_then(|base| base.origin.clone()) {
            Some(origin) => Some(origin),
            None => was_there.then(|| (from.clone(), Origin::Renamed)),
        }
    }

    /// Whether this step has created a file at a path.
    fn has_arrived(&self, path: &WsPath) -> bool {
        self.step.arriving.contains(path) && self.is_written(path)
    }

    /// Whether this step has changed the content at a path.
    fn is_written(&self, path: &WsPath) -> bool {
        self.step.before.contains_key(path) && self.paths.get(path).is_some_and(|state| state.now.is_some())
    }

    /// Returns the content of a file after the previous parts of the patch.
    fn existing(&self, path: &WsPath) -> Result<FileAfter> {
        let state = self.paths.get(path);
        if let Some(refusal) = state.and_then(|state| state.refusal.clone()) {
            return Err(refusal);
        }
        state.and_then(|state| state.now.clone()).ok_or_else(|| ToolError::file_not_found(path))
    }

    fn make_sure_is_free(&self, path: &WsPath) -> Result<()> {
        let Some(state) = self.paths.get(path) else { return Ok(()) };
        // A path is free if the step removes the file there, or all files of the folder there.
        let is_vacated = if state.is_folder {
            self.step.leaving.iter().any(|leaving| leaving.is_below(path)) && state.now.is_none()
        } else {
            self.step.leaving.contains(path) && !self.is_written(path)
        };
        if is_vacated || (state.now.is_none() && state.refusal.is_none()) {
            return Ok(());
        }
        let message = format!("{path} exists already, and the patch would create it. Nothing was written");
        Err(ToolError::new(ErrorKind::AlreadyExists, message))
    }

    fn set(&mut self, path: &WsPath, now: Option<FileAfter>) {
        let state = self.paths.entry(path.clone()).or_default();
        let made_before = state.made_bytes();
        let before = std::mem::replace(&mut state.now, now);
        self.made_bytes = (self.made_bytes + state.made_bytes()).saturating_sub(made_before);
        self.step.before.entry(path.clone()).or_insert(before);
    }
}

impl PathState {
    /// Creates the state of an existing file.
    pub(super) fn of(held: TypedContent) -> Self {
        let held = Arc::new(held);
        let now = FileAfter { held: Arc::clone(&held), origin: None, modes: None };
        Self { before: Some(held), now: Some(now), ..Self::default() }
    }

    /// Returns the size of the content that the patch creates here.
    fn made_bytes(&self) -> usize {
        let Some(now) = &self.now else { return 0 };
        let is_as_before = self.before.as_ref().is_some_and(|before| Arc::ptr_eq(before, &now.held));
        if is_as_before { 0 } else { now.held.1.stored().len() }
    }

    /// Creates the state of an existing folder.
    pub(super) fn folder(path: &WsPath) -> Self {
        let message = format!("{path} is a folder; a patch can only change files");
        let refusal = Some(ToolError::new(ErrorKind::IsDirectory, message));
        Self { refusal, is_folder: true, ..Self::default() }
    }
}

/// Returns the size of the contents that a patch creates from files of these sizes, without the lines that it adds.
fn bytes_made<'p>(mut sizes: BTreeMap<&'p WsPath, u64>, parts: &[PatchPart], names: &'p Names) -> u64 {
    let mut made: BTreeMap<&WsPath, u64> = BTreeMap::new();
    for part in parts {
        let path = |name: &Option<Vec<u8>>| names.get(name.as_deref()?);
        let size = path(&part.source).and_then(|path| sizes.get(path)).copied().unwrap_or(0);
        let Some(target) = path(&part.target) else { continue };
        sizes.insert(target, size);
        if part.is_rewritten {
            made.insert(target, size);
        }
    }
    made.values().sum()
}

/// Returns the modes before and after, if the patch changes the mode.
fn modes_of(file: &FilePatch<'_>) -> Option<(Option<u32>, u32)> {
    let new = file.new_mode.filter(|new| *new != file.old_mode.unwrap_or(DEFAULT_MODE))?;
    let is_new = matches!(file.change, NameChange::Create(_));
    Some((if is_new { None } else { Some(file.old_mode.unwrap_or(DEFAULT_MODE)) }, new))
}

/// Refuses symbolic links and submodules in a patch: their lines would be written to a file.
fn refuse_links(file: &FilePatch<'_>, path: &WsPath) -> Result<()> {
    let kind = |mode: u32| match mode & 0o170_000 {
        0o120_000 => Some("a symbolic link"),
        0o160_000 => Some("a submodule"),
        _ => None,
    };
    let mut modes = [file.old_mode, file.new_mode].into_iter().flatten();
    let Some((mode, kind)) = modes.find_map(|mode| Some((mode, kind(mode)?))) else { return Ok(()) };
    let message =
        format!("{path} is {kind} in the patch (mode {mode:o}); a patch can only change files. Nothing was written");
    Err(ToolError::new(ErrorKind::WrongType, message))
}
