//! One self-contained page: the answer in the terminal's words, its charts, what to write, then all tables and histograms.
//!
//! No script is needed to read it and nothing is fetched; charts are SVG, the measurements themselves are embedded
//! as JSON under the id `measurements`. It reads in light and dark, by keyboard, and on a telephone.

mod chart;
mod page;
mod svg;
mod to_write;
mod words;

use std::fmt;

use lab::measurements::Document;
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;

use crate::style::Style;

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

/// The page, as HTML; `verdict` is the answer that a terminal shows first.
///
/// # Errors
/// [`PageError`], which no document should be able to cause.
pub fn page(document: &Document, verdict: impl FnOnce(Style) -> String) -> Result<String, PageError> {
    render(Page::of(document, &verdict(Style::unbroken())))
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
    for (name, text) in [
        ("report.html", include_str!("report.html")),
        ("style.css", include_str!("style.css")),
        ("script.js", include_str!("script.js")),
    ] {
        environment.add_template(name, text).map_err(PageError)?;
    }
    let template = environment.get_template("report.html");
    template.and_then(|template| template.render(Serde(page))).map_err(PageError)
}
