//! Pages of results, in Markdown: docs/results.md, which has the scores, and a page of each experiment.

use std::fmt::Write as _;

use lab::experiment::Scored;
use lab::measurements::{Account, Document, Score};

use crate::style::Style;
use crate::{experiment, published};

/// The page of scores, with links to `results/NAME.md`.
pub fn scores(outcomes: &[Scored]) -> String {
    let score: Vec<Score> = outcomes.iter().map(|outcome| outcome.score.clone()).collect();
    let grid = published::score_grid(&score).text(0, Style::plain().columns());
    let mut out = format!("{HEAD}```\n{grid}```\n\n## Experiments\n");
    for Scored { title, score } in outcomes {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "- [{0}](results/{0}.md): {title}", score.experiment);
    }
    out
}

/// An experiment's page. The same document gives the same page: nothing of when or how fast it was simulated is in it.
pub fn page(document: &Document, of: &Account) -> String {
    let text = experiment::account(Style::plain(), document, of);
    // The heading is Markdown's own.
    let text = text.split_once('\n').map_or(text.as_str(), |(_, rest)| rest);
    let text = text.trim_end();
    let own = |note: &&String| note.starts_with(&format!("{}, ", of.name));
    let notes: String = document.notes.iter().filter(own).flat_map(|note| ["**", note, "**\n\n"]).collect();
    format!("# {}\n{}\n\n{LINKS}\n\n{notes}```\n{text}\n```\n", of.name, of.title)
}

const LINKS: &str = "Simulated; [what roles, scores and \u{b1} mean](../results.md), [what the model leaves out](../model.md).";

const HEAD: &str = "\
# Results
Written by `make results`, or by `freehold lab run NAME --seeds 3 --results docs` for one experiment; change experiments, not this
page nor those of [results/](results/), which have every row with its interval, source and role. Every *simulated* figure comes out of the simulated machine
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
