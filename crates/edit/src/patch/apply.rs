//! Applying the patch of one file to its content.

use super::anchor;
use super::doubt::{Indents, doubts};
use super::narrow::{Candidates, lies_under, move_insertions, narrow};
use super::place::{Endings, Indexed, Place, Places, Wanted, taken_apart};
use super::splice::{created, splice};
use super::{Change, Content, FilePatch, Hunk, Reach, Role};
use crate::error::{EditError, HunkFailure};
use crate::explain::{self, Spot};
use crate::indent::{Shift, indent_of};
use crate::level::Level;
use crate::limits::{Limits, Stop};
use crate::lines::{Line, split_within};
use std::cell::LazyCell;
use std::fmt::Write as _;

const LOOSER: [Level; 4] = [Level::TrailingWhitespace, Level::Punctuation, Level::Indentation, Level::FaultyContext];

/// What some editors put at the start of a text to say how it is encoded. Patches are mostly written without it.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Files of more lines are not patched: lines take more room than their bytes.
const MOST_LINES: usize = 4_000_000;

/// For so many failed hunks it is shown what is most like them.
const EXPLAINED_HUNKS: usize = 20;

/// A file's content after its patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub content: Vec<u8>,
    /// Where the hunks went, in the order of the patch. Hunks that change nothing are left out.
    pub placements: Vec<Placement>,
    /// What could not be decided for certain, and how it was decided.
    pub warnings: Vec<String>,
}

/// Where a hunk was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Counted from 1, within its file.
    pub hunk: usize,
    /// The first line it covers in the old content, counted from 1.
    pub line: usize,
    /// The line its header names.
    pub claimed_line: Option<usize>,
    pub level: Level,
}

/// Applies the patch of one file: all its hunks or none.
///
/// `base` is the content the patch starts from: of the source for a rename or a copy, anything for a new file. A result
/// that could be larger than the limit is refused.
pub fn apply(patch: &FilePatch, base: &[u8], limits: Limits) -> Result<Applied, EditError> {
    limits.stop.check()?;
    let limit_bytes = limits.bytes;
    let hunks = match &patch.content {
        Content::Binary(binary) => {
            let content = binary.apply(base, limit_bytes)?;
            return Ok(Applied { content, placements: Vec::new(), warnings: Vec::new() });
        }
        Content::Text(hunks) => hunks,
    };
    let inserted = hunks.iter().flat_map(Hunk::inserts).map(|line| line.text.len() + 2).sum::<usize>();
    if base.len().saturating_add(inserted) > limit_bytes {
        return Err(EditError::TooLarge { limit_bytes });
    }
    let applied = match &patch.change {
        Change::Create(_) => create(patch, hunks)?,
        // Git tells what it deletes line by line, so a file without any is meant to be empty.
        Change::Delete(_) if hunks.is_empty() => {
            let content = if patch.old_mode.is_some() { base.to_vec() } else { Vec::new() };
            Applied { content, placements: Vec::new(), warnings: Vec::new() }
        }
        _ => {
            let applied = apply_behind_mark(patch, hunks, base, limits.stop);
            limits.stop.check()?;
            applied?
        }
    };
    if applied.content.len() > limit_bytes {
        return Err(EditError::TooLarge { limit_bytes });
    }
    if let (Change::Delete(_), false) = (&patch.change, applied.content.is_empty()) {
        let lesson = format!(
            "{}: the patch deletes the file but its hunks leave {} bytes of it; read the file and delete it anew",
            patch.shown_name(),
            applied.content.len()
        );
        return Err(EditError::OtherBase { lesson });
    }
    Ok(applied)
}

fn create(patch: &FilePatch, hunks: &[Hunk]) -> Result<Applied, EditError> {
    if let Some(hunk) = hunks.iter().find(|hunk| hunk.before().next().is_some()) {
        let problem = format!("{}: a new file has inserted lines only", patch.shown_name());
        return Err(EditError::syntax(hunk.patch_line, problem));
    }
    Ok(Applied { content: created(hunks), placements: Vec::new(), warnings: Vec::new() })
}

/// A hunk that changes something, with its number.
struct Numbered<'h, 'a> {
    number: usize,
    hunk: &'h Hunk<'a>,
}

