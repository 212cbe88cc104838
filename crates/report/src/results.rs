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
([model.md](model.md) says what that has and leaves out), every *published* one from the source below its table. What a row
counts for is its role:

- *predicted*: nothing was chosen by it, and it follows from no other row. Only these are in median and worst, and the
  column *independent* says how many they are.
- *fitted*: a cost in the machine's profile or a parameter of the workload was chosen with this row in sight.
- *derived*: a product, quotient or sum of other rows.
- *noise*: a change that was published within its own noise. *zero*: 0 or no change, published and simulated.
- *exact*: the kernel's own number, which must come out.

A direction is *right* if the change has the published sign and its interval over the seeds (95 %, Student's t, seed by
seed) excludes no change. It is not asked where the published change is within its noise (two standard errors, or 1 % where
no deviation was published), or where one seed was simulated. ± is the standard deviation over seeds. How the experiments are
written is in [experiments.md](experiments.md).

";
