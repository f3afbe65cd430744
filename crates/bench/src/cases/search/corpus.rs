//! Generated source code with realistic names and line lengths, the same in every run.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use crate::contents::Numbers;

/// The words of frequent names; rarer names are built from syllables.
const WORDS: &str = "\
    self value index name path error state buffer len data key node entry context config count size offset id item \
    list map token request response stream reader writer client server session frame header body block page table \
    column row query cursor lock queue worker task event channel sender receiver message packet address socket port \
    file folder handle flag mode kind type level limit total first last next previous start end left right parent \
    child root leaf tree graph edge weight score cache store load save open close read write parse format encode \
    decode hash digest check verify update insert remove push pop find search filter sort merge split join copy move \
    create delete build render draw layout style color width height point line shape span range slice chunk segment";

const ONSETS: &str = "b br c ch cl d dr f fl g gr h j k kr l m n p pl pr qu r s sc sh sl sp st t th tr v w z";
const NUCLEI: &str = "a e i o u ai ea ee ia io oa oo ou";
const CODAS: &str = "b ck d f g l ll m mp n nd ng nt p r rd rk rm rn rt s ss st t th x";

const PROSE: &str = "\
    the a of to and is in that it for this be are with as on not by if when which from an or only must at after \
    before because has have one each no more than until may used called returns caller value since already while both \
    already empty whole never always without another same other first last time order bytes lock held waits sent read";

/// Words with letters beyond ASCII, which are rare in comments of real code.
const FOREIGN: [&str; 6] = ["café", "naïve", "größer", "façade", "данные", "日本語"];

const STEMS: usize = 3000;
const NAMES: usize = 20_000;
/// Number of names that a file uses repeatedly; it uses other names rarely.
const OWN_NAMES: usize = 40;
const FILES_PER_FOLDER: usize = 50;

/// Lines in a few evenly distributed files: the number of files, and the line, in which `#` is the file's number.
const RARE_LINES: [(usize, &str); 7] = [
    (5, "    // See quizzical_lathe for how the chips are counted."),
    (3, "    const QUIZZICAL_LATHE: u32 = #;"),
    (6, "    let ledger = QuarryLedger::open(#);"),
    (4, "    // Die Gewürzmühle bleibt hier außen vor."),
    (20, "    pub(crate) fn unwind_spindle_#(&mut self) {}"),
    (12, "mod gantry_#;"),
    (6, "    // Built from 7391045ab2, run #."),
];

/// A number of files with a mean size.
pub struct Corpus {
    pub files: usize,
    file_bytes: usize,
    /// The most frequent names first; the same for `types` and `prose`.
    names: Vec<String>,
    types: Vec<String>,
    prose: Vec<&'static str>,
    name_ranks: Ranks,
    prose_ranks: Ranks,
}

impl Corpus {
    pub fn new(files: usize, file_bytes: usize) -> Self {
        let stems = stems();
        let stem_ranks = Ranks::new(stems.len());
        let mut numbers = Numbers::from_seed(11);
        let mut names: Vec<String> = Vec::with_capacity(NAMES);
        while names.len() < NAMES {
            // The most frequent names are short.
            let parts = 1 + numbers.below(if names.len() < 200 { 2 } else { 3 });
            let parts: Vec<&str> = (0..parts).map(|_| stems[stem_ranks.pick(&mut numbers)].as_str()).collect();
            names.push(parts.join("_"));
        }
        let prose: Vec<&str> = PROSE.split_whitespace().collect();
        Self {
            files,
            file_bytes,
            types: names.iter().map(|name| camel_case(name)).collect(),
            name_ranks: Ranks::new(names.len()),
            prose_ranks: Ranks::new(prose.len()),
            names,
            prose,
        }
    }

    /// Returns the path of a file, three folders deep.
    pub fn path(&self, index: usize) -> String {
        let folder = index / FILES_PER_FOLDER;
        let name = &self.names[(index * 7) % 5000];
        format!("/src/{}/{}_{folder}/{name}_{index}.rs", self.names[folder / 20], self.names[1000 + folder])
    }

