//! Settings that were changed to stay: what each file held before and what was written to it, so that it can be taken back on any
//! later day of this boot. The journal beside it is of changes that are under way.
//!
//! Text, a line each: a heading, the boot, then path, old text and new text of each file with tabs between.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::journal::{Held, boot};
use super::{SettingsError, current, journal_path, put_back, twins, words};

/// The first line.
const HEADING: &str = "freehold applied 1";

/// Where they are noted: `settings.applied` beside the journal.
pub fn applied_path() -> PathBuf {
    journal_path().with_file_name("settings.applied")
}

/// A setting that was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its file.
    pub path: PathBuf,
    /// What it held before the first change.
    pub before: String,
    /// What was written last.
    pub wrote: String,
}

/// What became of a setting that was to be taken back.
#[derive(Debug)]
pub enum TakenBack {
    /// It is as it was before.
    Done,
    /// It was so already.
    WasBack,
    /// Somebody else has changed it since, to this; it was left.
    Changed(String),
    /// It could not be read or written.
    Failed(SettingsError),
}

/// What is done with settings that somebody else has changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// They are left as they are.
    AreLeft,
    /// They are written back as well.
    AreWritten,
}

/// The settings of this boot that were changed to stay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    changes: Vec<Change>,
}

impl Applied {
    /// Reads what is noted at `path`: nothing where there is no such file, and of an earlier boot, whose settings are gone.
    ///
    /// # Errors
    /// A file that cannot be read or is something else.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let at = |error| SettingsError::Journal { path: path.into(), error };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(at(error)),
        };
        parse(&text).ok_or_else(|| at(io::Error::other("it is not freehold's note of what it applied")))
    }

    /// The changes, in the order in which they were made.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Notes that files that held `before` were given `wrote`, and what that did to their twins. Of a file that was changed earlier, what it
    /// held before that stays.
    pub fn add(&mut self, before: &[Held], wrote: &[Held]) {
        for new in twins::with_displaced(wrote) {
            if let Some(change) = self.changes.iter_mut().find(|change| change.path == new.path) {
                change.wrote.clone_from(&new.text);
            } else if let Some(held) = before.iter().find(|held| held.path == new.path) {
                let (path, before) = (held.path.clone(), held.text.clone());
                self.changes.push(Change { path, before, wrote: new.text.clone() });
            }
        }
        self.changes.retain(|change| !words(&change.before).eq(words(&change.wrote)));
    }

    /// Takes all back, the last change first. What could not be taken back, or was left, is still noted afterwards.
    pub fn take_back(&mut self, others: Others) -> Vec<(Change, TakenBack)> {
        let mut said: Vec<(Change, TakenBack)> = vec![];
        for change in self.changes.drain(..).rev() {
            let became = take_back(&change, others);
            said.push((change, became));
        }
        let stays = |became: &TakenBack| matches!(became, TakenBack::Changed(_) | TakenBack::Failed(_));
        let left = said.iter().rev().filter(|(_, became)| stays(became));
        self.changes = left.map(|(change, _)| change.clone()).collect();
        said
    }

    /// Writes it to `path`, whole or not at all; removes the file where nothing is left to note.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, path: &Path) -> Result<(), SettingsError> {
        let at = |error| SettingsError::Journal { path: path.into(), error };
        if self.changes.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(error)),
                _ => Ok(()),
            };
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        let written = fs::create_dir_all(folder).and_then(|()| self.write(&draft));
        let written = written.and_then(|()| fs::rename(&draft, path));
        // The name, too, is to be there after a crash.
        written.and_then(|()| File::open(folder)?.sync_all()).map_err(at)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(self.text()?.as_bytes())?;
        file.sync_all()
    }

    fn text(&self) -> io::Result<String> {
        let mut text = format!("{HEADING}\n{}\n", boot());
        for Change { path, before, wrote } in &self.changes {
            let path = path.to_str().filter(|path| !path.contains(['\t', '\n']));
            let path = path.ok_or_else(|| io::Error::other("a path that no line can hold"))?;
            // The kernel puts tabs between the numbers of a file, and takes spaces.
            let [before, wrote] = [before, wrote].map(|text| words(text).collect::<Vec<_>>().join(" "));
            text.extend([path, "\t", &before, "\t", &wrote, "\n"]);
        }
        Ok(text)
    }
}

fn take_back(change: &Change, others: Others) -> TakenBack {
    let holds = match current(&change.path) {
        Ok(holds) => holds,
        Err(error) => return TakenBack::Failed(error),
    };
    let is = |text: &str| words(&holds).eq(words(text));
    if is(&change.before) {
        return TakenBack::WasBack;
    }
    if !is(&change.wrote) && others == Others::AreLeft {
        return TakenBack::Changed(holds);
    }
    let written = put_back(&Held { path: change.path.clone(), text: change.before.clone() });
    written.map_or_else(TakenBack::Failed, |()| TakenBack::Done)
}

/// Reads a note's text; `None` if it is not one, or not whole.
fn parse(text: &str) -> Option<Applied> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != HEADING {
        return None;
    }
    if lines.next()? != boot() {
        return Some(Applied::default());
    }
    let changes = lines.map(|line| {
        let (path, rest) = line.split_once('\t')?;
        let (before, wrote) = rest.split_once('\t')?;
        Some(Change { path: path.into(), before: before.to_owned(), wrote: wrote.to_owned() })
    });
    Some(Applied { changes: changes.collect::<Option<_>>()? })
}

