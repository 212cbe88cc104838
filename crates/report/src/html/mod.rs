//! One self-contained page: what the terminal shows, drawn.
//!
//! No script is needed to read it and nothing is fetched; histograms are SVG, the measurements themselves are embedded
//! as JSON under the id `measurements`. It reads in light and dark.

mod page;
mod svg;

use std::fmt;

use lab::measurements::Document;
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;

use page::Page;

/// The page could not be made: the template and the code disagree.
#[derive(Debug)]
pub struct PageError(minijinja::Error);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the report's page could not be made: {:#}", self.0)
    }
}

impl std::error::Error for PageError {}

/// The page, as HTML.
///
/// # Errors
/// [`PageError`], which no document should be able to cause.
pub fn page(document: &Document) -> Result<String, PageError> {
    render(Page::of(document))
}

/// A page of a text as a terminal shows it, for what has no drawing; `json` is embedded.
///
/// # Errors
/// As [`page`].
pub fn plain_page(title: &str, text: &str, json: &str) -> Result<String, PageError> {
    render(Page::plain(title, text, json))
}

fn render(page: Page) -> Result<String, PageError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(PageError)?);
    // The name's ending turns on the escaping of everything that is not marked safe.
    environment.add_template("report.html", include_str!("report.html")).map_err(PageError)?;
    let template = environment.get_template("report.html");
    template.and_then(|template| template.render(Serde(page))).map_err(PageError)
}
