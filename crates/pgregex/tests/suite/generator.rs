//! Generates random patterns and lines, the same ones for the same seed.

use crate::oracle::TestCase;

/// A pseudo-random number generator (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or(0)
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn choice<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}

/// Depth beyond which each rule takes its first choice, so that the expansion ends.
const MAX_DEPTH: usize = 9;

/// The characters that patterns and lines are made of; each test case uses one of these alphabets.
const ALPHABETS: [&str; 4] = [
    "ab",
    "abAB_1 é",
    "aAkKsS\u{212A}ſßéÉİıiIσςΣǅǆǄµ",
    "ab_019-. éÉſ\u{212A}ıǅ\u{a0}\u{85}\u{2028}\u{300}٣\r\t漢{}\\[]^$#",
];

type Rule = (&'static str, &'static [(usize, &'static str)]);

/// The grammar of patterns: each rule has choices with weights, the simplest choice first. `‹name›` is replaced by the
/// expansion of another rule and `‹c›` by a character of the alphabet.
const RULES: &[Rule] = &[
    (
        "regular",
        &[
            (12, "‹branch›"),
            (2, "‹branch›|‹branch›"),
            (1, "‹start›‹branch›|‹branch›"),
            (1, "‹start›‹branch›"),
            (1, "(?b)‹basic›"),
            (1, "(?x)‹part› ‹part› # ‹c›\n‹part› ‹quantifier›"),
        ],
    ),
    ("basic", &[(3, "‹basic-part›‹basic-part›"), (1, "^‹basic-part›$"), (1, "*‹basic-part›"), (1, "^*‹basic-part›")]),
    (
        "basic-part",
        &[
            (4, "‹c›"),
            (2, "‹c›*"),
            (1, "\\(‹basic›\\)"),
            (1, "\\(‹basic›\\)*"),
            (1, "\\(‹basic›\\)\\1"),
            (1, "‹c›\\{1,2\\}"),
            (1, "‹c›\\{,2\\}"),
            (1, "^"),
            (1, "$"),
            (1, "\\<"),
            (1, "\\>"),
            (1, "[‹members›]"),
            (1, "."),
            (1, "+"),
        ],
    ),
    ("look", &[(3, "‹branch›‹looking›‹branch›"), (2, "‹looking›‹branch›"), (2, "‹look-branch›|‹look-branch›")]),
    ("look-branch", &[(1, "‹branch›‹looking›"), (1, "(‹looking›‹branch›)‹quantifier›"), (1, "‹looking›‹looking›‹c›")]),
    ("looking", &[(1, "(?=‹look-body›)"), (1, "(?!‹look-body›)"), (1, "(?<=‹look-body›)"), (1, "(?<!‹look-body›)")]),
    ("look-body", &[(6, "‹branch›"), (1, "‹branch›|‹branch›"), (1, "‹looking›‹branch›")]),
    (
        "reference",
        &[
            (3, "(‹branch›)‹part›\\1"),
            (3, "(‹branch›)‹referring›"),
            (2, "‹anchored›(‹branch›)‹part›(‹branch›)\\2\\1$"),
            (2, "^(‹branch›|‹branch›)\\1‹quantifier›‹part›$"),
            (2, "(?:(‹branch›)|‹part›)‹quantifier›\\1‹part›"),
            (1, "(‹branch›)|‹part›\\1|‹branch›"),
            (1, "((‹part›)‹part›)‹quantifier›\\2‹referring›"),
            (1, "(?b)\\(‹c›*\\)‹c›\\1"),
            (1, "(‹branch›)‹looking›\\1"),
        ],
    ),
    ("referring", &[(2, "\\1"), (1, "\\1‹quantifier›"), (1, "(?:\\1|‹branch›)‹quantifier›"), (1, "(\\1‹part›)\\2")]),
    ("anchored", &[(1, ""), (1, "^")]),
    ("branch", &[(3, "‹part›"), (4, "‹part›‹part›"), (3, "‹part›‹part›‹part›"), (1, "")]),
    ("part", &[(9, "‹atom›"), (4, "‹atom›‹quantifier›"), (1, "‹condition›")]),
    (
        "atom",
        &[
            (16, "‹c›"),
            (2, "."),
            (2, "‹class›"),
            (4, "[‹members›]"),
            (1, "[^‹members›]"),
            (1, "‹escape›"),
            (3, "(‹group›)"),
            (2, "(?:‹group›)"),
        ],
    ),
    ("group", &[(3, "‹branch›"), (2, "‹branch›|‹branch›"), (1, "‹branch›|‹branch›|‹branch›")]),
    (
        "quantifier",
        &[
            (4, "*"),
            (4, "+"),
            (4, "?"),
            (1, "{2}"),
            (1, "{1,2}"),
            (1, "{0,1}"),
            (1, "{1,}"),
            (1, "{0}"),
            (1, "{2,}"),
            (1, "{1,3}?"),
            (1, "*?"),
            (1, "+?"),
            (1, "??"),
        ],
    ),
    (
        "condition",
        &[
            (3, "^"),
            (3, "$"),
            (1, "\\m"),
            (1, "\\M"),
            (1, "\\y"),
            (1, "\\Y"),
            (1, "\\A"),
            (1, "\\Z"),
            (1, "[[:<:]]"),
            (1, "[[:>:]]"),
        ],
    ),
    ("class", &[(1, "\\w"), (1, "\\d"), (1, "\\s"), (1, "\\W"), (1, "\\D"), (1, "\\S")]),
    ("members", &[(3, "‹member›"), (3, "‹member›‹member›"), (1, "]‹member›"), (1, "‹member›-"), (1, "-‹member›")]),
    (
        "member",
        &[
            (6, "‹c›"),
            (3, "‹c›-‹c›"),
            (2, "[:‹name›:]"),
            (1, "‹class›"),
            (1, "‹escape›"),
            (1, "[.‹c›.]"),
            (1, "[=‹c›=]"),
            (1, "[.hyphen.]-[.‹c›.]"),
            (1, "&&"),
            (1, "["),
        ],
    ),
    (
        "name",
        &[
            (2, "alpha"),
            (1, "alnum"),
            (1, "ascii"),
            (1, "blank"),
            (1, "cntrl"),
            (1, "digit"),
            (1, "graph"),
            (2, "lower"),
            (1, "print"),
            (1, "punct"),
            (1, "space"),
            (2, "upper"),
            (1, "word"),
            (1, "xdigit"),
        ],
    ),
    (
        "escape",
        &[
            (1, "\\b"),
            (1, "\\B"),
            (1, "\\x41"),
            (1, "\\u00e9"),
            (1, "\\U0000212a"),
            (1, "\\101"),
            (1, "\\0"),
            (1, "\\cA"),
            (1, "\\e"),
            (1, "\\t"),
            (1, "\\-"),
            (1, "\\‹c›"),
        ],
    ),
    (
        "start",
        &[
            (1, "(?i)"),
            (1, "(?c)"),
            (1, "(?n)"),
            (2, "(?x)"),
            (1, "(?q)"),
            (2, "(?e)"),
            (2, "(?b)"),
            (1, "(?bx)"),
            (1, "(?ei)"),
            (1, "***="),
            (1, "***:"),
            (1, "***:(?i)"),
        ],
    ),
];

/// What damages a pattern when it is put somewhere.
const DAMAGE: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    "+",
    "?",
    "|",
    "^",
    "$",
    "\\",
    "-",
    "**",
    "{1",
    "{2,1}",
    "{256}",
    "{x",
    "{,2}",
    "(?",
    "(?#",
    "(?#c)",
    "(?i)",
    "(?<",
    "\\q",
    "\\x",
    "\\u12",
    "\\U7fffffff",
    "\\1",
    "\\9",
    "\\12",
    "\\08",
    "[[:foo:]]",
    "[[.ab.]]",
    "[b-a]",
    "[a-\\w]",
    "[[:alpha:]-z]",
    "[]",
    "[^",
    "\\(",
    "\\)",
    "\\{",
    "\\}",
    "\\<",
    "\\>",
    " ",
    "#",
    "\u{2028}",
    "\u{85}",
    "\u{a0}",
    "[[=a=]-b]",
    "\\ud800",
    "\\c",
    "***",
    "[\\b]",
    "[\\y]",
    "\n",
    "(?=",
    "(?!",
    "(?:",
];

/// The feature that a pattern is meant to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    Regular,
    LookAround,
    BackReference,
}

/// Generates one test case with this many lines.
pub fn test_case(random: &mut Random, lines: usize) -> TestCase {
    let feature = match random.below(10) {
        0..=4 => Feature::Regular,
        5..=6 => Feature::LookAround,
        _ => Feature::BackReference,
    };
    // With few letters, back-references and look-around match often.
    let alphabet = match feature {
        Feature::Regular => random.choice(&ALPHABETS),
        _ if random.percent(70) => ALPHABETS[0],
        _ => random.choice(&ALPHABETS),
    };
    let alphabet: Vec<char> = alphabet.chars().collect();
    let rule = match feature {
        Feature::Regular => "regular",
        Feature::LookAround => "look",
        Feature::BackReference => "reference",
    };
    let mut pattern = String::new();
    expand(random, rule, &alphabet, 0, &mut pattern);
    if random.percent(12) {
        pattern = damaged(random, &pattern);
    }
    let lines = (0..lines).map(|_| line(random, &alphabet, &pattern)).collect();
    TestCase { pattern, case_insensitive: random.percent(40), lines }
}

/// Appends a random expansion of a rule to the pattern.
fn expand(random: &mut Random, name: &str, alphabet: &[char], depth: usize, pattern: &mut String) {
    if name == "c" {
        return pattern.push(*random.choice(alphabet));
    }
    let (_, choices) = RULES.iter().find(|(rule, _)| *rule == name).unwrap_or_else(|| panic!("no rule {name}"));
    let mut remaining =
        if depth > MAX_DEPTH { 0 } else { random.below(choices.iter().map(|(weight, _)| weight).sum()) };
    let mut template = choices[0].1;
    for (weight, choice) in *choices {
        template = choice;
        match remaining.checked_sub(*weight) {
            Some(rest) => remaining = rest,
            None => break,
        }
    }
    let mut parts = template.split('‹');
    pattern.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (rule, literal) = part.split_once('›').expect("a rule's name ends");
        expand(random, rule, alphabet, depth + 1, pattern);
        pattern.push_str(literal);
    }
}

/// Returns the pattern with characters removed or inserted, so that it may be invalid.
fn damaged(random: &mut Random, pattern: &str) -> String {
    let mut characters: Vec<char> = pattern.chars().collect();
    for _ in 0..=random.below(2) {
        let place = random.below(characters.len() + 1);
        match random.below(3) {
            0 if place < characters.len() => {
                characters.remove(place);
            }
            1 => characters.truncate(place),
            _ => {
                let damage = random.choice(DAMAGE).chars();
                characters.splice(place..place, damage);
            }
        }
    }
    characters.into_iter().collect()
}

/// Generates a line of characters of the alphabet, sometimes with a part of the pattern in it.
fn line(random: &mut Random, alphabet: &[char], pattern: &str) -> String {
    let mut line = String::new();
    for _ in 0..random.below(9) {
        if random.percent(4) {
            let skipped = random.below(pattern.chars().count());
            let taken = random.below(4);
            line.extend(pattern.chars().skip(skipped).take(taken).filter(|character| *character != '\n'));
        } else {
            line.push(*random.choice(alphabet));
        }
    }
    line
}
