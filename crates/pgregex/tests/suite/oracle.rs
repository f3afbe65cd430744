//! Asks PostgreSQL and this crate the same questions and compares the answers.

use pgregex::{Options, Regex};
use tokio_postgres::{Client, NoTls, Statement};
use toolrest_testkit::Postgres;

/// What somebody says about a pattern: for each line whether it matches, or why the pattern is refused.
pub type Answer = Result<Vec<bool>, String>;

/// How long PostgreSQL may think about one question.
const PATIENCE: &str = "5s";

/// Tells whether PostgreSQL gave up, which says nothing about the pattern.
pub fn gave_up(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|message| message.contains("timeout"))
}

/// A question: a pattern, whether case counts, and the lines.
#[derive(Debug, Clone)]
pub struct Question {
    pub pattern: String,
    pub case_insensitive: bool,
    pub lines: Vec<String>,
}

/// A connection to a database with the locale C.UTF-8.
pub struct Oracle {
    client: Client,
    with_case: Statement,
    without_case: Statement,
}

impl Oracle {
    pub async fn connect() -> Self {
        let url = Postgres::shared().create_database();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client.batch_execute(&format!("SET statement_timeout = '{PATIENCE}'")).await.expect("a setting");
        let sql = |operator: &str| {
            format!(
                "SELECT array(SELECT line {operator} $1 FROM unnest($2::text[]) WITH ORDINALITY AS lines(line, n) ORDER BY n)"
            )
        };
        let with_case = client.prepare(&sql("~")).await.expect("a statement");
        let without_case = client.prepare(&sql("~*")).await.expect("a statement");
        Self { client, with_case, without_case }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub async fn ask(&self, question: &Question) -> Answer {
        let statement = if question.case_insensitive { &self.without_case } else { &self.with_case };
        match self.client.query_one(statement, &[&question.pattern, &question.lines]).await {
            Ok(row) => Ok(row.get(0)),
            Err(error) => Err(error.as_db_error().expect("an answer of the server").message().to_owned()),
        }
    }
}

/// Answers with this crate: each line alone, and all lines as one text, which has to say the same.
pub fn answer(question: &Question) -> Answer {
    let options = Options { case_insensitive: question.case_insensitive, ..Options::default() };
    let regex = Regex::new(&question.pattern, options)
        .map_err(|error| format!("invalid regular expression: {}", error.kind()))?;
    let single: Vec<bool> = question.lines.iter().map(|line| regex.is_match(line).expect("within the limit")).collect();
    let text = question.lines.join("\n");
    if !text.is_empty() {
        let starts: Vec<usize> =
            regex.matching_lines(text.as_bytes()).map(|line| line.expect("within").start).collect();
        let mut start = 0;
        for (line, matches) in question.lines.iter().zip(&single) {
            assert_eq!(starts.contains(&start), *matches, "{question:?}: {line:?} within the text");
            start += line.len() + 1;
        }
    }
    for (line, matches) in question.lines.iter().zip(&single) {
        assert!(!matches || holds_required(&regex, line), "{question:?}: {line:?} lacks {:?}", regex.requirements());
    }
    Ok(single)
}

fn holds_required(regex: &Regex, line: &str) -> bool {
    let line = line.to_ascii_lowercase().into_bytes();
    regex.requirements().iter().all(|requirement| {
        requirement.literals.iter().any(|literal| line.windows(literal.len()).any(|window| window == literal))
    })
}

/// Describes where two answers differ.
pub fn difference(question: &Question, theirs: &Answer, ours: &Answer) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let Question { pattern, case_insensitive, lines } = question;
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
    Some(format!("{pattern:?} (without case: {case_insensitive}): {detail}"))
}
