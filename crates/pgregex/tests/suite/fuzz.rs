//! Random patterns and lines against the real thing.

use crate::generator::{self, Random};
use crate::oracle::{self, Answer, Oracle, Question};

/// Seeds that once found something stay; each is asked for as many patterns as its number says.
const SEEDS: &[(u64, usize)] = &[(1, 4_000), (2, 4_000), (77, 4_000), (2002, 4_000)];

const LINES: usize = 30;

/// Of so many answers about back-references, at most one may be a match that PostgreSQL does not see.
const ANSWERS_PER_UNSEEN_MATCH: usize = 200;

/// `PGREGEX_FUZZ=seed:patterns` asks other questions than the usual ones.
fn seeds() -> Vec<(u64, usize)> {
    let Ok(wish) = std::env::var("PGREGEX_FUZZ") else { return SEEDS.to_vec() };
    let (seed, patterns) = wish.split_once(':').expect("PGREGEX_FUZZ is seed:patterns");
    vec![(seed.parse().expect("a seed"), patterns.parse().expect("a number of patterns"))]
}

/// What came of all questions.
#[derive(Debug, Default)]
struct Tally {
    patterns: usize,
    refused: usize,
    /// Refused by both for different reasons: the pattern has several.
    other_reason: usize,
    gave_up: usize,
    answers: usize,
    answers_with_references: usize,
    unseen_matches: usize,
    unseen_patterns: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, question: &Question, theirs: &Answer, ours: &Answer) {
        self.patterns += 1;
        if oracle::gave_up(theirs) {
            self.gave_up += 1;
            return;
        }
        match (theirs, ours) {
            (Err(theirs), Err(ours)) => {
                self.refused += 1;
                self.other_reason += usize::from(theirs != ours);
            }
            (Ok(theirs), Ok(ours)) if may_refer(&question.pattern) => {
                self.answers_with_references += ours.len();
                let unseen = theirs.iter().zip(ours).filter(|(theirs, ours)| !**theirs && **ours).count();
                self.unseen_matches += unseen;
                self.unseen_patterns += usize::from(unseen > 0);
                if theirs.iter().zip(ours).any(|(theirs, ours)| *theirs && !*ours) {
                    self.wrong.extend(oracle::difference(question, &Ok(theirs.clone()), &Ok(ours.clone())));
                }
            }
            _ => {
                self.answers += ours.as_ref().map_or(0, Vec::len);
                self.wrong.extend(oracle::difference(question, theirs, ours));
            }
        }
    }
}

/// Tells whether a pattern may hold a back-reference; some of these are octal escapes.
fn may_refer(pattern: &str) -> bool {
    pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9'))
}

#[tokio::test]
async fn random_patterns_find_the_lines_that_postgresql_finds() {
    let oracle = Oracle::connect().await;
    let mut tally = Tally::default();
    for (seed, patterns) in seeds() {
        let mut random = Random::new(seed);
        for _ in 0..patterns {
            let question = generator::question(&mut random, LINES);
            let theirs = oracle.ask(&question).await;
            tally.add(&question, &theirs, &oracle::answer(&question));
        }
    }
    println!(
        "{} patterns, {} refused ({} for another reason), {} given up by PostgreSQL; {} answers compared, and {} about \
         back-references, of which {} in {} patterns are matches that PostgreSQL does not see",
        tally.patterns,
        tally.refused,
        tally.other_reason,
        tally.gave_up,
        tally.answers,
        tally.answers_with_references,
        tally.unseen_matches,
        tally.unseen_patterns
    );
    assert!(tally.wrong.is_empty(), "{} differences:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    assert!(
        tally.unseen_matches * ANSWERS_PER_UNSEEN_MATCH <= tally.answers_with_references,
        "more than the documented share"
    );
}
