//! The kinds of damage that are done to patches created by git.

use std::fmt::Write as _;

/// A patch of one file, with the file before and after.
#[derive(Clone)]
pub struct Sample {
    pub patch: String,
    pub old: String,
    pub new: String,
}

/// A pseudo-random number generator with the same numbers in every run (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % end.max(1)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }
}

/// A function that damages a sample; it returns `None` if the sample has nothing to damage.
pub type Damage = fn(&Sample, &mut Random) -> Option<Sample>;

/// The kinds of damage: a description, the minimum percentage of patches that must still be applied right, and the
/// function.
pub const KINDS: [(&str, usize, Damage); 20] = [
    ("random line numbers", 95, |sample, random| {
        Some(with_header_ranges(sample, |numbers| {
            let ((_, old), (_, new)) = ranges(numbers);
            format!("-{0},{old} +{0},{new}", 1 + random.below(2_000))
        }))
    }),
    ("counts that are too small", 99, |sample, random| {
        Some(with_header_ranges(sample, |numbers| {
            let ((old_start, old), (new_start, new)) = ranges(numbers);
            format!("-{old_start},{} +{new_start},{}", random.below(old + 1), random.below(new + 1))
        }))
    }),
    ("no numbers", 95, |sample, _| Some(with_header_ranges(sample, |_| "...".to_owned()))),
    ("no prefixes", 99, |sample, _| {
        let patch = sample.patch.replace("--- a/", "--- ").replace("+++ b/", "+++ ");
        Some(Sample { patch: patch.split_once("\n--- ").map(|(_, rest)| format!("--- {rest}"))?, ..sample.clone() })
    }),
    ("CRLF patch for LF file", 99, |sample, _| Some(Sample { patch: crlf(&sample.patch), ..sample.clone() })),
    ("LF patch for CRLF file", 99, |sample, _| {
        Some(Sample { old: crlf(&sample.old), new: crlf(&sample.new), ..sample.clone() })
    }),
    ("CRLF patch for CRLF file", 99, |sample, _| {
        Some(Sample { patch: crlf(&sample.patch), old: crlf(&sample.old), new: crlf(&sample.new) })
    }),
    ("one context space lost", 95, |sample, random| {
        with_one_line(sample, random, ' ', |line, _| line.get(1..).map(str::to_owned))
    }),
    ("all context spaces lost", 88, |sample, _| {
        with_lines(sample, |line| Some(line.strip_prefix(' ').unwrap_or(line).to_owned()))
    }),
    ("blank context lines without their space", 99, |sample, _| {
        with_lines(sample, |line| Some(if line == " " { "" } else { line }.to_owned()))
    }),
    ("context typo", 90, |sample, random| with_one_line(sample, random, ' ', |line, random| Some(typo(line, random)))),
    ("context line dropped", 63, |sample, random| {
        with_one_line(sample, random, ' ', |_, _| None).map(|sample| with_right_counts(&sample))
    }),
    ("tabs instead of spaces", 92, |sample, _| {
        // A file without indentation does not show how it would be indented.
        if sample.old.contains("\n  ") { with_lines(sample, |line| Some(indent_with_tabs(line))) } else { None }
    }),
    ("dedented", 94, |sample, _| dedented(sample)),
    ("trailing spaces in context", 99, |sample, _| {
        with_lines(sample, |line| Some(if line.starts_with(' ') { format!("{line}  ") } else { line.to_owned() }))
    }),
    ("typographic quotes in context", 99, |sample, _| {
        with_lines(sample, |line| Some(if line.starts_with(' ') { line.replace('"', "“") } else { line.to_owned() }))
    }),
    ("prose and code fence", 99, |sample, _| {
        let patch = format!("Here it is:\n- a fix\n\n```diff\n{}```\n- done\n", sample.patch);
        Some(Sample { patch, ..sample.clone() })
    }),
    ("*** Begin Patch", 94, |sample, _| begin_patch(sample)),
    ("truncated", 0, truncated),
    ("deleted line typo", 0, |sample, random| {
        with_one_line(sample, random, '-', |line, random| Some(typo(line, random)))
    }),
];

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// Replaces the ranges in the headers of all hunks.
fn with_header_ranges(sample: &Sample, mut numbers: impl FnMut(&str) -> String) -> Sample {
    let mut patch = String::new();
    for line in sample.patch.split_inclusive('\n') {
        match line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@")) {
            Some((old, heading)) => _ = write!(patch, "@@ {} @@{heading}", numbers(old)),
            None => patch.push_str(line),
        }
    }
    Sample { patch, ..sample.clone() }
}

/// Parses the ranges in a hunk header: the start and the count of both sides.
fn ranges(numbers: &str) -> ((usize, usize), (usize, usize)) {
    let range = |side: &str| {
        let (start, count) = side[1..].split_once(',').unwrap_or((&side[1..], "1"));
        (start.parse().expect("a line number"), count.parse().expect("a count"))
    };
    let (old, new) = numbers.split_once(' ').expect("two ranges");
    (range(old), range(new))
}

