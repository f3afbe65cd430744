use super::{IndexedWords, MAX_INDEXED_BYTES, SearchWords, words};
use toolrest_core::{MAX_MEMORY_VALUE_BYTES, NewMemory, WorkspaceId};
use uuid::Uuid;

fn words_of(text: &str) -> Vec<String> {
    words(text).collect()
}

#[test]
fn words_are_runs_of_letters_and_digits_in_lower_case() {
    assert_eq!(words_of("The build_dir is /tmp/X-2!"), ["the", "build", "dir", "is", "tmp", "x", "2"]);
    assert_eq!(words_of("'; DROP \"a\"* OR 'b':*"), ["drop", "a", "or", "b"]);
    assert_eq!(words_of("Straße ÄÖ"), ["straße", "äö"]);
    assert_eq!(words_of("İ"), ["i"], "the dot that becomes a separate character is dropped");
    assert_eq!(words_of("用户name喜欢"), ["用", "户", "name", "喜", "欢"]);
    assert_eq!(words_of("... --"), Vec::<String>::new());
}

#[test]
fn words_of_two_workspaces_differ() {
    let (one, other) = (WorkspaceId(Uuid::from_u128(1)), WorkspaceId(Uuid::from_u128(2)));
    let queries = |ws| {
        let words = SearchWords::of(ws, "Word, ab");
        words.attempts().into_iter().map(|attempt| (words.fts5(attempt), words.tsquery(attempt))).collect::<Vec<_>>()
    };
    let expected = [
        ("\"0000000000000001word\" AND \"0000000000000001ab\"", "'0000000000000001word' & '0000000000000001ab'"),
        ("\"0000000000000001word\"* AND \"0000000000000001ab\"", "'0000000000000001word':* & '0000000000000001ab'"),
        ("\"0000000000000001word\" OR \"0000000000000001ab\"", "'0000000000000001word' | '0000000000000001ab'"),
        ("\"0000000000000001word\"* OR \"0000000000000001ab\"", "'0000000000000001word':* | '0000000000000001ab'"),
    ];
    assert_eq!(queries(one), expected.map(|(fts5, tsquery)| (fts5.to_owned(), tsquery.to_owned())));
    assert!(queries(other).iter().zip(queries(one)).all(|(other, one)| *other != one));
    assert_eq!(SearchWords::of(one, "ab").attempts().len(), 1);
    assert!(SearchWords::of(one, "?").attempts().is_empty());
}

#[test]
fn the_words_of_the_largest_memory_fit_into_a_tsvector() {
    let value: String =
        (0..).flat_map(|n: u32| format!("{n:x} ").into_bytes()).take(MAX_MEMORY_VALUE_BYTES).map(char::from).collect();
    let memory = NewMemory::new("k".into(), value, vec!["t".into()], None).unwrap();
    let indexed = IndexedWords::of(WorkspaceId(Uuid::from_u128(7)), &memory);
    let bytes: usize = indexed.0.iter().flatten().map(String::len).sum();
    assert!(bytes <= MAX_INDEXED_BYTES, "{bytes}");
    assert!(indexed.tsvector().starts_with("'0000000000000007k':1A '0000000000000007t':2B '00000000000000070':3 "));
}
