//! Settings of the running kernel, changed for a while and put back: at the end, on every way out of a scope, and after a kill
//! by the next program that looks into the journal. What is to stay is noted in `applied`, and can be taken back later.

mod applied;
mod journal;
#[cfg(test)]
mod tests;
mod twins;

use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

pub use applied::{Applied, Change, Others, TakenBack, applied_path};
pub use journal::Held;
use journal::{Journal, Owner, Standing};

/// Settings that are to be as they were when this is dropped.
#[derive(Debug)]
pub struct Settings {
    before: Vec<Held>,
    /// Taken by the first who puts back.
    journal: Option<PathBuf>,
}

/// What [`undo_left`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// No journal, or one of an earlier boot, which is removed.
    Nothing,
    /// Settings of a program that did not end as it should were put back.
    Undone(Vec<Held>),
}

/// Why settings could not be changed or put back.
#[derive(Debug)]
pub enum SettingsError {
    /// Another program has settings changed.
    Taken {
        /// Its process number.
        pid: u32,
    },
    /// The journal cannot be read or written.
    Journal {
        /// Where it is.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A setting cannot be read.
    Read {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A setting cannot be written.
    Write {
        /// Its file and what was to be in it.
        held: Held,
        /// Why.
        error: io::Error,
    },
    /// The kernel took it and made something else of it.
    Altered {
        /// The file and what was written.
        held: Held,
        /// What it holds now.
        holds: String,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { pid } => {
                write!(f, "process {pid} has this machine's settings changed already; wait for it to end")
            }
            Self::Journal { path, error } => write!(
                f,
                "{}: {error}; it says which settings are to be put back, so see to it, then try again",
                path.display()
            ),
            Self::Read { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Write { held, error } => {
                write!(f, "{} does not take {}: {error}", held.path.display(), held.text)
            }
            Self::Altered { held, holds } => {
                write!(f, "{} made {holds} of {}", held.path.display(), held.text)
            }
        }
    }
}

impl std::error::Error for SettingsError {}

/// Where the journal is: `settings.journal` in `$XDG_STATE_HOME/freehold`; without that in `/var/lib/freehold` for root, who may
/// come with several homes, and in `~/.local/state/freehold` for others.
pub fn journal_path() -> PathBuf {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // SAFETY: the call takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let home = || absolute("HOME").filter(|_| !is_root).map(|home| home.join(".local/state"));
    let state = absolute("XDG_STATE_HOME").or_else(home).unwrap_or_else(|| "/var/lib".into());
    state.join("freehold/settings.journal")
}

/// Reads `text` as the journal and as the note of applied settings, for fuzzing.
#[cfg(fuzzing)]
pub fn fuzz_notes(text: &str) {
    journal::fuzz(text);
    applied::fuzz(text);
}

/// What is to be written to a setting's file to have it as it is: the word in brackets where it lists all, else its line.
///
/// # Errors
/// A file that is missing or may not be read.
pub fn current(path: &Path) -> Result<String, SettingsError> {
    let text = fs::read_to_string(path).map_err(|error| SettingsError::Read { path: path.into(), error })?;
    let line = text.lines().next().unwrap_or_default().trim();
    let chosen = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Ok(chosen.map_or(line, |(word, _)| word).to_owned())
}

/// Looks for the journal of a program that was killed, and puts back what it says.
///
/// # Errors
/// A journal whose owner runs, or that cannot be read; a setting that cannot be written, with the journal left there.
pub fn undo_left(journal: &Path) -> Result<Left, SettingsError> {
    let at = |error| SettingsError::Journal { path: journal.into(), error };
    let Some(found) = Journal::read(journal).map_err(at)? else { return Ok(Left::Nothing) };
    match found.owner.standing() {
        Standing::Alive => Err(SettingsError::Taken { pid: found.owner.pid() }),
        Standing::Rebooted => fs::remove_file(journal).map(|()| Left::Nothing).map_err(at),
        Standing::Left => {
            write_back(&found.held)?;
            fs::remove_file(journal).map_err(at)?;
            Ok(Left::Undone(found.held))
        }
    }
}

impl Settings {
    /// Notes in `journal` what the files at `paths` hold, and those that are written with them. From here until this is dropped they may be written.
    ///
    /// # Errors
    /// A file that is missing or cannot be read; a journal that is there, or cannot be written.
    pub fn keep(journal: PathBuf, paths: &[PathBuf]) -> Result<Self, SettingsError> {
        let before = twins::held_with_twins(paths)?;
        let content = Journal { owner: Owner::this(), held: before.clone() };
        content.create(&journal).map_err(|error| match Journal::read(&journal) {
            Ok(Some(other)) => SettingsError::Taken { pid: other.owner.pid() },
            _ => SettingsError::Journal { path: journal.clone(), error },
        })?;
        Ok(Self { before, journal: Some(journal) })
    }

    /// Writes a setting, and reads it back.
    ///
    /// # Errors
    /// What the kernel says; a value that it did not keep.
    ///
    /// # Panics
    /// If it is of a file that is not kept.
    pub fn write(&self, setting: &Held) -> Result<(), SettingsError> {
        assert!(
            self.before.iter().any(|held| held.path == setting.path),
            "{} is kept",
            setting.path.display()
        );
        write(self.in_force(setting).unwrap_or(setting))?;
        let holds = current(&setting.path)?;
        if words(&holds).eq(words(&setting.text)) {
            Ok(())
        } else {
            Err(SettingsError::Altered { held: setting.clone(), holds })
        }
    }

    /// What is written in place of `setting`, where that says that its twin is in force: what the twin held before, if it was.
    fn in_force(&self, setting: &Held) -> Option<&Held> {
        let twin = twins::twin_of(&setting.path).filter(|_| twins::is_others(setting))?;
        self.before.iter().find(|held| held.path == twin && held.text != "0")
    }

    /// What the files held, with those that are written with them.
    pub fn before(&self) -> &[Held] {
        &self.before
    }

    /// Leaves all as it is now and removes the journal: from here on nobody puts anything back by himself.
    ///
    /// # Errors
    /// The journal cannot be removed.
    pub fn leave(mut self) -> Result<(), SettingsError> {
        let Some(path) = self.journal.take() else { return Ok(()) };
        fs::remove_file(&path).map_err(|error| SettingsError::Journal { path, error })
    }

    /// Puts all back and removes the journal.
    ///
    /// # Errors
    /// The first setting that could not be put back; the others are, and the journal stays.
    pub fn put_back(mut self) -> Result<(), SettingsError> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), SettingsError> {
        let Some(path) = self.journal.take() else { return Ok(()) };
        write_back(&self.before)?;
        fs::remove_file(&path).map_err(|error| SettingsError::Journal { path, error })
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // Whoever wants to know calls `put_back`; what could not be put back stays in the journal.
        let _ = self.restore();
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace()
}

/// Writes what a file held before; one whose twin was in force is as it was once that is written.
fn put_back(held: &Held) -> Result<(), SettingsError> {
    if twins::is_others(held) { Ok(()) } else { write(held) }
}

fn write(held: &Held) -> Result<(), SettingsError> {
    // No file is made where there is none, and one write has it all: the kernel takes each write as a whole.
    let file = fs::OpenOptions::new().write(true).truncate(true).open(&held.path);
    let written =
        file.and_then(|mut file| io::Write::write_all(&mut file, format!("{}\n", held.text).as_bytes()));
    written.map_err(|error| SettingsError::Write { held: held.clone(), error })
}

/// Writes all that can be; the first error, if there is one.
fn write_back(held: &[Held]) -> Result<(), SettingsError> {
    held.iter().map(put_back).fold(Ok(()), Result::and)
}
