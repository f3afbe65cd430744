//! Patches: reading them tolerantly, placing them carefully.

mod anchor;
mod apply;
mod begin_patch;
mod binary;
mod doubt;
mod faulty;
mod hunk_body;
mod hunk_header;
mod index;
mod names;
mod narrow;
mod parse;
mod place;
mod splice;
mod unified;

pub use apply::{Applied, Placement, apply};
pub use binary::BinaryChange;
pub use parse::parse;

pub(crate) use names::quoted as quoted_name;

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    pub change: Change,
    /// The file mode before, as git writes it (`100644`), if the patch says.
    pub old_mode: Option<u32>,
    /// The file mode after, if the patch says.
    pub new_mode: Option<u32>,
    pub content: Content<'a>,
    /// Where the file's part begins in the patch, counted from 1.
    pub patch_line: usize,
    /// Which change of a series it belongs to, counted from 0. What is renamed and copied within one is what was there
    /// before all of it, in whatever order its files come.
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

/// What happens to a file's name. Names are bytes as the patch gives them, without `a/` and `b/`, but with the blanks
/// around them (see [`Blanks`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Create(Vec<u8>),
    Delete(Vec<u8>),
    Modify(Vec<u8>),
    Rename { from: Vec<u8>, to: Vec<u8> },
    Copy { from: Vec<u8>, to: Vec<u8> },
}

impl Change {
    /// The same change with names without the blanks around them.
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

/// What happens to a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    Text(Vec<Hunk<'a>>),
    Binary(BinaryChange<'a>),
}

/// A stretch of lines with what is kept, deleted and inserted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The first line before and after, counted from 1, as the hunk's header claims.
    pub claim: Option<Claim>,
    /// Text of lines above that the place lies under, the outermost first.
    pub headings: Vec<&'a [u8]>,
    pub lines: Vec<HunkLine<'a>>,
    /// Whether the patch says that the hunk ends where the file ends.
    pub reach: Reach,
    /// Where the hunk begins in the patch, counted from 1.
    pub patch_line: usize,
}

/// The line numbers in a hunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub old_start: usize,
    pub new_start: usize,
    pub counts: Counts,
}

/// Whether the counts in a hunk's header are those of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Right,
    Wrong,
}

/// How far a hunk reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Anywhere,
    EndOfFile,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'a> {
    pub role: Role,
    /// The line without its newline; a carriage return before it is part of the text.
    pub text: &'a [u8],
    pub newline: Newline,
}

/// What a hunk does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
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
    /// The name of the file whose content the patch starts from, if it starts from one.
    pub fn source(&self) -> Option<&[u8]> {
        match &self.change {
            Change::Create(_) => None,
            Change::Delete(path) | Change::Modify(path) => Some(path),
            Change::Rename { from, .. } | Change::Copy { from, .. } => Some(from),
        }
    }

    /// The name under which the result is kept, if it is.
    pub fn target(&self) -> Option<&[u8]> {
        match &self.change {
            Change::Delete(_) => None,
            Change::Create(path) | Change::Modify(path) => Some(path),
            Change::Rename { to, .. } | Change::Copy { to, .. } => Some(to),
        }
    }

    /// The file's name for a message.
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

    /// The patch that takes this one back. A copy has none that keeps its source, nor has it a need for one: it is
    /// taken back by deleting what it made.
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
    /// The lines of the file before the change: what is kept and what is deleted.
    pub(crate) fn before(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines.iter().filter(|line| line.role != Role::Insert)
    }

    /// The lines of the file after the change: what is kept and what is inserted.
    pub(crate) fn after(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines.iter().filter(|line| line.role != Role::Delete)
    }

    /// Whether the hunk says that a line has no newline: then it ends where the file does.
    pub(crate) fn speaks_of_newline(&self) -> bool {
        self.lines.iter().any(|line| line.newline == Newline::Missing)
    }

    pub(crate) fn inserts(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines.iter().filter(|line| line.role == Role::Insert)
    }

    fn reversed(&self) -> Self {
        let claim = self.claim.map(|claim| Claim {
            old_start: claim.new_start,
            new_start: claim.old_start,
            counts: claim.counts,
        });
        let turned = |line: &HunkLine<'a>| HunkLine {
            role: match line.role {
                Role::Context => Role::Context,
                Role::Delete => Role::Insert,
                Role::Insert => Role::Delete,
            },
            ..*line
        };
        Self { claim, lines: self.lines.iter().map(turned).collect(), ..self.clone() }
    }
}
