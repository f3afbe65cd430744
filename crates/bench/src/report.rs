//! The measured figures and their targets, as a Markdown document.

use std::fmt::Write as _;

/// The limit for the median of a figure.
#[derive(Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    None,
}

impl Target {
    fn met_by(self, value: f64) -> Option<bool> {
        match self {
            Self::AtMost(bound) => Some(value <= bound),
            Self::AtLeast(bound) => Some(value >= bound),
            Self::None => None,
        }
    }
}

/// One measured quantity, a value for each round.
pub struct Figure {
    pub case: String,
    pub unit: &'static str,
    pub rounds: Vec<f64>,
    pub target: Target,
    /// Further values, for the last column.
    pub notes: String,
}

#[derive(Default)]
pub struct Report {
    machine: Vec<(String, String)>,
    sections: Vec<Section>,
}

struct Section {
    title: String,
    explanation: String,
    figures: Vec<Figure>,
}

impl Report {
    pub fn describe_machine(&mut self, name: &str, value: impl Into<String>) {
        self.machine.push((name.to_owned(), value.into()));
    }

    /// Begins a section; figures are added to the last section.
    pub fn section(&mut self, title: impl Into<String>, explanation: impl Into<String>) {
        self.sections.push(Section { title: title.into(), explanation: explanation.into(), figures: Vec::new() });
    }

    pub fn add(&mut self, figure: Figure) {
        let section = self.sections.last_mut().expect("a section begins before its figures");
        eprintln!(
            "  {}: {} {} {}",
            figure.case,
            number(median(&figure.rounds)),
            figure.unit,
            match figure.target.met_by(median(&figure.rounds)) {
                Some(true) => "(met)",
                Some(false) => "(NOT MET)",
                None => "",
            }
        );
        section.figures.push(figure);
    }

    pub fn markdown(&self) -> String {
        let verdicts: Vec<bool> = self
            .sections
            .iter()
            .flat_map(|section| &section.figures)
            .filter_map(|figure| figure.target.met_by(median(&figure.rounds)))
            .collect();
        let met = verdicts.iter().filter(|met| **met).count();

        let mut text = String::from("# Benchmarks\n\n");
        let _ = writeln!(
            text,
            "Written by `make bench`. Each figure is the median of its rounds. {met} of {} targets met.\n",
            verdicts.len()
        );
        for (name, value) in &self.machine {
            let _ = writeln!(text, "- {name}: {value}");
        }
        for section in &self.sections {
            let _ = writeln!(text, "\n## {}\n\n{}\n", section.title, section.explanation);
            text.push_str("| case | measured | rounds | target | met | notes |\n");
            text.push_str("|---|---|---|---|---|---|\n");
            for figure in &section.figures {
                text.push_str(&row(figure));
            }
        }
        text
    }
}

fn row(figure: &Figure) -> String {
    let Figure { case, unit, rounds, target, notes } = figure;
    let measured = median(rounds);
    let range = if rounds.len() == 1 {
        String::new()
    } else {
        let lowest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{}–{}", number(lowest), number(highest))
    };
    let bound = match *target {
        Target::AtMost(bound) => format!("≤ {} {unit}", number(bound)),
        Target::AtLeast(bound) => format!("≥ {} {unit}", number(bound)),
        Target::None => String::new(),
    };
    let met = match target.met_by(measured) {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    format!("| {case} | {} {unit} | {range} | {bound} | {met} | {notes} |\n", number(measured))
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], sorted[middle]) } else { sorted[middle] }
}

/// Formats a number with three significant digits, or all digits before the point, in groups of three.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_between_the_two_in_the_middle() {
        assert!((median(&[4.0, 1.0, 3.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_short_and_grouped() {
        let shown = [0.0804, 1.5, 22.25, 350.4, 12345.6, 1_234_567.0].map(number);
        assert_eq!(shown, ["0.080", "1.50", "22.2", "350", "12,346", "1,234,567"]);
    }

    #[test]
    fn the_document_shows_which_targets_are_met() {
        let figure = |case: &str, value, target| Figure {
            case: case.to_owned(),
            unit: "ms",
            rounds: vec![value, value],
            target,
            notes: String::new(),
        };
        let mut report = Report::default();
        report.describe_machine("cores", "2");
        report.section("Reading", "Eight connections.");
        report.add(figure("fast", 0.1, Target::AtMost(0.2)));
        report.add(figure("slow", 0.3, Target::AtMost(0.2)));
        report.add(figure("free", 0.3, Target::None));
        let text = report.markdown();
        assert!(text.contains("1 of 2 targets met"), "{text}");
        assert!(text.contains("| fast | 0.100 ms | 0.100–0.100 | ≤ 0.200 ms | yes |  |"), "{text}");
        assert!(text.contains("| slow | 0.300 ms | 0.300–0.300 | ≤ 0.200 ms | **no** |  |"), "{text}");
        assert!(text.contains("| free | 0.300 ms | 0.300–0.300 |  |  |  |"), "{text}");
    }
}