/// What is read can be written.
#[cfg(fuzzing)]
pub(super) fn fuzz(text: &str) {
    if let Some(applied) = parse(text) {
        applied.text().expect("it was a line each");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &Path, text: &str) -> Held {
        Held { path: path.into(), text: text.into() }
    }

    #[test]
    fn what_was_changed_twice_goes_back_to_what_it_was_first() {
        let folder = tempfile::tempdir().unwrap();
        let (note, one, other) =
            (folder.path().join("applied"), folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "9\n").unwrap();
        fs::write(&other, "4\t5\n").unwrap();
        let mut applied = Applied::read(&note).unwrap();
        applied.add(&[held(&one, "1"), held(&other, "4\t6")], &[held(&one, "5"), held(&other, "4 5")]);
        applied.save(&note).unwrap();
        let mut applied = Applied::read(&note).unwrap();
        applied.add(&[held(&one, "5")], &[held(&one, "9")]);
        applied.save(&note).unwrap();
        let mut applied = Applied::read(&note).unwrap();
        assert_eq!(applied.changes().len(), 2);
        let said = applied.take_back(Others::AreLeft);
        assert!(said.iter().all(|(_, became)| matches!(became, TakenBack::Done)), "{said:?}");
        assert_eq!(
            [&one, &other].map(|path| fs::read_to_string(path).unwrap()),
            ["1\n".to_owned(), "4 6\n".to_owned()]
        );
        applied.save(&note).unwrap();
        assert!(!note.exists() && Applied::read(&note).unwrap().changes().is_empty());
    }

    #[test]
    fn what_somebody_else_changed_is_left_unless_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (one, gone) = (folder.path().join("one"), folder.path().join("gone"));
        fs::write(&one, "7\n").unwrap();
        let mut applied = Applied::default();
        applied.add(&[held(&one, "1"), held(&gone, "1")], &[held(&one, "2"), held(&gone, "2")]);
        let said = applied.take_back(Others::AreLeft);
        assert!(
            matches!(&said[..], [(_, TakenBack::Failed(_)), (_, TakenBack::Changed(holds))] if holds == "7")
        );
        assert_eq!(applied.changes().len(), 2, "both are still noted");
        let said = applied.take_back(Others::AreWritten);
        assert!(matches!(&said[..], [(_, TakenBack::Failed(_)), (_, TakenBack::Done)]));
        assert_eq!((fs::read_to_string(&one).unwrap().as_str(), applied.changes().len()), ("1\n", 1));
        fs::write(&gone, "1\n").unwrap();
        assert!(matches!(applied.take_back(Others::AreLeft)[..], [(_, TakenBack::WasBack)]));
    }

    /// As the kernel does it, the file in bytes takes no 0 and makes the other 0, and the other way round.
    #[test]
    fn a_setting_in_two_units_is_noted_in_both_and_comes_back_by_the_one_that_was_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let (ratio, bytes) = (folder.path().join("dirty_ratio"), folder.path().join("dirty_bytes"));
        let set = |in_parts: &str, in_bytes: &str| {
            fs::write(&ratio, in_parts).unwrap();
            fs::write(&bytes, in_bytes).unwrap();
        };
        let became = |applied: &mut Applied| -> Vec<String> {
            applied.take_back(Others::AreLeft).iter().map(|(_, became)| format!("{became:?}")).collect()
        };
        let mut applied = Applied::default();
        applied.add(&[held(&ratio, "20"), held(&bytes, "0")], &[held(&bytes, "4096")]);
        set("0", "4096");
        assert_eq!(became(&mut applied), ["Done", "Done"]);
        assert_eq!([&ratio, &bytes].map(|path| fs::read_to_string(path).unwrap()), ["20\n", "4096"]);
        let mut applied = Applied::default();
        applied.add(&[held(&ratio, "0"), held(&bytes, "4096")], &[held(&ratio, "10")]);
        set("10", "0");
        assert_eq!(became(&mut applied), ["Done", "Done"]);
        assert_eq!(fs::read_to_string(&bytes).unwrap(), "4096\n");
        // A plan with both: what was written last is in force, and noted so.
        let mut applied = Applied::default();
        applied.add(&[held(&ratio, "20"), held(&bytes, "0")], &[held(&bytes, "8192"), held(&ratio, "10")]);
        let noted: Vec<(&Path, &str)> =
            applied.changes().iter().map(|change| (&*change.path, &*change.wrote)).collect();
        assert_eq!(noted, [(&*ratio, "10")]);
    }

    #[test]
    fn a_change_back_by_hand_is_no_change() {
        let mut applied = Applied::default();
        let path = Path::new("/x");
        applied.add(&[held(path, "1")], &[held(path, "2")]);
        applied.add(&[held(path, "2")], &[held(path, "1")]);
        assert_eq!(applied, Applied::default());
    }

    #[test]
    fn another_boots_note_is_empty_and_a_broken_one_refused() {
        let whole =
            Applied { changes: vec![Change { path: "/x".into(), before: "1".into(), wrote: "2".into() }] };
        let text = whole.text().unwrap();
        assert_eq!(parse(&text), Some(whole));
        assert_eq!(parse(&text.replace(&boot(), "another")), Some(Applied::default()));
        assert_eq!(parse(&text[..text.len() - 1]), None);
        assert_eq!(parse(&text.replace("1\t2", "12")), None);
        assert_eq!(parse("x\n"), None);
    }
}
