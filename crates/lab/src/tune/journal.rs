//! What was simulated, line by line in a file, so that nothing is simulated twice: not by the same question after it was stopped,
//! be it by SIGKILL, and not by another one that needs the same simulation.
//!
//! A line is JSON with a key that stands for all that the simulation depends on: this build, the workload (shortened or whole),
//! the machine's figures, policy and knobs, the seed. It is written whole when a simulation ends; a last line that was cut short is
//! cut off when the file is opened again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sim::profile::digest;

use super::bench::Tried;
use super::ground::Keep;
use crate::measurements::{Figure, Run};
use crate::subject::{AskError, Goal, Side};

/// A journal; without a file it lasts as long as the question.
#[derive(Debug, Default)]
pub struct Journal {
    build: String,
    known: Mutex<BTreeMap<String, Line>>,
    file: Option<Mutex<File>>,
}

/// A simulation that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    key: String,
    /// Policy and knobs, for those who read it.
    setting: String,
    seed: u64,
    permille: u64,
    /// What there was to simulate ([`Run::events`]).
    #[serde(skip_serializing_if = "is_zero")]
    events: u64,
    /// Every figure, by name; `null` where nothing of the kind happened.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<String, Option<f64>>,
    /// Why it could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// All of it, where that was to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Box<Run>>,
}