/// Applies hunks to what stands behind a byte order mark, unless they speak of the mark themselves.
fn apply_behind_mark(patch: &FilePatch, hunks: &[Hunk], base: &[u8], stop: Stop) -> Result<Applied, EditError> {
    let names_mark = || hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text.starts_with(BYTE_ORDER_MARK));
    let Some(text) = base.strip_prefix(BYTE_ORDER_MARK).filter(|_| !names_mark()) else {
        return apply_hunks(patch, hunks, base, stop);
    };
    let mut applied = apply_hunks(patch, hunks, text, stop)?;
    let is_deleted = matches!(patch.change, Change::Delete(_)) && applied.content.is_empty();
    if !is_deleted {
        applied.content.splice(..0, BYTE_ORDER_MARK.iter().copied());
    }
    Ok(applied)
}

fn apply_hunks(patch: &FilePatch, hunks: &[Hunk], base: &[u8], stop: Stop) -> Result<Applied, EditError> {
    let file = split_within(base, MOST_LINES).ok_or(EditError::TooManyLines { most_lines: MOST_LINES })?;
    let numbered: Vec<Numbered> = hunks
        .iter()
        .enumerate()
        .filter(|(_, hunk)| hunk.lines.iter().any(|line| line.role != Role::Context))
        .map(|(n, hunk)| Numbered { number: n + 1, hunk })
        .collect();
    let wanted: Vec<Wanted> = numbered.iter().map(|numbered| Wanted::new(numbered.hunk)).collect();
    let mut warnings = Vec::new();
    let at_claims: Option<Vec<Place>> = wanted.iter().map(|wanted| wanted.at_claim(&file)).collect();
    let places = match at_claims.filter(|places| first_overlap(&wanted, places).is_none()) {
        Some(places) => places,
        None => place_all(patch, &numbered, &wanted, &file, &mut warnings, stop)?,
    };
    stop.check()?;
    let indents = LazyCell::new(|| Indents::of(&file));
    for ((numbered, wanted), place) in numbered.iter().zip(&wanted).zip(&places) {
        let doubts = doubts(&file, wanted, place, &indents).into_iter();
        warnings.extend(doubts.map(|doubt| format!("hunk {}: {doubt}", numbered.number)));
    }
    let mut order: Vec<(&Hunk, &Place)> = numbered.iter().map(|numbered| numbered.hunk).zip(&places).collect();
    order.sort_by_key(|(_, place)| place.start);
    let content = splice(base, &file, &order);
    let placements = numbered
        .iter()
        .zip(&places)
        .map(|(numbered, place)| Placement {
            hunk: numbered.number,
            line: place.start + 1,
            claimed_line: numbered.hunk.claim.map(|claim| claim.old_start),
            level: place.level,
        })
        .collect();
    Ok(Applied { content, placements, warnings })
}

