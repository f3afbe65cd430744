//! Runs test cases with PostgreSQL and with this crate and compares the outcomes.

use pgregex::{Options, Regex};
use tokio_postgres::{Client, NoTls, Statement};
use toolrest_testkit::Postgres;

/// The outcome of a test case: for each line whether it matches, or why the pattern is refused.
pub type Outcome = Result<Vec<bool>, String>;

/// Maximum time that PostgreSQL may take for one test case.
const STATEMENT_TIMEOUT: &str = "5s";

/// Returns whether PostgreSQL timed out. Such an outcome cannot be compared.
pub fn timed_out(outcome: &Outcome) -> bool {
    outcome.as_ref().is_err_and(|message| message.contains("timeout"))
}

/// A pattern and the lines to match.
#[derive(Debug, Clone)]
pub struct TestCase {
    pub pattern: String,
    pub case_insensitive: bool,
    pub lines: Vec<String>,
}

/// A connection to a PostgreSQL database with the locale C.UTF-8, whose outcomes are the expected ones.
pub struct Oracle {
    client: Client,
    case_sensitive_query: Statement,
    case_insensitive_query: Statement,
}

impl Oracle {
    pub async fn connect() -> Self {
        let url = Postgres::shared().create_database();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client.batch_execute(&format!("SET statement_timeout = '{STATEMENT_TIMEOUT}'")).await.expect("a setting");
        let sql = |operator: &str| {
            format!(
                "SELECT array(SELECT line {operator} $1 FROM unnest($2::text[]) WITH ORDINALITY AS lines(line, n) ORDER BY n)"
            )
        };
        let case_sensitive_query = client.prepare(&sql("~")).await.expect("a statement");
        let case_insensitive_query = client.prepare(&sql("~*")).await.expect("a statement");
        Self { client, case_sensitive_query, case_insensitive_query }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub async fn run(&self, case: &TestCase) -> Outcome {
        let statement = if case.case_insensitive { &self.case_insensitive_query } else { &self.case_sensitive_query };
        match self.client.query_one(statement, &[&case.pattern, &case.lines]).await {
            Ok(row) => Ok(row.get(0)),
            Err(error) => Err(error.as_db_error().expect("an error of the server").message().to_owned()),
        }
    }
}

/// Runs a test case with this crate. Asserts that matching each line alone and all lines as one text gives the same
/// result, and that each matching line meets the requirements.
pub fn run_pgregex(case: &TestCase) -> Outcome {
    let options = Options { case_insensitive: case.case_insensitive, ..Options::default() };
    let regex =
        Regex::new(&case.pattern, options).map_err(|error| format!("invalid regular expression: {}", error.kind()))?;
    let single: Vec<bool> = case.lines.iter().map(|line| regex.is_match(line).expect("within the limit")).collect();
    let text = case.lines.join("\n");
    if !text.is_empty() {
        let starts: Vec<usize> =
            regex.matching_lines(text.as_bytes()).map(|line| line.expect("within").start).collect();
        let mut start = 0;
        for (line, matches) in case.lines.iter().zip(&single) {
            assert_eq!(starts.contains(&start), *matches, "{case:?}: {line:?} within the text");
            start += line.len() + 1;
        }
    }
    for (line, matches) in case.lines.iter().zip(&single) {
        assert!(!matches || meets_requirements(&regex, line), "{case:?}: {line:?} lacks {:?}", regex.requirements());
    }
    Ok(single)
}

fn meets_requirements(regex: &Regex, line: &str) -> bool {
    let line = line.to_ascii_lowercase().into_bytes();
    regex.requirements().iter().all(|requirement| {
        requirement.literals.iter().any(|literal| line.windows(literal.len()).any(|window| window == literal))
    })
}

/// Describes the difference between two outcomes; returns `None` if there is none.
pub fn difference(case: &TestCase, theirs: &Outcome, ours: &Outcome) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let TestCase { pattern, case_insensitive, lines } = case;
    let detail = match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => lines
            .iter()
            .zip(theirs.iter().zip(ours))
            .find(|(_, (theirs, ours))| theirs != ours)
            .map(|(line, (theirs, _))| format!("PostgreSQL says {theirs} for {line:?}")),
        _ => None,
    };
    let detail = detail.unwrap_or_else(|| {
        format!("PostgreSQL: {:?}, here: {:?}", theirs.as_ref().map(|_| "accepted"), ours.as_ref().map(|_| "accepted"))
    });
    Some(format!("{pattern:?} (case-insensitive: {case_insensitive}): {detail}"))
}