    pub fn text(&self, index: usize) -> String {
        let mut numbers = Numbers::from_seed(index as u64 + 1_000_003);
        // The first numbers of similar seeds are similar.
        (0..8).for_each(|_| _ = numbers.below(2));
        let size = self.file_bytes / 4 + numbers.below(self.file_bytes * 3 / 2);
        let own_names = (0..OWN_NAMES).map(|_| self.name_ranks.pick(&mut numbers)).collect();
        let mut file = SourceFile { corpus: self, numbers, own_names, text: String::with_capacity(size + 1024) };
        file.imports();
        let mut rare_lines = RARE_LINES.iter().filter(|(files, _)| self.has_rare_line(index, *files));
        while file.text.len() < size {
            file.item();
            if let Some((_, line)) = rare_lines.next() {
                let _ = writeln!(file.text, "{}", line.replace('#', &index.to_string()));
            }
        }
        file.text
    }

    fn has_rare_line(&self, index: usize, files: usize) -> bool {
        let distance = self.files / files;
        index % distance == distance / 2 && index / distance < files
    }

    /// Writes all files below a folder and returns their total size in bytes.
    pub fn write_to(&self, folder: &Path) -> usize {
        let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.files {
                            break;
                        }
                        let path = folder.join(&self.path(index)[1..]);
                        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folders can be made");
                        let text = self.text(index);
                        bytes.fetch_add(text.len(), Ordering::Relaxed);
                        fs::write(path, text).expect("a file can be written");
                    }
                });
            }
        });
        bytes.into_inner()
    }
}

fn stems() -> Vec<String> {
    let pick = |list: &'static str, numbers: &mut Numbers| {
        let parts: Vec<&str> = list.split(' ').collect();
        parts[numbers.below(parts.len())]
    };
    let mut numbers = Numbers::from_seed(5);
    let mut stems: Vec<String> = WORDS.split_whitespace().map(str::to_owned).collect();
    while stems.len() < STEMS {
        let mut stem = String::new();
        for _ in 0..=numbers.below(2) {
            stem.push_str(pick(ONSETS, &mut numbers));
            stem.push_str(pick(NUCLEI, &mut numbers));
            stem.push_str(pick(CODAS, &mut numbers));
        }
        stems.push(stem);
    }
    stems
}

fn camel_case(name: &str) -> String {
    let capitalised = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').map(capitalised).collect()
}

/// Picks ranks by Zipf's law: the n-th about n times less often than the first.
struct Ranks(Vec<usize>);

impl Ranks {
    fn new(count: usize) -> Self {
        let next = |sum: &mut usize, rank: usize| {
            let begin = *sum;
            *sum += 10_000_000 / (rank + 3);
            Some(begin)
        };
        Self((0..count).scan(0, next).collect())
    }

    fn pick(&self, numbers: &mut Numbers) -> usize {
        let at = numbers.below(self.0[self.0.len() - 1] + 1);
        self.0.partition_point(|begin| *begin <= at) - 1
    }
}

/// A generated file.
struct SourceFile<'a> {
    corpus: &'a Corpus,
    numbers: Numbers,
    /// Ranks of the names that the file uses repeatedly.
    own_names: Vec<usize>,
    text: String,
}

impl<'a> SourceFile<'a> {
    fn one_in(&mut self, count: usize) -> bool {
        self.numbers.below(count) == 0
    }

    fn name_rank(&mut self) -> usize {
        if self.one_in(5) {
            self.corpus.name_ranks.pick(&mut self.numbers)
        } else {
            self.own_names[self.numbers.below(self.own_names.len())]
        }
    }

