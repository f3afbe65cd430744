//! Parses patches, tolerating common mistakes, and applies them only where their position is certain.

mod anchor;
mod apply;
mod begin_patch;
mod binary;
mod candidate;
mod faulty_context;
mod hunk_body;
mod hunk_header;
mod line_index;
mod names;
mod parse;
mod select;
mod splice;
mod unified;
mod warnings;

pub use apply::{AppliedPatch, Placement, apply};
pub use binary::BinaryChange;
pub use parse::parse;

pub(crate) use names::quoted as quoted_name;

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    pub change: Change,
    /// The file mode before the change, as git writes it (`100644`), if the patch has it.
    pub old_mode: Option<u32>,
    /// The file mode after the change, if the patch has it.
    pub new_mode: Option<u32>,
    pub content: Content<'a>,
    /// The line of the patch at which the part for this file starts, counted from 1.
    pub patch_line: usize,
    /// The number, from 0, of the step in a series of patches that this file belongs to. Each commit of the series, or
    /// each file of the `*** Begin Patch` format, is one step. Renames and copies take the state before their step,
    /// whatever the order of files within the step.
    pub step: usize,
    pub blanks: Blanks,
}

/// Whether blanks at the start and end of a file's names are part of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blanks {
    /// They are: the names are quoted, or end in a tab, as git writes them.
    PartOfName,
    /// They may also be padding. The name means the file that has them in its name, if there is one, else the file
    /// without them.
    MaybePadding,
}

/// The change of a file's name. Names are the bytes in the patch, without `a/` and `b/`, but with the whitespace around
/// them (see [`Blanks`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Create(Vec<u8>),
    Delete(Vec<u8>),
    Modify(Vec<u8>),
    Rename { from: Vec<u8>, to: Vec<u8> },
    Copy { from: Vec<u8>, to: Vec<u8> },
}

impl Change {
    /// Returns the same change with names without the whitespace around them.
    pub(crate) fn trimmed(&self) -> Self {
        let trim = |name: &[u8]| name.trim_ascii().to_vec();
        match self {
            Self::Create(path) => Self::Create(trim(path)),
            Self::Delete(path) => Self::Delete(trim(path)),
            Self::Modify(path) => Self::Modify(trim(path)),
            Self::Rename { from, to } => Self::Rename { from: trim(from), to: trim(to) },
            Self::Copy { from, to } => Self::Copy { from: trim(from), to: trim(to) },
        }
    }
}

/// The change of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    Text(Vec<Hunk<'a>>),
    Binary(BinaryChange<'a>),
}

/// A section of a patch: consecutive lines that are kept, deleted or inserted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The position in the hunk's header, if it has one.
    pub header_position: Option<HeaderPosition>,
    /// Starts of lines above the hunk, such as that of its function, the outermost first.
    pub headings: Vec<&'a [u8]>,
    pub lines: Vec<HunkLine<'a>>,
    /// Whether the patch says that the hunk ends at the end of the file.
    pub end_constraint: EndConstraint,
    /// The line of the patch at which the hunk starts, counted from 1.
    pub patch_line: usize,
}

/// The position of a hunk as its header states it. Lines are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderPosition {
    pub old_start: usize,
    pub new_start: usize,
    pub counts: Counts,
}

/// Whether the counts in a hunk's header agree with its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Right,
    Wrong,
}

/// Where a hunk has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndConstraint {
    #[default]
    Anywhere,
    EndOfFile,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'a> {
    pub kind: LineKind,
    /// The line without its newline. A carriage return before the newline is part of the text.
    pub text: &'a [u8],
    pub newline: Newline,
}

/// What a hunk does with a line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Delete,
    Insert,
}

/// Whether a line of a hunk ends in a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newline {
    Present,
    /// Marked by `\ No newline at end of file`.
    Missing,
}

impl FilePatch<'_> {
    /// Returns the name of the file that the patch is applied to; `None` if it creates a file.
    pub fn source(&self) -> Option<&[u8]> {
        match &self.change {
            Change::Create(_) => None,
            Change::Delete(path) | Change::Modify(path) => Some(path),
            Change::Rename { from, .. } | Change::Copy { from, .. } => Some(from),
        }
    }

    /// Returns the name of the file that has the result; `None` if the patch deletes the file.
    pub fn target(&self) -> Option<&[u8]> {
        match &self.change {
            Change::Delete(_) => None,
            Change::Create(path) | Change::Modify(path) => Some(path),
            Change::Rename { to, .. } | Change::Copy { to, .. } => Some(to),
        }
    }

    /// Returns the file's name for a message.
    pub(crate) fn shown_name(&self) -> String {
        let name = self.source().or_else(|| self.target()).unwrap_or_default();
        let name = if self.blanks == Blanks::MaybePadding { name.trim_ascii() } else { name };
        String::from_utf8_lossy(name).into_owned()
    }

    /// Whether the lines are those that git writes for a submodule: the commits that it points to, and nothing else.
    pub fn is_of_submodule(&self) -> bool {
        let Content::Text(hunks) = &self.content else { return false };
        let names_commit = |line: &HunkLine| {
            let commit = line.text.strip_prefix(b"Subproject commit ").unwrap_or_default();
            commit.len() >= 40 && commit[..40].iter().all(u8::is_ascii_hexdigit)
        };
        !hunks.is_empty() && hunks.iter().flat_map(|hunk| &hunk.lines).all(names_commit)
    }

    /// Returns the patch that reverts this one. A copy is reverted by deleting the new file.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let change = match self.change.clone() {
            Change::Create(path) => Change::Delete(path),
            Change::Delete(path) => Change::Create(path),
            Change::Modify(path) => Change::Modify(path),
            Change::Rename { from, to } => Change::Rename { from: to, to: from },
            Change::Copy { to, .. } => Change::Delete(to),
        };
        let content = match &self.content {
            Content::Text(hunks) => Content::Text(hunks.iter().map(Hunk::reversed).collect()),
            Content::Binary(binary) => Content::Binary(binary.reversed()),
        };
        let (old_mode, new_mode) = (self.new_mode, self.old_mode);
        Self { change, old_mode, new_mode, content, patch_line: self.patch_line, step: self.step, blanks: self.blanks }
    }
}

impl<'a> Hunk<'a> {
    /// Returns the lines of the file before the change: those kept and those deleted.
    pub(crate) fn old_lines(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines.iter().filter(|line| line.kind != LineKind::Insert)
    }

    /// Returns the lines of the file after the change: those kept and those inserted.
    pub(crate) fn new_lines(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines.iter().filter(|line| line.kind != LineKind::Delete)
    }

    /// Returns whether the hunk marks a line as one without a newline. Such a hunk ends at the end of the file.
    pub(crate) fn has_missing_newline(&self) -> bool {
        self.lines.iter().any(|line| line.newline == Newline::Missing)
    }

    pub(crate) fn inserted_lines(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines.iter().filter(|line| line.kind == LineKind::Insert)
    }

    fn reversed(&self) -> Self {
        let header_position = self.header_position.map(|header_position| HeaderPosition {
            old_start: header_position.new_start,
            new_start: header_position.old_start,
            counts: header_position.counts,
        });
        let reversed = |line: &HunkLine<'a>| HunkLine {
            kind: match line.kind {
                LineKind::Context => LineKind::Context,
                LineKind::Delete => LineKind::Insert,
                LineKind::Insert => LineKind::Delete,
            },
            ..*line
        };
        Self { header_position, lines: self.lines.iter().map(reversed).collect(), ..self.clone() }
    }
}
