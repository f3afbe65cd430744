//! Damaged patches are applied right or refused, and never applied wrongly without a warning.

use crate::damage_kinds::{Damage, KINDS, Random, Sample};
use crate::version_pairs::{pairs, path_in_version};
use toolrest_edit::{Limits, patch};

const LIMITS: Limits = Limits::of_bytes(64 << 20);
/// How often each kind of damage is done to each sample.
const REPETITIONS: u64 = 2;

/// Counts the results for one kind of damage.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    refused: usize,
    wrong_with_warning: usize,
    wrong: Vec<String>,
}

/// Returns the patches of all text files that are in both versions.
fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for pair in pairs() {
        let (old, new) = (pair.old_tree(), pair.new_tree());
        let Ok(whole) = String::from_utf8(pair.diff(&["-U3"])) else { continue };
        for part in whole.split_inclusive('\n').fold(Vec::<String>::new(), |mut parts, line| {
            match parts.last_mut() {
                Some(part) if !line.starts_with("diff --git ") => part.push_str(line),
                _ => parts.push(line.to_owned()),
            }
            parts
        }) {
            let Some(file) = patch::parse(part.as_bytes()).ok().and_then(|mut files| files.pop()) else { continue };
            let (Some(source), Some(target)) = (file.source(), file.target()) else { continue };
            let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).ok();
            let old = old.get(&path_in_version(source)).and_then(text);
            let new = new.get(&path_in_version(target)).and_then(text);
            if let (Some(old), Some(new)) = (old, new)
                && !old.contains('\r')
                && !new.contains('\r')
            {
                samples.push(Sample { patch: part, old, new });
            }
        }
    }
    samples
}

fn tally(samples: &[Sample], damage: Damage, seed: u64) -> Tally {
    let mut random = Random(seed);
    let mut tally = Tally::default();
    for sample in samples {
        for _ in 0..REPETITIONS {
            let Some(damaged) = damage(sample, &mut random) else { continue };
            let applied = patch::parse(damaged.patch.as_bytes())
                .and_then(|files| patch::apply(&files[0], damaged.old.as_bytes(), LIMITS));
            match applied {
                Err(_) => tally.refused += 1,
                Ok(applied) if applied.content == damaged.new.as_bytes() => tally.right += 1,
                Ok(applied) if !applied.warnings.is_empty() => tally.wrong_with_warning += 1,
                Ok(_) => tally.wrong.push(damaged.patch),
            }
        }
    }
    tally
}

#[test]
fn damaged_patches_are_applied_right_or_refused() {
    let samples = samples();
    println!("{} samples", samples.len());
    println!("{:<32} {:>6} {:>8} {:>7} {:>6}", "damage", "right", "refused", "warned", "wrong");
    let mut failures = Vec::new();
    for (n, (kind, min_percent, damage)) in KINDS.iter().enumerate() {
        let tally = tally(&samples, *damage, 0x9E37_79B9_7F4A_7C15 + n as u64);
        let Tally { right, refused, wrong_with_warning, wrong } = &tally;
        println!("{kind:<32} {right:>6} {refused:>8} {wrong_with_warning:>7} {:>6}", wrong.len());
        let all = right + refused + wrong_with_warning + wrong.len();
        if right * 100 < all * min_percent {
            failures.push(format!("{kind}: only {right} of {all} applied"));
        }
        if ["deleted line typo", "truncated"].contains(kind) && *refused < all {
            failures.push(format!("{kind}: only {refused} of {all} refused"));
        }
        if let Some(first) = wrong.first() {
            failures.push(format!("{kind}: {} applied wrongly, the first:\n{first}", wrong.len()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