    fn name(&mut self) -> &'a str {
        &self.corpus.names[self.name_rank()]
    }

    fn type_name(&mut self) -> &'a str {
        &self.corpus.types[self.name_rank()]
    }

    /// Returns a random number; small numbers are more frequent.
    fn number(&mut self) -> usize {
        let bits = self.numbers.below(18);
        self.numbers.below(1 << bits)
    }

    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{:width$}{line}", "", width = 4 * depth);
    }

    fn imports(&mut self) {
        self.comment(0, "//!");
        self.text.push('\n');
        for _ in 0..4 + self.numbers.below(8) {
            let line = format!("use crate::{}::{{{}, {}}};", self.name(), self.type_name(), self.type_name());
            self.line(0, &line);
        }
    }

    fn item(&mut self) {
        self.text.push('\n');
        if self.one_in(3) {
            self.comment(0, "///");
        }
        match self.numbers.below(8) {
            0 => {
                let line = format!("pub struct {} {{", self.type_name());
                self.line(0, &line);
                for _ in 0..2 + self.numbers.below(6) {
                    let line = format!("{}: {},", self.name(), self.type_name());
                    self.line(1, &line);
                }
                self.line(0, "}");
            }
            1 => {
                let line = format!("const {}: usize = {};", self.name().to_ascii_uppercase(), self.number());
                self.line(0, &line);
            }
            _ => self.function(),
        }
    }

    fn function(&mut self) {
        let prefix = if self.one_in(100) { "poll_" } else { "" };
        let line = format!(
            "{}fn {prefix}{}(&self, {}: &{}) -> Result<{}> {{",
            if self.one_in(2) { "pub " } else { "" },
            self.name(),
            self.name(),
            self.type_name(),
            self.type_name()
        );
        self.line(0, &line);
        let mut depth = 1;
        for _ in 0..4 + self.numbers.below(16) {
            if depth > 1 && self.one_in(3) {
                depth -= 1;
                self.line(depth, "}");
            }
            depth += self.statement(depth);
        }
        while depth > 0 {
            depth -= 1;
            self.line(depth, "}");
        }
    }

    /// Writes a line and returns by how much deeper the next line is indented.
    fn statement(&mut self, depth: usize) -> usize {
        let (one, other, third) = (self.name(), self.name(), self.name());
        let number = self.number();
        let line = match self.numbers.below(12) {
            0 => format!("if {one}.{other}() > {number} {{"),
            1 => format!("for {one} in {other}.iter().skip({number}) {{"),
            2 => format!("match {one}.{other} {{"),
            3 => format!("return Err({}::{}({one}));", self.type_name(), self.type_name()),
            4 => format!("self.{one}.{other}({third}, 0x{number:04x})?;"),
            5 => format!("assert_eq!({one}, {number}, \"{} {}\");", self.words(2), self.words(3)),
            6 => return self.comment(depth, "//"),
            7 => format!("let mut {one}: Vec<{}> = {other}.{third}().collect();", self.type_name()),
            8 => format!("{one} = {other} + {number} * self.{third};"),
            _ => format!("let {one} = self.{other}.{third}(&{}, {number});", self.name()),
        };
        self.line(depth, &line);
        usize::from(line.ends_with('{') && depth < 5)
    }

    fn comment(&mut self, depth: usize, mark: &str) -> usize {
        for _ in 0..=self.numbers.below(3) {
            let line = format!("{mark} {} `{}` {}.", self.words(5), self.name(), self.words(6));
            self.line(depth, &line);
        }
        0
    }

    fn words(&mut self, count: usize) -> String {
        let mut words: Vec<&str> = Vec::with_capacity(count);
        for _ in 0..count {
            words.push(match self.numbers.below(400) {
                0 => FOREIGN[self.numbers.below(FOREIGN.len())],
                1..80 => self.name(),
                _ => self.corpus.prose[self.corpus.prose_ranks.pick(&mut self.numbers)],
            });
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_corpora_have_equal_texts_and_all_files_differ() {
        let (one, other) = (Corpus::new(400, 10_000), Corpus::new(400, 10_000));
        assert_eq!(one.text(7), other.text(7));
        assert_ne!(one.text(7), one.text(8));
        assert_ne!(one.path(7), one.path(8));
    }

    #[test]
    fn files_have_the_given_mean_size_and_compress_like_code() {
        let corpus = Corpus::new(400, 10_000);
        let texts: Vec<String> = (0..400).map(|index| corpus.text(index)).collect();
        let mean = texts.iter().map(String::len).sum::<usize>() / texts.len();
        assert!((9_500..11_000).contains(&mean), "{mean}");
        let compressed = |text: &String| zstd::bulk::compress(text.as_bytes(), 3).unwrap().len();
        let ratio = 10 * mean * texts.len() / texts.iter().map(compressed).sum::<usize>();
        assert!((28..50).contains(&ratio), "{ratio} tenths");
    }

    #[test]
    fn rare_lines_are_in_the_given_number_of_files() {
        let corpus = Corpus::new(400, 10_000);
        let all: String = (0..400).map(|index| corpus.text(index)).collect();
        assert_eq!(all.matches("quizzical_lathe").count(), 5);
        assert_eq!(all.matches("Gewürzmühle").count(), 4);
        assert_eq!(all.matches("\nmod gantry_").count(), 12);
    }
}
