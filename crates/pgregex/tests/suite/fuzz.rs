//! Compares random patterns and lines with PostgreSQL.

use crate::generator::{self, Random};
use crate::oracle::{self, Oracle, Outcome, TestCase};

/// Seeds and the number of patterns to generate from each. A seed that has found a bug is kept.
const SEEDS: &[(u64, usize)] = &[(1, 4_000), (2, 4_000), (77, 4_000), (2002, 4_000)];

/// Number of lines that each pattern is matched with.
const LINES: usize = 30;

/// At most one in this many results of patterns with back-references may be a match that PostgreSQL does not find.
const RESULTS_PER_EXTRA_MATCH: usize = 200;

/// Returns the usual seeds, or the one that `PGREGEX_FUZZ=seed:patterns` sets.
fn seeds() -> Vec<(u64, usize)> {
    let Ok(value) = std::env::var("PGREGEX_FUZZ") else { return SEEDS.to_vec() };
    let (seed, patterns) = value.split_once(':').expect("PGREGEX_FUZZ is seed:patterns");
    vec![(seed.parse().expect("a seed"), patterns.parse().expect("a number of patterns"))]
}

/// Counts over all test cases.
#[derive(Debug, Default)]
struct Tally {
    patterns: usize,
    refused: usize,
    /// Refused by both with different messages, which is possible if a pattern has several errors.
    refused_with_other_message: usize,
    timed_out: usize,
    results: usize,
    results_with_references: usize,
    /// Matches that PostgreSQL does not find.
    extra_matches: usize,
    patterns_with_extra_matches: usize,
    /// Descriptions of all other differences.
    differences: Vec<String>,
}

impl Tally {
    fn add(&mut self, case: &TestCase, theirs: &Outcome, ours: &Outcome) {
        self.patterns += 1;
        if oracle::timed_out(theirs) {
            self.timed_out += 1;
            return;
        }
        match (theirs, ours) {
            (Err(theirs), Err(ours)) => {
                self.refused += 1;
                self.refused_with_other_message += usize::from(theirs != ours);
            }
            (Ok(theirs), Ok(ours)) if may_have_back_reference(&case.pattern) => {
                self.results_with_references += ours.len();
                let extra = theirs.iter().zip(ours).filter(|(theirs, ours)| !**theirs && **ours).count();
                self.extra_matches += extra;
                self.patterns_with_extra_matches += usize::from(extra > 0);
                if theirs.iter().zip(ours).any(|(theirs, ours)| *theirs && !*ours) {
                    self.differences.extend(oracle::difference(case, &Ok(theirs.clone()), &Ok(ours.clone())));
                }
            }
            _ => {
                self.results += ours.as_ref().map_or(0, Vec::len);
                self.differences.extend(oracle::difference(case, theirs, ours));
            }
        }
    }
}

/// Returns whether a pattern may have a back-reference. A backslash and a digit can also be an octal escape.
fn may_have_back_reference(pattern: &str) -> bool {
    pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9'))
}

#[tokio::test]
async fn random_patterns_find_the_lines_that_postgresql_finds() {
    let oracle = Oracle::connect().await;
    let mut tally = Tally::default();
    for (seed, patterns) in seeds() {
        let mut random = Random::new(seed);
        for _ in 0..patterns {
            let case = generator::test_case(&mut random, LINES);
            let theirs = oracle.run(&case).await;
            tally.add(&case, &theirs, &oracle::run_pgregex(&case));
        }
    }
    println!(
        "{} patterns, {} refused ({} with another message), {} timed out in PostgreSQL; {} results compared, and {} of \
         patterns with back-references, of which {} in {} patterns are matches that PostgreSQL does not find",
        tally.patterns,
        tally.refused,
        tally.refused_with_other_message,
        tally.timed_out,
        tally.results,
        tally.results_with_references,
        tally.extra_matches,
        tally.patterns_with_extra_matches
    );
    assert!(tally.differences.is_empty(), "{} differences:\n{}", tally.differences.len(), tally.differences.join("\n"));
    assert!(
        tally.extra_matches * RESULTS_PER_EXTRA_MATCH <= tally.results_with_references,
        "more extra matches than documented"
    );
}