/// Corrects the counts in the headers of all hunks.
fn with_right_counts(sample: &Sample) -> Sample {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for line in sample.patch.lines() {
        match (line.chars().next(), counts.last_mut()) {
            (Some('@'), _) => counts.push((0, 0)),
            (Some('-'), Some(count)) => count.0 += 1,
            (Some('+'), Some(count)) => count.1 += 1,
            (Some(' '), Some(count)) => *count = (count.0 + 1, count.1 + 1),
            _ => {}
        }
    }
    let mut counts = counts.into_iter();
    with_header_ranges(sample, |numbers| {
        let ((old_start, _), (new_start, _)) = ranges(numbers);
        let (old, new) = counts.next().expect("every hunk was counted");
        format!("-{old_start},{old} +{new_start},{new}")
    })
}

/// Removes some of the last lines of the last hunk.
fn truncated(sample: &Sample, random: &mut Random) -> Option<Sample> {
    let all: Vec<&str> = sample.patch.split_inclusive('\n').collect();
    let last_header = all.iter().rposition(|line| line.starts_with("@@ "))?;
    let mut kept = last_header + 1 + random.below(all.len() - last_header - 1);
    // `\ No newline at end of file` is not counted as a line of the hunk.
    while kept > last_header && all[kept].starts_with('\\') {
        kept -= 1;
    }
    Some(Sample { patch: all[..kept].concat(), ..sample.clone() })
}

/// Replaces or removes the lines of all hunks; returns `None` if nothing changes.
fn with_lines(sample: &Sample, mut change: impl FnMut(&str) -> Option<String>) -> Option<Sample> {
    let mut patch = String::new();
    let mut in_hunk = false;
    for line in sample.patch.lines() {
        in_hunk |= line.starts_with("@@ ");
        if !in_hunk || line.starts_with("@@ ") || line.starts_with('\\') {
            patch.push_str(line);
            patch.push('\n');
        } else if let Some(line) = change(line) {
            patch.push_str(&line);
            patch.push('\n');
        }
    }
    (patch != sample.patch).then(|| Sample { patch, ..sample.clone() })
}

/// Replaces or removes one of the lines with a prefix.
fn with_one_line(
    sample: &Sample,
    random: &mut Random,
    prefix: char,
    change: impl Fn(&str, &mut Random) -> Option<String>,
) -> Option<Sample> {
    let eligible = |line: &str| line.starts_with(prefix) && line.trim_matches(['-', ' ', '\t']).len() > 1;
    let mut all = 0;
    with_lines(sample, |line| {
        all += usize::from(eligible(line));
        None
    });
    if all == 0 {
        return None;
    }
    let chosen = random.below(all);
    let mut at = 0;
    with_lines(sample, |line| {
        let is_chosen = eligible(line) && at == chosen;
        at += usize::from(eligible(line));
        if is_chosen { change(line, random) } else { Some(line.to_owned()) }
    })
}

/// Replaces one letter or digit of a line by another.
fn typo(line: &str, random: &mut Random) -> String {
    let letters: Vec<usize> =
        line.char_indices().skip(1).filter(|(_, c)| c.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
    let at = random.pick(&letters).copied().unwrap_or(line.len());
    let wrong = if line[at..].starts_with('q') { 'j' } else { 'q' };
    format!("{}{wrong}{}", &line[..at], line.get(at + 1..).unwrap_or_default())
}

/// Replaces every four spaces of a line's indentation by a tab.
fn indent_with_tabs(line: &str) -> String {
    let (prefix, text) = line.split_at_checked(1).unwrap_or((line, ""));
    let rest = text.trim_start_matches(' ');
    let width = text.len() - rest.len();
    format!("{prefix}{}{}{rest}", "\t".repeat(width / 4), " ".repeat(width % 4))
}

/// Removes four spaces of indentation from each hunk in which all lines have them.
fn dedented(sample: &Sample) -> Option<Sample> {
    let mut hunks: Vec<String> = Vec::new();
    for line in sample.patch.split_inclusive('\n') {
        match hunks.last_mut() {
            Some(hunk) if !line.starts_with("@@ ") => hunk.push_str(line),
            _ => hunks.push(line.to_owned()),
        }
    }
    let mut patch = String::new();
    for hunk in hunks {
        let is_blank = |line: &str| line.get(1..).is_none_or(|text| text.trim().is_empty());
        let can_move = |line: &str| is_blank(line) || line.get(1..).is_some_and(|text| text.starts_with("    "));
        if !hunk.starts_with("@@ ") || !hunk.lines().skip(1).all(can_move) {
            patch.push_str(&hunk);
            continue;
        }
        for (n, line) in hunk.lines().enumerate() {
            if n == 0 || is_blank(line) {
                patch.push_str(line);
            } else {
                patch.push_str(&line[..1]);
                patch.push_str(&line[5..]);
            }
            patch.push('\n');
        }
    }
    (patch != sample.patch).then(|| Sample { patch, ..sample.clone() })
}

/// Converts the patch to the `*** Begin Patch` format, which cannot say that a newline is missing.
fn begin_patch(sample: &Sample) -> Option<Sample> {
    if sample.patch.contains("\n\\ ") {
        return None;
    }
    let name = sample.patch.lines().find_map(|line| line.strip_prefix("+++ b/"))?;
    let mut patch = format!("*** Begin Patch\n*** Update File: {name}\n");
    for line in sample.patch.lines().skip_while(|line| !line.starts_with("@@ ")) {
        match line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@")) {
            Some((_, heading)) => _ = writeln!(patch, "@@{heading}"),
            None => _ = writeln!(patch, "{line}"),
        }
    }
    patch.push_str("*** End Patch\n");
    Some(Sample { patch, ..sample.clone() })
}
