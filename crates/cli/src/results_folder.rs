//! Where results are kept: a folder with `results.md` (scores), `results.toml` (scores and rows' errors, for labels) and a page
//! of each experiment in `results/`. A run of some experiments replaces what is there of these, and keeps the rest.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lab::experiment::{Experiment, Results};
use lab::measurements::Document;

use crate::common::Failure;
use crate::output::Destination;

/// The files of such a folder.
pub(crate) struct ResultsFolder {
    pages: PathBuf,
    table: PathBuf,
    scores: Destination,
    numbers: Destination,
}

impl ResultsFolder {
    /// The folder `path`, which is made if there is none. That it cannot be written to, or that its table cannot be read, is said
    /// before anything is simulated.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let pages = path.join("results");
        // Not the folders above it: a name that leads nowhere is a mistake.
        for folder in [path, &pages].into_iter().filter(|folder| !folder.is_dir()) {
            fs::create_dir(folder).map_err(|error| Failure::at(folder, error))?;
        }
        let table = path.join("results.toml");
        let (scores, numbers) = (Destination::of(&path.join("results.md"))?, Destination::of(&table)?);
        let folder = Self { pages, table, scores, numbers };
        folder.earlier()?;
        Ok(folder)
    }

    /// Writes what `document` has of `experiments`.
    pub(crate) fn update(&self, document: &Document, experiments: &[Experiment]) -> Result<(), Failure> {
        for account in &document.experiments {
            let page = Destination::of(&self.pages.join(format!("{}.md", account.name)))?;
            page.write(report::results::page(document, account).as_bytes())?;
        }
        let results = self.earlier()?.updated(Results::of(document, experiments));
        self.numbers.write(results.to_toml().as_bytes())?;
        self.scores.write(report::results::scores(&results.experiments).as_bytes())
    }

    /// What is there of earlier runs.
    fn earlier(&self) -> Result<Results, Failure> {
        match fs::read_to_string(&self.table) {
            Ok(text) => Results::parse(&text).map_err(|error| Failure::at(&self.table, error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Results::default()),
            Err(error) => Err(Failure::at(&self.table, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::measurements::{Account, Score};

    fn document(name: &str, title: &str) -> Document {
        let account = Account { name: name.into(), title: title.into(), ..Account::default() };
        let score = Score { experiment: name.into(), independent_rows: 2, ..Score::default() };
        Document { experiments: vec![account], score: vec![score], ..Document::default() }
    }

    #[test]
    fn a_later_run_keeps_what_it_did_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let results = ResultsFolder::of(folder.path()).unwrap();
        results.update(&document("pcp-hold", "one"), &[]).unwrap();
        results.update(&document("pcp-batch", "two"), &[]).unwrap();
        results.update(&document("pcp-hold", "three"), &[]).unwrap();
        let scores = read("results.md");
        let place = |word: &str| scores.find(word).unwrap_or_else(|| panic!("no {word} in {scores}"));
        assert!(place("pcp-batch") < place("pcp-hold") && place("two") < place("three"));
        assert!(!scores.contains("one\n"), "{scores}");
        assert!(read("results/pcp-hold.md").starts_with("# pcp-hold\nthree\n"));
        assert!(read("results/pcp-batch.md").starts_with("# pcp-batch\ntwo\n"));
        assert_eq!(Results::parse(&read("results.toml")).unwrap().experiments.len(), 2);
    }

    #[test]
    fn a_table_that_is_none_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("results.toml"), "notes = 'mine'").unwrap();
        assert!(ResultsFolder::of(folder.path()).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("results.toml")).unwrap(), "notes = 'mine'");
    }
}
