//! The page of all experiments' results, in Markdown: what docs/results.md is.

use std::fmt::Write as _;

use lab::measurements::Document;

use crate::experiment;
use crate::published;
use crate::style::Style;

/// The page. The same document gives the same page: nothing of when or how fast it was simulated is in it.
pub fn markdown(document: &Document) -> String {
    let style = Style::plain();
    let mut out = String::from(HEAD);
    if !document.score.is_empty() {
        let _ =
            writeln!(out, "```\n{}```\n", published::score_grid(&document.score).text(0, style.columns()));
    }
    for of in &document.experiments {
        let text = experiment::account(style, document, of);
        // The heading is Markdown's own.
        let text = text.split_once('\n').map_or(text.as_str(), |(_, rest)| rest);
        let _ = writeln!(out, "## {}\n{}\n\n```\n{}\n```\n", of.name, of.title, text.trim_end());
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

const HEAD: &str = "\
# Results
Written by `make results`; change experiments, not this page. Every *simulated* figure comes out of the simulated machine
([model.md](model.md) says what that has and leaves out), every *published* one from the source below its table. *Fitted*
rows are those that a cost in the machine's profile was chosen by; only *predicted* ones count in the score. ± is the
standard deviation over seeds. How the experiments are written is in [experiments.md](experiments.md).

";
