use super::*;
use http::HeaderValue;

fn result(title: &str, url: &str, snippet: &str) -> SearchResult {
    SearchResult { title: title.to_owned(), url: url.to_owned(), snippet: snippet.to_owned() }
}

#[test]
fn searxng_is_asked_and_understood() {
    let provider = Searxng::new(&HttpUrl::parse("https://search.example.com/sub/").unwrap());
    let request = provider.request("a & b", 5);
    assert_eq!(request.url.to_string(), "https://search.example.com/sub/search?q=a+%26+b&format=json");
    let body = br#"{"query":"q","results":[{"url":"https://a.example/","title":"A","content":"text","engine":"x"},
        {"url":"https://b.example/","title":"B","content":null}],"answers":[]}"#;
    let found = provider.results(body).unwrap();
    assert_eq!(found, [result("A", "https://a.example/", "text"), result("B", "https://b.example/", "")]);
}

#[test]
fn brave_is_asked_and_understood() {
    let provider = Brave::new(HttpUrl::fixed(Brave::URL), HeaderValue::from_static("key"));
    let request = provider.request("q", 7);
    assert_eq!(request.url.to_string(), format!("{}?q=q&count=7", Brave::URL));
    assert_eq!(request.fields["x-subscription-token"], "key");
    let body = br#"{"type":"search","web":{"type":"search","results":[
        {"title":"A &amp; B","url":"https://a.example/","description":"<strong>bold</strong> &lt;p&gt; 1 < 2"}]}}"#;
    assert_eq!(provider.results(body).unwrap(), [result("A & B", "https://a.example/", "bold <p> 1 < 2")]);
    assert_eq!(provider.results(br#"{"type":"search"}"#).unwrap(), []);
}

#[test]
fn tavily_is_asked_and_understood() {
    let provider = Tavily::new(HttpUrl::fixed(Tavily::URL), HeaderValue::from_static("Bearer key"));
    let request = provider.request("q", 3);
    assert_eq!((request.method.as_str(), &request.body[..]), ("POST", &br#"{"query":"q","max_results":3}"#[..]));
    assert_eq!(request.fields["authorization"], "Bearer key");
    let body = br#"{"query":"q","results":[{"title":"A","url":"https://a.example/","content":"c","score":0.9}]}"#;
    assert_eq!(provider.results(body).unwrap(), [result("A", "https://a.example/", "c")]);
}

#[test]
fn an_answer_of_another_kind_is_no_empty_success() {
    let provider = Searxng::new(&HttpUrl::parse("https://search.example.com").unwrap());
    for body in [&b"<html>"[..], b"{}", b"[]", br#"{"results":"none"}"#] {
        assert_eq!(provider.results(body), None, "{}", String::from_utf8_lossy(body));
    }
}