impl Journal {
    /// The journal in the file at `path`, which is made if there is none. `build` stands for the program that simulates: what another
    /// one simulated is passed over.
    ///
    /// # Errors
    /// It cannot be read or written, or a line of it, the last apart, is none of a journal's.
    pub fn open(path: &Path, build: &str) -> Result<Self, AskError> {
        let wrong = |what: &dyn std::fmt::Display| AskError::new(format!("{}: {what}", path.display()));
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| wrong(&error))?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            // It was stopped while it wrote; a file that is no journal at all is not to be cut.
            let is_ours = whole > 0 || bytes.starts_with(b"{\"key\":");
            if !is_ours {
                return Err(wrong(&"is no journal of freehold tune"));
            }
            file.set_len(whole as u64).map_err(|error| wrong(&error))?;
        }
        let mut known: BTreeMap<String, Line> = BTreeMap::new();
        for (number, text) in
            bytes[..whole].split(|&byte| byte == b'\n').filter(|text| !text.is_empty()).enumerate()
        {
            let line: Line =
                serde_json::from_slice(text).ok().filter(|line: &Line| !line.key.is_empty()).ok_or_else(
                    || wrong(&format!("line {} is none of a journal of freehold tune", number + 1)),
                )?;
            know(&mut known, line);
        }
        Ok(Self { build: build.to_owned(), known: Mutex::new(known), file: Some(Mutex::new(file)) })
    }

    /// How many simulations it knows.
    pub fn len(&self) -> usize {
        held(&self.known).len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stands for a simulation of the workload of this digest.
    pub(super) fn key(ground: &str, side: &Side, seed: u64) -> String {
        digest(format!("{ground}\n{}\n{seed}", side.name()))
    }

    fn own(&self, key: &str) -> String {
        digest(format!("{}\n{key}", self.build))
    }

    /// What is known of the simulation of this key, if that is all that is asked for.
    pub(super) fn find(&self, key: &str, goals: &[Goal], keep: Keep) -> Option<(Tried, Option<Run>)> {
        let known = held(&self.known);
        let line = known.get(&self.own(key))?;
        if let Some(why) = &line.failed {
            return Some((Err(why.clone()), None));
        }
        let values =
            goals.iter().map(|goal| line.values.get(goal.name()).copied()).collect::<Option<Vec<_>>>()?;
        let run = line.run.as_deref().cloned();
        (run.is_some() || keep == Keep::Figures).then_some((Ok(values), run))
    }

    /// What there was to simulate of this key; 0 where that is not known.
    pub(super) fn events(&self, key: &str) -> u64 {
        held(&self.known).get(&self.own(key)).map_or(0, |line| line.events)
    }

    /// Adds a line to the file.
    pub(super) fn write(&self, line: &Line) -> Result<(), AskError> {
        let line = Line { key: self.own(&line.key), ..line.clone() };
        know(&mut held(&self.known), line.clone());
        let Some(file) = &self.file else { return Ok(()) };
        let mut text = serde_json::to_string(&line).expect("figures serialise");
        text.push('\n');
        // One write: others that append to the file come before it or behind it.
        held(file)
            .write_all(text.as_bytes())
            .map_err(|error| AskError::new(format!("the journal cannot be written: {error}")))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(events: &u64) -> bool {
    *events == 0
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn know(known: &mut BTreeMap<String, Line>, line: Line) {
    match known.get_mut(&line.key) {
        Some(before) => before.add(line),
        None => _ = known.insert(line.key.clone(), line),
    }
}

impl Line {
    pub(super) fn new(key: String, side: &Side, seed: u64, permille: u64) -> Self {
        Self { key, setting: side.name(), seed, permille, ..Self::default() }
    }

    /// With what there was to simulate.
    pub(super) fn of_events(self, events: u64) -> Self {
        Self { events, ..self }
    }

    /// What came of it.
    pub(super) fn came(&mut self, goals: &[Goal], tried: &Tried, all: Vec<(Figure, f64)>, run: Option<Run>) {
        self.values = all.into_iter().map(|(figure, value)| (figure.name, Some(value))).collect();
        self.run = run.map(Box::new);
        match tried {
            Ok(values) => self
                .values
                .extend(goals.iter().map(|goal| goal.name().to_owned()).zip(values.iter().copied())),
            Err(why) => self.failed = Some(why.clone()),
        }
    }

    /// What another line says of the same simulation.
    fn add(&mut self, other: Self) {
        self.values.extend(other.values);
        self.events = self.events.max(other.events);
        self.failed = other.failed.or(self.failed.take());
        self.run = other.run.or(self.run.take());
    }
}

#[cfg(test)]
mod tests {
    use mm::Policy;

    use super::*;

    fn side() -> Side {
        Side { policy: Policy::default(), knobs: vec![] }
    }

    fn goals() -> Vec<Goal> {
        vec![Goal::Figure("a".into()), Goal::Figure("b".into())]
    }

    fn line(seed: u64, values: [Option<f64>; 2]) -> Line {
        let mut line = Line::new(Journal::key("x", &side(), seed), &side(), seed, 1000);
        line.came(&goals(), &Ok(values.to_vec()), vec![], None);
        line
    }

    fn found(journal: &Journal, seed: u64) -> Option<Tried> {
        journal.find(&Journal::key("x", &side(), seed), &goals(), Keep::Figures).map(|(tried, _)| tried)
    }

    #[test]
    fn what_was_written_is_found_to_the_bit_and_a_torn_line_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let odd = 0.1 + 0.2;
        let journal = Journal::open(&path, "build").unwrap();
        journal.write(&line(1, [Some(odd), None])).unwrap();
        journal.write(&line(2, [Some(1e300), Some(-0.0)])).unwrap();
        let text = std::fs::read(&path).unwrap();
        for cut in 0..text.len() {
            std::fs::write(&path, &text[..cut]).unwrap();
            if cut > 0 && cut < 7 {
                assert!(Journal::open(&path, "build").is_err(), "{cut} bytes may be anybody's");
                continue;
            }
            let again = Journal::open(&path, "build").unwrap();
            let lines = text[..cut].split(|&byte| byte == b'\n').count() - 1;
            assert_eq!(again.len(), lines, "cut at {cut}");
            again.write(&line(3, [None, None])).unwrap();
            assert_eq!(Journal::open(&path, "build").unwrap().len(), lines + 1, "cut at {cut}");
        }
        std::fs::write(&path, &text).unwrap();
        let again = Journal::open(&path, "build").unwrap();
        assert_eq!(found(&again, 1), Some(Ok(vec![Some(odd), None])));
        assert_eq!(found(&again, 3), None);
        assert_eq!(found(&Journal::open(&path, "another").unwrap(), 1), None);
    }

    #[test]
    fn what_is_no_journal_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        for text in ["my notes", "my notes\n", "{\"key\":\"\"}\n"] {
            std::fs::write(&path, text).unwrap();
            let error = Journal::open(&path, "build").unwrap_err().to_string();
            assert!(error.contains("notes") && error.lines().count() == 1, "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_run_and_more_figures_may_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::open(&path, "build").unwrap();
        journal.write(&line(1, [Some(1.0), Some(2.0)])).unwrap();
        let mut with_run = line(1, [Some(1.0), Some(2.0)]);
        with_run.run = Some(Box::new(Run { simulated_ns: 7, ..Run::default() }));
        journal.write(&with_run).unwrap();
        let again = Journal::open(&path, "build").unwrap();
        let key = Journal::key("x", &side(), 1);
        let (_, run) = again.find(&key, &goals(), Keep::Run).unwrap();
        assert_eq!(run.unwrap().simulated_ns, 7);
        assert!(again.find(&key, &[Goal::Figure("c".into())], Keep::Figures).is_none());
    }
}