/// Finds the places of all hunks, or says for each that has none why.
fn place_all(
    patch: &FilePatch,
    numbered: &[Numbered],
    wanted: &[Wanted],
    file: &[Line],
    warnings: &mut Vec<String>,
    stop: Stop,
) -> Result<Vec<Place>, EditError> {
    let indexed = Indexed::new(file, stop);
    let mut errors: Vec<Option<EditError>> = vec![None; wanted.len()];
    let mut all: Vec<Candidates> = Vec::with_capacity(wanted.len());
    let mut explained = 0;
    for (n, hunk) in wanted.iter().enumerate() {
        let found = if indexed.work.is_too_much() {
            Err(not_looked_for())
        } else if hunk.old.is_empty() {
            insertion_place(hunk, &indexed).map(|place| Places { kept: vec![place], total: 1 })
        } else {
            candidate_places(&indexed, hunk)
        };
        let found = found.and_then(|places| {
            if places.total > 0 {
                return Ok(places);
            }
            // Looking for what is similar takes long, and a message has no room for more.
            explained += 1;
            let shown = if explained <= EXPLAINED_HUNKS { file } else { &[] };
            Err(explain::not_found("the hunk's old lines", shown, &hunk.bodies(), None, stop))
        });
        let places = found.unwrap_or_else(|error| {
            errors[n] = Some(error);
            Places::default()
        });
        all.push(Candidates::new(places));
    }
    narrow(&indexed, wanted, &mut all);
    for n in move_insertions(file, wanted, &mut all) {
        let lesson =
            "the hunk has inserted lines only, and those beside it stand elsewhere than their line numbers say; \
                      add a line above or below that is in the file"
                .to_owned();
        errors[n] = Some(EditError::NotFound { looser: None, lesson });
    }
    for (n, hunk) in wanted.iter().enumerate() {
        let Some(place) = &all[n].chosen else { continue };
        match section_of(&indexed, hunk, place) {
            Section::Named => {}
            Section::Unknown => errors[n] = Some(not_looked_for()),
            Section::Above => {
                errors[n] = Some(EditError::NotFound { looser: None, lesson: outside_section(hunk, place) });
            }
            Section::Other => warnings.push(format!("hunk {}: {}", numbered[n].number, outside_section(hunk, place))),
        }
    }
    for (n, hunk) in wanted.iter().enumerate() {
        let Some(place) = &all[n].chosen else { continue };
        match anchor::check(hunk, place, file.len(), all[n].total) {
            Ok(doubt) => warnings.extend(doubt.map(|doubt| format!("hunk {}: {doubt}", numbered[n].number))),
            Err(lesson) => errors[n] = Some(EditError::NotFound { looser: None, lesson }),
        }
    }
    let mut places = Vec::with_capacity(all.len());
    for (n, candidates) in all.iter().enumerate() {
        if let Some(place) = &candidates.chosen {
            if let Some(reason) = candidates.reason {
                warnings.push(choice_warning(numbered[n].number, candidates, place, reason));
            }
            places.push(place.clone());
        } else if errors[n].is_none() {
            let starts: Vec<Spot> = candidates.places.iter().map(|place| at_line(place.start)).collect();
            let (total, len) = (candidates.total, wanted[n].old.len());
            errors[n] = Some(explain::not_unique("the hunk's old lines", file, &starts, total, len));
        }
    }
    if errors.iter().all(Option::is_none) {
        share_conversion(wanted, &mut places);
    }
    if errors.iter().all(Option::is_none)
        && let Some((first, second)) = first_overlap(wanted, &places)
    {
        let line = places[first].start.max(places[second].start) + 1;
        errors[second] =
            Some(EditError::Overlap { first: numbered[first].number, second: numbered[second].number, line });
    }
    let failures: Vec<HunkFailure> = errors
        .into_iter()
        .zip(numbered)
        .filter_map(|(error, numbered)| {
            Some(HunkFailure { hunk: numbered.number, patch_line: numbered.hunk.patch_line, error: error? })
        })
        .collect();
    if failures.is_empty() { Ok(places) } else { Err(EditError::Hunks { file: patch.shown_name(), failures }) }
}

fn at_line(line: usize) -> Spot {
    Spot { line, column: None }
}

fn not_looked_for() -> EditError {
    let lesson = "it was not looked for: the hunks stand in too many places; give right line numbers, or more lines \
                  around each change, or fewer hunks at once"
        .to_owned();
    EditError::NotFound { looser: None, lesson }
}

fn choice_warning(hunk: usize, candidates: &Candidates, place: &Place, reason: &str) -> String {
    const LISTED: usize = 8;
    let mut warning = format!("hunk {hunk}: its old lines stand in {} places (lines", candidates.total);
    for (n, other) in candidates.places.iter().take(LISTED).enumerate() {
        let separator = if n == 0 { "" } else { "," };
        _ = write!(warning, "{separator} {}", other.start + 1);
    }
    let more = if candidates.total > LISTED { ", …" } else { "" };
    _ = write!(warning, "{more}); line {} was taken because {reason}", place.start + 1);
    warning
}

/// If some hunks have tabs where the file has spaces, or the reverse, then so do those whose old lines do not show it.
fn share_conversion(wanted: &[Wanted], places: &mut [Place]) {
    let Some(shift) = places.iter().map(|place| &place.shift).find(|shift| shift.is_conversion()).cloned() else {
        return;
    };
    for (wanted, place) in wanted.iter().zip(places.iter_mut()).filter(|(_, place)| place.shift == Shift::None) {
        if wanted.old.iter().all(|line| shift.keeps(indent_of(line.body))) {
            place.shift = shift.clone();
        }
    }
}

/// The first two places, in the file's order, that cover the same lines.
fn first_overlap(wanted: &[Wanted], places: &[Place]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|n| places[*n].start);
    let end = |n: usize| places[n].start + places[n].fault.covered(wanted[n].old.len());
    order.windows(2).map(|pair| (pair[0], pair[1])).find(|(first, second)| places[*second].start < end(*first))
}

