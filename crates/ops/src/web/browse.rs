//! Reads a page for a task.

use super::summary::extract;
use super::{Web, bad_url, html, markdown, text};
use crate::exec::Executor;
use crate::outside::http_client::{HttpRequest, HttpResponse, HttpUrl};
use dom_smoothie::{Config, Readability, TextMode};
use http::{HeaderMap, HeaderValue, header};
use toolrest_core::{CallCx, ErrorKind, Result, ToolError};

/// Length of a text below which a page with scripts is taken to need them.
const MIN_TEXT_CHARS: usize = 200;
/// Maximum number of elements of a page that is read.
const MAX_ELEMENTS: usize = 100_000;
/// Maximum length of a task.
const MAX_TASK_CHARS: usize = 4_000;

/// A page that was read.
pub struct BrowsedPage {
    /// What the page says about the task.
    pub summary: String,
    /// Where the summary is from.
    pub source: SummarySource,
    /// What fetched the page.
    pub fetched_by: FetchedBy,
    /// The title of the page.
    pub title: Option<String>,
    /// The address of the page, after redirects.
    pub url: String,
    /// The status, if it is an error.
    pub error_status: Option<u16>,
}

/// What fetched a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchedBy {
    /// The server: the page is as its host sent it.
    Http,
    /// A browser: the page is as its scripts made it.
    Browser,
}

/// How a summary was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummarySource {
    /// A model wrote it.
    Model,
    /// It consists of sentences of the page.
    Extract,
}

/// The text of a page for readers.
struct ReadableText {
    title: Option<String>,
    text: String,
    has_scripts: bool,
}

impl Web {
    /// Reads a page, and summarises what it says about a task. A page with scripts is rendered by a browser, if there is one.
    pub async fn browse(&self, cx: &CallCx, executor: &Executor, url: &str, task: &str) -> Result<BrowsedPage> {
        let url = HttpUrl::parse(url).map_err(|error| bad_url("url", &error))?;
        if task.trim().is_empty() || task.chars().count() > MAX_TASK_CHARS {
            let message = format!("`task_description` must have 1 to {MAX_TASK_CHARS} characters");
            return Err(ToolError::argument("task_description", message));
        }
        let _slot = self.enter(cx).await?;
        let accept = HeaderValue::from_static("text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5");
        let fields = HeaderMap::from_iter([(header::ACCEPT, accept)]);
        let response = self.get_judged(cx, HttpRequest { fields, ..HttpRequest::get(url) }, None).await?;
        let (status, url) = (response.status, response.url.clone());
        let mut readable = readable_text(cx, response).await?;
        let mut fetched_by = FetchedBy::Http;
        if status.is_client_error() || status.is_server_error() {
            cx.warn(format!("The page answered with the status {status}: its text is that of an error page"));
        } else if readable.has_scripts {
            match self.rendered_text(cx, executor, &url).await {
                Ok(rendered) => (readable, fetched_by) = (rendered, FetchedBy::Browser),
                Err(reason) if readable.text.chars().count() < MIN_TEXT_CHARS => cx.warn(format!(
                    "The page has almost no text of its own: it is made by scripts, which were not run ({reason})"
                )),
                Err(reason) => tracing::debug!(reason, "a page was not rendered"),
            }
        }
        let (summary, source) = self.summarize(cx, task, &readable.text).await;
        let summary = if summary.is_empty() { "The page has no text.".to_owned() } else { summary };
        let error_status = (!status.is_success()).then_some(status.as_u16());
        Ok(BrowsedPage { summary, source, fetched_by, title: readable.title, url: url.to_string(), error_status })
    }

    /// Returns the text of a page after its scripts have run, or why there is none.
    async fn rendered_text(&self, cx: &CallCx, executor: &Executor, url: &HttpUrl) -> Result<ReadableText, String> {
        if !self.options.renders_pages {
            return Err("the operator has turned the browser off (web.browser)".to_owned());
        }
        let page = self.render(cx, executor, url).await.map_err(|error| error.to_string())?;
        let address = url.to_string();
        let read = crate::heavy::run(cx, page.len(), move |_| article(&page, &address)).await;
        read.map_err(|error| error.message)
    }

    async fn summarize(&self, cx: &CallCx, task: &str, text: &str) -> (String, SummarySource) {
        if let Some(model) = self.model.as_ref().filter(|_| !text.is_empty()) {
            match model.summarize(&self.own_client, self.limits(None), cx.correlation(), task, text).await {
                Ok(summary) => return (summary, SummarySource::Model),
                Err(error) => {
                    tracing::warn!(%error, "the model for summaries failed");
                    cx.warn(format!(
                        "The model made no summary ({error}); the summary consists of sentences of the page"
                    ));
                }
            }
        }
        (extract(text, task), SummarySource::Extract)
    }
}

/// Returns the text of a page. Pages of HTML are reduced to their article, if they have one.
async fn readable_text(cx: &CallCx, response: HttpResponse) -> Result<ReadableText> {
    crate::heavy::run(cx, response.body.len(), move |_| {
        let media_type = text::media_type(&response.fields);
        let Some(content) = text::decode(&response.fields, &response.body) else {
            let kind = if media_type.is_empty() { "unknown content" } else { media_type.as_str() };
            let message =
                format!("{} is not a page of text, but {kind} of {} bytes", response.url, response.body.len());
            return Err(ToolError::new(ErrorKind::WrongType, message).about("url"));
        };
        if !text::is_html(&media_type, &content) {
            return Ok(ReadableText { title: None, text: content.trim().to_owned(), has_scripts: false });
        }
        article(&content, &response.url.to_string())
    })
    .await
}

/// Returns the text of a page: that of its article, or else of the whole page.
fn article(page: &str, url: &str) -> Result<ReadableText> {
    let has_scripts = page.contains("<script");
    let found = html::with_tree(page, |_| {
        // It parses the page again, which the limits allow.
        let config =
            Config { max_elements_to_parse: MAX_ELEMENTS, text_mode: TextMode::Formatted, ..Config::default() };
        let article = Readability::new(page, Some(url), Some(config)).and_then(|mut reader| reader.parse());
        let article = article.ok().map(|article| (article.title, article.text_content.trim().to_owned()));
        Ok(article.filter(|(_, text)| !text.is_empty()))
    })?;
    Ok(match found {
        Some((title, text)) => {
            let title = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
            ReadableText { title, text, has_scripts }
        }
        // Not an article: a list, a form, a short notice.
        None => ReadableText { title: None, text: markdown::from_html(page)?, has_scripts },
    })
}