/// The places of a hunk at the strictest level that gives any; none if none does.
fn candidate_places(file: &Indexed, wanted: &Wanted) -> Result<Places, EditError> {
    let exact = file.places(wanted, Level::Exact);
    if exact.total > 0 {
        return Ok(exact);
    }
    // Before looser levels: a hunk that changes nothing but blanks would be found again in its own result.
    already_applied(file, wanted, Level::Exact)?;
    for level in LOOSER {
        let places = file.places(wanted, level);
        if places.total > 0 {
            return Ok(places);
        }
    }
    already_applied(file, wanted, Level::TrailingWhitespace)?;
    Ok(Places::default())
}

/// Refuses a hunk whose result is there, once, with enough of it to be sure.
fn already_applied(file: &Indexed, wanted: &Wanted, level: Level) -> Result<(), EditError> {
    let after: Vec<&[u8]> = wanted.hunk.after().map(|line| taken_apart(line).0).collect();
    // Braces alone are in every file.
    let says_something = |body: &[u8]| body.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let inserts_something = wanted.hunk.inserts().any(|line| says_something(line.text));
    let saying = after.iter().filter(|body| says_something(body)).count();
    if after.is_empty() || !(inserts_something || saying >= 2) {
        return Ok(());
    }
    match file.starts(&after, level).as_slice() {
        [start] => Err(EditError::AlreadyApplied { line: start + 1 }),
        _ => Ok(()),
    }
}

/// Where a place lies as seen from the headings of its hunk.
enum Section {
    /// In the section they name, or they name none that is there, or line numbers locate the hunk.
    Named,
    /// Below the heading, but in what seems to be another section.
    Other,
    /// Above the heading.
    Above,
    /// It would take too long to tell.
    Unknown,
}

fn section_of(indexed: &Indexed, wanted: &Wanted, place: &Place) -> Section {
    let Hunk { claim: None, headings, .. } = wanted.hunk else { return Section::Named };
    let Some(last) = headings.last().filter(|_| !wanted.old.is_empty()) else { return Section::Named };
    let (file, end) = (indexed.lines, place.start + place.fault.covered(wanted.old.len()));
    // The heading may be one of the hunk's own lines.
    if lies_under(file, place.start, headings) || lies_under(file, end - 1, headings) {
        return Section::Named;
    }
    indexed.work.add(file.len());
    if indexed.work.is_too_much() {
        return Section::Unknown;
    }
    let is_heading = |line: &Line| line.body.trim_ascii_start().starts_with(last.trim_ascii());
    match file.iter().position(is_heading) {
        None => Section::Named,
        Some(at) if at < end => Section::Other,
        Some(_) => Section::Above,
    }
}

fn outside_section(wanted: &Wanted, place: &Place) -> String {
    let headings: Vec<String> = wanted.hunk.headings.iter().map(|heading| explain::shown(heading)).collect();
    let (headings, line) = (headings.join("` / `"), place.start + 1);
    format!("its old lines are at line {line}, which does not seem to be in the section `{headings}`")
}

/// Where a hunk goes that has inserted lines only: nothing but its header can tell.
fn insertion_place(wanted: &Wanted, file: &Indexed) -> Result<Place, EditError> {
    let (hunk, lines) = (wanted.hunk, file.lines);
    if let Some(place) = wanted.at_claim(lines) {
        return Ok(place);
    }
    let place = |start: usize| Place::exact(start, Endings::Different);
    if lines.is_empty() || hunk.reach == Reach::EndOfFile {
        return Ok(place(lines.len()));
    }
    let Some(heading) = hunk.headings.last() else {
        let lesson = "the hunk has inserted lines only; add a line above or below that is in the file".to_owned();
        return Err(EditError::NotFound { looser: None, lesson });
    };
    let is_heading = |line: &Line| line.body.trim_ascii_start().starts_with(heading.trim_ascii());
    let found: Vec<usize> = (0..lines.len()).filter(|at| is_heading(&lines[*at])).collect();
    match found.as_slice() {
        [at] => Ok(place(at + 1)),
        [] => Err(explain::not_found("the hunk's heading", lines, &[*heading], None, file.work.stop)),
        several => {
            let spots: Vec<Spot> = several.iter().copied().map(at_line).collect();
            Err(explain::not_unique("the hunk's heading", lines, &spots, spots.len(), 1))
        }
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
